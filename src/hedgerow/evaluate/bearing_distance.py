# SPDX-License-Identifier: Apache-2.0
"""How far two histograms of range by direction are apart: Bhattacharyya (000 eq. 14), histogram match (001 §3.4.3).

000 compares two-dimensional histograms of bearing and range as a whole (Table 3); the distance in each direction,
averaged over directions, is stricter. Both are -log of the overlap sum(sqrt(h f)). Histograms that share no bin would
be infinitely far apart; from n and m beams no overlap below one shared beam, 1 / sqrt(n m), can be told from none, so
that is the bound. Beware of few beams: two samples of one distribution overlap incompletely too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluate.bearing import NO_RETURN, BearingHistogram, split
from hedgerow.evaluate.values import Value


@dataclass(frozen=True, slots=True)
class _Joined:
    """Two histograms over the union of their bins, in order; only directions with beams enough in both."""

    direction: NDArray[np.int64]
    """(K,) 0 to D - 1."""
    range_bin: NDArray[np.int64]
    """(K,)."""
    real: NDArray[np.int64]
    simulated: NDArray[np.int64]
    n_real: NDArray[np.int64]
    """(D,) beams per direction."""
    n_simulated: NDArray[np.int64]


def bearing_distances(
    real: BearingHistogram, simulated: BearingHistogram, min_repeats: int, max_range_m: float
) -> dict[str, Value]:
    """Compare two histograms.

    Args:
        real, simulated: of the same steps.
        min_repeats: directions with fewer beams are left out.
        max_range_m: a beam without return counts as one here in the histogram match; inf: behind the farthest return.

    Returns:
        bhattacharyya (of the whole), bhattacharyya_per_direction (mean over beams), histogram_match_m (the same).
    """
    joined = _join(real, simulated, min_repeats)
    n = int(joined.n_real.sum())
    if n == 0:
        keys = ("bhattacharyya", "bhattacharyya_per_direction", "histogram_match_m")
        return {key: Value(None, 0) for key in keys}
    per_direction = _bhattacharyya(_overlap(joined), joined.n_real, joined.n_simulated)
    shared = np.sqrt(joined.real * joined.simulated.astype(np.float64)).sum()
    whole = _bhattacharyya(shared, joined.n_real.sum(), joined.n_simulated.sum())
    match_m = _matches(joined, max_range_m, real.range_step_m)
    return {
        "bhattacharyya": Value(float(whole), n),
        "bhattacharyya_per_direction": Value(float(np.average(per_direction, weights=joined.n_real)), n),
        "histogram_match_m": Value(float(np.average(match_m, weights=joined.n_real)), n),
    }


def _bhattacharyya(shared: NDArray[Any], n: NDArray[Any], m: NDArray[Any]) -> NDArray[np.float64]:
    """-log of the overlap, given sum(sqrt(counts * counts)), which is 1 for one shared beam."""
    overlap = np.maximum(shared, 1.0) / np.sqrt(n.astype(np.float64) * m)
    return np.maximum(-np.log(overlap), 0.0)  # rounding may take it a little below


def _overlap(joined: _Joined) -> NDArray[Any]:
    weights = np.sqrt(joined.real * joined.simulated.astype(np.float64))
    return np.bincount(joined.direction, weights, minlength=len(joined.n_real))


def _matches(joined: _Joined, max_range_m: float, step_m: float) -> NDArray[Any]:
    seen = joined.range_bin[joined.range_bin != NO_RETURN]
    end = int(seen.max()) + 1 if seen.size else 1
    if np.isfinite(max_range_m):
        end = max(end, round(max_range_m / step_m))
    place = np.where(joined.range_bin == NO_RETURN, end, joined.range_bin)
    difference = joined.real / joined.n_real[joined.direction] - joined.simulated / joined.n_simulated[joined.direction]
    # Within each direction the differences add up to 0, so one running sum serves all; after the last bin it is 0.
    running = np.abs(np.cumsum(difference))
    same = np.concatenate([joined.direction[1:] == joined.direction[:-1], [False]])
    gap = np.where(same, np.concatenate([np.diff(place), [0]]), 0)
    return np.bincount(joined.direction, running * gap, minlength=len(joined.n_real)) * step_m


def _join(real: BearingHistogram, simulated: BearingHistogram, min_repeats: int) -> _Joined:
    (real_keys, real_counts), (simulated_keys, simulated_counts) = real.entries(), simulated.entries()
    keys = np.union1d(real_keys, simulated_keys)
    counts = np.zeros((2, len(keys)), dtype=np.int64)
    counts[0, np.searchsorted(keys, real_keys)] = real_counts
    counts[1, np.searchsorted(keys, simulated_keys)] = simulated_counts
    number, range_bin = split(keys)
    _, direction = np.unique(number, return_inverse=True)
    totals = np.stack([np.bincount(direction, row).astype(np.int64) for row in counts])
    enough: NDArray[np.bool_] = np.asarray((totals >= min_repeats).all(axis=0))
    keep = enough[direction]
    _, direction = np.unique(direction[keep], return_inverse=True)
    return _Joined(direction, range_bin[keep], counts[0, keep], counts[1, keep], totals[0, enough], totals[1, enough])
