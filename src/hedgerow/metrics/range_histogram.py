# SPDX-License-Identifier: Apache-2.0
"""The histogram of all ranges of a log, and the histogram match of two (Tallavajhula 2018 §3.4.3).

The match is the L1 norm of the difference of the cumulative histograms. Times the bin width it is a length: how far
mass has to move on average to turn one histogram into the other. A beam without return counts as one at the maximal
range, or just behind the farthest return if there is no maximal range.

Equations: docs/models.md §26.
"""

from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import RealSweep, SweepPair

RANGE_HISTOGRAM_METRICS = {
    "range_histogram_match_m": Metric(
        label="Range histogram match",
        meaning="how far ranges have to move to turn one histogram of all ranges into the other; "
        "no return is the limit",
        source="Tallavajhula 2018 §3.4.3",
        better="low",
        unit="cm",
        scale=100,
        decimals=2,
        counts="beams",
    ),
}

MAX_BINS = 1 << 20


class RangeHistogram:
    """Counts of first ranges in bins of equal width from 0, and of beams without return."""

    def __init__(self, step_m: float) -> None:
        """Start with nothing."""
        self.step_m = step_m
        self.counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """(B,) bin b holds ranges from b to b + 1 steps; the last of all possible ones also holds what lies beyond."""
        self.n_no_return = 0

    def add(self, range_m: NDArray[np.float32]) -> None:
        """Add (N,) first ranges, inf for no return."""
        finite = range_m[np.isfinite(range_m)].astype(np.float64)
        self.n_no_return += len(range_m) - len(finite)
        place = np.minimum(finite / self.step_m, MAX_BINS - 1).astype(np.int64)
        self._add(np.bincount(place))

    def merge(self, other: Self) -> None:
        """Add the counts of other beams."""
        self.n_no_return += other.n_no_return
        self._add(other.counts)

    @property
    def n(self) -> int:
        """How many beams were added."""
        return int(self.counts.sum()) + self.n_no_return

    def shares(self, n_bins: int) -> NDArray[np.float64]:
        """Return the (n_bins + 1,) shares of all beams; the last is no return."""
        padded = np.zeros(n_bins + 1)
        padded[: len(self.counts)] = self.counts
        padded[-1] += self.n_no_return
        return padded / max(self.n, 1)

    def _add(self, counts: NDArray[np.int64]) -> None:
        short, long = sorted((self.counts, counts), key=len)
        self.counts = long.copy()
        self.counts[: len(short)] += short


def histogram_match_m(a: RangeHistogram, b: RangeHistogram, max_range_m: float) -> float:
    """Return the histogram match of two histograms of equal step [m]; 0 if they are equal."""
    n_bins = max(len(a.counts), len(b.counts))
    if np.isfinite(max_range_m):
        n_bins = max(n_bins, min(int(np.ceil(max_range_m / a.step_m)), MAX_BINS))
    return float(np.abs(np.cumsum(a.shares(n_bins) - b.shares(n_bins))).sum()) * a.step_m


class RangeHistograms:
    """The range histograms of a real log and of its simulations."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing."""
        self.real = RangeHistogram(settings.histogram_step_m)
        self.simulated = {name: RangeHistogram(settings.histogram_step_m) for name in names}
        self._max_range_m = 0.0

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        self._max_range_m = max(self._max_range_m, real.log.max_range_m)
        self.real.add(real.range_m)
        for name, histogram in self.simulated.items():
            histogram.add(pairs[name].all_range_m)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self._max_range_m = max(self._max_range_m, other._max_range_m)
        self.real.merge(other.real)
        for name, histogram in self.simulated.items():
            histogram.merge(other.simulated[name])

    def values(self) -> dict[str, dict[str, Value]]:
        """Return the histogram match of each simulation [m]."""
        n = self.real.n
        return {
            name: {"range_histogram_match_m": Value(histogram_match_m(self.real, each, self._max_range_m), n)}
            for name, each in self.simulated.items()
        }

    def notes(self) -> dict[str, list[str]]:
        """Say nothing: the match always exists."""
        return {}
