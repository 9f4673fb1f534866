# SPDX-License-Identifier: Apache-2.0
"""How good a world is on held-out sweeps: likelihood, and the returns and no-returns it would have found.

Likelihood alone is not enough. It gladly gives up a few returns for sharper ranges elsewhere, and what a robot makes
of a sweep depends on both. So a world also pays for every hit or miss that it finds less often than its start did.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hedgerow.learners.ray_sums import RayCounter
from hedgerow.log import Log

_STEPS = float(1 << 20)
LOSS_NAT = 100.0
"""What it costs to find fewer hits or misses than the start: a nat for each per cent."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Sums over held-out beams in whole numbers: they add up exactly, whatever the partitions."""

    score: int = 0
    n_beams: int = 0
    found_hits: int = 0
    n_hits: int = 0
    found_misses: int = 0
    n_misses: int = 0

    @classmethod
    def of(cls, counter: RayCounter, log: Log) -> Self:
        """Judge the world of a counter by some beams."""
        if len(log) == 0:
            return cls()
        hit = np.isfinite(log.returns.first_m)
        passing = np.rint(counter.passing(log) * _STEPS).astype(np.int64)
        n_hits, n_misses = int(np.count_nonzero(hit)), int(np.count_nonzero(~hit))
        found_hits = n_hits * int(_STEPS) - int(passing[hit].sum())
        return cls(counter.sums(log).score, len(log), found_hits, n_hits, int(passing[~hit].sum()), n_misses)

    def __add__(self, other: Self) -> Self:
        """Join what two partitions say."""
        return type(self)(
            self.score + other.score,
            self.n_beams + other.n_beams,
            self.found_hits + other.found_hits,
            self.n_hits + other.n_hits,
            self.found_misses + other.found_misses,
            self.n_misses + other.n_misses,
        )

    @property
    def nll(self) -> float:
        """Mean negative log density [nat]."""
        return -self.score / _STEPS / max(self.n_beams, 1)

    @property
    def hits_found(self) -> float:
        """Mean probability that a beam returns which really did."""
        return self.found_hits / _STEPS / max(self.n_hits, 1)

    @property
    def misses_found(self) -> float:
        """Mean probability that a beam does not return which really did not."""
        return self.found_misses / _STEPS / max(self.n_misses, 1)

    def cost(self, start: Self) -> float:
        """Return the held-out score, lower is better: -log L, and what is found less than by the start [nat]."""
        lost = max(0.0, start.hits_found - self.hits_found) + max(0.0, start.misses_found - self.misses_found)
        return self.nll + LOSS_NAT * lost
