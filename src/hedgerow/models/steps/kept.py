# SPDX-License-Identifier: Apache-2.0
"""A model that keeps few of the returns it learns from says so, and what would keep them.

The lengths of the models suit a vehicle in a street. A log from the air has a return for each square metre or less, a
planar one nothing above or below its plane: voxels hold too few points then, and surfaces have holes everywhere. The
world would be all but empty without a word. Lengths that would do are measured from the points themselves.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError, warn
from hedgerow.models.steps.log_chunks import LogChunks

FEW = 0.5
"""A world with fewer of its returns than this share is not what was asked for."""
MOST = 0.8
"""Share of the returns that a proposed length would keep."""
_PROBED = 0.8
_PROBES, _POINTS_READ = 3000, 1_000_000
_LONGEST_M = 100.0
"""Of a voxel."""


def another_model() -> str:
    """Say which model keeps every return."""
    return "the model topdown keeps all of them"


def require_kept(n_kept: int, n_returns: int, advice: Callable[[], str] = another_model) -> None:
    """Refuse a world that keeps none of the returns of its log, and warn of one that keeps few.

    Args:
        n_kept: how many lie on elements; those on several may be counted for each.
        n_returns: of the log.
        advice: says what to do; called only if it is needed.

    Raises:
        InputError: none was kept.
    """
    if n_kept == 0:
        raise InputError("log", f"none of its returns ({n_returns:,}) made it into the world; {advice()}")
    if n_kept < FEW * n_returns:
        share = f"{n_kept / n_returns:.1%}"
        warn(f"log: only {share} of its {n_returns:,} returns made it into the world; {advice()}")


def wide_enough_m(chunks: LogChunks, n_neighbours: int) -> float | None:
    """Return the radius around a return that holds so many others, for four returns of five, in whole decimetres [m].

    Up to a million returns of the log are looked at; None if there are too few of them, or they lie in one place.
    """
    from scipy.spatial import cKDTree  # here: it takes long to load

    parts: list[NDArray[np.float64]] = []
    for log in chunks():
        parts.append(log.points())
        if sum(len(each) for each in parts) >= _POINTS_READ:
            break
    points_m = np.concatenate(parts)[:_POINTS_READ] if parts else np.zeros((0, 3))
    if len(points_m) <= n_neighbours:
        return None
    probes_m = points_m[np.linspace(0, len(points_m) - 1, min(_PROBES, len(points_m))).astype(np.int64)]
    distance_m = np.asarray(cKDTree(points_m).query(probes_m, k=[n_neighbours + 1])[0])
    decimetres = math.ceil(10 * float(np.quantile(distance_m, _PROBED)))
    return decimetres / 10 if decimetres > 0 else None


def long_enough_m(
    mean_m: NDArray[np.float64], count: NDArray[np.int64], side_m: float, min_points: int
) -> tuple[float, float] | None:
    """Return a side of voxels that would keep most points, and the share that it would.

    Args:
        mean_m: (V, 3) means of the points of small voxels; these stand for their points.
        count: (V,) points in each.
        side_m: the side that was too short; longer ones are tried in steps of a half.
        min_points: a voxel with fewer points is left out.

    Returns:
        Side and share; None if not even the longest would do.
    """
    while (side_m := 1.5 * side_m) <= _LONGEST_M:
        tried_m = round(side_m, 1) if side_m >= 1 else round(side_m, 2)
        _, group = np.unique(np.floor(mean_m / tried_m).astype(np.int64), axis=0, return_inverse=True)
        in_voxel = np.bincount(group.reshape(-1), weights=count)
        kept = float(in_voxel[in_voxel >= min_points].sum() / count.sum())
        if kept >= MOST:
            return tried_m, kept
    return None


def side_advice(mean_m: NDArray[np.float64], count: NDArray[np.int64], side_m: float, min_points: int) -> str:
    """Say which side of voxels keeps most points; see `long_enough_m`."""
    found = long_enough_m(mean_m, count, side_m, min_points)
    if found is None:
        return "take more sweeps, a smaller min_points, or the model topdown, which keeps every return"
    return f"take side_m={found[0]:g}, which keeps {found[1]:.0%}, or a smaller min_points"
