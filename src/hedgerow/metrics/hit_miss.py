# SPDX-License-Identifier: Apache-2.0
"""Which beams returned, in reality and in simulation (Browning 2012 §5.3, F1 of Tallavajhula 2018 eq. 4.4).

Equations: docs/models.md §24.
"""

from typing import Self

import numpy as np

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair

HIT_MISS_METRICS = {
    "hits_found": Metric(
        label="Hits found",
        meaning="real returns that are returns in simulation too",
        source="Browning 2012 §5.3",
        better="high",
        near="reality",
        unit="%",
        scale=100,
        decimals=1,
        counts="beams",
    ),
    "misses_found": Metric(
        label="Misses found",
        meaning="beams without return that have none in simulation",
        source="Browning 2012 §5.3",
        better="high",
        near="reality",
        unit="%",
        scale=100,
        decimals=1,
        counts="beams",
    ),
    "precision": Metric(
        label="Precision of hits",
        meaning="share of the simulated returns that are real",
        source="Tallavajhula 2018 eq. 4.5",
        better="high",
        near="reality",
        decimals=3,
        counts="beams",
    ),
    "recall": Metric(
        label="Recall of hits",
        meaning="the hits found, as a share",
        source="Tallavajhula 2018 eq. 4.6",
        better="high",
        near="reality",
        decimals=3,
        counts="beams",
    ),
    "f1": Metric(
        label="F1 of hits",
        meaning="harmonic mean of precision and recall",
        source="Tallavajhula 2018 eq. 4.4",
        better="high",
        near="reality",
        decimals=3,
        counts="beams",
    ),
}


class HitMiss:
    """The four counts of Browning 2012 Table 2."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.hit_detected = 0
        """Returned in both."""
        self.false_hit = 0
        """Returned in simulation only."""
        self.false_miss = 0
        """Returned in reality only."""
        self.miss_detected = 0
        """Returned in neither."""

    def add(self, pair: SweepPair) -> None:
        """Count one sweep."""
        both = int(np.count_nonzero(pair.real.hit & pair.hit))
        real, simulated = int(np.count_nonzero(pair.real.hit)), int(np.count_nonzero(pair.hit))
        self.hit_detected += both
        self.false_miss += real - both
        self.false_hit += simulated - both
        self.miss_detected += len(pair.hit) - real - simulated + both

    def merge(self, other: Self) -> None:
        """Add the counts of other sweeps."""
        self.hit_detected += other.hit_detected
        self.false_hit += other.false_hit
        self.false_miss += other.false_miss
        self.miss_detected += other.miss_detected

    def values(self) -> dict[str, Value]:
        """Return the detection rates (Browning 2012) and precision, recall and F1 (Tallavajhula 2018)."""
        real_hits = self.hit_detected + self.false_miss
        real_misses = self.miss_detected + self.false_hit
        simulated_hits = self.hit_detected + self.false_hit
        found = ratio_value(self.hit_detected, real_hits)
        return {
            "hits_found": found,
            "misses_found": ratio_value(self.miss_detected, real_misses),
            "precision": ratio_value(self.hit_detected, simulated_hits),
            "recall": found,
            # 2 p r / (p + r), written so that it holds where nothing was simulated to return.
            "f1": Value(ratio_value(2 * self.hit_detected, real_hits + simulated_hits).value, real_hits + real_misses),
        }

    def notes(self) -> list[str]:
        """Say nothing: the numbers of beams say all."""
        return []
