# SPDX-License-Identifier: Apache-2.0
"""The courtyard of the navigation experiment, what truly stands in it, and how much of it a sweep shows.

What stands in a cell is found from above: rays fall straight down on a fine raster, and the highest thing that one of
them meets is the cell's. So it holds for any world, whatever it is made of.

All sensors look from the same places, towards the goal: the differences between them are the sensors' own, not those of
the paths they would drive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.navigation import Ground, Motion, NavigationSettings, stand_on
from hedgerow.apps.planner import MAX_COST, CostGrid
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams
from hedgerow.sensor import Sensor
from hedgerow.simulate import fire_sweep
from hedgerow.world import World

if TYPE_CHECKING:
    from hedgerow.scenes.site import Site
    from hedgerow.scenes.terrain import Terrain

BANDS_M = ((0, 10), (10, 25), (25, 50), (50, 100))
"""Distances from the sensor: near, two middle ones, far [m]."""
_APART_M = 15.0
_CLEAR_M = 3.0
_ABOVE_M = 100.0
_RAYS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Yard:
    """A place to navigate in (Goodin 2018 §3.5.1)."""

    name: str
    world: World
    """To fire at."""
    ground: Ground
    """Height of the ground [m]."""
    start_m: tuple[float, float]
    goal_m: tuple[float, float]
    grass: frozenset[int]
    """Labels of grass."""
    trees: frozenset[int]
    """Labels of trees: leaves, branches and trunks."""
    solid: frozenset[int]
    """Labels of what must not be driven into: walls and trunks."""


class Truth(NamedTuple):
    """What truly stands in each cell of a grid; (rows, columns) each."""

    height_m: NDArray[np.float64]
    """Highest thing seen from above, over the ground [m]."""
    grass: NDArray[np.bool_]
    """Open grass: no tree above."""
    tree: NDArray[np.bool_]
    """A tree, crown included."""


def courtyard() -> Yard:
    """Load the courtyard of Goodin 2018: start in the south-west corner, the goal 130 m north-east of it."""
    from hedgerow.scenes.site import load_site

    site = load_site("courtyard")
    path_m = site.trajectories["drive"].position_m
    (x0, y0, _), (x1, y1, _) = path_m[0].tolist(), path_m[-1].tolist()
    return Yard(
        name=site.name,
        world=site.world(),
        ground=_extended_ground(site.terrain),
        start_m=(x0, y0),
        goal_m=(x1, y1),
        grass=_label_numbers(site, "grass"),
        trees=_label_numbers(site, "leaves", "needles", "branch", "trunk"),
        solid=_label_numbers(site, "trunk", "wall", "building", "fence"),
    )


def map_truth(yard: Yard, grid: CostGrid, rays_per_side: int = 6, min_height_m: float = 0.1) -> Truth:
    """Find what stands in each cell of a grid, by `rays_per_side` squared rays falling into each.

    Grass counts from `min_height_m` up; a cell is grass if a ray met such grass and none met a tree.
    """
    n, side_m = grid.settings.n_cells, grid.settings.cell_m / rays_per_side
    x_m, y_m = (corner + (np.arange(n * rays_per_side) + 0.5) * side_m for corner in grid.corner_m)
    height_m = np.zeros((n, n))
    grass, tree = np.zeros((n, n), dtype=np.bool_), np.zeros((n, n), dtype=np.bool_)
    rows_at_once = max(1, _RAYS_AT_ONCE // (n * rays_per_side**2))
    for first in range(0, n, rows_at_once):
        rows = slice(first, min(first + rows_at_once, n))
        y_rows = y_m[rows.start * rays_per_side : rows.stop * rays_per_side]
        each_m, label = _from_above(yard, np.tile(x_m, len(y_rows)), np.repeat(y_rows, len(x_m)))
        shape = (-1, rays_per_side, n, rays_per_side)
        is_grass = np.isin(label, list(yard.grass)) & (each_m >= min_height_m)
        np.max(each_m.reshape(shape), axis=(1, 3), out=height_m[rows])
        np.any(is_grass.reshape(shape), axis=(1, 3), out=grass[rows])
        np.any(np.isin(label, list(yard.trees)).reshape(shape), axis=(1, 3), out=tree[rows])
    return Truth(height_m, grass & ~tree, tree)


def collision_check(yard: Yard, length_m: float = 2.8, width_m: float = 1.8) -> Callable[[Pose], bool]:
    """Return a function that tells whether a vehicle at T_map_base touches something solid, knee-high."""
    angle = np.arange(48) * 2 * np.pi / 48
    rays = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(48)])
    with np.errstate(divide="ignore"):
        hull_m = np.minimum(length_m / 2 / np.abs(rays[:, 0]), width_m / 2 / np.abs(rays[:, 1]))

    def touches(pose: Pose) -> bool:
        directions = pose.transform(rays) - pose.position_m
        log = yard.world.fire(Beams.from_arrays(origins=pose.transform((0, 0, 0.6)), directions=directions))
        near = log.returns.first_m < hull_m
        return bool((near & np.isin(_first_label(log.returns.label, len(log)), list(yard.solid))).any())

    return touches


def _from_above(
    yard: Yard, x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """Height over the ground (N,) [m] and label (N,) of the first thing under each point; 0 if there is none."""
    ground_m = np.asarray(yard.ground(x, y), dtype=np.float64)
    origins = np.column_stack([x, y, ground_m + _ABOVE_M])
    log = yard.world.fire(Beams.from_arrays(origins=origins, directions=np.tile([0.0, 0.0, -1.0], (len(x), 1))))
    fell_m = log.returns.first_m.astype(np.float64)
    return np.where(np.isfinite(fell_m), np.maximum(_ABOVE_M - fell_m, 0), 0), _first_label(log.returns.label, len(x))


def _first_label(label: NDArray[np.uint16] | None, n: int) -> NDArray[np.uint16]:
    if label is None:
        return np.zeros(n, dtype=np.uint16)
    return label if label.ndim == 1 else label[:, 0]


def _extended_ground(terrain: "Terrain") -> Ground:
    """Heights of a terrain that goes on level beyond its edge: the grid is wider than the courtyard."""
    x0, y0, x1, y1 = terrain.bounds_m

    def height_m(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return terrain.height_m(np.clip(x, x0, x1), np.clip(y, y0, y1))

    return height_m


def _label_numbers(site: "Site", *names: str) -> frozenset[int]:
    return frozenset(site.labels[name] for name in names if name in site.labels)


@dataclass(frozen=True)
class SeenCells:
    """Cells ahead of the sensor and how many of them it saw; one number per band of distance."""

    n_grass: tuple[int, ...]
    """Cells with open grass."""
    grass: tuple[int, ...]
    """Of them, those with a return from grass."""
    n_tall: tuple[int, ...]
    """Cells with a tree too high to cross."""
    tall: tuple[int, ...]
    """Of them, those marked with full cost."""


def viewpoints(yard: Yard, truth: Truth, grid: CostGrid) -> list[Motion]:
    """Return places every 15 m along the straight line, looking at the goal, with nothing tall within 3 m."""
    start, goal = np.asarray(yard.start_m), np.asarray(yard.goal_m)
    yaw_rad = float(np.arctan2(*(goal - start)[::-1]))
    length_m = float(np.hypot(*(goal - start)))
    tall_m = grid.centre_m(np.argwhere(truth.height_m >= grid.settings.max_height_m))
    places: list[Motion] = []
    for along_m in np.arange(0, length_m, _APART_M):
        x_m, y_m = (start + (goal - start) * along_m / length_m).tolist()
        if not (np.hypot(*(tall_m - (x_m, y_m)).T) < _CLEAR_M).any():
            places.append(Motion(x_m, y_m, yaw_rad))
    return places


def count_seen(
    yard: Yard, sensor: Sensor, truth: Truth, places: list[Motion], settings: NavigationSettings, seed: int
) -> SeenCells:
    """Count what one sweep from each of the places sees."""
    counts = np.zeros((4, len(BANDS_M)), dtype=np.int64)
    middle_m = (np.asarray(yard.start_m) + yard.goal_m) / 2
    for number, place in enumerate(places):
        base = stand_on(yard.ground, place, settings.vehicle)
        eye = base @ Pose.from_xyz_rpy((0, 0, settings.sensor_height_m))
        standing = Trajectory.standing(eye, (number + 2) * sensor.sweep_s)
        log = fire_sweep(yard.world, sensor, standing, number, sensor.pattern.start_ns(number), seed=seed, noise=True)
        points, ground_m = log.points(), base.position_m[2]
        everything, grass = (CostGrid.around(middle_m, settings.grid) for _ in range(2))
        everything.add(points, ground_m)
        label = log.returns.label
        if label is not None:
            grass.add(points[np.isin(label[log.returns.hit], list(yard.grass))], ground_m)
        band = _bands(everything, place)
        tall = truth.tree & (truth.height_m >= settings.grid.max_height_m)
        marks = (truth.grass, truth.grass & grass.known, tall, tall & (everything.cost() >= MAX_COST))
        for row, cells in enumerate(marks):
            counts[row] += np.bincount(band[cells], minlength=len(BANDS_M) + 1)[: len(BANDS_M)]
    return SeenCells(*(tuple(row.tolist()) for row in counts))


def _bands(grid: CostGrid, place: Motion) -> NDArray[np.int64]:
    """Number of the band that each cell lies in; one more than there are if it lies behind or too far."""
    n = grid.settings.n_cells
    away = grid.centre_m(np.argwhere(np.ones((n, n), dtype=np.bool_))) - (place.x_m, place.y_m)
    ahead = away @ np.array([np.cos(place.yaw_rad), np.sin(place.yaw_rad)]) > 0
    edges_m = [high for _, high in BANDS_M]
    band: NDArray[np.int64] = np.digitize(np.hypot(away[:, 0], away[:, 1]), edges_m).astype(np.int64)
    return np.where(ahead, band, len(BANDS_M)).reshape(n, n)
