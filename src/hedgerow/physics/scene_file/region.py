# SPDX-License-Identifier: Apache-2.0
"""Region: where a scatter rule may place something: area, slope, distance to the trail and to what stands already."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.physics.scene_file.paths import Polyline, polygon_distance_m
from hedgerow.physics.scene_file.placing import ScatterSpec
from hedgerow.physics.terrain import Terrain


@dataclass(frozen=True)
class Region:
    """Allowed ground of one rule.

    All limits but the slope are distances, which change by at most a metre per metre. So a disc lies wholly inside, or
    outside, if its middle does by at least its radius: whole patches are decided on by one look at their middle.
    """

    rule: ScatterSpec
    terrain: Terrain
    trail: Polyline | None
    others: Sequence[tuple[Array, float]] = ()
    """(M, 2) places [m] to keep away from, and how far [m]."""

    @property
    def box_m(self) -> tuple[float, float, float, float]:
        """Box around it: least x, least y, largest x, largest y [m]. Without area if the rule's lies off the ground."""
        low_x, low_y, high_x, high_y = self.terrain.bounds_m
        x, y = [low_x, high_x], [low_y, high_y]
        if self.rule.box_m is not None:
            x, y = self.rule.box_m[0::2], self.rule.box_m[1::2]
        elif self.rule.polygon_m is not None:
            x, y = ([corner[k] for corner in self.rule.polygon_m] for k in (0, 1))
        return max(low_x, min(x)), max(low_y, min(y)), min(high_x, max(x)), min(high_y, max(y))

    @property
    def box_area_m2(self) -> float:
        """Area of the box [m²]; 0 if there is none."""
        low_x, low_y, high_x, high_y = self.box_m
        return max(0.0, high_x - low_x) * max(0.0, high_y - low_y)

    def contains(self, xy_m: Array) -> NDArray[np.bool_]:
        """Tell which of (N, 2) places are allowed."""
        inside = (self._box_depth_m(xy_m) >= 0) & (self._depth_m(xy_m) >= 0)
        if self.rule.slope_deg is not None and inside.any():
            inside[inside] = self._slope_fits(xy_m[inside])
        return inside

    def covers(self, middle_m: Array, half_m: float) -> NDArray[np.bool_]:
        """Tell which squares, (N, 2) middles and half a side, lie inside for sure; the slope is not looked at."""
        inside = self._box_depth_m(middle_m) >= half_m - 1e-9
        return inside & (self._depth_m(middle_m) >= half_m * np.sqrt(2))

    def misses(self, middle_m: Array, half_m: float) -> NDArray[np.bool_]:
        """Tell which squares lie outside for sure."""
        outside = self._box_depth_m(middle_m) <= -half_m + 1e-9
        return outside | (self._depth_m(middle_m) < -half_m * np.sqrt(2))

    def slope_fits(self, x_m: Array, y_m: Array) -> NDArray[np.bool_]:
        """Tell whether the slope is allowed at places on the ground, of any shape."""
        if self.rule.slope_deg is None:
            return np.ones(np.broadcast(x_m, y_m).shape, dtype=bool)
        slope_deg = np.degrees(self.terrain.slope_rad(x_m, y_m))
        return (slope_deg >= self.rule.slope_deg[0]) & (slope_deg <= self.rule.slope_deg[1])

    def _slope_fits(self, xy_m: Array) -> NDArray[np.bool_]:
        return self.slope_fits(xy_m[:, 0], xy_m[:, 1])

    def _box_depth_m(self, xy_m: Array) -> Array:
        low_x, low_y, high_x, high_y = self.box_m
        x, y = xy_m.T
        return np.minimum.reduce([x - low_x, high_x - x, y - low_y, high_y - y])

    def _depth_m(self, xy_m: Array) -> Array:
        depth = np.full(len(xy_m), np.inf)
        if self.rule.polygon_m is not None:
            depth = np.minimum(depth, polygon_distance_m(self.rule.polygon_m, xy_m))
        if self.rule.trail_distance_m is not None and self.trail is not None:
            distance = self.trail.distance_m(xy_m)
            low, high = self.rule.trail_distance_m
            depth = np.minimum.reduce([depth, distance - low, high - distance])
        for places, limit_m in self.others:
            depth = np.minimum(depth, nearest_m(places, xy_m) - limit_m)
        return depth


def nearest_m(places_m: Array, xy_m: Array) -> Array:
    """Return how far (N, 2) points are from the nearest of (M, 2) places; inf if there are none [m]."""
    if len(places_m) == 0:
        return np.full(len(xy_m), np.inf)
    from scipy.spatial import KDTree

    return np.asarray(KDTree(places_m).query(xy_m)[0])
