# SPDX-License-Identifier: Apache-2.0
"""Plots of forecasts: reliability curves, and CRPS by range."""

from typing import Any

import numpy as np

from hedgerow.base.figure import new_figure
from hedgerow.metrics import Comparison, Scores
from hedgerow.metrics.forecast_scores import BAND_EDGES_M, ForecastScores
from hedgerow.metrics.metric import CLIMATOLOGY
from hedgerow.metrics.scores import is_floor
from hedgerow.report.plots import WIDE_IN, line_styles, plain_axes

_FEWEST = 50  # beams of a bin or band below which its mean is noise, and is not drawn


def reliability_curves(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw the share of beams that returned over the forecast one, and below how often each was forecast.

    Returns:
        A matplotlib figure, or None if no simulation has a forecast.
    """
    known = _forecasts(Comparison.of(scores))
    known = {name: each for name, each in known.items() if not each.is_again}
    if not known:
        return None
    figure = new_figure(width_in, min(6.4, 1.25 * width_in))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([0, 1], [0, 1], color="0.75", linewidth=1)
    n_bins = len(next(iter(known.values())).beams)
    for name, style in line_styles(known).items():
        each = known[name]
        shown = each.beams >= _FEWEST
        forecast, observed = each.forecast[shown] / each.beams[shown], each.observed[shown] / each.beams[shown]
        above.plot(forecast, observed, marker="o", markersize=3.5, linewidth=1.4, label=name, **style)
        below.stairs(each.beams / each.n, np.linspace(0, 1, n_bins + 1), linewidth=1.2, **style)
    for axes in (above, below):
        plain_axes(axes)
    above.set(ylabel="share of beams that returned", xlim=(0, 1), ylim=(0, 1))
    below.set(xlabel="forecast probability of a return", ylabel="share of beams", yscale="log")
    above.legend(frameon=False, fontsize="small")
    return figure


def crps_by_range(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw the mean CRPS of bands of the measured range, and of beams without return.

    Returns:
        A matplotlib figure, or None if no simulation has a forecast.
    """
    comparison = Comparison.of(scores)
    known = _forecasts(comparison)
    if not any(not is_floor(name) for name in known):
        return None
    first = next(iter(known.values()))
    shown = np.flatnonzero(first.band_beams >= _FEWEST)
    if len(shown) == 0:
        return None
    figure = new_figure(width_in, min(4, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    styles = line_styles(name for name in known if not is_floor(name))
    for name, each in known.items():
        floor = {"color": "0.55", "linestyle": "--" if name == CLIMATOLOGY else ":"}
        means = each.band_crps_m / np.maximum(each.band_beams, 1)
        style = styles.get(name, floor)
        axes.plot(np.arange(len(shown)), means[shown], marker="o", markersize=3.5, linewidth=1.4, label=name, **style)
    axes.set_xticks(np.arange(len(shown)), [_band_name(band) for band in shown.tolist()], fontsize="small")
    if width_in < WIDE_IN:
        axes.tick_params(axis="x", rotation=60)
    axes.set(xlabel="measured range [m]", ylabel="mean CRPS [m]", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize="small")
    return figure


def _forecasts(comparison: Comparison) -> dict[str, ForecastScores]:
    found = {name: each.histograms.forecast for name, each in comparison.scores.items()}
    return {name: each for name, each in found.items() if each is not None}


def _band_name(band: int) -> str:
    if band == len(BAND_EDGES_M) - 1:
        return "none"
    low, high = BAND_EDGES_M[band], BAND_EDGES_M[band + 1]
    return f"{low:g} to {high:g}" if np.isfinite(high) else f"from {low:g}"
