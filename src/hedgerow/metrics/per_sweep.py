# SPDX-License-Identifier: Apache-2.0
"""Sums of scores for each sweep on its own: what differences between two worlds, with intervals, are computed from."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray


class SweepSums:
    """A few numbers for each sweep, in the order of the log."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Start with nothing; `keys` are those of the metrics."""
        self.counts: list[int] = []
        """Beams of each sweep."""
        self.sums: dict[str, list[float]] = {key: [] for key in keys}

    def add(self, n_beams: int, sums: Mapping[str, float]) -> None:
        """Add one sweep: how many beams it has, and the sum over them of each score."""
        self.counts.append(n_beams)
        for key, kept in self.sums.items():
            kept.append(sums[key])

    def merge(self, other: Self) -> None:
        """Add the sweeps that follow."""
        self.counts += other.counts
        for key, kept in self.sums.items():
            kept += other.sums[key]

    def means(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the (S,) mean score of each sweep and its (S,) number of beams; 0 where there are none."""
        counts = np.array(self.counts, dtype=np.int64)
        return np.array(self.sums[key]) / np.maximum(counts, 1), counts
