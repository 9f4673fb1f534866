# SPDX-License-Identifier: Apache-2.0
"""Scores of worlds on a test log: those of Tallavajhula 2018 Table 4.3, and two that are proper (CRPS, likelihood).

Every world is scored on all beams, and on those that met no ground: beams that really ended in a plant, or nowhere.
What differs between two worlds is said with an interval over the sweeps of the log (`metrics/paired.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.log import Log, Returns
from hedgerow.metrics import compare
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.crps import crps
from hedgerow.metrics.pair import Nearest
from hedgerow.metrics.paired import PairedDifference, paired_difference
from hedgerow.simulate import replay
from hedgerow.world.world import World

DRAWS = 4
"""Firings of each beam for the CRPS; the score has no bias for any number."""
_OUTLIERS = CompareSettings().outlier_share


@dataclass(frozen=True)
class Row:
    """One score of Table 4.3, or one of ours."""

    key: str
    label: str
    digits: int
    is_better_low: bool = True


ROWS = (
    Row("cloud_distance_average_m", "cloud distance, average of both ways [m]", 3),
    Row("cloud_distance_m", "cloud distance, worse way [m]", 3),
    Row("observation_error_m", "observation risk: mean over packets of their means [m]", 3),
    Row("beam_error_mean_m", "beam error, all true hits pooled [m]", 3),
    Row("precision", "precision", 3, is_better_low=False),
    Row("recall", "recall", 3, is_better_low=False),
    Row("f1", "F1", 3, is_better_low=False),
    Row("crps_m", "CRPS [m]", 3),
    Row("nll", "-log likelihood per beam", 3),
)
PAIRED = ("cloud_distance_average_m", "crps_m", "nll")
"""Scores whose difference has an interval."""


@dataclass(frozen=True, eq=False)
class BeamScores:
    """What a world answers to a test log, beam by beam."""

    log: Log
    """The test log."""
    range_m: NDArray[np.float32]
    """(N,) one firing; inf is no return."""
    crps_m: Array
    """(N,)."""
    nll: Array
    """(N,) minus the log likelihood of what was measured."""

    def only(self, keep: NDArray[np.bool_]) -> "BeamScores":
        """Return the scores of some beams."""
        return BeamScores(self.log[keep], self.range_m[keep], self.crps_m[keep], self.nll[keep])

    @cached_property
    def simulated(self) -> Log:
        """What came back, as a log."""
        return self.log.with_returns(Returns.from_arrays(ranges=self.range_m))

    @cached_property
    def values(self) -> dict[str, float]:
        """Every score, by the key of its row."""
        found = compare(self.log, self.simulated).values
        known = {row.key: found[row.key].value for row in ROWS if row.key in found}
        own = {"crps_m": float(self.crps_m.mean()), "nll": float(self.nll.mean())}
        return {key: np.nan if value is None else float(value) for key, value in known.items()} | own

    def by_sweep(self, key: str) -> Array:
        """Return (S,) one of the paired scores of each sweep."""
        if key == "cloud_distance_average_m":
            return self._clouds_by_sweep
        number, counts = np.unique(self.log.beams.sweep, return_inverse=True, return_counts=True)[1:]
        return np.bincount(number, self.crps_m if key == "crps_m" else self.nll) / counts

    @cached_property
    def _clouds_by_sweep(self) -> Array:
        """Mean distances of the points of each sweep to the whole other cloud, average of both ways."""
        there = _mean_by_sweep(self.simulated, self.log)
        back = _mean_by_sweep(self.log, self.simulated)
        return (there + back) / 2


def _mean_by_sweep(log: Log, other: Log) -> Array:
    distance_m = Nearest(other.points()).distance_m(log.points())
    sweeps, number = np.unique(log.beams.sweep, return_inverse=True)
    mine = number[np.isfinite(log.returns.first_m)]
    count = np.bincount(mine, minlength=len(sweeps))
    return np.bincount(mine, distance_m, minlength=len(sweeps)) / np.maximum(count, 1)


def score_world(world: World, log: Log, *, draws: int = DRAWS, seed: int = 0) -> BeamScores:
    """Fire the beams of a test log at a world several times, and ask how likely it finds what was measured.

    Args:
        world: what they are fired at; it knows likelihoods.
        log: the test log.
        draws: firings of each beam, 2 or more.
        seed: of the firings.
    """
    seeds = np.random.SeedSequence(seed).generate_state(draws, np.uint64)
    drawn = np.stack([_within(replay(world, log, seed=int(each)).returns.first_m, log) for each in seeds])
    score = crps(log.returns.first_m, drawn, log.max_range_m)
    density = np.full(len(log), np.nan) if not world.has_likelihood else world.log_likelihood(log)
    return BeamScores(log, drawn[0], score, -_floored(density, log))


def _within(range_m: NDArray[np.float32], log: Log) -> NDArray[np.float32]:
    inside = (range_m >= log.min_range_m) & (range_m <= log.max_range_m)
    return np.where(inside, range_m, np.float32(np.inf))


def _floored(log_density: Array, log: Log) -> Array:
    """Return log p with a share of outliers, uniform over the range limits (metrics/likelihood.py)."""
    hit = np.isfinite(log.returns.first_m)
    outlier = np.where(hit, _OUTLIERS / (log.max_range_m - log.min_range_m), _OUTLIERS)
    return np.logaddexp(np.log1p(-_OUTLIERS) + log_density, np.log(outlier))


def difference(one: BeamScores, other: BeamScores, key: str, seed: int = 0) -> PairedDifference:
    """Compare two worlds by one of the paired scores, over the sweeps of the test log; below 0 the first is better."""
    weight = np.unique(one.log.beams.sweep, return_counts=True)[1]
    return paired_difference(one.by_sweep(key), other.by_sweep(key), weight, seed=seed)


def verdict(row: Row, ours: Mapping[str, float], theirs: Mapping[str, float], tied: float = 0.01) -> str:
    """Say whether a score is won, tied (within a hundredth) or lost, and by how much."""
    gain = (theirs[row.key] - ours[row.key]) * (1 if row.is_better_low else -1)
    scale = max(abs(theirs[row.key]), abs(ours[row.key]), 1e-12)
    if abs(gain) <= tied * scale:
        return "tied"
    return f"{'won' if gain > 0 else 'lost'} by {abs(gain):.{row.digits}f}"
