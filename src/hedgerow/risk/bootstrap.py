# SPDX-License-Identifier: Apache-2.0
"""Intervals of risk by the bootstrap: scenes and settings are drawn again, with replacement, and J computed anew.

Scenes are drawn alike for reality and all simulators, so that what they share cancels in differences. What is drawn
becomes an interval in base/intervals.py.

A mean of absolute differences R is too large by the noise in J, and the resampled R* by about as much again. Where
noise is all there is, the quantiles of R* therefore lie above the truth; the basic interval, 2 R - quantiles of R*,
takes the excess off, but too much of it where bias and noise are alike. Each holds the truth where the other does not,
so the interval spans both. tests/risk/test_risk_score.py measures how often it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.intervals import REPLICATES
from hedgerow.risk.objectives import Pair

_AT_ONCE = 50


@dataclass(frozen=True)
class Replicates:
    """Resampled values, (B,) each."""

    risk: dict[str, NDArray[np.float64]]
    bias: dict[str, NDArray[np.float64]]
    difference: dict[tuple[str, str], NDArray[np.float64]]
    """Risk of the first less that of the second, over settings that count in both."""


def losses(pair: Pair, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return |J real - J simulated| of each setting, mean over the seeds: (settings,), or (B, settings)."""
    real, simulated = pair.both(weight)
    return _mean(np.abs(simulated - real), -2)


def biases(pair: Pair, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return J simulated - J real of each setting, mean over the seeds: (settings,), or (B, settings)."""
    real, simulated = pair.both(weight)
    return _mean(simulated - real, -2)


def _mean(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the mean without NaN; NaN where there is nothing else."""
    known = np.isfinite(values)
    n = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def mean_loss(values: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the mean over the settings, the last axis, without those that do not count (NaN)."""
    if weight is None:
        return _mean(values, -1)
    known = np.isfinite(values)
    total = np.where(known, values * weight, 0.0).sum(axis=-1)
    n = np.where(known, weight, 0.0).sum(axis=-1)
    return np.where(n > 0, total / np.maximum(n, 1e-300), np.nan)


def resample(pairs: Mapping[str, Pair], *, replicates: int = REPLICATES, seed: int = 0) -> Replicates:
    """Draw scenes and settings again, alike for all simulators, and compute risk, bias and differences of risk."""
    rng = np.random.default_rng(seed)
    first = next(iter(pairs.values()))
    _, n_settings, n_scenes = first.used.shape
    names = list(pairs)
    found = Replicates(
        {name: np.empty(replicates) for name in names},
        {name: np.empty(replicates) for name in names},
        {both: np.empty(replicates) for both in combinations(names, 2)},
    )
    for begin in range(0, replicates, _AT_ONCE):
        rows = slice(begin, min(begin + _AT_ONCE, replicates))
        n = rows.stop - rows.start
        scenes = rng.multinomial(n_scenes, np.full(n_scenes, 1 / n_scenes), n).astype(np.float64)
        settings = rng.multinomial(n_settings, np.full(n_settings, 1 / n_settings), n).astype(np.float64)
        loss: dict[str, NDArray[np.float64]] = {}
        for name, pair in pairs.items():
            real, simulated = pair.both(scenes)
            loss[name] = _mean(np.abs(simulated - real), -2)
            found.risk[name][rows] = mean_loss(loss[name], settings)
            found.bias[name][rows] = mean_loss(_mean(simulated - real, -2), settings)
        for one, other in found.difference:
            found.difference[one, other][rows] = mean_loss(loss[one] - loss[other], settings)
    return found
