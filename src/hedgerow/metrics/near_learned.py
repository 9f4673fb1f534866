# SPDX-License-Identifier: Apache-2.0
"""Scores by how far a real return lies from the nearest return that a world was learned from.

A world knows what it was shown. Real returns within centimetres of learned ones tell how well it remembers, those
farther away how well it closes the gaps between beams, and those metres away what it makes of places that nobody saw.
Over the real returns of each band: the share that are returns in simulation too, and the mean CRPS of the range.

CRPS of bands of what was measured is not proper band by band: one band alone can be won by always answering with it. So
the bands tell where a score comes from, and are not ranked.

The learned returns are thinned (learned_cloud.py): distances are right to 3 cm.

Equations: docs/models.md §34.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair

EDGES_M = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, np.inf)
"""Bands of the distance to the nearest learned return."""


def band_name(band: int) -> str:
    """Say from where to where a band reaches."""
    low, high = EDGES_M[band], EDGES_M[band + 1]
    return f"{low:g} to {high:g} m" if np.isfinite(high) else f"over {low:g} m"


def _metrics() -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for band in range(len(EDGES_M) - 1):
        found[f"hits_near_{band}"] = Metric(
            label=f"Hits found, {band_name(band)} off",
            meaning=f"the same of real returns {band_name(band)} from the nearest learned one",
            better="high",
            near="reality",
            unit="%",
            scale=100,
            decimals=1,
            counts="beams",
        )
    for band in range(len(EDGES_M) - 1):
        found[f"crps_near_{band}_m"] = Metric(
            label=f"CRPS, {band_name(band)} off",
            meaning=f"CRPS of the range of real returns {band_name(band)} from the nearest learned one; not ranked",
            unit="m",
            decimals=3,
            counts="beams",
        )
    return found


NEAR_LEARNED_METRICS = _metrics()


class NearLearned:
    """Sums by band."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        n = len(EDGES_M) - 1
        self.beams: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        """(B,) real returns."""
        self.hits: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        """(B,) those that are returns in simulation."""
        self.crps_m: NDArray[np.float64] = np.zeros(n)
        self.scored: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        """(B,) real returns that have a CRPS."""

    def add(self, pair: SweepPair) -> None:
        """Add one sweep, if it is known what was learned from."""
        away_m = pair.real.from_learned_m
        if away_m is None:
            return
        n, hit = len(self.beams), pair.real.hit
        band = np.searchsorted(EDGES_M, away_m, side="right") - 1
        self.beams += np.bincount(band, minlength=n)
        self.hits += np.bincount(band[pair.hit[hit]], minlength=n)
        if pair.crps_m is not None:
            self.crps_m += np.bincount(band, pair.crps_m[hit], minlength=n)
            self.scored += np.bincount(band, minlength=n)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        for name in ("beams", "hits", "crps_m", "scored"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.beams.any())

    def values(self) -> dict[str, Value]:
        """Return the scores of bands that have returns; {} if it is not known what was learned from."""
        found: dict[str, Value] = {}
        for band in np.flatnonzero(self.beams).tolist():
            found[f"hits_near_{band}"] = ratio_value(int(self.hits[band]), int(self.beams[band]))
        for band in np.flatnonzero(self.scored).tolist():
            found[f"crps_near_{band}_m"] = ratio_value(float(self.crps_m[band]), int(self.scored[band]))
        return found

    def notes(self) -> list[str]:
        """Say nothing: the numbers of beams say all."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the table in types that JSON knows."""
        return {
            "edges_m": [None if np.isinf(edge) else edge for edge in EDGES_M],
            "beams": self.beams.tolist(),
            "hits": self.hits.tolist(),
            "crps_sum_m": self.crps_m.tolist(),
            "crps_beams": self.scored.tolist(),
        }
