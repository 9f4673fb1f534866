# SPDX-License-Identifier: Apache-2.0
"""Lines in the plane: trails and ways of the sensor, smooth through their corners, with distances to them."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.arrays import Array

if TYPE_CHECKING:
    from scipy.spatial import KDTree


class Polyline:
    """A line through corners, as points at most `step_m` apart."""

    def __init__(self, corners_m: Sequence[Sequence[float]], *, smooth: bool = False, step_m: float = 0.25) -> None:
        """Lay the line.

        Args:
            corners_m: (P, 2) corners [m].
            smooth: whether it is a cubic spline through the corners (by way) or straight between them.
            step_m: distance between its points [m].
        """
        corners = np.asarray(corners_m, dtype=np.float64)
        way = _way(corners)
        fine: Array = np.linspace(0, float(way[-1]), max(2, int(np.ceil(way[-1] / step_m)) + 1))
        if smooth and len(corners) > 2:
            from scipy.interpolate import CubicSpline

            spline = CubicSpline(way, corners, bc_type="natural")
            self.points_m: Array = spline(fine)
        else:
            fine = np.union1d(fine, way)  # corners stay sharp
            self.points_m = np.stack([np.interp(fine, way, corners[:, k]) for k in (0, 1)], axis=1)
        self.way_m = _way(self.points_m)

    @property
    def length_m(self) -> float:
        """Way from end to end [m]."""
        return float(self.way_m[-1])

    def at(self, way_m: ArrayLike) -> Array:
        """Return the (N, 2) points after (N,) ways from the start [m]."""
        way = np.asarray(way_m, dtype=np.float64)
        return np.stack([np.interp(way, self.way_m, self.points_m[:, k]) for k in (0, 1)], axis=1)

    def heading_rad(self, way_m: ArrayLike, reach_m: float = 0.5) -> Array:
        """Return the (N,) directions in which it runs there, over `reach_m` to both sides [rad]."""
        way = np.asarray(way_m, dtype=np.float64)
        ahead = self.at(np.minimum(way + reach_m, self.length_m)) - self.at(np.maximum(way - reach_m, 0))
        return np.arctan2(ahead[:, 1], ahead[:, 0])

    def distance_m(self, xy_m: Array) -> Array:
        """Return the distance of (N, 2) places from the line [m]."""
        _, nearest = self._tree.query(xy_m)
        before = _to_segment(xy_m, self.points_m[np.maximum(nearest - 1, 0)], self.points_m[nearest])
        after = _to_segment(xy_m, self.points_m[nearest], self.points_m[np.minimum(nearest + 1, self._last)])
        return np.minimum(before, after)

    @property
    def _last(self) -> int:
        return len(self.points_m) - 1

    @cached_property
    def _tree(self) -> "KDTree":
        from scipy.spatial import KDTree

        return KDTree(self.points_m)


def _way(points: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def _to_segment(xy: Array, start: Array, end: Array) -> Array:
    along = end - start
    length2 = np.maximum((along**2).sum(axis=-1), 1e-300)
    t = np.clip(((xy - start) * along).sum(axis=-1) / length2, 0, 1)
    return np.linalg.norm(xy - start - t[..., None] * along, axis=-1)


def polygon_distance_m(corners_m: Sequence[Sequence[float]], xy_m: Array) -> Array:
    """Return how far (N, 2) places are inside a polygon, negative outside [m]."""
    corners = np.asarray(corners_m, dtype=np.float64)
    nearest = np.full(len(xy_m), np.inf)
    inside = np.zeros(len(xy_m), dtype=bool)
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        nearest = np.minimum(nearest, _to_segment(xy_m, a, b))
        if a[1] != b[1]:  # even-odd rule: a ray along x crosses this edge
            crosses = (a[1] > xy_m[:, 1]) != (b[1] > xy_m[:, 1])
            x = a[0] + (xy_m[:, 1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
            inside ^= crosses & (xy_m[:, 0] < x)
    return np.where(inside, nearest, -nearest)
