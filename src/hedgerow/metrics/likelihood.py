# SPDX-License-Identifier: Apache-2.0
"""How likely a world finds what was really measured (Browning 2012 §5.4, docs/models.md §27).

Each beam scores -log p, p = (1 - e) p_world + e u: u is the uniform density over the range limits for a return, and 1
for a beam without. The outlier share e keeps one impossible beam from deciding the score. Beams whose outlier term is
the larger one count as floored. `nll_binned` takes a return's probability to fall into its range bin instead of the
density there, as the values of Browning 2012 Tables 6 and 7 and Fig. 18 suggest.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair
from hedgerow.metrics.per_sweep import SweepSums

LIKELIHOOD_METRICS = {
    "nll": Metric(
        label="-log L of the density, mean",
        meaning="how unlikely the world finds what was measured: density per metre of a return, probability of none",
        source="Browning 2012 eq. 17",
        better="low",
        decimals=3,
        counts="beams",
    ),
    "nll_binned": Metric(
        label="-log L of the range bin, mean",
        meaning="the same with the probability of a return's range bin, as the figures of Browning 2012 seem to be",
        source="Browning 2012 eq. 17",
        better="low",
        decimals=3,
        counts="beams",
    ),
    "floored": Metric(
        label="Beams at the density floor",
        meaning="beams that the world finds less likely than an outlier",
        better="low",
        unit="%",
        scale=100,
        decimals=2,
        counts="beams",
    ),
}

LOWEST, HIGHEST, PER_DECADE = -8, 4, 10
"""The histogram covers 10^LOWEST to 10^HIGHEST; what lies outside counts in the first or last bin."""


class Likelihood:
    """Sum and histogram of the scores."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.outlier_share = settings.outlier_share
        self.range_step_m = settings.range_step_m
        self.has_max_range = True
        self.n = 0
        self.n_hits = 0
        self.n_floored = 0
        self.sum = 0.0
        self.counts: NDArray[np.int64] = np.zeros((HIGHEST - LOWEST) * PER_DECADE, dtype=np.int64)
        """Of log10 p, density for returns and probability for beams without."""
        self.by_sweep = SweepSums(("nll",))

    def add(self, pair: SweepPair) -> None:
        """Add one sweep, if the simulation knows densities."""
        self.has_max_range &= bool(np.isfinite(pair.real.log.max_range_m))
        if pair.log_density is None:
            return
        log, hit = pair.real.log, pair.real.hit
        outlier = np.where(hit, self.outlier_share / (log.max_range_m - log.min_range_m), self.outlier_share)
        world = np.log1p(-self.outlier_share) + pair.log_density
        log_p = np.logaddexp(world, np.log(outlier))
        self.n += len(hit)
        self.n_hits += int(np.count_nonzero(hit))
        self.n_floored += int(np.count_nonzero(world < np.log(outlier)))
        total = -float(log_p.sum())
        self.sum += total
        self.by_sweep.add(len(hit), {"nll": total})
        place = np.floor((log_p / np.log(10) - LOWEST) * PER_DECADE).clip(0, len(self.counts) - 1)
        self.counts += np.bincount(place.astype(np.int64), minlength=len(self.counts))

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.has_max_range &= other.has_max_range
        self.n += other.n
        self.n_hits += other.n_hits
        self.n_floored += other.n_floored
        self.sum += other.sum
        self.counts += other.counts
        self.by_sweep.merge(other.by_sweep)

    def values(self) -> dict[str, Value]:
        """Return the mean score, the same per range bin, and the share of floored beams; {} without any beam."""
        if self.n == 0:
            return {}
        binned = self.sum - self.n_hits * np.log(self.range_step_m)
        return {
            "nll": Value(self.sum / self.n, self.n),
            "nll_binned": Value(float(binned) / self.n, self.n),
            "floored": ratio_value(self.n_floored, self.n),
        }

    def notes(self) -> list[str]:
        """Say what the density floor is, or why there is no likelihood."""
        e = self.outlier_share
        if self.n:
            return [f"-log L has a floor: p = (1 - {e:g}) p_world + {e:g} u, u uniform over the range limits"]
        if not self.has_max_range:
            return ["no likelihood: the real log has no max_range_m, so the density floor has no scale; set it"]
        return ["no likelihood: the simulation is a log, or a world without log_likelihood()"]
