# SPDX-License-Identifier: Apache-2.0
"""A cost map built from one scene, judged by the map of the whole drive; J is the mean difference of cost.

The program fills the cost grid of planner.py with the points of the scene, heights above the lowest point around, as a
vehicle does that knows its own motion but no map. The truth is the cost of what stands on the mapped ground (drive.py).
The two are compared at the middle of every mapped cell within REACH_M of the path of the scene, on the scale 0 to 100.
A cell that the scene did not see costs nothing, as the planner takes it: so blind spots count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, ratio
from hedgerow.apps.drive import CELL_M, DriveTruth, GroundMap
from hedgerow.apps.planner import MAX_COST, CostGrid, GridSettings
from hedgerow.apps.space import Setting, Space, log_number, number, whole
from hedgerow.frames import Trajectory
from hedgerow.log import Log

REACH_M = 20.0
"""How far from the path costs are compared."""
_BLOCKED = MAX_COST / 2  # more than half as high as the vehicle can cross


@dataclass(frozen=True)
class CostMap:
    """Cost map of a scene."""

    name: str = "cost-map"
    space: Space = field(
        default_factory=lambda: Space.of(
            cell_m=log_number(0.2, 2.0, 0.5, "side of a cell"),
            window_m=log_number(0.5, 6.0, 1.5, "radius within which the lowest point is the ground"),
            fewest_points=whole(1, 10, 1, "a cell with fewer points costs nothing"),
            ceiling_m=number(1.0, 6.0, 3.0, "points higher than this above the feet of the path are left out"),
        )
    )
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {
            "difference": ratio("difference", "cells", "", "mean absolute difference of cost, 0 to 100"),
            "wrong": ratio("wrong", "cells", "", "share of cells blocked in one map and open in the other"),
        }
    )

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Build the map of a scene; sums of the differences from the map of the drive."""
        if not isinstance(truth, DriveTruth) or truth.ground is None:
            return fail("lost", "the scene has no map of the ground")
        centre_m, cost = _true_cells(truth.ground, truth.poses)
        built = build_costs(log, truth.poses, centre_m, **{name: float(each) for name, each in parameters.items()})
        return Outcome(
            {
                "difference": float(np.abs(built - cost).sum()),
                "wrong": float(((built > _BLOCKED) != (cost > _BLOCKED)).sum()),
                "cells": float(len(cost)),
            }
        )


def build_costs(
    log: Log,
    poses: Trajectory,
    centre_m: NDArray[np.float64],
    *,
    cell_m: float,
    window_m: float,
    fewest_points: float,
    ceiling_m: float,
) -> NDArray[np.float64]:
    """Return the costs at (K, 2) places x, y; the other arguments are the program's parameters."""
    low_m, high_m = centre_m.min(axis=0) - cell_m, centre_m.max(axis=0) + cell_m
    n_cells = max(int(np.ceil((high_m - low_m).max() / cell_m)), 2)
    settings = GridSettings(cell_m=cell_m, n_cells=n_cells, heights_above="lowest", window_m=window_m)
    grid = CostGrid(low_m, settings)
    for (_, sweep), place_m in zip(log.iter_sweeps(), poses.position_m, strict=True):
        points_m = sweep.points()
        near = (np.abs(points_m[:, :2] - place_m[:2]) <= REACH_M + window_m).all(axis=1)
        feet_m = np.percentile(points_m[near, 2], 5) if near.any() else 0.0
        grid.add(points_m[near & (points_m[:, 2] <= feet_m + ceiling_m)])
    cost = np.where(grid.count >= fewest_points, grid.cost(), 0.0)
    column, row = np.floor((centre_m - low_m) / cell_m).astype(np.int64).T
    return cost[row, column]


def _true_cells(ground: GroundMap, poses: Trajectory) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (K, 2) middles and (K,) costs of the mapped cells near the path."""
    from scipy.spatial import cKDTree

    row, column = np.nonzero(np.isfinite(ground.cost))
    centre_m = ground.corner_m + (np.stack([column, row], axis=1) + 0.5) * CELL_M
    distance_m, _ = cKDTree(poses.position_m[:, :2]).query(centre_m, distance_upper_bound=REACH_M)
    near = np.isfinite(distance_m)
    return centre_m[near], ground.cost[row[near], column[near]]
