# SPDX-License-Identifier: Apache-2.0
"""Cut a road or trail into a terrain: levelled across, smoothed along, sunk or raised, with wheel ruts if wanted."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from hedgerow import arrays
from hedgerow.arrays import Array
from hedgerow.errors import InputError
from hedgerow.physics.terrain import Terrain


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
