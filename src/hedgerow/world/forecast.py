# SPDX-License-Identifier: Apache-2.0
"""Forecast: what a world expects of each beam, without a drawn answer.

A world is a distribution of the range of each beam. Worlds of elements know it along the beam: which element stops the
beam with which probability, and where it then returns (`Scene.forecast`, docs/models.md §33). Of other worlds, such as
pulses with width through a receiver, it is estimated from several draws (`forecast_by_draws`).

No return counts as a range at the far limit, so that one distribution covers hits, misses and ranges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Returns

Draw = Callable[[int], Returns]
"""Gives the returns of one draw, by its number."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnColumns:
    """What the first returns of K answers to some beams are besides their ranges."""

    rows: NDArray[np.int64]
    """(R,) which beams."""
    intensity: NDArray[np.float32] | None
    """(K, R) NaN where nothing returned, or it is unknown; None if no answer knows it."""
    label: NDArray[np.uint16] | None
    """(K, R) 0 where nothing returned, or it is unknown; None likewise."""

    @classmethod
    def of(cls, rows: NDArray[np.int64], answers: "Sequence[Returns]") -> "DrawnColumns":
        """Stack answers, each to just these beams."""
        stacked: dict[str, NDArray[Any] | None] = {}
        for name in ("intensity", "label"):
            columns = [each.first(name) for each in answers]
            known = [each for each in columns if each is not None]
            stacked[name] = np.stack(known) if known and len(known) == len(columns) else None
        return cls(rows, stacked["intensity"], stacked["label"])


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What is expected of N beams; of measured ranges too, how far they are from it."""

    returns: NDArray[np.float64]
    """(N,) probability of a return within the limits."""
    median_m: NDArray[np.float32]
    """(N,) median of the range of a return; inf where none is possible [m]."""
    intensity: NDArray[np.float32]
    """(N,) mean intensity of a return; NaN where it is unknown."""
    error_m: NDArray[np.float64] | None = None
    """(N,) E|X - y| of a range X of the forecast and the measured range y; None if nothing measured was given [m]."""
    spread_m: NDArray[np.float64] | None = None
    """(N,) E|X - X'| of two ranges of the forecast; None likewise [m]."""
    draws: int | None = None
    """How many draws it is estimated from; None: it is exact."""
    drawn: DrawnColumns | None = None
    """Intensities and labels of these draws, if something measured was given."""

    @property
    def answer_m(self) -> NDArray[np.float32]:
        """(N,) the one range to answer with: the median, or inf where no return is likelier than one [m]."""
        return np.where(self.returns >= 0.5, self.median_m, np.float32(np.inf))


def crps_of(forecast: Forecast) -> NDArray[np.float64]:
    """Return the (N,) CRPS of a forecast that was made for measured ranges [m]."""
    if forecast.error_m is None or forecast.spread_m is None:
        raise ValueError("a forecast without measured ranges has no score")
    return forecast.error_m - forecast.spread_m / 2


def join_forecasts(parts: Sequence[tuple[Any, Forecast]], n_beams: int) -> Forecast:
    """Put the forecasts of some beams each together; with each come its rows among all."""
    if len(parts) == 1:
        return parts[0][1]
    joined: dict[str, Any] = {}
    for rows, part in parts:
        for name in ("returns", "median_m", "intensity", "error_m", "spread_m"):
            column = getattr(part, name)
            if column is not None:
                joined.setdefault(name, np.empty(n_beams, dtype=column.dtype))[rows] = column
    return Forecast(**joined)


def forecast_by_draws(
    draw: Draw, draws: int, max_range_m: float, range_m: NDArray[np.float32] | None = None
) -> Forecast:
    """Estimate a forecast from several draws; estimates of errors and spreads are unbiased for any number of draws.

    Args:
        draw: gives the returns of draw k; the first return of a pulse counts.
        draws: how many, 2 or more.
        max_range_m: where no return counts as being [m].
        range_m: (N,) measured ranges, inf is no return; None: errors and spreads are not wanted.
    """
    first = [draw(number) for number in range(draws)]
    range_of = np.stack([each.first_m for each in first]).astype(np.float64)
    hit = np.isfinite(range_of)
    n_hits = hit.sum(axis=0)
    ordered = np.sort(range_of, axis=0)
    beam = np.arange(len(n_hits))
    low, high = np.maximum((n_hits - 1) // 2, 0), np.minimum(n_hits // 2, draws - 1)
    median_m = np.where(n_hits > 0, (ordered[low, beam] + ordered[high, beam]) / 2, np.inf)
    error_m = spread_m = None
    if range_m is not None:
        drawn = np.minimum(ordered, max_range_m)
        error_m = np.abs(drawn - np.minimum(range_m, max_range_m)).mean(axis=0)
        # Of all pairs, the k-th smallest draw is the larger one k - 1 times and the smaller one n - k times.
        weight = 2 * (2 * np.arange(1, draws + 1) - draws - 1) / (draws * (draws - 1))
        spread_m = weight @ drawn
    return Forecast(
        returns=n_hits / draws,
        median_m=median_m.astype(np.float32),
        intensity=_mean_intensity(first, hit),
        error_m=error_m,
        spread_m=spread_m,
        draws=draws,
        drawn=None if range_m is None else DrawnColumns.of(beam, first),
    )


def _mean_intensity(draws: list[Returns], hit: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the (N,) mean of what is known of the intensities of first returns; NaN where nothing is."""
    total, known = np.zeros(hit.shape[1]), np.zeros(hit.shape[1])
    for each, returned in zip(draws, hit, strict=True):
        intensity = each.first("intensity")
        if intensity is not None:
            told = returned & ~np.isnan(intensity)
            total[told] += intensity[told]
            known[told] += 1
    return np.divide(total, known, out=np.full(len(total), np.nan), where=known > 0).astype(np.float32)
