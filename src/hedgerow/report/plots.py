# SPDX-License-Identifier: Apache-2.0
"""Histograms of a comparison as line plots: all ranges, and the likelihood of the real beams (000 Fig. 18)."""

from typing import Any

import numpy as np

from hedgerow.evaluate import Comparison, Scores
from hedgerow.evaluate.likelihood import HIGHEST, LOWEST, PER_DECADE
from hedgerow.evaluate.range_histogram import RangeHistogram
from hedgerow.io.figure import new_figure
from hedgerow.report.style import REAL, WIDE_IN, line_styles, plain_axes

_SHOWN = 0.999  # share of the real returns that the range axis covers


def range_histograms(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any:
    """Draw the histogram of all first ranges, real and simulated, `width_in` wide.

    Returns:
        A matplotlib figure; `save_figure` writes it.
    """
    comparison = Comparison.of(scores)
    figure = new_figure(width_in, min(4, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    real = next(iter(comparison.scores.values())).histograms.real_ranges
    _fill(axes, real)
    for name, style in line_styles(comparison).items():
        _line(axes, name, comparison[name].histograms.simulated_ranges, style)
    axes.set_xlim(*_span_m(real))
    axes.set_ylim(bottom=0)
    axes.set(xlabel="range [m]", ylabel=f"share of beams per {real.step_m:g} m")
    axes.legend(frameon=False, fontsize="small")
    return figure


def likelihood_histograms(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw how many real beams have which likelihood, on logarithmic axes (000 Fig. 18), `width_in` wide.

    Returns:
        A matplotlib figure, or None if no simulation knows likelihoods.
    """
    comparison = Comparison.of(scores)
    known = {name: each.histograms.likelihood for name, each in comparison.scores.items()}
    if not any(known.values()):
        return None
    figure = new_figure(width_in, min(4, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    edges = 10.0 ** np.linspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * PER_DECADE + 1)
    occupied = np.zeros(len(edges) - 1, dtype=np.bool_)
    for name, style in line_styles(comparison).items():
        if (likelihood := known[name]) is not None:
            axes.stairs(likelihood.counts, edges, label=name, linewidth=1.4, **style)
            occupied |= likelihood.counts > 0
    axes.set(xscale="log", yscale="log", ylabel="real beams")
    axes.set(xlabel="density [1/m] of a return, probability of none")
    shown = np.flatnonzero(occupied)
    axes.set_xlim(edges[max(shown[0] - 2, 0)], edges[min(shown[-1] + 3, len(edges) - 1)])
    axes.legend(frameon=False, fontsize="small")
    return figure


def _span_m(real: RangeHistogram) -> tuple[float, float]:
    """Where the axis begins and ends: at 0 unless all returns are far from it, and without the rarest far ones."""
    first = int(np.flatnonzero(real.counts)[0]) if real.counts.any() else 0
    last = int(np.count_nonzero(np.cumsum(real.counts) <= _SHOWN * real.counts.sum()))
    begin = first - (last - first) // 10 if first > (last - first) else 0
    return begin * real.step_m, (last + 2) * real.step_m


def _fill(axes: Any, real: RangeHistogram) -> None:
    n_bins = len(real.counts)
    edges = np.arange(n_bins + 1) * real.step_m
    label = f"real, {real.n_no_return / real.n:.1%} without return"
    axes.stairs(real.shares(n_bins)[:-1], edges, fill=True, color="0.85")
    axes.stairs(real.shares(n_bins)[:-1], edges, color=REAL, linewidth=1.2, label=label)


def _line(axes: Any, name: str, ranges: RangeHistogram, style: dict[str, Any]) -> None:
    n_bins = max(len(ranges.counts), 1)
    label = f"{name}, {ranges.n_no_return / ranges.n:.1%}"
    axes.stairs(ranges.shares(n_bins)[:-1], np.arange(n_bins + 1) * ranges.step_m, linewidth=1.2, label=label, **style)
