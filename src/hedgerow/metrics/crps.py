# SPDX-License-Identifier: Apache-2.0
"""CRPS of the range that a world forecasts for each beam (Gneiting and Raftery 2007).

The continuous ranked probability score of a forecast F and a measured range y is the integral of (F(r) - [r >= y])²
over r, in metres: |x - y| for a forecast that is one number x. It is proper: no world lowers its expected score by
returning more, or less, or more evenly than reality does. No return counts as a return at the range limit, so that one
number covers hits, misses and ranges. A low score is good.

Worlds of elements know the forecast along each beam, and the score is exact (docs/models.md §33). Of others it is
estimated from K draws x, without bias for any K (Ferro 2014, "fair"):

    mean |x_k - y| - sum over pairs |x_i - x_j| / (K (K - 1)),

so the score of a single beam may be below 0. Draws are sorted, and the sum over pairs is one over the sorted draws.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_whole, require_kind
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.inputs import Recording, sweeps_of
from hedgerow.world import World
from hedgerow.world.forecast import crps_of

MOST_DRAWS = 10_000
_AT_ONCE = 4_000_000  # draws held in memory, of all beams together


def crps(real_m: NDArray[np.floating], draws_m: NDArray[np.floating], max_range_m: float) -> NDArray[np.float64]:
    """Score draws of the range of each beam [m].

    Args:
        real_m: (N,) measured ranges; inf is no return.
        draws_m: (K, N) simulated ranges, K of 2 or more; inf is no return.
        max_range_m: the range limit; what has no return, or lies beyond, counts as if it lay there.

    Returns:
        (N,) fair CRPS of each beam.

    Raises:
        InputError: wrong shapes, NaN, or a range limit that is not finite.
    """
    real = np.asarray(real_m, dtype=np.float64)
    draws = np.asarray(draws_m, dtype=np.float64)
    arrays.require_shape("real_m", real, ("N",))
    if draws.ndim != 2 or draws.shape[1] != len(real) or len(draws) < 2:
        raise InputError("draws_m", f"expected shape (K, {len(real)}) with K of 2 or more, found {draws.shape}")
    if not 0 < max_range_m < np.inf:
        raise InputError("max_range_m", f"expected a finite range limit above 0, found {max_range_m:g}; set the log's")
    if np.isnan(real).any() or np.isnan(draws).any():
        raise InputError("real_m, draws_m", "hold NaN; no return is inf")
    n = len(draws)
    real, draws = np.minimum(real, max_range_m), np.sort(np.minimum(draws, max_range_m), axis=0)
    away_m = np.abs(draws - real).mean(axis=0)
    # Of all pairs, the k-th smallest draw is the larger one k - 1 times and the smaller one n - k times.
    weight = (2 * np.arange(1, n + 1) - n - 1) / (n * (n - 1))
    return away_m - weight @ draws


def crps_of_world(world: World, log: Log, draws: int = 8, seed: int = 0) -> NDArray[np.float64]:
    """Score what a world forecasts for the beams of a log, each beam on its own [m].

    Args:
        world: what the beams are fired at.
        log: the real log; it needs a maximal range.
        draws: how often each beam is fired where the world does not know its own distribution, 2 or more; the score
            is unbiased for any number.
        seed: of the draws; same seed, same scores.

    Returns:
        (N,) CRPS of each beam, in the order of the log; fair, where it is drawn.

    Raises:
        InputError: a wrong number of draws, or the log has no maximal range.
    """
    require_kind("world", world, World, "a World")
    require_kind("log", log, Log, "a Log; hr.read_log reads one")
    n = as_whole("draws", draws, 2, MOST_DRAWS)
    found = np.empty(len(log))
    step = max(1, _AT_ONCE // n)
    for begin in range(0, len(log), step):
        found[begin : begin + step] = crps_of(world.forecast(log[begin : begin + step], draws=n, seed=seed))
    return found


def crps_by_sweep(
    world: World, recording: Recording, draws: int = 8, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the (S,) mean CRPS of each sweep [m] and its (S,) number of beams; memory holds one sweep.

    `hedgerow.metrics.paired.paired_difference` says from these whether one world is better than another.

    Raises:
        InputError: as `crps_of_world`.
    """
    sums: list[float] = []
    counts: list[int] = []
    for sweep in sweeps_of("real", recording):
        sums.append(float(crps_of_world(world, sweep, draws, seed).mean()))
        counts.append(len(sweep))
    return np.array(sums), np.array(counts, dtype=np.int64)
