# SPDX-License-Identifier: Apache-2.0
"""Observation-level risk: the mean over observations of each one's mean beam error (Tallavajhula 2018 eq. 2.2 and 4.3).

The pooled beam error (beam_error.py) counts every true hit alike; here every observation counts alike, however many
true hits it has. An observation is a packet in Tallavajhula 2018, whose numbers of rays in a packet and of packets in a
second disagree between sections. Ours is what a Velodyne sends as one packet: the beams of 12 firings of all rings,
told by their times (`pair.packets`). Where rings are not known, or all beams of a sweep have one time, it is a sweep.

Equations: docs/models.md §25.
"""

from typing import Self

import numpy as np

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair

OBSERVATION_METRICS = {
    "observation_error_m": Metric(
        label="Observation error, mean",
        meaning="mean over packets of each one's mean beam error",
        source="Tallavajhula 2018 eq. 2.2",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="packets",
    ),
}


class ObservationError:
    """Sum over observations of each one's mean error."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.n = 0
        self.sum_m = 0.0

    def add(self, pair: SweepPair) -> None:
        """Add the observations of one sweep; those without a true hit have no error and do not count."""
        both = pair.real.hit & pair.hit
        error_m = np.abs(pair.range_m[both].astype(np.float64) - pair.real.range_m[both])
        number = pair.real.packet[both]
        hits = np.bincount(number)
        sums_m = np.bincount(number, error_m)
        seen = hits > 0
        self.n += int(np.count_nonzero(seen))
        self.sum_m += float((sums_m[seen] / hits[seen]).sum())

    def merge(self, other: Self) -> None:
        """Add the observations of other sweeps."""
        self.n += other.n
        self.sum_m += other.sum_m

    def values(self) -> dict[str, Value]:
        """Return the mean [m]."""
        return {"observation_error_m": ratio_value(self.sum_m, self.n)}

    def notes(self) -> list[str]:
        """Say nothing: the number of observations says all."""
        return []
