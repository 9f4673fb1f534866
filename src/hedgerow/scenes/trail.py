# SPDX-License-Identifier: Apache-2.0
"""Lines over the ground: how they run (`Polyline`), a trail cut along one, and the sensor's trajectory along one.

A trail is levelled across, smoothed along, sunk or raised, and has wheel ruts if wanted.
"""

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
from hedgerow.scenes.file.schema import ArcSpec, TrajectorySpec
from hedgerow.scenes.terrain import Terrain

if TYPE_CHECKING:
    from scipy.spatial import KDTree


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
    beside, along = _distances(terrain, path, width_m / 2 + shoulder_m)
    ground = terrain.z_m
    bed = _bed(terrain, path, along, smooth_m) if levelled else ground
    blend = np.clip((width_m / 2 + shoulder_m - beside) / max(shoulder_m, 1e-9), 0, 1)
    blend = blend**2 * (3 - 2 * blend)
    z = ground + blend * (bed - sunk_m - ground)
    if rut_depth_m:
        across = (beside - rut_gauge_m / 2) / (rut_width_m / 2)
        z = z - rut_depth_m * np.clip(1 - across**2, 0, None)
    return replace(terrain, z_m=z, **_trail_cover(terrain, beside, width_m / 2, (material, label)))


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


def _distances(terrain: Terrain, path: Array, reach_m: float) -> tuple[Array, Array]:
    """Distance of every grid point from the path, inf beyond reach, and how far along it the nearest point is [m]."""
    beside: Array = np.full(terrain.z_m.shape, np.inf)
    along: Array = np.zeros(terrain.z_m.shape)
    before = 0.0
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
        along[rows, columns][nearer] = before + t[nearer]
        before += length
    return beside, along


def _bed(terrain: Terrain, path: Array, along: Array, smooth_m: float) -> Array:
    """Height of the middle line, smoothed, at the point of it nearest to each grid point."""
    from scipy import ndimage

    corners: Array = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    step = min(terrain.spacing_m)
    fine: Array = np.linspace(0, float(corners[-1]), max(2, int(np.ceil(corners[-1] / step)) + 1))
    low_x, low_y, high_x, high_y = terrain.bounds_m  # a path may begin outside: the border's height goes on
    x: Array = np.clip(np.interp(fine, corners, path[:, 0]), low_x, high_x)
    y: Array = np.clip(np.interp(fine, corners, path[:, 1]), low_y, high_y)
    height: Array = ndimage.gaussian_filter1d(terrain.height_m(x, y), smooth_m / (fine[1] - fine[0]), mode="nearest")
    return np.interp(along, fine, height)


def _trail_cover(terrain: Terrain, beside: Array, half_m: float, kind: tuple[str, str]) -> dict[str, object]:
    """Give the triangles whose corners lie within half the width, on average, the trail's kind of cover."""
    kinds = terrain.cover_kinds if kind in terrain.cover_kinds else (*terrain.cover_kinds, kind)
    b = np.minimum(beside, 2 * half_m)  # inf would spoil the mean at the edge
    lower = (b[:-1, :-1] + b[:-1, 1:] + b[1:, :-1]) / 3
    upper = (b[1:, 1:] + b[:-1, 1:] + b[1:, :-1]) / 3
    old = terrain.cover_index
    index = np.zeros((2, *lower.shape), dtype=np.uint8) if old is None else old.copy()
    index[np.stack([lower, upper]) <= half_m] = kinds.index(kind)
    return {"cover_kinds": kinds, "cover_index": index}


class Polyline:
    """A line through corners, as points at most `step_m` apart."""

    def __init__(self, corners_m: Sequence[Sequence[float]], *, smooth: bool = False, step_m: float = 0.25) -> None:
        """Lay the line.

        Args:
            corners_m: (P, 2) corners [m].
            smooth: whether it is a cubic spline through the corners (over arc length) or straight between them.
            step_m: distance between its points [m].
        """
        corners = np.asarray(corners_m, dtype=np.float64)
        along = _arc_lengths(corners)
        fine: Array = np.linspace(0, float(along[-1]), max(2, int(np.ceil(along[-1] / step_m)) + 1))
        if smooth and len(corners) > 2:
            from scipy.interpolate import CubicSpline

            spline = CubicSpline(along, corners, bc_type="natural")
            self.points_m: Array = spline(fine)
        else:
            fine = np.union1d(fine, along)  # corners stay sharp
            self.points_m = np.stack([np.interp(fine, along, corners[:, k]) for k in (0, 1)], axis=1)
        self.along_m = _arc_lengths(self.points_m)

    @property
    def length_m(self) -> float:
        """Length from end to end [m]."""
        return float(self.along_m[-1])

    def at(self, along_m: ArrayLike) -> Array:
        """Return the (N, 2) points at (N,) distances along the line from its start [m]."""
        along = np.asarray(along_m, dtype=np.float64)
        return np.stack([np.interp(along, self.along_m, self.points_m[:, k]) for k in (0, 1)], axis=1)

    def heading_rad(self, along_m: ArrayLike, reach_m: float = 0.5) -> Array:
        """Return the (N,) directions in which it runs there, over `reach_m` to both sides [rad]."""
        along = np.asarray(along_m, dtype=np.float64)
        ahead = self.at(np.minimum(along + reach_m, self.length_m)) - self.at(np.maximum(along - reach_m, 0))
        return np.arctan2(ahead[:, 1], ahead[:, 0])

    def bearing_rad(self, xy_m: Array) -> Array:
        """Return the (N,) directions from (N, 2) places to the nearest point of the line [rad]."""
        away = self.points_m[np.asarray(self._tree.query(xy_m)[1])] - xy_m
        return np.arctan2(away[:, 1], away[:, 0])

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


def _arc_lengths(points: Array) -> Array:
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


_STEP_M = 0.5
_WHEELBASE_M = 3.0
"""The vehicle evens out the ground over this length."""


def make_trajectory(spec: TrajectorySpec, terrain: Terrain, trail: Polyline | None) -> Trajectory:
    """Make a trajectory of the sensor, T_map_sensor, from the few fields of a scene file.

    Raises:
        InputError: it leaves the terrain or has no length; names the field.
    """
    if spec.standing_m is not None:
        xy = np.array([spec.standing_m, spec.standing_m])
        yaw = np.full(2, np.radians(spec.yaw_deg))
        return _trajectory(np.array([0.0, spec.duration_s]), xy, yaw, spec, terrain)
    if spec.arc is not None:
        return _arc_trajectory(spec.arc, spec, terrain)
    line = trail if spec.waypoints_m is None else Polyline(spec.waypoints_m, smooth=spec.smooth)
    if line is None:
        raise InputError("along_trail", "the scene has no trail")
    end_m = min(line.length_m, spec.to_m or np.inf)
    if end_m <= spec.from_m:
        raise InputError("from_m", f"the line is only {line.length_m:.1f} m long")
    along = np.linspace(spec.from_m, end_m, max(2, int(np.ceil((end_m - spec.from_m) / _STEP_M)) + 1))
    yaw = np.unwrap(line.heading_rad(along))
    xy = line.at(along) + spec.offset_m * np.stack([-np.sin(yaw), np.cos(yaw)], axis=1)
    return _trajectory((along - along[0]) / spec.speed_mps, xy, yaw, spec, terrain)


def _arc_trajectory(arc: ArcSpec, spec: TrajectorySpec, terrain: Terrain) -> Trajectory:
    bearing = np.radians(np.linspace(arc.from_deg, arc.to_deg, arc.n_poses))
    xy = arc.centre_m + arc.radius_m * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
    step_s = arc.radius_m * abs(bearing[1] - bearing[0]) / spec.speed_mps
    if step_s == 0:
        raise InputError("arc", "from_deg and to_deg are the same; expected an angle between them")
    return _trajectory(step_s * np.arange(len(xy)), xy, bearing + np.pi, spec, terrain)


def _trajectory(time_s: Array, xy: Array, yaw: Array, spec: TrajectorySpec, terrain: Terrain) -> Trajectory:
    z, pitch = np.full(len(xy), spec.height_m), np.zeros(len(xy))
    if spec.follow_terrain:
        outside = ~terrain.contains(*xy.T)
        if outside.any():
            x, y = xy[np.flatnonzero(outside)[0]]
            raise InputError("follow_terrain", f"the trajectory leaves the terrain at ({x:.1f}, {y:.1f})")
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
