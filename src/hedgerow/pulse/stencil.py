# SPDX-License-Identifier: Apache-2.0
"""Where the sub-rays of a pulse go: a stencil of points in the unit spot (Goodin 2018 §3.2.1).

The unit spot is the square from -1 to 1, or the disk of radius 1 (a circular and an elliptical spot differ in their
divergences alone). It is cut into cells of equal area, one for each sub-ray, so that equal shares stand for the whole
spot, rim included. "stratified" draws a point of every cell anew for each pulse. "fixed" takes one point of every cell,
placed so that the stencil has the centre and the second moments (the size, as seen by an average) of the uniform spot:
nine sub-rays are a centre and a ring of radius 3/4, or three by three points at 0 and ±1/√2.

"paper" is the circle of Goodin 2018: a centre and eight points at √2 tan(γ/2) / 4, that is √2/4 of the spot's radius.
It covers the inner third of the spot: its second moments are 2/9 of the spot's. √2/2, the radius that halves the area,
would have been nearly right, and is close to what the paper's own simulator uses; the option is for comparison.

Where the whole signal is recorded, a sub-ray stands for its part of the spot, not for a point of it: a tilted surface
stretches its echo. Parts are normal distributions, just wide enough that a plane of any tilt gives one echo and no row
of them. The points move inwards, so that points and parts together have the spot's second moments. That is nearly a
spot with a Gaussian profile, whose 1/e² radius is the radius of the uniform disk with the same second moments.

Equations: docs/models.md §17.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import InputError

if TYPE_CHECKING:
    from hedgerow.sensor.config import Beam

Sampling = Literal["fixed", "stratified", "paper"]
Shape = Literal["circular", "rectangular", "elliptical"]

MOST_SUB_RAYS = 81
_PAPER_RADIUS = np.sqrt(2) / 4


@dataclass(frozen=True, slots=True, eq=False)
class Stencil:
    """Points of the unit spot, or cells to draw them from, with their shares of the light."""

    round: bool
    """Disk, or square."""
    points: NDArray[np.float32]
    """(S, 2) left and up, in the unit spot; (0, 2) if they are drawn."""
    cells: NDArray[np.float32]
    """(S, 4) limits of left and of up; in the disk of the squared radius and of the angle [turns]; (0, 4) if fixed."""
    share: NDArray[np.float32]
    """(S,) of the pulse's light; sums to 1."""
    part_sigma: float = 0.0
    """Standard deviation along any axis of a sub-ray's part of the unit spot; 0: a point."""

    def in_parts(self) -> "Stencil":
        """Return the stencil whose sub-rays stand for parts of the spot."""
        if len(self.cells):  # points are drawn there, wherever the fixed ones are
            fixed = _disk_points(len(self.share)) if self.round else _square_points(len(self.share))
        else:
            fixed = self.points.astype(np.float64)
        variance = 0.25 if self.round else 1 / 3
        # The same shape with points moved inwards by q and parts of sigma q w is as smooth as with sigma w.
        smooth = _smooth_sigma(fixed.tobytes(), len(fixed))
        inwards = np.sqrt(variance / (float((fixed**2).mean()) + smooth**2))
        return replace(
            self,
            points=(inwards * self.points).astype(np.float32),
            cells=_scaled_cells(self.cells, inwards, self.round),
            part_sigma=float(inwards * smooth),
        )


@dataclass(frozen=True, slots=True)
class Cone:
    """A truncated cone of light: half widths where it leaves the sensor, and tangents of half the divergence."""

    half_m: tuple[float, float] = (0.0, 0.0)
    """Left and up [m]."""
    tangent: tuple[float, float] = (0.0, 0.0)
    """Left and up."""

    @classmethod
    def of(cls, beam: "Beam") -> "Cone":
        """Return the cone of a sensor's beam."""
        return cls(
            (beam.aperture_horizontal_mm * 5e-4, beam.aperture_vertical_mm * 5e-4),
            (
                float(np.tan(beam.divergence_horizontal_mrad * 5e-4)),
                float(np.tan(beam.divergence_vertical_mrad * 5e-4)),
            ),
        )


@cache
def _smooth_sigma(points: bytes, n: int) -> float:
    """Return how wide parts around these points must be for a plane of any tilt to give one echo, and a tenth more."""
    places = np.frombuffer(points).reshape(n, 2)
    if n == 1:
        return 0.5  # the axis alone: the whole spot
    angles = np.linspace(0, np.pi, 25)
    along = [places @ [np.cos(angle), np.sin(angle)] for angle in angles]
    low, high = 0.0, 1.0
    while high - low > 0.002:
        sigma = (low + high) / 2
        low, high = (low, sigma) if all(_is_one_echo(each, sigma) for each in along) else (sigma, high)
    return 1.1 * high


def _is_one_echo(places: Array, sigma: float) -> bool:
    """Tell whether parts of this width around these places add up to one maximum."""
    signal = np.exp(-0.5 * ((np.linspace(-2, 2, 401)[:, None] - places) / sigma) ** 2).sum(axis=1)
    slope = np.diff(signal) / signal.max()
    has_fallen = np.maximum.accumulate(slope < -1e-6)
    return not (has_fallen & (slope > 1e-6)).any()


def _scaled_cells(cells: NDArray[np.float32], factor: float, is_round: bool) -> NDArray[np.float32]:
    scaled = cells.copy()
    if is_round:
        scaled[:, :2] *= factor**2  # squared radii; angles stay
    else:
        scaled *= factor
    return scaled


def make_stencil(shape: Shape, n: int, sampling: Sampling = "fixed") -> Stencil:
    """Return the stencil of n sub-rays.

    Args:
        shape: of the spot.
        n: 1 to 81.
        sampling: see above. One or two fixed sub-rays cannot have the size of the spot: one is the axis, two lie side
            by side.

    Raises:
        InputError: too few or too many sub-rays, or the paper gives no such stencil.
    """
    if not 1 <= n <= MOST_SUB_RAYS:
        raise InputError("sub_rays", f"expected 1 to {MOST_SUB_RAYS}, found {n}")
    if sampling == "paper" and (n != 9 or shape == "rectangular"):
        raise InputError(
            "sampling", f"Goodin 2018 gives numbers for 9 sub-rays of a round spot, found {n} and {shape}; use fixed"
        )
    round_spot = shape != "rectangular"
    share = np.full(n, 1 / n, dtype=np.float32)
    if sampling == "stratified":
        cells = _disk_cells(n) if round_spot else _square_cells(n)
        return Stencil(round_spot, np.zeros((0, 2), np.float32), cells.astype(np.float32), share)
    if sampling == "paper":
        points = np.concatenate([np.zeros((1, 2)), _PAPER_RADIUS * _circle(8)])
    else:
        points = _disk_points(n) if round_spot else _square_points(n)
    return Stencil(round_spot, points.astype(np.float32), np.zeros((0, 4), np.float32), share)


def _circle(n: int, first_turns: float = 0.0) -> Array:
    angle = 2 * np.pi * (first_turns + np.arange(n) / n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _rings(n: int) -> list[int]:
    """Return how many cells lie on each ring, from the middle; 1 + 8 + 16 + 24 + 32 for 81."""
    if n < 5:
        return [n]
    n_rings = max(1, round((np.sqrt(n) - 1) / 2))
    # Rings as wide as their cells: as many more cells on each as on the innermost.
    ends = np.rint((n - 1) * np.cumsum(np.arange(1, n_rings + 1)) / (n_rings * (n_rings + 1) / 2)).astype(int)
    return [1, *np.diff(ends, prepend=0).tolist()]


def _ring_limits(n: int) -> list[tuple[int, float, float, float]]:
    """Return cells, squared inner and outer radius and first angle [turns] of each ring."""
    limits: list[tuple[int, float, float, float]] = []
    used = 0
    for ring, count in enumerate(_rings(n)):
        # Every second ring is turned by half a cell, so that cells of neighbouring rings do not line up.
        limits.append((count, used / n, (used + count) / n, 0.5 * (ring % 2) / count))
        used += count
    return limits


def _disk_cells(n: int) -> Array:
    rows: list[tuple[float, float, float, float]] = []
    for count, inner, outer, first in _ring_limits(n):
        rows += [(inner, outer, first + (i - 0.5) / count, first + (i + 0.5) / count) for i in range(count)]
    return np.array(rows)


def _disk_points(n: int) -> Array:
    if n == 2:
        return _circle(2) / np.sqrt(2)
    # The mean of the squared radius over a ring; a cell in the middle is its centre instead.
    parts = [
        np.sqrt((inner + outer) / 2 if count > 1 else 0.0) * _circle(count, first)
        for count, inner, outer, first in _ring_limits(n)
    ]
    points = np.concatenate(parts)
    return points if n == 1 else points * _stretch(points[:, :1] ** 2 + points[:, 1:] ** 2, 0.5)


def _rows(n: int) -> list[int]:
    """Return how many cells lie in each row of the square."""
    n_rows = max(1, round(np.sqrt(n)))
    ends = np.rint(n * np.arange(1, n_rows + 1) / n_rows).astype(int)
    return np.diff(ends, prepend=0).tolist()


def _square_cells(n: int) -> Array:
    rows: list[tuple[float, float, float, float]] = []
    used = 0
    for count in _rows(n):
        low, high = 2 * used / n - 1, 2 * (used + count) / n - 1
        rows += [(2 * i / count - 1, 2 * (i + 1) / count - 1, low, high) for i in range(count)]
        used += count
    return np.array(rows)


def _square_points(n: int) -> Array:
    cells = _square_cells(n)
    points = np.stack([cells[:, :2].mean(axis=1), cells[:, 2:].mean(axis=1)], axis=1)
    return points * _stretch(points**2, 1 / 3)


def _stretch(squares: Array, wanted: float) -> Array:
    """Return by how much to stretch points whose (S, k) squares should have this mean; 1 where all are 0."""
    found = squares.mean(axis=0)
    return np.sqrt(np.where(found > 0, wanted / np.where(found > 0, found, 1), 1))
