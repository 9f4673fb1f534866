# SPDX-License-Identifier: Apache-2.0
"""Is one world better than another? The difference of a score of both over the sweeps of one log, with an interval.

Both are scored on the same sweeps, so what makes a sweep hard cancels. Sweeps that follow each other see nearly the
same things: drawn one by one, they would make the interval far too short. Blocks of consecutive sweeps are drawn
instead, the last sweep followed by the first (Politis and Romano 1992).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_whole
from hedgerow.base.intervals import LEVEL, REPLICATES, Interval, interval
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError


@dataclass(frozen=True)
class PairedDifference:
    """Score of the first less that of the second."""

    difference: float
    interval: Interval | None
    """None if there are fewer than two blocks."""
    n_sweeps: int
    block_sweeps: int

    @property
    def is_decided(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    def words(self, unit: str = "") -> str:
        """Say it in a line."""
        said = f"{self.difference:+.4g}{f' {unit}' if unit else ''}"
        if self.interval is None:
            return f"{said}, {self.n_sweeps} sweeps are too few for an interval"
        return f"{said}, {LEVEL:.0%} interval {self.interval[0]:+.4g} to {self.interval[1]:+.4g}"


def paired_difference(
    one: NDArray[np.float64],
    other: NDArray[np.float64],
    weight: NDArray[np.integer] | NDArray[np.float64] | None = None,
    *,
    block_sweeps: int | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> PairedDifference:
    """Compare two worlds by a score of each sweep.

    Args:
        one: (S,) mean score of each sweep, in the order of the drive.
        other: (S,) the same of the other world.
        weight: (S,) beams of each sweep. Default: all sweeps count alike.
        block_sweeps: sweeps of a block. Default: the square root of their number.
        replicates: how often blocks are drawn.
        seed: of the draws.

    Raises:
        InputError: arrays of unequal length, or not finite, or a wrong number.
    """
    one = arrays.require("one", np.asarray(one), np.float64, ("S",))
    n = len(one)
    other = arrays.require("other", np.asarray(other), np.float64, (n,))
    weights = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    arrays.require_shape("weight", weights, (n,))
    for name, values in (("one", one), ("other", other), ("weight", weights)):
        arrays.require_finite(name, values)
    if n == 0 or weights.min() < 0 or weights.sum() <= 0:
        raise InputError("weight", "expected at least one sweep with beams")
    block = int(np.ceil(np.sqrt(n))) if block_sweeps is None else as_whole("block_sweeps", block_sweeps, 1, n)
    n_draws = as_whole("replicates", replicates, 2, 1_000_000)
    difference = float(weights @ (one - other) / weights.sum())
    drawn = _resample(weights * (one - other), weights, block, n_draws, require_seed(seed))
    return PairedDifference(difference, interval(difference, drawn, n // block), n, block)


def _resample(
    sums: NDArray[np.float64], weights: NDArray[np.float64], block: int, n_draws: int, seed: int
) -> NDArray[np.float64]:
    """Return (B,) weighted means over blocks that are drawn with replacement."""
    n = len(sums)
    rows = (np.arange(n)[:, None] + np.arange(block)) % n
    block_sums, block_weights = sums[rows].sum(axis=1), weights[rows].sum(axis=1)
    starts = np.random.default_rng(seed).integers(n, size=(n_draws, -(-n // block)))
    total = block_weights[starts].sum(axis=1)
    return np.divide(block_sums[starts].sum(axis=1), total, out=np.full(n_draws, np.nan), where=total > 0)
