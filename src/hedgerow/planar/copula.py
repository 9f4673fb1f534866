# SPDX-License-Identifier: Apache-2.0
"""Neighbouring bearings that hang together: a Gaussian copula (Tallavajhula 2018 §5.2.1).

A model gives every bearing its own distribution. Drawn independently, runs of null readings and of readings that are
too long are rarer than in reality. The copula leaves each distribution as it is and draws the levels of neighbours
together: normal numbers, one for each pulse, are averaged over neighbours by a Gaussian weight whose squares add up to
1, and turned into levels by the normal distribution. A pulse's number follows from seed and pulse ids alone, so a part
of a scan gets the same answers as all of it.

Weights of width s [bearings] give neighbours at distance h a correlation of exp(-h² / 4 s²). Equations: docs/models.md
§30.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.base.arguments import as_number
from hedgerow.planar.regression import Floats
from hedgerow.planar.sensor_model import STREAM, SensorModel, States


@dataclass(frozen=True)
class NeighbourCopula:
    """How far the levels of neighbouring bearings hang together."""

    width: float
    """Standard deviation of the weights [bearings]; 0 for independent bearings."""

    def __post_init__(self) -> None:
        """Check the width."""
        as_number("width", self.width, 0, 100)

    def weights(self) -> Floats:
        """Return the weights of neighbours, from the farthest on one side to the farthest on the other."""
        if self.width < 0.1:  # neighbours would weigh less than 1e-20
            return np.ones(1)
        reach = int(np.ceil(4 * self.width))
        weight = np.exp(-0.5 * (np.arange(-reach, reach + 1) / self.width) ** 2)
        return weight / np.sqrt((weight**2).sum())

    def levels(self, seed: int, pulse: NDArray[np.int64]) -> Floats:
        """Return (N,) levels from 0 to 1, uniform for each pulse by itself."""
        from scipy.special import ndtr

        weights = self.weights()
        reach = len(weights) // 2
        total = np.zeros(len(pulse))
        for place, weight in enumerate(weights):
            total += weight * randomness.normal(seed, pulse + (place - reach), STREAM + 2)
        return np.clip(ndtr(total), 1e-16, 1 - 1e-16)


def fit_copula(
    model: SensorModel, states: States, reading_m: Floats, n_bearings: int, seed: int = 0
) -> NeighbourCopula:
    """Choose the width from the correlation of neighbouring bearings in recorded scans.

    Args:
        model: of single bearings.
        states: of all readings of whole scans, in order of their bearings.
        reading_m: (S * n_bearings,) readings; inf is null.
        n_bearings: readings in a scan.
        seed: null readings, and those of one bin, are spread at random within the levels that they stand for.
    """
    score = normal_scores(model, states, reading_m, seed).reshape(-1, n_bearings)
    score = score - score.mean(axis=0)  # what a bearing always does is no coincidence of neighbours
    neighbours = float((score[:, 1:] * score[:, :-1]).mean() / (score**2).mean())
    return NeighbourCopula(0.0 if neighbours <= 0.01 else float(np.sqrt(-0.25 / np.log(min(neighbours, 0.99)))))


def normal_scores(model: SensorModel, states: States, reading_m: Floats, seed: int = 0) -> Floats:
    """Return the (N,) normal number that each reading would have been drawn from.

    The level of a reading lies between the shares of what is less and of what is not more; within, it is drawn.
    """
    from scipy.special import ndtri

    uniform = randomness.uniform(seed, np.arange(len(reading_m)), STREAM + 1)
    level = np.empty(len(reading_m))
    for begin in range(0, len(reading_m), 200):
        rows = slice(begin, begin + 200)
        above = np.cumsum(model.histogram(states[rows]), axis=0)
        index = model.scale.bin_of(reading_m[rows])
        column = np.arange(len(index))
        high = above[index, column]
        low = np.where(index > 0, above[np.maximum(index - 1, 0), column], 0.0)
        level[rows] = low + (high - low) * uniform[rows]
    return ndtri(np.clip(level, 1e-6, 1 - 1e-6))
