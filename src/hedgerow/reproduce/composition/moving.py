# SPDX-License-Identifier: Apache-2.0
"""Which returns of a drive are of things that move: where something was for a moment, and nothing before or after.

Returns above the ground are summed up in voxels, and each gets a ball. While a vehicle stands in it, beams end there;
before and after, all go through. A plant lets some through at all times, a wall none. What is found alone, without
others around it, is taken for noise.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.log import Log
from hedgerow.scenes.ground_fit import ground_of
from hedgerow.scenes.point_grid import PointGrid
from hedgerow.world.scene import Scene

SIDE_M = 0.4
_BALL_M, _TAU = 0.25, 2.5
_LOWEST_M, _HIGHEST_M = 0.35, 3.0
"""Above the ground, where vehicles and people are."""
_FEWEST_BEAMS = 3
"""Of a sweep that tells something about a ball."""
_THERE, _GONE = 0.6, 0.05
"""Least share of beams that end in a ball while something is there, and largest share while nothing is."""
_FEWEST_EMPTY = 4
"""Sweeps that must see it empty."""
_COMPANY, _COMPANY_M = 4, 1.0
"""A ball needs so many others within this distance."""
_MASK_M = 0.6
"""Returns within this distance of such a ball are of what moves."""


def is_moving(log: Log) -> NDArray[np.bool_]:
    """Return (N,) which beams ended on something that moved.

    Args:
        log: a drive of many sweeps.
    """
    from scipy.spatial import KDTree

    moving = np.zeros(len(log), dtype=np.bool_)
    middle_m = _balls(log)
    if not len(middle_m):
        return moving
    found_m = middle_m[_came_and_went(*_counts(log, middle_m))]
    if len(found_m):
        near = KDTree(found_m).query_ball_point(found_m, _COMPANY_M, return_length=True)
        found_m = found_m[np.asarray(near) > _COMPANY]
    if len(found_m):
        hit = np.isfinite(log.returns.first_m)
        away_m = log.returns.first_m[hit].astype(np.float64)[:, None] * log.beams.direction[hit]
        distance_m, _ = KDTree(found_m).query(log.beams.origin_m[hit] + away_m, distance_upper_bound=_MASK_M)
        moving[hit] = np.isfinite(distance_m)
    return moving


def _balls(log: Log) -> Array:
    """(V, 3) middles of what the voxels above the ground hold."""
    grid = PointGrid(SIDE_M)
    grid.add(log.points())
    middle_m = grid.table().mean_m
    height_m = ground_of(log).height_above(middle_m)
    return middle_m[(height_m > _LOWEST_M) & (height_m < _HIGHEST_M)]


def _counts(log: Log, middle_m: Array) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """(S, V) how many beams of each sweep ended in each ball, and how many went through."""
    scene = Scene(middle_m.mean(axis=0))
    spread = np.tile(np.eye(3) * (_BALL_M / _TAU) ** 2, (len(middle_m), 1, 1))
    scene.add_gaussians(middle_m, spread, permeability=0.5, tau=_TAU)
    hits: list[NDArray[np.uint32]] = []
    passes: list[NDArray[np.uint32]] = []
    for _, sweep in log.iter_sweeps():
        range_m = np.ascontiguousarray(sweep.returns.first_m)
        ended, through = scene.count(sweep.beams, range_m, max_range_m=log.max_range_m)
        hits.append(ended)
        passes.append(through)
    return np.stack(hits), np.stack(passes)


def _came_and_went(hits: NDArray[np.uint32], passes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """(V,) balls that held something for one run of sweeps and were empty in all others that saw them."""
    n = hits.astype(np.int64) + passes
    seen = n >= _FEWEST_BEAMS
    share = hits / np.maximum(n, 1)
    there, empty = seen & (share >= _THERE), seen & (share <= _GONE)
    n_there, n_empty, n_seen = there.sum(axis=0), empty.sum(axis=0), seen.sum(axis=0)
    # One run: no sweep between its first and its last saw the ball empty.
    before = np.cumsum(there, axis=0)
    between = (empty & (before > 0) & (before < n_there)).any(axis=0)
    clear = n_there + n_empty >= 0.9 * n_seen
    return (n_there > 0) & (n_empty >= np.maximum(_FEWEST_EMPTY, n_there)) & clear & ~between
