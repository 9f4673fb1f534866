# SPDX-License-Identifier: Apache-2.0
"""How much of what truly stands in a yard one sweep of a sensor puts into the cost map, by distance.

All sensors look from the same places, towards the goal: the differences are the sensors' own, not those of the ways
they would drive.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.cost_grid import MAX_COST, CostGrid
from hedgerow.apps.navigation import NavigationSettings
from hedgerow.apps.vehicle import Motion, stand_on
from hedgerow.frames import Pose, Trajectory
from hedgerow.reproduce.yard import Truth, Yard
from hedgerow.sensor import Sensor
from hedgerow.simulate import fire_sweep

BANDS_M = ((0, 10), (10, 25), (25, 50), (50, 100))
"""Distances from the sensor: near, two middle ones, far [m]."""
_APART_M = 15.0
_CLEAR_M = 3.0


@dataclass(frozen=True)
class Seen:
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
    """Return places every 15 m along the straight way, looking at the goal, with nothing tall within 3 m."""
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


def look_around(
    yard: Yard, sensor: Sensor, truth: Truth, places: list[Motion], settings: NavigationSettings, seed: int
) -> Seen:
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
    return Seen(*(tuple(row.tolist()) for row in counts))


def _bands(grid: CostGrid, place: Motion) -> NDArray[np.int64]:
    """Number of the band that each cell lies in; one more than there are if it lies behind or too far."""
    n = grid.settings.n_cells
    away = grid.centre_m(np.argwhere(np.ones((n, n), dtype=np.bool_))) - (place.x_m, place.y_m)
    ahead = away @ np.array([np.cos(place.yaw_rad), np.sin(place.yaw_rad)]) > 0
    edges_m = [high for _, high in BANDS_M]
    band: NDArray[np.int64] = np.digitize(np.hypot(away[:, 0], away[:, 1]), edges_m).astype(np.int64)
    return np.where(ahead, band, len(BANDS_M)).reshape(n, n)
