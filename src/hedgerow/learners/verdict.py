# SPDX-License-Identifier: Apache-2.0
"""How good a world simulates some beams: likelihood, returns and no-returns found, error of the ranges.

Likelihood alone is not enough. It gladly gives up a few returns for sharper ranges elsewhere, and forgives a stray
point ten metres off as much as one that is one metre off; what a robot makes of a sweep depends on all of them. 000
ends by asking for a model that is decided by the quality of its simulation: this is that quality.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hedgerow.log import Log

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_STEPS = float(1 << 20)


class QualityWeights(BaseModel):
    """What the faults of a simulation cost, beside -log L; all zero: likelihood alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    error_nat_per_m: NotNegative = 1.0
    """A metre between the simulated and the measured range."""
    lost_hit_nat: NotNegative = 9.0
    """A beam that returned, but not in simulation."""
    false_hit_nat: NotNegative = 12.0
    """A beam that returns in simulation only."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Sums over beams in whole numbers: they add up exactly, whatever the partitions."""

    score: int = 0
    n_beams: int = 0
    found_hits: int = 0
    n_hits: int = 0
    found_misses: int = 0
    n_misses: int = 0
    error: int = 0

    @classmethod
    def of(cls, scores: NDArray[np.float64], log: Log) -> Self:
        """Judge a world by some beams.

        Args:
            scores: (N, 3) log density of the measured range, probability of a return, expected error [m].
            log: the beams.
        """
        hit = np.isfinite(log.returns.first_m)
        score, returns, error = np.rint(scores * _STEPS).astype(np.int64).T
        n_misses = int(np.count_nonzero(~hit))
        return cls(
            int(score.sum()),
            len(log),
            int(returns[hit].sum()),
            len(log) - n_misses,
            n_misses * int(_STEPS) - int(returns[~hit].sum()),
            n_misses,
            int(error[hit].sum()),
        )

    def __add__(self, other: Self) -> Self:
        """Join what two partitions say."""
        return type(self)(
            self.score + other.score,
            self.n_beams + other.n_beams,
            self.found_hits + other.found_hits,
            self.n_hits + other.n_hits,
            self.found_misses + other.found_misses,
            self.n_misses + other.n_misses,
            self.error + other.error,
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

    @property
    def error_m(self) -> float:
        """Expected error of the ranges of beams that return in both [m]."""
        return self.error / max(self.found_hits, 1)

    def summary(self) -> str:
        """Return the scores as a progress bar tells them."""
        found = f"{self.hits_found:.1%} of hits, {self.misses_found:.1%} of misses found"
        return f"held-out -log L {self.nll:.3f}, {found}"

    def cost(self, weights: QualityWeights) -> float:
        """Return what the beams cost on average, lower is better [nat]."""
        lost = self.n_hits - self.found_hits / _STEPS
        false = self.n_misses - self.found_misses / _STEPS
        extra = weights.lost_hit_nat * lost + weights.false_hit_nat * false
        return self.nll + (extra + weights.error_nat_per_m * self.error / _STEPS) / max(self.n_beams, 1)
