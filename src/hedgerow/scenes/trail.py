# SPDX-License-Identifier: Apache-2.0
"""Trails: lines over the ground, cut into a terrain, and the drives along them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.base import arrays, rotation
from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.scenes.file.schema import PassSpec
from hedgerow.scenes.terrain import Terrain

if TYPE_CHECKING:
    from scipy.spatial import KDTree


# Cut a road or trail into a terrain: levelled across, smoothed along, sunk or raised, with wheel ruts if wanted.


def cut_trail(
    terrain: Terrain,
    path_m: ArrayLike,
    width_m: float,
    *,
    shoulder_m: float = 1.0,
    levelled: bool = True,
    smooth_m: float = 5.0,
    sunk_m: float = 0.0,
    rut_depth_m: float = 0.0,
    rut_width_m: float = 0.4,
    rut_gauge_m: float = 1.6,
    material: str = "gravel",
    label: str = "road",
) -> Terrain:
    """Return a terrain with a trail along a path.

    Args:
        terrain: its grid must be fine enough for what is cut: at least two cells to the width.
        path_m: (P, 2) corners of the middle line; may reach beyond the terrain [m].
        width_m: full width of the driven part [m].
        shoulder_m: beyond that, the ground blends from the trail back to what it was [m].
        levelled: whether the trail is level across and follows the ground smoothed along it; else it keeps the ground.
        smooth_m: standard deviation of that smoothing along the path [m].
        sunk_m: how far it lies below the ground, or above if negative [m].
        rut_depth_m: depth of two wheel ruts; 0 for none [m].
        rut_width_m, rut_gauge_m: width of a rut, and distance between the two [m].
        material, label: of the driven part.

    Raises:
        InputError: an argument is out of bounds or the grid is too coarse; names which.
    """
    path: Array = arrays.as_floats("path_m", path_m, ("P", 2))
    arrays.require_finite("path_m", path)
    if len(path) < 2 or not np.hypot(*np.diff(path, axis=0).T).all():
        raise InputError("path_m", "expected at least 2 points, and no point twice in a row")
    _require_sizes(terrain, width_m, shoulder_m, smooth_m, rut_depth_m, rut_width_m)
    beside, along = _beside_and_along(terrain, path, width_m / 2 + shoulder_m)
    ground = terrain.z_m
    bed = _bed(terrain, path, along, smooth_m) if levelled else ground
    blend = np.clip((width_m / 2 + shoulder_m - beside) / max(shoulder_m, 1e-9), 0, 1)
    blend = blend**2 * (3 - 2 * blend)
    z = ground + blend * (bed - sunk_m - ground)
    if rut_depth_m:
        across = (beside - rut_gauge_m / 2) / (rut_width_m / 2)
        z = z - rut_depth_m * np.clip(1 - across**2, 0, None)
    return replace(terrain, z_m=z, **_covered(terrain, beside, width_m / 2, (material, label)))


def _require_sizes(
    terrain: Terrain, width_m: float, shoulder_m: float, smooth_m: float, rut_depth_m: float, rut_width_m: float
) -> None:
    spacing = max(terrain.spacing_m)
    if not 2 * spacing <= width_m < np.inf:
        raise InputError(
            "width_m", f"{width_m:g} m is less than two cells of the terrain, which are {spacing:g} m wide"
        )
    if rut_depth_m and not 2 * spacing <= rut_width_m < np.inf:
        raise InputError("rut_width_m", f"{rut_width_m:g} m is less than two cells of the terrain, {spacing:g} m wide")
    for name, value in (("shoulder_m", shoulder_m), ("smooth_m", smooth_m), ("rut_depth_m", rut_depth_m)):
        if not 0 <= value < np.inf:
            raise InputError(name, f"expected 0 or more, found {value:g}")


def _beside_and_along(terrain: Terrain, path: Array, reach_m: float) -> tuple[Array, Array]:
    """For every grid point: distance from the path, inf beyond reach, and the nearest point's way along it [m]."""
    beside: Array = np.full(terrain.z_m.shape, np.inf)
    along: Array = np.zeros(terrain.z_m.shape)
    way = 0.0
    for start, end in pairwise(path):
        length = float(np.hypot(*(end - start)))
        low, high = np.minimum(start, end) - reach_m, np.maximum(start, end) + reach_m
        columns = slice(*np.searchsorted(terrain.x_m, [low[0], high[0]]))
        rows = slice(*np.searchsorted(terrain.y_m, [low[1], high[1]]))
        x: Array = terrain.x_m[columns] - start[0]
        y: Array = (terrain.y_m[rows] - start[1])[:, None]
        ahead = (end - start) / length
        t: Array = np.clip(x * ahead[0] + y * ahead[1], 0, length)
        distance = np.hypot(x - t * ahead[0], y - t * ahead[1])
        nearer = (distance < beside[rows, columns]) & (distance <= reach_m)
        beside[rows, columns][nearer] = distance[nearer]
        along[rows, columns][nearer] = way + t[nearer]
        way += length
    return beside, along


def _bed(terrain: Terrain, path: Array, along: Array, smooth_m: float) -> Array:
    """Height of the middle line, smoothed, at the way of each grid point."""
    from scipy import ndimage

    ways: Array = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    step = min(terrain.spacing_m)
    fine: Array = np.linspace(0, float(ways[-1]), max(2, int(np.ceil(ways[-1] / step)) + 1))
    low_x, low_y, high_x, high_y = terrain.bounds_m  # a path may begin outside: the border's height goes on
    x: Array = np.clip(np.interp(fine, ways, path[:, 0]), low_x, high_x)
    y: Array = np.clip(np.interp(fine, ways, path[:, 1]), low_y, high_y)
    height: Array = ndimage.gaussian_filter1d(terrain.height_m(x, y), smooth_m / (fine[1] - fine[0]), mode="nearest")
    return np.interp(along, fine, height)


def _covered(terrain: Terrain, beside: Array, half_m: float, cover: tuple[str, str]) -> dict[str, object]:
    """Give the triangles whose corners lie within half the width, on average, the trail's cover."""
    covers = terrain.covers if cover in terrain.covers else (*terrain.covers, cover)
    b = np.minimum(beside, 2 * half_m)  # inf would spoil the mean at the edge
    lower = (b[:-1, :-1] + b[:-1, 1:] + b[1:, :-1]) / 3
    upper = (b[1:, 1:] + b[:-1, 1:] + b[1:, :-1]) / 3
    cells = np.zeros((2, *lower.shape), dtype=np.uint8) if terrain.cover is None else terrain.cover.copy()
    cells[np.stack([lower, upper]) <= half_m] = covers.index(cover)
    return {"covers": covers, "cover": cells}


# Lines in the plane: trails and ways of the sensor, smooth through their corners, with distances to them.


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


# Passes: trajectories of the sensor from the few figures of a scene file.


_STEP_M = 0.5
_WHEELBASE_M = 3.0
"""The vehicle evens out the ground over this length."""


def make_pass(spec: PassSpec, terrain: Terrain, trail: Polyline | None) -> Trajectory:
    """Make the trajectory of a pass.

    Raises:
        InputError: it leaves the terrain or has no length; names the field.
    """
    if spec.standing_m is not None:
        xy = np.array([spec.standing_m, spec.standing_m])
        yaw = np.full(2, np.radians(spec.yaw_deg))
        return _trajectory(np.array([0.0, spec.duration_s]), xy, yaw, spec, terrain)
    if spec.arc is not None:
        arc = spec.arc
        bearing = np.radians(np.linspace(arc.from_deg, arc.to_deg, arc.n_poses))
        xy = arc.centre_m + arc.radius_m * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
        step_s = arc.radius_m * abs(bearing[1] - bearing[0]) / spec.speed_mps
        if step_s == 0:
            raise InputError("arc", "from_deg and to_deg are the same; expected an angle between them")
        return _trajectory(step_s * np.arange(len(xy)), xy, bearing + np.pi, spec, terrain)
    line = trail if spec.waypoints_m is None else Polyline(spec.waypoints_m, smooth=spec.smooth)
    if line is None:
        raise InputError("along_trail", "the scene has no trail")
    end_m = min(line.length_m, spec.to_m or np.inf)
    if end_m <= spec.from_m:
        raise InputError("from_m", f"the way is only {line.length_m:.1f} m long")
    way = np.linspace(spec.from_m, end_m, max(2, int(np.ceil((end_m - spec.from_m) / _STEP_M)) + 1))
    yaw = np.unwrap(line.heading_rad(way))
    xy = line.at(way) + spec.offset_m * np.stack([-np.sin(yaw), np.cos(yaw)], axis=1)
    return _trajectory((way - way[0]) / spec.speed_mps, xy, yaw, spec, terrain)


def _trajectory(time_s: Array, xy: Array, yaw: Array, spec: PassSpec, terrain: Terrain) -> Trajectory:
    z, pitch = np.full(len(xy), spec.height_m), np.zeros(len(xy))
    if spec.follow_terrain:
        outside = ~terrain.contains(*xy.T)
        if outside.any():
            x, y = xy[np.flatnonzero(outside)[0]]
            raise InputError("follow_terrain", f"the way leaves the terrain at ({x:.1f}, {y:.1f})")
        ground, slope = _under_wheels(terrain, xy, yaw)
        z = z + ground
        pitch = -np.arctan(slope) if spec.pitch else pitch  # REP 103: a positive pitch looks down
    half_yaw, half_pitch, zero = yaw / 2, pitch / 2, np.zeros(len(xy))
    turn = np.stack([zero, zero, np.sin(half_yaw), np.cos(half_yaw)], axis=1)
    nod = np.stack([zero, np.sin(half_pitch), zero, np.cos(half_pitch)], axis=1)
    time_ns = np.rint(time_s * 1e9).astype(np.int64)
    return Trajectory(time_ns, np.column_stack([xy, z]), rotation.multiply(turn, nod))


def _under_wheels(terrain: Terrain, xy: Array, yaw: Array) -> tuple[Array, Array]:
    """Mean height of the ground along the wheelbase [m], and how much it rises along it [m/m]."""
    along = np.linspace(-_WHEELBASE_M / 2, _WHEELBASE_M / 2, 7)
    x = xy[:, :1] + along * np.cos(yaw)[:, None]
    y = xy[:, 1:] + along * np.sin(yaw)[:, None]
    low_x, low_y, high_x, high_y = terrain.bounds_m
    z = terrain.height_m(np.clip(x, low_x, high_x), np.clip(y, low_y, high_y))
    return z.mean(axis=1), z @ along / (along @ along)
