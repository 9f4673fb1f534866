# SPDX-License-Identifier: Apache-2.0
"""Which beams returned, in reality and in simulation: the table of Browning 2012 §5.3 and the F1 of Tallavajhula 2018
eq. 4.4.

Equations: docs/models.md §24.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hedgerow.metrics.catalogue import Value, share
from hedgerow.metrics.inputs import Pair


@dataclass
class HitMiss:
    """The four counts of Browning 2012 Table 2."""

    hit_detected: int = 0
    """Returned in both."""
    false_hit: int = 0
    """Returned in simulation only."""
    false_miss: int = 0
    """Returned in reality only."""
    miss_detected: int = 0
    """Returned in neither."""

    def add(self, pair: Pair) -> None:
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
        found = share(self.hit_detected, real_hits)
        return {
            "hits_found": found,
            "misses_found": share(self.miss_detected, real_misses),
            "precision": share(self.hit_detected, simulated_hits),
            "recall": found,
            # 2 p r / (p + r), written so that it holds where nothing was simulated to return.
            "f1": Value(share(2 * self.hit_detected, real_hits + simulated_hits).value, real_hits + real_misses),
        }
