# SPDX-License-Identifier: Apache-2.0
"""Counts of what is not known beforehand: labels by name, and histograms of values of unknown size, such as
intensities: shares of 1, numbers up to 255, or counts of photons.

Bins begin with one width and double whenever the values need more of them than there may be. The wider bins are pairs
of the narrower ones, so that the counts do not depend on the order of adding and merging. Values below 0 count as 0.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 65536
_K = TypeVar("_K")


def add_counts(mine: dict[_K, int], more: Mapping[_K, int]) -> None:
    """Add counts by name; a plain dict, since workers read nothing else back."""
    for name, count in more.items():
        mine[name] = mine.get(name, 0) + count


def count_labels(labels: NDArray[np.uint16]) -> dict[int, int]:
    """Return how often each label occurs."""
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


class GrowingHistogram:
    """Counts in bins of equal width from 0; the width doubles when the values need more bins than there may be."""

    def __init__(self, step: float, most_bins: int = MOST_BINS) -> None:
        """Start with nothing, and with the finest bins."""
        self.step, self.most_bins = step, most_bins
        self.counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(self, values: NDArray[np.floating[Any]]) -> None:
        """Add (N,) finite values."""
        if len(values) == 0:
            return
        above = np.maximum(values.astype(np.float64), 0.0)
        while above.max() >= self.step * self.most_bins:
            self._coarsen()
        self._add(np.bincount((above / self.step).astype(np.int64)))

    def merge(self, other: "GrowingHistogram") -> None:
        """Add the counts of another."""
        while self.step < other.step:
            self._coarsen()
        counts, step = other.counts, other.step
        while step < self.step:
            counts, step = _in_pairs(counts), 2 * step
        self._add(counts)

    @property
    def n(self) -> int:
        """How many values were added."""
        return int(self.counts.sum())

    def median(self) -> float:
        """Return the middle of the bin of the median; 0 without values."""
        place = int(np.searchsorted(np.cumsum(self.counts), self.n / 2))
        return (place + 0.5) * self.step if self.n else 0.0

    def _coarsen(self) -> None:
        self.counts, self.step = _in_pairs(self.counts), 2 * self.step

    def _add(self, counts: NDArray[np.int64]) -> None:
        short, long = sorted((self.counts, counts), key=len)
        self.counts = long.copy()
        self.counts[: len(short)] += short


def _in_pairs(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    even = np.concatenate([counts, np.zeros(len(counts) % 2, dtype=np.int64)])
    return even[::2] + even[1::2]


def cumulative_difference(one: GrowingHistogram, other: GrowingHistogram) -> float | None:
    """Return the area between two cumulative distributions, in the unit of the values; None if one is empty."""
    if not one.n or not other.n:
        return None
    a, b = GrowingHistogram(max(one.step, other.step)), GrowingHistogram(max(one.step, other.step))
    a.merge(one)
    b.merge(other)
    difference = np.zeros(max(len(a.counts), len(b.counts)))
    difference[: len(a.counts)] += a.counts / a.n
    difference[: len(b.counts)] -= b.counts / b.n
    return float(np.abs(np.cumsum(difference)).sum() * a.step)
