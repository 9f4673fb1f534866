# SPDX-License-Identifier: Apache-2.0
"""How true the forecast of each beam is: proper scores, reliability and spread (Gneiting and Raftery 2007).

A world is a distribution of what each beam gives (`World.forecast`). A proper score cannot be won by returning more,
less, or more surely than reality does: its expectation is best for the true distribution.

| score | of | what it is |
| --- | --- | --- |
| CRPS | range | E|X - y| - E|X - X'| / 2, no return at the range limit |
| Brier | return or not | (p - o)², o is 1 for a return and 0 for none |
| log score | return or not | -log p' of what happened, p' = (1 - e) p + e / 2: no sure error decides it |

Reliability and spread say in which way a forecast is wrong: whether of the beams that are said to return with 30 % as
many do, and whether ranges scatter as much as they miss (1; below: too sure).

Where a forecast comes from K draws, CRPS, spread and Brier are unbiased for any K: from (p - o)² the variance of the
estimate, p (1 - p) / (K - 1), is taken off (Ferro 2014). Log score and reliability have no such form and are rougher.

A recording of the same place once more is one draw of reality. Its scores are those of the true distribution itself,
which no world can better: E|X - X'| / 2 and p (1 - p), of which |x - y| / 2 and half the share of beams that differ are
estimates without bias.

Equations: docs/models.md §33.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair
from hedgerow.metrics.per_sweep import SweepSums
from hedgerow.world.forecast import Forecast, crps_of

_SOURCE = "Gneiting and Raftery 2007"
FORECAST_METRICS = {
    "crps_m": Metric(
        label="CRPS of the range",
        meaning="how far the forecast range is from the measured one, less half its own spread; no return is the limit",
        source=_SOURCE,
        better="low",
        unit="m",
        decimals=3,
        counts="beams",
    ),
    "brier": Metric(
        label="Brier score of returns",
        meaning="squared distance of the forecast probability of a return from what happened",
        source=_SOURCE,
        better="low",
        decimals=4,
        counts="beams",
    ),
    "log_score": Metric(
        label="Log score of returns",
        meaning="-log of the forecast probability of what happened: a return or none",
        source=_SOURCE,
        better="low",
        decimals=4,
        counts="beams",
    ),
    "reliability_error": Metric(
        label="Reliability error",
        meaning="how far the share of beams that return is from the forecast one, over beams of alike forecasts",
        better="low",
        decimals=4,
        counts="beams",
    ),
    "spread": Metric(
        label="Spread of ranges",
        meaning="how far two ranges of the forecast are apart, over how far it is from the measured one; 1 is right, "
        "less is too sure",
        near="one",
        decimals=3,
        counts="beams",
    ),
}

N_BINS = 20
"""Bins of the forecast probability."""
BAND_EDGES_M = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0, np.inf)
"""Bands of the measured range; beams without return are a band of their own, the last."""
BY_SWEEP = ("crps_m", "brier", "log_score")


@dataclass(frozen=True, slots=True, eq=False)
class BeamScores:
    """Scores of single beams, (N,) each."""

    crps_m: NDArray[np.float64]
    brier: NDArray[np.float64]
    log_score: NDArray[np.float64]


def score_beams(forecast: Forecast, hit: NDArray[np.bool_], outlier_share: float) -> BeamScores:
    """Score the forecast of each beam.

    Args:
        forecast: of N beams, with errors and spreads.
        hit: (N,) whether they really returned.
        outlier_share: e of the log score.
    """
    p = forecast.returns
    brier = (p - hit) ** 2
    if forecast.draws is not None:
        brier -= p * (1 - p) / (forecast.draws - 1)
    happened = (1 - outlier_share) * np.where(hit, p, 1 - p) + outlier_share / 2
    return BeamScores(crps_of(forecast), brier, -np.log(happened))


class ForecastScores:
    """Sums of the scores, and the tables behind the plots: reliability, and CRPS by range."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.outlier_share = settings.outlier_share
        self.has_max_range = True
        self.draws: int | None = None
        self.is_again = False
        self.n = 0
        self.crps_m = self.brier = self.log_score = self.error_m = self.spread_m = 0.0
        self.forecast: NDArray[np.float64] = np.zeros(N_BINS)
        """(N_BINS,) sum of the forecast probabilities."""
        self.observed: NDArray[np.int64] = np.zeros(N_BINS, dtype=np.int64)
        """(N_BINS,) beams that returned."""
        self.beams: NDArray[np.int64] = np.zeros(N_BINS, dtype=np.int64)
        self.band_crps_m: NDArray[np.float64] = np.zeros(len(BAND_EDGES_M))
        self.band_beams: NDArray[np.int64] = np.zeros(len(BAND_EDGES_M), dtype=np.int64)
        self.by_sweep = SweepSums(BY_SWEEP)

    def add(self, pair: SweepPair) -> None:
        """Add one sweep, if the simulation has a forecast or is reality itself."""
        self.has_max_range &= bool(np.isfinite(pair.real.log.max_range_m))
        if pair.forecast is not None:
            self._add_forecast(pair, pair.forecast)
        elif pair.is_again and self.has_max_range:
            self._add_again(pair)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.has_max_range &= other.has_max_range
        self.is_again |= other.is_again
        self.draws = other.draws if other.n else self.draws
        for name in ("n", "crps_m", "brier", "log_score", "error_m", "spread_m"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("forecast", "observed", "beams", "band_crps_m", "band_beams"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.by_sweep.merge(other.by_sweep)

    def values(self) -> dict[str, Value]:
        """Return the scores; {} without any beam that has a forecast."""
        if self.n == 0:
            return {}
        found = {"crps_m": ratio_value(self.crps_m, self.n), "brier": ratio_value(self.brier, self.n)}
        if self.is_again:
            return found
        return found | {
            "log_score": ratio_value(self.log_score, self.n),
            "reliability_error": ratio_value(float(np.abs(self.forecast - self.observed).sum()), self.n),
            # Where all is certain and right there is nothing to divide, and nothing wrong.
            "spread": Value(self.spread_m / self.error_m if self.error_m > 0 else None, self.n),
        }

    def notes(self) -> list[str]:
        """Say what the forecasts come from, or why there are none."""
        if not self.has_max_range:
            return ["no forecast scores: the real log has no max_range_m, where no return would count; set it"]
        if self.n == 0:
            return ["no forecast scores: the simulation is a log, or a world whose draws were switched off (draws=0)"]
        if self.is_again:
            return ["CRPS and Brier are those of the true distribution, by one more draw: expect no world to do better"]
        e = self.outlier_share
        said = [f"log score has a floor: p' = (1 - {e:g}) p + {e:g} / 2"]
        if self.draws is not None:
            said.append(
                f"forecasts are of {self.draws} draws: CRPS, Brier and spread are unbiased, log score and reliability "
                "are rougher and come out too high"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the tables behind the plots in types that JSON knows."""
        bands = [None if np.isinf(edge) else edge for edge in BAND_EDGES_M]
        table: dict[str, Any] = {
            "crps_by_range": {
                "edges_m": bands,
                "sum_m": self.band_crps_m[:-1].tolist(),
                "beams": self.band_beams[:-1].tolist(),
                "no_return": {"sum_m": float(self.band_crps_m[-1]), "beams": int(self.band_beams[-1])},
            }
        }
        if not self.is_again:
            table["reliability"] = {
                "edges": np.linspace(0, 1, N_BINS + 1).round(6).tolist(),
                "forecast": self.forecast.tolist(),
                "observed": self.observed.tolist(),
                "beams": self.beams.tolist(),
            }
        return table

    def _add_forecast(self, pair: SweepPair, forecast: Forecast) -> None:
        hit = pair.real.hit
        scores = score_beams(forecast, hit, self.outlier_share)
        self.draws = forecast.draws
        self.error_m += float(np.asarray(forecast.error_m).sum())
        self.spread_m += float(np.asarray(forecast.spread_m).sum())
        place = np.minimum((forecast.returns * N_BINS).astype(np.int64), N_BINS - 1)
        self.forecast += np.bincount(place, forecast.returns, minlength=N_BINS)
        self.observed += np.bincount(place[hit], minlength=N_BINS)
        self.beams += np.bincount(place, minlength=N_BINS)
        self._add_scores(pair, scores.crps_m, scores.brier, scores.log_score)

    def _add_again(self, pair: SweepPair) -> None:
        self.is_again = True
        differs = (pair.hit != pair.real.hit).astype(np.float64)
        if pair.crps_m is not None:
            self._add_scores(pair, pair.crps_m, differs / 2, np.zeros(len(differs)))

    def _add_scores(
        self, pair: SweepPair, crps_m: NDArray[np.float64], brier: NDArray[np.float64], log_score: NDArray[np.float64]
    ) -> None:
        sums = {"crps_m": float(crps_m.sum()), "brier": float(brier.sum()), "log_score": float(log_score.sum())}
        n_beams, n_bands = len(crps_m), len(BAND_EDGES_M)
        self.n += n_beams
        self.crps_m += sums["crps_m"]
        self.brier += sums["brier"]
        self.log_score += sums["log_score"]
        self.by_sweep.add(n_beams, sums)
        band = np.where(pair.real.hit, np.searchsorted(BAND_EDGES_M, pair.real.range_m, side="right") - 1, n_bands - 1)
        self.band_crps_m += np.bincount(band, crps_m, minlength=n_bands)
        self.band_beams += np.bincount(band, minlength=n_bands)
