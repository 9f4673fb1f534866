# SPDX-License-Identifier: Apache-2.0
"""Places by a scatter rule: where it allows them (`Region`), and places drawn there, at least a spacing apart.

Allowed ground is a matter of area, slope, and distance to the trail and to what stands already.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.scenes.file.schema import ScatterSpec
from hedgerow.scenes.terrain import Terrain
from hedgerow.scenes.trail import Polyline, polygon_distance_m

MakeError = Callable[[str, str], Exception]
"""Makes the error about a field of the rule, from the field and a message."""

_ROUNDS = 100
"""Batches of places that are tried before a rule is given up."""
_BATCH = 100_000
"""Most places drawn in one batch."""


@dataclass(frozen=True)
class Region:
    """Ground on which one scatter rule may place its copies.

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
            inside[inside] = self.slope_fits(*xy_m[inside].T)
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


def draw_places(region: Region, rng: np.random.Generator, make_error: MakeError) -> Array:
    """Draw where the copies of a rule stand, uniform over the allowed ground.

    With a density their number is Poisson distributed with the mean density times allowed area. A least distance
    does not thin them out: those that come too near are drawn again, and the rule is refused if they do not fit.

    Returns:
        (N, 2) places [m].
    """
    rule = region.rule
    if region.box_area_m2 == 0:
        raise make_error("box_m" if rule.box_m is not None else "polygon_m", "lies outside the terrain")
    if rule.count is not None:
        return _fill_up(_Spaced(rule.spacing_m), rule.count, region, rng, make_error)
    drawn = _uniform(region, rng.poisson((rule.density_per_m2 or 0.0) * region.box_area_m2), rng)
    drawn = drawn[region.contains(drawn)]
    spaced = _Spaced(rule.spacing_m)
    spaced.add(drawn, len(drawn))
    return _fill_up(spaced, len(drawn), region, rng, make_error)


def _uniform(region: Region, n: int, rng: np.random.Generator) -> Array:
    low_x, low_y, high_x, high_y = region.box_m
    return rng.uniform((low_x, low_y), (high_x, high_y), (n, 2))


def _fill_up(spaced: "_Spaced", count: int, region: Region, rng: np.random.Generator, make_error: MakeError) -> Array:
    """Draw more until there are as many as wanted, or until they evidently do not fit."""
    spacing = region.rule.spacing_m
    if spacing and count > (most := _most(region.box_m, spacing)):
        raise make_error("spacing_m", f"{count} copies cannot stand so far apart here; at most {int(most)} could")
    n_allowed = 0
    for _ in range(_ROUNDS if len(spaced) < count else 0):
        drawn = _uniform(region, min(_BATCH, max(1000, 2 * (count - len(spaced)))), rng)
        drawn = drawn[region.contains(drawn)]
        n_allowed += len(drawn)
        spaced.add(drawn, count)
        if len(spaced) >= count:
            break
    if len(spaced) >= count:
        return spaced.places_m()
    if n_allowed == 0:
        raise make_error("what", "no place fulfils all its limits (area, slope, distances); widen them")
    field = "spacing_m" if spacing else "count"
    raise make_error(field, f"only {len(spaced)} of {count} fit; ask for fewer, or set them nearer")


def _most(box_m: tuple[float, float, float, float], spacing_m: float) -> float:
    """Bound of how many places fit: circles are packed densest in hexagons; those at the border may stick out."""
    low_x, low_y, high_x, high_y = box_m
    return (high_x - low_x + 2 * spacing_m) * (high_y - low_y + 2 * spacing_m) / (np.sqrt(0.75) * spacing_m**2)


class _Spaced:
    """Places, none nearer to another than the spacing: each is compared with those of the cells around it."""

    def __init__(self, spacing_m: float) -> None:
        self._spacing_m = spacing_m
        self._cells: dict[tuple[int, int], list[tuple[float, float]]] = {}
        self._places: list[Array] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def places_m(self) -> Array:
        return np.concatenate([np.zeros((0, 2)), *self._places])

    def add(self, xy_m: Array, most: int) -> None:
        """Take over what is far enough from all others, in order, until there are `most`."""
        if self._spacing_m > 0:
            xy_m = xy_m[nearest_m(self.places_m(), xy_m) >= self._spacing_m]  # quick; the rest one by one
            kept: list[tuple[float, float]] = []
            for x, y in xy_m.tolist():
                if self._n + len(kept) >= most:
                    break
                if self._is_free(x, y):
                    kept.append((x, y))
            xy_m = np.array(kept).reshape(-1, 2)
        xy_m = xy_m[: most - self._n]
        self._places.append(xy_m)
        self._n += len(xy_m)

    def _is_free(self, x: float, y: float) -> bool:
        size, limit = self._spacing_m, self._spacing_m**2
        i, j = int(x // size), int(y // size)
        for a in (i - 1, i, i + 1):
            for b in (j - 1, j, j + 1):
                for u, v in self._cells.get((a, b), ()):
                    if (x - u) ** 2 + (y - v) ** 2 < limit:
                        return False
        self._cells.setdefault((i, j), []).append((x, y))
        return True


def random_transforms(feet_m: Array, rule: ScatterSpec, rng: np.random.Generator) -> Array:
    """Return (N, 4, 4) transforms that turn, scale and tilt copies at random and set them on (N, 3) feet [m]."""
    n = len(feet_m)
    low, high = rule.scale or (1.0, 1.0)
    scale = rng.uniform(low, high, n)
    yaw = np.radians(rng.uniform(rule.yaw_deg[0], rule.yaw_deg[1], n))
    tilt = np.radians(rng.uniform(0, rule.tilt_deg, n))
    side = rng.uniform(0, 2 * np.pi, n)
    places = np.tile(np.eye(4), (n, 1, 1))
    places[:, :3, :3] = scale[:, None, None] * (_tilted(tilt, side) @ _turned(yaw))
    places[:, :3, 3] = feet_m - [0.0, 0.0, rule.sink_m]
    return places


def _turned(yaw_rad: Array) -> Array:
    c, s, zero, one = np.cos(yaw_rad), np.sin(yaw_rad), np.zeros_like(yaw_rad), np.ones_like(yaw_rad)
    return np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)


def _tilted(tilt_rad: Array, side_rad: Array) -> Array:
    """Rotations that lean the vertical by an angle towards a side: turn the side to x, lean about y, turn back."""
    c, s, zero, one = np.cos(tilt_rad), np.sin(tilt_rad), np.zeros_like(tilt_rad), np.ones_like(tilt_rad)
    lean = np.stack([c, zero, s, zero, one, zero, -s, zero, c], axis=1).reshape(-1, 3, 3)
    return _turned(side_rad) @ lean @ _turned(-side_rad)
