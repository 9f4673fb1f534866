# SPDX-License-Identifier: Apache-2.0
"""How true the intensities of first returns are: CRPS and root mean square error, by range and by incidence too.

Over beams that really returned with a known intensity y:

- CRPS of the intensity X that a world forecasts, given that the beam returns: E|X - y| - E|X - X'| / 2, from the draws
  that returned (drawn.py), fair for any number of them from two on (Ferro 2014);
- RMSE of the mean of the forecast, the best single answer, exact for worlds of elements. From the square of the mean of
  k draws the variance of that mean is taken off, so that it has no bias either;
- RMSE of one drawn answer, over beams that returned in it too. Its error has the scatter of reality twice, so that it
  is to be near reality again, not as small as can be.

Beams that a world does not return have no intensity there, so these are not quite the same beams for every world; the
numbers of beams say it. Of reality once more |x - y| / 2 and (x - y)² / 2 are estimates without bias of the CRPS and of
the squared error of the mean that the true distribution has.

Equations: docs/models.md §34.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.forecast_scores import BAND_EDGES_M
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import SweepPair

INTENSITY_METRICS = {
    "intensity_crps": Metric(
        label="CRPS of intensity",
        meaning="how far the forecast intensity of a return is from the measured one, less half its own spread; in the "
        "unit of the log",
        source="Gneiting and Raftery 2007",
        better="low",
        decimals=4,
        counts="beams",
    ),
    "intensity_rmse": Metric(
        label="RMSE of intensity, mean answer",
        meaning="root mean square error of the mean of the forecast intensity",
        better="low",
        decimals=4,
        counts="beams",
    ),
    "intensity_draw_rmse": Metric(
        label="RMSE of intensity, a draw",
        meaning="root mean square error of one drawn answer, where both returned",
        better="low",
        near="reality",
        decimals=4,
        counts="beams",
    ),
}
SCORES = ("crps", "mean_square", "draw_square")
"""What is summed up, in this order; one for each of the metrics."""
RANGE_EDGES_M = BAND_EDGES_M
INCIDENCE_EDGES_DEG = (0.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0)
"""Bands of the angle between beam and normal; one more is for returns without a plane around them."""


def fair_crps(y: NDArray[np.floating[Any]], drawn: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Score (K, N) draws, NaN where there is none, for (N,) measured values; NaN where fewer than two are there."""
    drawn = np.sort(drawn.astype(np.float64), axis=0)  # NaN last
    known = ~np.isnan(drawn)
    n = known.sum(axis=0)
    filled = np.where(known, drawn, 0.0)
    away = np.where(known, np.abs(drawn - y), 0.0).sum(axis=0)
    # Of all pairs, the k-th smallest draw is the larger one k - 1 times and the smaller one n - k times.
    weight = 2 * np.arange(1, len(drawn) + 1)[:, None] - n - 1
    apart = (weight * filled).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 1, away / n - apart / (n * (n - 1)), np.nan)


def fair_square(y: NDArray[np.floating[Any]], drawn: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return (N,) estimates without bias of (E X - y)² from (K, N) draws; NaN where fewer than two are there."""
    known = ~np.isnan(drawn)
    n = known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, drawn, 0.0).sum(axis=0, dtype=np.float64) / n
        variance = (np.where(known, drawn - mean, 0.0) ** 2).sum(axis=0) / (n - 1)
        return np.where(n > 1, (mean - y) ** 2 - variance / n, np.nan)


class IntensityScores:
    """Sums of the three scores over bands of range and of incidence."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        shape = (len(SCORES), len(RANGE_EDGES_M) - 1, len(INCIDENCE_EDGES_DEG))
        self.sums: NDArray[np.float64] = np.zeros(shape)
        """Score by band of range by band of incidence; the last band of incidence has no plane."""
        self.beams: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.is_measured = False
        """Whether the real log has intensities."""
        self.is_again = False
        self.draws: int | None = None

    def add(self, pair: SweepPair) -> None:
        """Add one sweep."""
        measured = pair.real.log.returns.first("intensity")
        if measured is None:
            return
        self.is_measured = True
        self.is_again |= pair.is_again
        known = pair.real.hit & np.isfinite(measured)
        y = np.where(known, measured, np.nan).astype(np.float64)
        answer = pair.column("intensity")
        if answer is not None:
            x = np.where(pair.hit, answer, np.nan).astype(np.float64)
            self._add(pair, 2, (x - y) ** 2)
            if pair.is_again:
                self._add(pair, 0, np.abs(x - y) / 2)
                self._add(pair, 1, (x - y) ** 2 / 2)
        if pair.forecast is not None and pair.forecast.draws is None:
            self._add(pair, 1, (pair.forecast.intensity.astype(np.float64) - y) ** 2)
        if pair.drawn is not None and pair.drawn.intensity is not None:
            self.draws = len(pair.drawn.intensity)
            scores = np.full(len(y), np.nan)
            scores[pair.drawn.rows] = fair_crps(y[pair.drawn.rows], pair.drawn.intensity)
            self._add(pair, 0, scores)
            if pair.forecast is None or pair.forecast.draws is not None:
                scores[pair.drawn.rows] = fair_square(y[pair.drawn.rows], pair.drawn.intensity)
                self._add(pair, 1, scores)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.sums += other.sums
        self.beams += other.beams
        self.is_measured |= other.is_measured
        self.is_again |= other.is_again
        self.draws = self.draws if other.draws is None else other.draws

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.beams.any())

    def values(self) -> dict[str, Value]:
        """Return what is known; {} if one of the two logs has no intensities."""
        n, sums = self.beams.sum(axis=(1, 2)).tolist(), self.sums.sum(axis=(1, 2)).tolist()
        found = {
            "intensity_crps": Value(sums[0] / max(n[0], 1), n[0]),
            "intensity_rmse": Value(max(sums[1] / max(n[1], 1), 0.0) ** 0.5, n[1]),
            "intensity_draw_rmse": Value((sums[2] / max(n[2], 1)) ** 0.5, n[2]),
        }
        return {key: value for key, value in found.items() if value.n}

    def notes(self) -> list[str]:
        """Say what the forecasts of intensity are."""
        if not self.is_measured:
            return []
        if not self.is_known:
            return ["no scores of intensity: the simulation has none"]
        if self.draws is None or self.is_again:
            return []
        return [
            f"intensities are forecast by {self.draws} draws of beams that returned, their means by the elements where "
            "those are known; beams that no two draws return are left out"
        ]

    def by_range(self, score: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the (B,) sums of a score and beams of each band of range."""
        return self.sums[score].sum(axis=1), self.beams[score].sum(axis=1)

    def by_incidence(self, score: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the (B + 1,) sums of a score and beams of each band of incidence, and of returns without a plane."""
        return self.sums[score].sum(axis=0), self.beams[score].sum(axis=0)

    def to_dict(self) -> dict[str, Any]:
        """Return both tables in types that JSON knows; squares are those of the RMSE."""
        edges_m = [None if np.isinf(edge) else edge for edge in RANGE_EDGES_M]
        tables: dict[str, Any] = {
            "by_range": {"edges_m": edges_m},
            "by_incidence": {"edges_deg": list(INCIDENCE_EDGES_DEG)},
        }
        for place, name in enumerate(SCORES):
            for table, (sums, beams) in (
                ("by_range", self.by_range(place)),
                ("by_incidence", self.by_incidence(place)),
            ):
                tables[table][name] = {"sum": sums.tolist(), "beams": beams.tolist()}
        return tables

    def _add(self, pair: SweepPair, place: int, scores: NDArray[np.float64]) -> None:
        """Add (N,) scores, NaN where there is none."""
        rows = np.flatnonzero(np.isfinite(scores))
        n_ranges, n_angles = self.sums.shape[1:]
        incidence = pair.real.incidence_deg[rows]
        angle = np.searchsorted(INCIDENCE_EDGES_DEG, np.nan_to_num(incidence), side="right") - 1
        angle = np.where(np.isnan(incidence), n_angles - 1, np.minimum(angle, n_angles - 2))
        band = np.searchsorted(RANGE_EDGES_M, pair.real.range_m[rows], side="right") - 1
        both = band * n_angles + angle
        size, shape = n_ranges * n_angles, (n_ranges, n_angles)
        self.sums[place] += np.bincount(both, scores[rows], minlength=size).reshape(shape)
        self.beams[place] += np.bincount(both, minlength=size).reshape(shape)
