# SPDX-License-Identifier: Apache-2.0
"""Ground and obstacles told apart in each sweep, by a grid of heights; J is minus the intersection over union.

The program lays a grid over a sweep, takes a low point of each cell and its neighbours for the ground, and calls what
is higher than a threshold above it an obstacle. Whether that is right is looked up in the map of the drive (drive.py):
a point between OBSTACLE_M and CLEARANCE_M above the mapped ground is an obstacle, one below is ground, and points where
the map knows nothing do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, minus_iou
from hedgerow.apps.drive import CLEARANCE_M, DriveTruth
from hedgerow.apps.space import Setting, Space, log_number, number, whole
from hedgerow.log import Log

OBSTACLE_M = 0.3
"""What is higher above the mapped ground is an obstacle."""
_DEEP_M = -0.5  # points so far below the mapped ground are no ground: wrong ranges, or the map is wrong there


@dataclass(frozen=True)
class Segmentation:
    """Ground and obstacle segmentation by a grid of heights."""

    name: str = "segmentation"
    space: Space = field(
        default_factory=lambda: Space.of(
            cell_m=log_number(0.2, 3.0, 0.6, "side of a cell"),
            height_m=log_number(0.05, 1.0, 0.3, "what is higher above the ground of its cell is an obstacle"),
            window=whole(0, 3, 1, "cells to each side whose lowest point is the ground too"),
            low_share=number(0.0, 0.3, 0.05, "share of the points of a cell that may lie below its ground"),
        )
    )
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {"iou": minus_iou("minus intersection over union of obstacle points")}
    )

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Segment each sweep; sums of right and wrong points."""
        if not isinstance(truth, DriveTruth) or truth.ground is None:
            return fail("lost", "the scene has no map of the ground")
        sums = {"tp": 0.0, "fp": 0.0, "fn": 0.0, "tn": 0.0}
        for _, sweep in log.iter_sweeps():
            points_m = sweep.points()
            height_m = truth.ground.height_m(points_m)
            with np.errstate(invalid="ignore"):
                counts = (height_m > _DEEP_M) & (height_m <= CLEARANCE_M)
            said = find_obstacles(points_m, **{name: float(value) for name, value in parameters.items()})[counts]
            true = height_m[counts] > OBSTACLE_M
            for name, mask in (("tp", true & said), ("fp", ~true & said), ("fn", true & ~said), ("tn", ~true & ~said)):
                sums[name] += float(mask.sum())
        return Outcome(sums)


def find_obstacles(
    points_m: NDArray[np.float64], *, cell_m: float, height_m: float, window: float, low_share: float
) -> NDArray[np.bool_]:
    """Return which of (N, 3) points are obstacles; the arguments are the program's parameters."""
    from scipy import ndimage

    if len(points_m) == 0:
        return np.zeros(0, dtype=np.bool_)
    column, row = np.floor((points_m[:, :2] - points_m[:, :2].min(axis=0)) / cell_m).astype(np.int64).T
    n_rows, n_columns = int(row.max()) + 1, int(column.max()) + 1
    cell = row * n_columns + column
    order = np.lexsort((points_m[:, 2], cell))
    found, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    low = np.full(n_rows * n_columns, np.inf)
    low[found] = points_m[order[first + (low_share * count).astype(np.int64)], 2]
    size = 2 * int(window) + 1
    ground_m = ndimage.minimum_filter(low.reshape(n_rows, n_columns), size, mode="nearest")
    return points_m[:, 2] - ground_m[row, column] > height_m
