# SPDX-License-Identifier: Apache-2.0
"""How well Gaussians simulate measured beams: the score, the loss, and the gradient of the loss.

The loss is the negative log-likelihood, a proper score: it is lowest for the true distribution. Three weights beside
it, off by default, count range errors, lost returns and false returns of a draw. They find more hits and misses, and
are won by being surer than reality is.

The gradient is by steps without unit. An element of covariance A Aᵀ and mean m goes to A exp(S) Aᵀ and m + A v, and
its extinction or depth grows by a factor exp(s): a step of 0.05 suits twigs and walls alike
(cpp/learn/loss_gradient.hpp).

Equations: docs/models.md §14.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base.parameters import NotNegative, Parameters
from hedgerow.base.progress import Progress
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LogChunks
from hedgerow.models.steps.permeability import scene_of
from hedgerow.parallel.engine import Shared
from hedgerow.parallel.log_parts import LogPart, map_log, share_with
from hedgerow.world.elements import Gaussians
from hedgerow.world.scene import Scene

_STEPS = float(1 << 20)

N_PARAMETERS = 10
"""Of an element's gradient: mean (v, 3), shape (S, 6: xx, yx, yy, zx, zy, zz), extinction or depth (s, 1)."""


@dataclass(frozen=True, slots=True)
class RayModel:
    """What the density of a measured range needs besides the elements."""

    min_range_m: float
    max_range_m: float
    outlier_share: float
    """Share of beams that no element explains: ranges spread evenly over the limits, and lost returns."""
    min_sigma_m: float = 0.001
    """Narrower elements count as this wide, as in `hr.compare`."""

    def native(self) -> _core.RayModel:
        """Return it as the engine takes it."""
        return _core.RayModel(
            limits=_core.RangeLimits(min_m=self.min_range_m, max_m=self.max_range_m),
            min_sigma_m=self.min_sigma_m,
            outlier_share=self.outlier_share,
        )


class LossWeights(Parameters):
    """Weights of the loss beside the negative log-likelihood.

    All 0: likelihood alone, a proper score. With weights of 1, 9 and 12 a world finds more hits and misses, by
    being surer than reality is.
    """

    error_nat_per_m: NotNegative = 0.0
    """Loss per metre of range error."""
    lost_hit_nat: NotNegative = 0.0
    """Loss of a measured return that the simulation misses."""
    false_hit_nat: NotNegative = 0.0
    """Loss of a simulated return where none was measured."""


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over beams, as whole numbers: they add up exactly, however the log is cut into chunks."""

    log_density: int = 0
    n_beams: int = 0
    found_hits: int = 0
    n_hits: int = 0
    found_misses: int = 0
    n_misses: int = 0
    error: int = 0

    @classmethod
    def of(cls, per_beam: NDArray[np.float64], log: Log) -> Self:
        """Sum up the scores of some beams.

        Args:
            per_beam: (N, 3) log density of the measured range, probability of a return, expected error [m].
            log: the beams.
        """
        hit = np.isfinite(log.returns.first_m)
        log_density, returns, error = np.rint(per_beam * _STEPS).astype(np.int64).T
        n_misses = int(np.count_nonzero(~hit))
        return cls(
            int(log_density.sum()),
            len(log),
            int(returns[hit].sum()),
            len(log) - n_misses,
            n_misses * int(_STEPS) - int(returns[~hit].sum()),
            n_misses,
            int(error[hit].sum()),
        )

    def __add__(self, other: Self) -> Self:
        """Add the sums of two chunks."""
        return type(self)(
            self.log_density + other.log_density,
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
        return -self.log_density / _STEPS / max(self.n_beams, 1)

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
        """Return the score in a few words, for a progress bar."""
        found = f"{self.hits_found:.1%} of hits, {self.misses_found:.1%} of misses found"
        return f"held-out -log L {self.nll:.3f}, {found}"

    def loss(self, weights: LossWeights) -> float:
        """Return the mean loss of a beam, lower is better [nat]."""
        lost = self.n_hits - self.found_hits / _STEPS
        false = self.n_misses - self.found_misses / _STEPS
        extra = weights.lost_hit_nat * lost + weights.false_hit_nat * false
        return self.nll + (extra + weights.error_nat_per_m * self.error / _STEPS) / max(self.n_beams, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """Sums over beams, one row per element; fixed point, so they add up exactly over chunks."""

    table: NDArray[np.int64]

    def __add__(self, other: "Gradient") -> "Gradient":
        """Add the sums of two chunks."""
        return Gradient(self.table + other.table)

    @property
    def values(self) -> NDArray[np.float64]:
        """(N, 10) derivatives of the loss; those off the diagonal of S as entries of its symmetric gradient [nat]."""
        return self.table[:, : _core.LossSum.hits] / _core.FIXED_POINT

    @property
    def hits(self) -> NDArray[np.float64]:
        """(N,) share of the returns that each element explains, in beams."""
        return self.table[:, _core.LossSum.hits] / _core.FIXED_POINT


class LossEvaluator:
    """Scores logs against Gaussians, with the gradient of the loss."""

    def __init__(self, gaussians: Gaussians, rays: RayModel, weights: LossWeights) -> None:
        """Build the scene once."""
        self.rays, self.weights = rays, weights
        self._scene = scene_of((gaussians,))

    def evaluate(self, log: Log, *, threads: int = 0) -> tuple[Gradient, Score]:
        """Return the gradient of the loss of a log, summed over beams, and its score.

        Args:
            log: any chunk; second returns are left out.
            threads: 0 for all; the result does not depend on it.
        """
        if len(log) == 0:
            return Gradient(np.zeros((self._scene.n_elements, _core.LossSum.end), dtype=np.int64)), Score()
        table, per_beam = _core.loss_gradient(
            self._scene.native,
            self._scene.beam_arrays(log.beams),
            range_m=np.ascontiguousarray(log.returns.first_m),
            model=self.rays.native(),
            weights=_core.LossWeights(**self.weights.model_dump()),
            threads=threads,
            progress=None,
        )
        return Gradient(table), Score.of(per_beam, log)


def score_gaussians(
    gaussians: Gaussians,
    chunks: LogChunks,
    rays: RayModel,
    weights: LossWeights,
    progress: Progress | None = None,
) -> Score:
    """Return the score of Gaussians over all beams of a log."""
    work = _ScorePart(share_with(chunks, gaussians), rays, weights)
    return sum(map_log(chunks, work, progress), Score())


@dataclass(frozen=True, slots=True)
class _ScorePart:
    """Scores one part of a log."""

    gaussians: Shared[Gaussians]
    rays: RayModel
    weights: LossWeights

    def __call__(self, part: LogPart) -> Score:
        return self.gaussians.built(LossEvaluator, self.rays, self.weights).evaluate(part.read())[1]


def crps_of_gaussians(
    gaussians: Gaussians, chunks: LogChunks, rays: RayModel, progress: Progress | None = None
) -> float:
    """Return the mean CRPS of the ranges that Gaussians forecast over all beams of a log [m]."""
    total_m, n_beams = 0.0, 0
    for sum_m, n in map_log(chunks, _CrpsPart(share_with(chunks, gaussians), rays), progress):  # in the order of parts
        total_m, n_beams = total_m + sum_m, n_beams + n
    return total_m / max(n_beams, 1)


@dataclass(frozen=True, slots=True)
class _CrpsPart:
    """Sums up the CRPS of one part of a log, and counts its beams."""

    gaussians: Shared[Gaussians]
    rays: RayModel

    def __call__(self, part: LogPart) -> tuple[float, int]:
        log, scene = part.read(), self.gaussians.built(_scene)
        if len(log) == 0:
            return 0.0, 0
        found = scene.forecast(
            log.beams,
            np.ascontiguousarray(log.returns.first_m),
            min_range_m=self.rays.min_range_m,
            max_range_m=self.rays.max_range_m,
            min_sigma_m=self.rays.min_sigma_m,
        )
        assert found.error_m is not None and found.spread_m is not None  # ranges were given
        return float((found.error_m - found.spread_m / 2).sum()), len(log)


def _scene(gaussians: Gaussians) -> Scene:
    return scene_of((gaussians,))
