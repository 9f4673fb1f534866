# SPDX-License-Identifier: Apache-2.0
"""Where a beam really points: the encoder's steps and a ray drawn from the beam's cone (paper 002, section IV).

A sensor reports each pulse at an encoder count and along the axis of its beam. The light it measured came from some
ray of a truncated cone around that axis. Both errors are for synthetic scans only: the beams of a real log already
contain them (000 section 3.2), so replaying a log never comes through here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import InputError
from hedgerow.sensor import randomness

if TYPE_CHECKING:
    from hedgerow.sensor.config import Beam
    from hedgerow.sensor.pattern import Pattern

Encoder = Literal["exact", "rounded", "uniform"]


@dataclass(frozen=True, slots=True)
class Aim:
    """How pulses differ from the ideal pattern. Raises InputError if a value is not one of those named."""

    encoder: Encoder = "exact"
    """"rounded" puts the rotor on the nearest encoder count; "uniform" anywhere within half a count of that."""
    cone: bool = False
    """Draw each ray uniformly from the cross section of the beam's truncated cone instead of taking its axis."""
    seed: int = 0
    """Random numbers are keyed by this and the pulse id."""

    def __post_init__(self) -> None:
        """Check every value once."""
        if self.encoder not in ("exact", "rounded", "uniform"):
            raise InputError("encoder", f"expected 'exact', 'rounded' or 'uniform', found {self.encoder!r}")
        randomness.require_seed(self.seed)

    @property
    def is_ideal(self) -> bool:
        """True if every turn is the same, so that the pattern can simply be repeated."""
        return self.encoder == "exact" and not self.cone


def aimed(
    pattern: "Pattern", rows: slice, pulse: NDArray[np.int64], aim: Aim, beam: "Beam", step_deg: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return origins and directions of some pulses as they really point, (N, 3) each, sensor frame.

    Args:
        pattern: the ideal scan.
        rows: which pulses of it, N of them.
        pulse: (N,) their ids.
        aim: what to apply.
        beam: shape of the beam.
        step_deg: encoder step.
    """
    origin = pattern.origin_m[rows].astype(np.float64)
    direction = pattern.direction[rows].astype(np.float64)
    if aim.encoder != "exact" and step_deg > 0:
        turn = encoder_error(pattern.rotor_rad[rows], np.deg2rad(step_deg), pulse, aim)
        origin, direction = about_z(origin, turn), about_z(direction, turn)
    if aim.cone:
        origin, direction = from_cone(origin, direction, pulse, aim.seed, beam)
    return origin.astype(np.float32), direction.astype(np.float32)


def encoder_error(rotor_rad: Array, step_rad: float, pulse: NDArray[np.int64], aim: Aim) -> Array:
    """Return by how much (N,) to turn each pulse about the axis [rad]."""
    error = np.rint(rotor_rad / step_rad) * step_rad - rotor_rad
    if aim.encoder == "uniform":
        error = error + (randomness.uniform(aim.seed, pulse, randomness.ENCODER) - 0.5) * step_rad
    return error


def spot_points(pulse: NDArray[np.int64], seed: int, beam: "Beam") -> tuple[Array, Array]:
    """Draw points uniformly from the unit spot: a disk of radius 1, or the square from -1 to 1; (N,) each."""
    first = randomness.uniform(seed, pulse, randomness.CONE_RADIUS)
    second = randomness.uniform(seed, pulse, randomness.CONE_ANGLE)
    if beam.spot == "rectangular":
        return 2 * first - 1, 2 * second - 1
    radius, angle = np.sqrt(first), 2 * np.pi * second
    return radius * np.cos(angle), radius * np.sin(angle)


def from_cone(
    origin: Array, direction: Array, pulse: NDArray[np.int64], seed: int, beam: "Beam"
) -> tuple[Array, Array]:
    """Move each ray to a point of the aperture and tilt it to the same point of the spot at 1 m; (N, 3) each."""
    across, upward = spot_points(pulse, seed, beam)
    # Straight up or down "left" is undefined; the y axis serves.
    flat = np.hypot(direction[:, 0], direction[:, 1])
    steep = flat < 1e-9
    divisor = np.where(steep, 1, flat)
    left = np.stack([-direction[:, 1] / divisor, direction[:, 0] / divisor, np.zeros(len(flat))], axis=1)
    left[steep] = (0, 1, 0)
    up = np.cross(direction, left)
    tan_h = np.tan(beam.divergence_horizontal_mrad * 1e-3 / 2)
    tan_v = np.tan(beam.divergence_vertical_mrad * 1e-3 / 2)
    half_h, half_v = beam.aperture_horizontal_mm * 1e-3 / 2, beam.aperture_vertical_mm * 1e-3 / 2
    shift = (half_h * across)[:, None] * left + (half_v * upward)[:, None] * up
    ray = direction + (tan_h * across)[:, None] * left + (tan_v * upward)[:, None] * up
    return origin + shift, ray / np.linalg.norm(ray, axis=1, keepdims=True)


def about_z(vectors: Array, angle_rad: Array) -> Array:
    """Turn (N, 3) vectors by (N,) angles about the z axis."""
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    x, y, z = vectors.T
    return np.stack([x * cos - y * sin, x * sin + y * cos, z], axis=1)
