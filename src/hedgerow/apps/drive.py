# SPDX-License-Identifier: Apache-2.0
"""What is true along a drive: the poses of its sweeps, and a map of the ground and of what stands on it.

Real logs seldom have labels. So the truth that segmentation and cost maps are judged by is a map, made once from all
sweeps of the real log together, far denser than any one sweep. Every source, real or simulated, is judged by this one
map: an answer is right or wrong by where a point lies. Where the real log has labels, the ground is where the points
labelled so are. Else it is found from heights: the lowest point of each cell in each sweep, the median of these over
the sweeps (single points below the ground do no harm), and a morphological opening over the cells (Zhang et al. 2003),
which takes away what is narrower than the window and stands out: cars, hedges, trunks.

Logs hold no orientation of the sensor. Where no trajectory is given, the frame of a sweep is level and looks along the
path.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.planner import CostGrid, GridSettings
from hedgerow.base.labels import to_semantic_kitti
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log

CELL_M = 0.5
"""Cells of the map."""
OPENING_M = 4.0
"""Narrower things that stand out are not ground."""
CLEARANCE_M = 3.0
"""What is higher above the ground is in nobody's way."""
GROUND_LABELS = (40, 44, 48, 49, 60, 72)
"""SemanticKITTI's classes of ground: road, parking, sidewalk, other ground, lane marking, terrain."""
_FARTHEST_CELLS = 4000
_STANDING_M = 0.02  # a path that moves less from sweep to sweep has no direction


@dataclass(frozen=True, eq=False)
class GroundMap:
    """Heights of the ground, and the cost of what stands on it, over a grid of cells; rows go north, columns east."""

    corner_m: NDArray[np.float64]
    """(2,) south-west corner, map frame [m]."""
    ground_m: NDArray[np.float64]
    """(rows, columns) height of the ground; NaN where nothing is known [m]."""
    cost: NDArray[np.float64]
    """(rows, columns) cost, 0 to 100, of the highest point up to CLEARANCE_M above the ground; NaN where unknown."""

    def height_m(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (N,) heights of (N, 3) points above the ground; NaN where nothing is known [m]."""
        return points_m[:, 2] - _look_up(self.ground_m, self.corner_m, points_m)


@dataclass(frozen=True, eq=False)
class DriveTruth:
    """What is true in a scene of a drive."""

    poses: Trajectory
    """T_map_sensor in the middle of each sweep of the scene, in turn."""
    ground: GroundMap | None = None
    """The same for all scenes of a drive."""


def sweep_poses(log: Log, trajectory: Trajectory | None = None) -> Trajectory:
    """Return T_map_sensor in the middle of each sweep.

    Args:
        log: whole sweeps.
        trajectory: of the sensor. Default: level frames that look along the path.

    Raises:
        InputError: the log is empty, sweeps overlap in time, or the trajectory does not cover them.
    """
    if len(log) == 0:
        raise InputError("log", "has no beams; there are no poses")
    middles = [_middle(sweep) for _, sweep in log.iter_sweeps()]
    stamps: NDArray[np.int64] = np.array([stamp for stamp, _ in middles], dtype=np.int64)
    if trajectory is not None:
        return Trajectory.from_poses(stamps, [trajectory.pose_at(stamp) for stamp, _ in middles])
    position_m: NDArray[np.float64] = np.array([place for _, place in middles])
    yaws = _headings(position_m)
    poses = [Pose.from_xyz_rpy(place, (0, 0, yaw)) for place, yaw in zip(position_m, yaws, strict=True)]
    return Trajectory.from_poses(stamps, poses)


def _middle(sweep: Log) -> tuple[int, NDArray[np.float64]]:
    time_ns = sweep.beams.time_ns
    middle = int(time_ns.min()) + (int(time_ns.max()) - int(time_ns.min())) // 2
    return middle, sweep.beams.origin_m[int(np.argmin(np.abs(time_ns - middle)))]


def _headings(position_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (K,) direction of the path at each of its positions; 0 where it never moves [rad]."""
    if len(position_m) < 2:
        return np.zeros(len(position_m))
    step_m = np.gradient(position_m[:, :2], axis=0)
    moves = np.linalg.norm(step_m, axis=1) > _STANDING_M
    if not moves.any():
        return np.zeros(len(position_m))
    yaw: NDArray[np.float64] = np.unwrap(np.arctan2(step_m[moves, 1], step_m[moves, 0]))
    return np.interp(np.arange(len(position_m)), np.flatnonzero(moves), yaw)


def map_ground(sweeps: Callable[[], Iterable[Log]], *, max_height_m: float = 1.5) -> GroundMap:
    """Map the ground under a drive and what stands on it.

    Args:
        sweeps: gives the sweeps of the real log; called twice, so that no more than one has to be in memory.
        max_height_m: what cannot be crossed, as in `GridSettings`.

    Raises:
        InputError: nothing returned, or the drive spans more than a grid holds.
    """
    lows = [_lowest_of_sweep(log) for log in sweeps()]
    low, high = _extent([cell for cell, _ in lows])
    corner_m = low.astype(np.float64) * CELL_M
    n_cells = int((high - low).max()) + 2
    if n_cells > _FARTHEST_CELLS:
        raise InputError(
            "real", f"spans {n_cells * CELL_M:,.0f} m, more than the {_FARTHEST_CELLS * CELL_M:,.0f} m of a map"
        )
    ground_m = _opened(_median_low(lows, low, n_cells))
    grid = CostGrid(corner_m, GridSettings(cell_m=CELL_M, n_cells=n_cells, max_height_m=max_height_m))
    for log in sweeps():
        points_m = log.points()
        level_m = _look_up(ground_m, corner_m, points_m)
        with np.errstate(invalid="ignore"):
            near = points_m[:, 2] - level_m <= CLEARANCE_M
        grid.add(points_m[near], level_m[near])
    return GroundMap(corner_m, ground_m, np.where(grid.known, grid.cost(), np.nan))


_Lows = tuple[NDArray[np.int64], NDArray[np.float64]]
"""(K, 2) cells, column and row from the map's zero, and the (K,) height of the lowest point in each [m]."""


def _is_ground(log: Log) -> NDArray[np.bool_] | None:
    """Return which of the points are labelled as ground; None if the log has no labels."""
    if log.returns.label is None:
        return None
    label = log.returns.label[log.returns.hit]
    return np.isin(to_semantic_kitti(label), GROUND_LABELS) if label.any() else None


def _lowest_of_sweep(log: Log) -> _Lows:
    """Return the lowest point of each cell in a sweep; of points labelled as ground, where there are labels."""
    points_m, is_ground = log.points(), _is_ground(log)
    chosen = points_m if is_ground is None else points_m[is_ground]
    cell = np.floor(chosen[:, :2] / CELL_M).astype(np.int64)
    order = np.lexsort((chosen[:, 2], cell[:, 1], cell[:, 0]))
    cell, height_m = cell[order], chosen[order, 2]
    first = np.ones(len(cell), dtype=np.bool_)
    first[1:] = (np.diff(cell, axis=0) != 0).any(axis=1)
    return cell[first], height_m[first]


def _extent(cells: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest column and row."""
    filled = [each for each in cells if len(each)]
    if not filled:
        raise InputError("real", "none of its beams returned from the ground; there is nothing to map")
    return np.min([each.min(axis=0) for each in filled], axis=0), np.max([each.max(axis=0) for each in filled], axis=0)


def _median_low(lows: list[_Lows], corner: NDArray[np.int64], n_cells: int) -> NDArray[np.float64]:
    """Return the median over the sweeps of the lowest point in each cell; NaN where there is none."""
    column, row = (np.concatenate([cell for cell, _ in lows]) - corner).T
    cell, height_m = row * n_cells + column, np.concatenate([height_m for _, height_m in lows])
    order = np.lexsort((height_m, cell))
    found, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    ground_m = np.full(n_cells * n_cells, np.nan)
    ground_m[found] = height_m[order][first + count // 2]
    return ground_m.reshape(n_cells, n_cells)


def _opened(low_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take away what stands out and is narrower than the window; unknown cells stay unknown and take no part."""
    from scipy import ndimage

    size = 2 * int(OPENING_M / CELL_M / 2) + 1
    known = np.isfinite(low_m)
    eroded = ndimage.minimum_filter(np.where(known, low_m, np.inf), size, mode="nearest")
    opened = ndimage.maximum_filter(np.where(np.isfinite(eroded), eroded, -np.inf), size, mode="nearest")
    return np.where(known, np.minimum(opened, low_m), np.nan)


def _look_up(
    values: NDArray[np.float64], corner_m: NDArray[np.float64], points_m: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (N,) values of the cells that points lie in; NaN outside."""
    column, row = np.floor((points_m[:, :2] - corner_m) / CELL_M).astype(np.int64).T
    rows, columns = values.shape
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    found = np.full(len(points_m), np.nan)
    found[inside] = values[row[inside], column[inside]]
    return found
