# SPDX-License-Identifier: Apache-2.0
"""J of every setting from the sums of its runs, over all scenes or over scenes drawn again.

Two sources are compared over runs that went well in both: a scene on which a setting failed in either is left out of
both, so that like is compared with like. A setting counts if at least half of its scenes are left, and all of them were
run. What is left out is said by the failure rates.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective
from hedgerow.errors import InputError
from hedgerow.risk.table import Runs

LEAST_SHARE = 0.5
"""Of the scenes that must be left for a setting to count."""


@dataclass(frozen=True)
class Pair:
    """Two sources over the same settings and scenes; seeds of the second, the first has one."""

    first: Mapping[str, NDArray[np.float64]]
    """Sums (1, settings, scenes), 0 where a run does not count."""
    second: Mapping[str, NDArray[np.float64]]
    """Sums (seeds, settings, scenes), 0 where a run does not count."""
    used: NDArray[np.bool_]
    """(seeds, settings, scenes) runs that count."""
    counts: NDArray[np.bool_]
    """(seeds, settings) settings that count."""
    objective: Objective

    def both(self, weight: NDArray[np.float64] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return J of both, (seeds, settings), NaN where a setting does not count.

        Args:
            weight: (B, scenes) how often each scene was drawn; then the answers are (B, seeds, settings).
        """
        weights = np.ones((1, self.used.shape[2])) if weight is None else weight
        used = self.used.astype(np.float64)
        firsts = {name: values * used for name, values in self.first.items()}
        answers = [self._j(sums, weights, used) for sums in (firsts, self.second)]
        if weight is None:
            return answers[0][0], answers[1][0]
        return answers[0], answers[1]

    def _j(
        self, sums: Mapping[str, NDArray[np.float64]], weight: NDArray[np.float64], used: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        drawn = {name: np.tensordot(weight, values, ([1], [2])) for name, values in sums.items()}
        empty = np.tensordot(weight, used, ([1], [2])) <= 0
        return np.where(empty | ~self.counts, np.nan, _reduce(self.objective, drawn, empty.shape))


def pair(first: Runs, second: Runs, objective: Objective, most: int | None = None) -> Pair:
    """Put two sources beside each other, over the first `most` settings; the first is taken under its first seed."""
    n_settings = min(first.failure.shape[1], second.failure.shape[1])
    n_settings = n_settings if most is None else min(n_settings, most)
    well = first.well[:1, :n_settings] & second.well[:, :n_settings]
    ran = (first.ran[:1, :n_settings] & second.ran[:, :n_settings]).all(axis=2)
    counts = ran & (well.sum(axis=2) >= max(1.0, LEAST_SHARE * well.shape[2]))
    return Pair(
        {name: values[:1, :n_settings] for name, values in first.sums.items()},
        {name: np.where(well, values[:, :n_settings], 0.0) for name, values in second.sums.items()},
        well,
        counts,
        objective,
    )


def alone(runs: Runs, objective: Objective, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return J (seeds, settings) of one source by itself, over the runs that went well; NaN where there are too few.

    Args:
        weight: (scenes,) how often each scene counts. Default: once.
    """
    well = runs.well
    weights = np.ones(well.shape[2]) if weight is None else weight
    share = (well * weights).sum(axis=2)
    counts = runs.ran.all(axis=2) & (share >= max(1.0, LEAST_SHARE * weights.sum()))
    sums = {name: np.where(well, values, 0.0) @ weights for name, values in runs.sums.items()}
    return np.where(counts, _reduce(objective, sums, counts.shape), np.nan)


def pooled(runs: Runs, objective: Objective) -> NDArray[np.float64]:
    """Return J (settings,) over all scenes and seeds of one source together; NaN where there are too few runs."""
    well = runs.well
    n_well = well.sum(axis=(0, 2))
    counts = runs.ran.all(axis=(0, 2)) & (n_well >= max(1.0, LEAST_SHARE * well.shape[0] * well.shape[2]))
    sums = {name: np.where(well, values, 0.0).sum(axis=(0, 2)) for name, values in runs.sums.items()}
    return np.where(counts, _reduce(objective, sums, counts.shape), np.nan)


def _reduce(
    objective: Objective, sums: Mapping[str, NDArray[np.float64]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return J of each set of scenes; NaN where there is none.

    Raises:
        InputError: the objective needs a sum that the program does not give.
    """
    if not sums:  # all runs failed
        return np.full(shape, np.nan)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            j = np.asarray(objective.reduce(sums), dtype=np.float64)
    except KeyError as error:
        raise InputError("objective", f"needs the sum {error}; the program gives {', '.join(sums)}") from None
    return np.where(np.isfinite(j), j, np.nan)
