# SPDX-License-Identifier: Apache-2.0
"""How far the simulated return of a beam is from the real one, over the true hits (Tallavajhula 2018 eq. 4.3).

Both points lie on one beam, so their distance is the difference of the ranges. The mean is over all true hits; the
median comes from a histogram with 500 bins a decade, so that it merges, and is right to 0.5 %.

Equations: docs/models.md §25.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import SweepPair

BEAM_ERROR_METRICS = {
    "beam_error_mean_m": Metric(
        label="Beam error, mean",
        meaning="distance of the simulated from the real return of a beam, where both returned",
        source="Tallavajhula 2018 eq. 4.3",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="beams",
    ),
    "beam_error_median_m": Metric(
        label="Beam error, median",
        meaning="the median of the same",
        source="Tallavajhula 2018 eq. 4.3",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="beams",
    ),
}

_PER_DECADE = 500
_LEAST_M, _DECADES = 1e-5, 9


class BeamError:
    """Sum and histogram of the errors."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.n = 0
        self.sum_m = 0.0
        self.counts: NDArray[np.int64] = np.zeros(_PER_DECADE * _DECADES + 1, dtype=np.int64)

    def add(self, pair: SweepPair) -> None:
        """Add the beams of one sweep that returned in both."""
        both = pair.real.hit & pair.hit
        error_m = np.abs(pair.range_m[both].astype(np.float64) - pair.real.range_m[both])
        self.n += len(error_m)
        self.sum_m += float(error_m.sum())
        # Bin 0 is everything up to the least; bin k ends at least * 10^(k / per decade).
        place = np.ceil(np.log10(np.maximum(error_m, _LEAST_M) / _LEAST_M) * _PER_DECADE).astype(np.int64)
        self.counts += np.bincount(np.minimum(place, len(self.counts) - 1), minlength=len(self.counts))

    def merge(self, other: Self) -> None:
        """Add the errors of other sweeps."""
        self.n += other.n
        self.sum_m += other.sum_m
        self.counts += other.counts

    def values(self) -> dict[str, Value]:
        """Return mean and median [m]."""
        if self.n == 0:
            return {"beam_error_mean_m": Value(None, 0), "beam_error_median_m": Value(None, 0)}
        place = int(np.searchsorted(np.cumsum(self.counts), self.n / 2))
        # The middle of the bin, on the logarithmic scale; errors below the least count as none.
        median_m = _LEAST_M * 10 ** ((place - 0.5) / _PER_DECADE) if place else 0.0
        return {
            "beam_error_mean_m": Value(self.sum_m / self.n, self.n),
            "beam_error_median_m": Value(median_m, self.n),
        }

    def notes(self) -> list[str]:
        """Say nothing: the numbers of beams say all."""
        return []
