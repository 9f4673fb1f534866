# SPDX-License-Identifier: Apache-2.0
"""Lasers: how each laser of a spinning lidar points, worked out from the points that it made.

A laser looks up or down by a fixed angle from a fixed height, and its beam passes the axis at a fixed distance. So the
points of one laser lie on a line z = up + tan(elevation) * rho over their distance rho from the axis, and their
azimuths, corrected for the sideways distance, lie on the lattice of the encoder's counts. Both are found from a single
sweep of a few thousand points per laser: up to rounding (millimetres in KITTI's files) there is no noise in angles.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array

if TYPE_CHECKING:
    from hedgerow.sensor.config import Group

Ints = NDArray[np.int64]

_SIDEWAYS_M = np.arange(-0.040, 0.0405, 0.001)  # no spinning lidar emits farther from its axis than this
_UP_PRIOR_M = 0.1  # where all ranges are alike the height cannot be seen; keeps it near the sensor's origin
_LINE_NOISE_M = 0.002
_FOR_LATTICE = 1_500  # points that show the lattice of a laser well enough
_AT_ONCE = 20_000  # points compared with all lasers at a time


@dataclass(frozen=True, slots=True, eq=False)
class Lasers:
    """K lasers, sensor frame: x forward, y left, z up."""

    elevation_rad: Array
    """(K,) above the horizon."""
    up_m: Array
    """(K,) height of emission."""
    left_m: Array
    """(K,) sideways distance of emission from the axis; the sign of catalogue's `left_mm`."""
    azimuth_rad: Array
    """(K,) to the rotor, counter-clockwise; with it, points that were fired together have one rotor angle."""
    step_rad: float
    """Rotor angles are multiples of this."""

    @classmethod
    def of_group(cls, group: "Group", step_rad: float, late_rad: Array | float = 0.0) -> "Lasers":
        """Take the lasers of a group of the catalogue.

        Args:
            group: of a spinning sensor.
            step_rad: as above.
            late_rad: (K,) how far the rotor turns, counter-clockwise, before each fires.
        """
        n = len(group.elevation_deg)
        azimuth = np.deg2rad(group.azimuth_deg or [0.0] * n)
        return cls(
            elevation_rad=np.deg2rad(group.elevation_deg),
            up_m=np.asarray(group.up_mm or [0.0] * n) * 1e-3,
            left_m=np.asarray(group.left_mm or [0.0] * n) * 1e-3 * np.cos(azimuth),
            azimuth_rad=azimuth + late_rad,
            step_rad=step_rad,
        )

    def __len__(self) -> int:
        """Count the lasers."""
        return len(self.elevation_rad)

    def rotor_rad(self, points: Array, laser: Ints) -> Array:
        """Return the (N,) rotor angles at which (N,) lasers made (N, 3) points."""
        return beam_azimuth(points, self.left_m[laser]) - self.azimuth_rad[laser]

    def nearest(self, points: Array) -> tuple[Ints, Array]:
        """Find the laser of each of (N, 3) points.

        Returns:
            (N,) laser, and (N,) how far the point lies above that laser's line [rad].
        """
        order = np.argsort(self.elevation_rad)
        parts = [self._nearest(part, order) for part in np.array_split(points, len(points) // _AT_ONCE + 1)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _nearest(self, points: Array, order: NDArray[np.intp]) -> tuple[Ints, Array]:
        rho = np.hypot(points[:, 0], points[:, 1])
        # Lines of lasers cross only nearer than any range, so the nearest line by height is the laser.
        heights = self.up_m[order] + rho[:, None] * np.tan(self.elevation_rad[order])
        closest = np.argmin(np.abs(points[:, 2, None] - heights), axis=1)
        off_m = points[:, 2] - heights[np.arange(len(points)), closest]
        laser = order[closest].astype(np.int64)
        return laser, off_m * np.cos(self.elevation_rad[laser]) ** 2 / np.maximum(rho, 1e-6)

    def beams(self, rotor_rad: Array, laser: Ints) -> tuple[Array, Array]:
        """Return origins and unit directions, (N, 3) each in the sensor frame, of pulses at (N,) rotor angles."""
        azimuth = rotor_rad + self.azimuth_rad[laser]
        cos, sin, left = np.cos(azimuth), np.sin(azimuth), self.left_m[laser]
        flat, up = np.cos(self.elevation_rad[laser]), np.sin(self.elevation_rad[laser])
        origin = np.stack([-left * sin, left * cos, self.up_m[laser]], axis=1)
        return origin, np.stack([flat * cos, flat * sin, up], axis=1)

    def origins(self, points: Array, laser: Ints) -> Array:
        """Return where the pulses that made (N, 3) points were emitted, (N, 3) in the sensor frame."""
        azimuth = beam_azimuth(points, self.left_m[laser])
        left = self.left_m[laser]
        return np.stack([-left * np.sin(azimuth), left * np.cos(azimuth), self.up_m[laser]], axis=1)


def beam_azimuth(points: Array, left_m: Array | float) -> Array:
    """Return the azimuth of beams that passed the axis at distance `left_m` and made (N, 3) points, (N,) [rad]."""
    rho = np.hypot(points[:, 0], points[:, 1])
    return np.arctan2(points[:, 1], points[:, 0]) - np.arcsin(np.clip(left_m / np.maximum(rho, 1e-6), -1, 1))


def fit_line(points: Array) -> tuple[float, float, float]:
    """Fit the line z = up + tan(elevation) * rho of one laser, robustly.

    Returns:
        Elevation [rad], height [m], and the root mean square of the residuals, as an angle [rad].
    """
    rho, z = np.maximum(np.hypot(points[:, 0], points[:, 1]), 1e-6), points[:, 2]
    slope = float(np.median(z / rho))
    up = 0.0
    scale_m = 0.3
    for _ in range(8):
        off = z - up - slope * rho
        weight = 1 / (1 + (off / scale_m) ** 2)
        ridge = (_LINE_NOISE_M / _UP_PRIOR_M) ** 2
        normal = np.array(
            [[weight.sum() + ridge, (weight * rho).sum()], [(weight * rho).sum(), (weight * rho**2).sum()]]
        )
        up, slope = np.linalg.solve(normal, [(weight * z).sum(), (weight * z * rho).sum()])
        scale_m = max(_LINE_NOISE_M, scale_m / 3)
    off = (z - up - slope * rho) / (rho * (1 + slope**2))
    return float(np.arctan(slope)), float(up), float(np.sqrt(np.mean(off**2)))


def fit_lattice(points: Array, step_rad: float, start_rad: float, sense: int) -> tuple[float, float, float]:
    """Find the sideways distance of one laser at which its azimuths lie best on a lattice.

    Args:
        points: (N, 3) of this laser.
        step_rad: of the lattice.
        start_rad: azimuth of the laser at the start of the sweep; a turn need not be a whole number of steps.
        sense: 1 if it turns counter-clockwise, else -1.

    Returns:
        Sideways distance [m], how far the laser has turned before the first step [rad], less than half a step, and how
        well the lattice is kept: 1 is exactly, 0 not at all.
    """
    points = points[:: len(points) // _FOR_LATTICE + 1]
    turns = (sense * (beam_azimuth(points, 0.0) - start_rad)) % (2 * np.pi) / step_rad
    rho = np.hypot(points[:, 0], points[:, 1])
    shift = sense * np.arcsin(np.clip(_SIDEWAYS_M[:, None] / rho, -1, 1)) / step_rad
    mean = np.exp(2j * np.pi * (turns - shift)).mean(axis=1)
    best = int(np.argmax(np.abs(mean)))
    return float(_SIDEWAYS_M[best]), float(np.angle(mean[best]) / (2 * np.pi) * step_rad), float(np.abs(mean[best]))
