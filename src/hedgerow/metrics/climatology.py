# SPDX-License-Identifier: Apache-2.0
"""Climatology: what can be said of a beam without a world, from its ring alone (Gneiting and Raftery 2007 §2.3).

For each ring it knows which share of its beams returned in the judged log, and how their ranges, their intensities and
their labels are distributed, each on its own. It is fitted to that log itself, so it is a floor: a world whose proper
scores are worse says less of this place than somebody who never saw it but knows the sensor. It gives draws, densities
and exact forecasts, as every world does.

Ranges are counted in bins of equal width, and uniform within a bin. They are made wide enough that a fitted histogram
is not much better on its own data than on others: it gains about one nat for each occupied bin, and that may be a
twentieth of a nat per return at most (Akaike 1974).

Equations: docs/models.md §33.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.progress import Progress
from hedgerow.base.randomness import uniform
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.metrics.counts import GrowingHistogram, add_counts, count_labels
from hedgerow.metrics.shares import FINEST
from hedgerow.world import World
from hedgerow.world.forecast import Forecast
from hedgerow.world.world import Shot

FINEST_M = 0.25
"""Bins are no wider than this to begin with."""
_RETURNS_PER_BIN = 20
_STREAM = 2000
_INTENSITY_STREAM, _LABEL_STREAM = 2002, 2004
_MOST_BINS = 4096  # of intensities; for each ring
_FINE = 65536.0  # intensities are added up as whole numbers, so that they add up alike in any order


class ClimatologySums:
    """Counts of ranges, by ring; they merge."""

    def __init__(self, limits_m: tuple[float, float]) -> None:
        """Start with nothing.

        Args:
            limits_m: the range limits of the log; the far one is finite.

        Raises:
            InputError: there is no far limit.
        """
        low, high = limits_m
        if not np.isfinite(high):
            raise InputError("real", "has no max_range_m; climatology needs one, since no return counts as being there")
        self.limits_m = limits_m
        self.n_bins = 2 ** int(np.ceil(np.log2(max((high - low) / FINEST_M, 1.0))))
        self.by_ring: dict[int, NDArray[np.int64]] = {}
        """(n_bins + 1,) returns in each bin, and beams without."""
        self.intensity: dict[int, NDArray[np.int64]] = {}
        """(2,) sum of the known intensities, in small steps, and how many they are."""
        self.intensities: dict[int, GrowingHistogram] = {}
        self.labels: dict[int, dict[int, int]] = {}

    def add(self, log: Log) -> None:
        """Add the beams of some sweeps."""
        low, high = self.limits_m
        first_m = log.returns.first_m.astype(np.float64)
        hit = np.isfinite(first_m)
        place = np.full(len(log), self.n_bins, dtype=np.int64)
        share = (first_m[hit] - low) / (high - low)
        place[hit] = np.clip(share * self.n_bins, 0, self.n_bins - 1).astype(np.int64)
        intensity, label = log.returns.first("intensity"), log.returns.first("label")
        for ring in np.unique(log.beams.ring).tolist():
            mine = log.beams.ring == ring
            counts = np.bincount(place[mine], minlength=self.n_bins + 1)
            self.by_ring[ring] = self.by_ring.get(ring, 0) + counts
            known = np.zeros(0) if intensity is None else intensity[mine & hit].astype(np.float64)
            known = known[np.isfinite(known)]
            sums = np.array([np.rint(known * _FINE).astype(np.int64).sum(), len(known)], dtype=np.int64)
            self.intensity[ring] = self.intensity.get(ring, 0) + sums
            self.intensities.setdefault(ring, GrowingHistogram(FINEST, _MOST_BINS)).add(known)
            if label is not None:
                add_counts(self.labels.setdefault(ring, {}), count_labels(label[mine & hit & (label > 0)]))

    def merge(self, other: Self) -> None:
        """Add other beams of the same limits."""
        for mine, theirs in ((self.by_ring, other.by_ring), (self.intensity, other.intensity)):
            for ring, counts in theirs.items():
                mine[ring] = mine.get(ring, 0) + counts
        for ring, histogram in other.intensities.items():
            self.intensities.setdefault(ring, GrowingHistogram(FINEST, _MOST_BINS)).merge(histogram)
        for ring, labels in other.labels.items():
            add_counts(self.labels.setdefault(ring, {}), labels)


class Climatology(World):
    """The distribution of the ranges of each ring."""

    has_noise = True
    has_likelihood = True

    def __init__(self, sums: ClimatologySums) -> None:
        """Take the counts of a log.

        Raises:
            InputError: there are no beams.
        """
        low, high = sums.limits_m
        super().__init__(min_range_m=low, max_range_m=high)
        if not sums.by_ring:
            raise InputError("real", "the log has no beams; there is nothing to compare")
        rings = sorted(sums.by_ring)
        counts = _wide_enough(np.stack([sums.by_ring[ring] for ring in rings]))
        # The first row, all rings together, is for rings that the log does not have.
        counts = np.concatenate([counts.sum(axis=0, keepdims=True), counts])
        known = np.stack([sums.intensity[ring] for ring in rings])
        known = np.concatenate([known.sum(axis=0, keepdims=True), known])
        self._row_of: NDArray[np.int64] = np.zeros(2**16, dtype=np.int64)
        self._row_of[rings] = np.arange(1, len(rings) + 1)
        self.share: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        """(1 + rings, bins + 1) probability of each bin; the last is no return."""
        self.edges_m: NDArray[np.float64] = np.linspace(low, high, counts.shape[1])
        self._below = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(self.share[:, :-1], axis=1)], axis=1)
        """(1 + rings, bins + 1) probability of a return nearer than each edge."""
        self._intensities = _all_and_each([sums.intensities[ring] for ring in rings])
        self._labels: list[dict[int, int]] = [{}, *(sums.labels.get(ring, {}) for ring in rings)]
        for each in self._labels[1:]:
            add_counts(self._labels[0], each)
        self._intensity = np.where(known[:, 1] > 0, known[:, 0] / _FINE / np.maximum(known[:, 1], 1), np.nan)

    @property
    def step_m(self) -> float:
        """Width of a bin."""
        return float(self.edges_m[1] - self.edges_m[0])

    def provenance(self) -> dict[str, Any]:
        """Say what it is."""
        return {"kind": "climatology", "bins_m": self.step_m}

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Draw a range for each beam from the distribution of its ring."""
        row = self._row_of[beams.ring]
        drawn = uniform(shot.seed, beams.pulse, _STREAM)
        hit = drawn < self._below[row, -1]
        range_m = np.full(len(row), np.inf)
        range_m[hit] = self._quantile(row[hit], drawn[hit])
        inside = (range_m >= shot.min_range_m) & (range_m <= shot.max_range_m)
        columns: dict[str, Any] = {}
        if not np.isnan(self._intensity).all():
            columns["intensities"] = np.where(inside, self._draw_intensity(row, beams, shot.seed), np.nan)
        if self._labels[0]:
            columns["labels"] = np.where(inside, self._draw_label(row, beams, shot.seed), np.uint16(0))
        return Returns.from_arrays(ranges=np.where(inside, range_m, np.inf), **columns)

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each beam's first range, or of its absence."""
        row, first_m = self._row_of[log.beams.ring], log.returns.first_m.astype(np.float64)
        hit = np.isfinite(first_m)
        place = np.full(len(row), self.share.shape[1] - 1)
        place[hit] = self._bin(first_m[hit])
        with np.errstate(divide="ignore"):
            return np.log(self.share[row, place]) - np.where(hit, np.log(self.step_m), 0.0)

    def _forecast(self, beams: Beams, shot: Shot, range_m: NDArray[np.float32] | None, draws: int) -> Forecast:
        row = self._row_of[beams.ring]
        returns = self._below[row, -1]
        median_m = self._quantile(row, returns / 2)
        found = Forecast(
            returns,
            np.where(returns > 0, median_m, np.inf).astype(np.float32),
            self._intensity[row].astype(np.float32),
        )
        if range_m is None:
            return found
        error_m = self._error_m(row, np.minimum(range_m.astype(np.float64), self.max_range_m))
        return Forecast(found.returns, found.median_m, found.intensity, error_m, self._spread_m()[row])

    def _draw_intensity(self, row: NDArray[np.int64], beams: Beams, seed: int) -> NDArray[np.float64]:
        """Draw an intensity of each beam's ring, uniform within bins; NaN where none is known."""
        drawn = uniform(seed, beams.pulse, _INTENSITY_STREAM)
        found = np.full(len(row), np.nan)
        for each in np.unique(row).tolist():
            histogram = self._intensities[int(each)]
            mine = row == each
            if histogram.n:
                below = np.concatenate([[0.0], np.cumsum(histogram.counts) / histogram.n])
                found[mine] = np.interp(drawn[mine], below, np.arange(len(below)) * histogram.step)
        return found

    def _draw_label(self, row: NDArray[np.int64], beams: Beams, seed: int) -> NDArray[np.uint16]:
        """Draw a label of each beam's ring; 0 where none is known."""
        drawn = uniform(seed, beams.pulse, _LABEL_STREAM)
        found = np.zeros(len(row), dtype=np.uint16)
        for each in np.unique(row).tolist():
            counts = self._labels[int(each)]
            mine = row == each
            if counts:
                names = np.array(sorted(counts), dtype=np.uint16)
                below = np.cumsum([counts[int(name)] for name in names]) / sum(counts.values())
                found[mine] = names[np.searchsorted(below, drawn[mine], side="right")]
        return found

    def _bin(self, range_m: NDArray[np.float64]) -> NDArray[np.int64]:
        n_bins = len(self.edges_m) - 1
        return np.clip((range_m - self.edges_m[0]) / self.step_m, 0, n_bins - 1).astype(np.int64)

    def _quantile(self, row: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (N,) ranges below which rings have these (N,) shares of all their beams."""
        found = np.empty(len(row))
        for each in np.unique(row).tolist():
            mine = row == each
            found[mine] = np.interp(share[mine], self._below[each], self.edges_m)
        return found

    def _error_m(self, row: NDArray[np.int64], y_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """E|X - y|: bins below and above y count with their centres, the one around it as a uniform range."""
        centre_m = (self.edges_m[1:] + self.edges_m[:-1]) / 2
        moment = self.share[:, :-1] * centre_m
        to = np.concatenate([np.zeros((len(moment), 1)), np.cumsum(moment, axis=1)], axis=1)
        k = self._bin(y_m)
        below = y_m * self._below[row, k] - to[row, k]
        above = to[row, -1] - to[row, k + 1] - y_m * (self._below[row, -1] - self._below[row, k + 1])
        low, high = y_m - self.edges_m[k], self.edges_m[k + 1] - y_m
        within = self.share[row, k] * (low**2 + high**2) / (2 * self.step_m)
        return below + above + within + self.share[row, -1] * (self.max_range_m - y_m)

    def _spread_m(self) -> NDArray[np.float64]:
        """E|X - X'| of each ring: twice the integral of F (1 - F), no return at the far limit."""
        # F is linear within a bin, from a to b: the mean of F (1 - F) there is (a + b) / 2 - (a² + a b + b²) / 3.
        a, b = self._below[:, :-1], self._below[:, 1:]
        return 2 * self.step_m * ((a + b) / 2 - (a**2 + a * b + b**2) / 3).sum(axis=1)


def _all_and_each(histograms: Sequence[GrowingHistogram]) -> list[GrowingHistogram]:
    """Return all together, and then each."""
    together = GrowingHistogram(FINEST, _MOST_BINS)
    for each in histograms:
        together.merge(each)
    return [together, *histograms]


def _wide_enough(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join neighbouring bins of (rings, bins + 1) counts until occupied ones hold enough returns on average."""
    while counts.shape[1] > 2:
        returns = counts[:, :-1]
        if returns.sum() >= _RETURNS_PER_BIN * np.count_nonzero(returns):
            break
        counts = np.concatenate([returns[:, ::2] + returns[:, 1::2], counts[:, -1:]], axis=1)
    return counts
