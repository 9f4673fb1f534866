# SPDX-License-Identifier: Apache-2.0
"""Plots of what returns are besides their ranges, and of where they are: intensities, labels, elevations, and distances
to what was learned."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure
from hedgerow.base.labels import LABELS
from hedgerow.metrics import Comparison, Scores
from hedgerow.metrics.counts import GrowingHistogram
from hedgerow.metrics.intensity import INCIDENCE_EDGES_DEG, RANGE_EDGES_M
from hedgerow.metrics.metric import CLIMATOLOGY
from hedgerow.metrics.near_learned import EDGES_M
from hedgerow.metrics.scores import is_floor
from hedgerow.report.plots import REAL, WIDE_IN, line_styles, plain_axes

_FEWEST = 50  # beams of a band below which its mean is noise, and is not drawn
_MOST_LABELS = 12
_SHOWN = 0.995  # share of the real intensities that the axis covers


def styles_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return colour and dash of each column; floors are grey."""
    styles = line_styles(name for name in names if not is_floor(name))
    for name in names:
        styles.setdefault(name, {"color": "0.55", "linestyle": "--" if name == CLIMATOLOGY else ":"})
    return styles


def intensity_by_band(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw the CRPS of intensity over range and over incidence, or the RMSE of a draw where nothing has a CRPS.

    Returns:
        A matplotlib figure, or None if no simulation has intensities.
    """
    found = {name: each.histograms.intensity for name, each in Comparison.of(scores).scores.items()}
    known = {name: each for name, each in found.items() if each is not None}
    if not any(not is_floor(name) for name in known):
        return None
    score = 0 if any(each.beams[0].any() for name, each in known.items() if not is_floor(name)) else 2
    figure = new_figure(width_in, 3.6 if width_in >= WIDE_IN else 1.5 * width_in)
    beside = width_in >= WIDE_IN
    left, right = figure.subplots(1, 2, sharey=True) if beside else figure.subplots(2, 1, sharey=True)
    ranges = {name: each.by_range(score) for name, each in known.items()}
    angles = {name: each.by_incidence(score) for name, each in known.items()}
    is_root = score == 2
    _draw_bands(left, ranges, _band_names(RANGE_EDGES_M), is_root)
    _draw_bands(right, angles, [*_band_names(INCIDENCE_EDGES_DEG), "no plane"], is_root)
    label = "RMSE of intensity, a draw" if is_root else "mean CRPS of intensity"
    left.set(xlabel="measured range [m]", ylabel=label, ylim=(0, None))
    right.set(xlabel="incidence [degrees]", ylabel="" if beside else label)
    left.legend(frameon=False, fontsize="small")
    return figure


def intensity_distributions(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw the cumulative distributions of the intensities of all returns, real and simulated.

    Returns:
        A matplotlib figure, or None unless both logs have intensities.
    """
    comparison = Comparison.of(scores)
    shares = {name: each.histograms.simulated_shares for name, each in comparison.scores.items()}
    known = {name: each.intensity for name, each in shares.items() if each is not None and each.intensity.n}
    first = next(iter(comparison.scores.values())).histograms.real_shares
    if first is None or not first.intensity.n or not known:
        return None
    figure = new_figure(width_in, min(3.6, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    _draw_cumulative(axes, first.intensity, "real", {"color": REAL, "linewidth": 2.0})
    for name, style in styles_of(list(known)).items():
        _draw_cumulative(axes, known[name], name, {"linewidth": 1.3, **style})
    last = int(np.searchsorted(np.cumsum(first.intensity.counts), _SHOWN * first.intensity.n))
    axes.set(xlabel="intensity", ylabel="share of returns up to this", xlim=(0, (last + 1) * first.intensity.step))
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def returns_by_elevation(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw the share of beams that return by elevation, real and simulated.

    Returns:
        A matplotlib figure, or None if all beams are of one elevation.
    """
    comparison = Comparison.of(scores)
    first = next(iter(comparison.scores.values())).histograms.real_shares
    if first is None or np.count_nonzero(first.beams >= _FEWEST) < 2:
        return None
    figure = new_figure(width_in, min(3.6, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    _draw_shares(axes, first.beams, first.returned, first.step_deg, "real", {"color": REAL, "linewidth": 2.0})
    for name, style in styles_of(list(comparison)).items():
        each = comparison[name].histograms.simulated_shares
        if each is not None:
            _draw_shares(axes, each.beams, each.returned, each.step_deg, name, {"linewidth": 1.3, **style})
    axes.set(xlabel="elevation of the beam in the map [degrees]", ylabel="share of beams that return")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize="small")
    return figure


def labels_right(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw for the most frequent real labels which share of the returns of a draw has them too.

    Returns:
        A matplotlib figure, or None unless both logs have labels.
    """
    found = {name: each.histograms.labels for name, each in Comparison.of(scores).scores.items()}
    known = {name: each for name, each in found.items() if each is not None}
    if not any(not is_floor(name) for name in known):
        return None
    beams: dict[int, int] = {}
    for each in known.values():
        for label, count in each.drawn_beams.items():
            beams[label] = max(beams.get(label, 0), count)
    shown = sorted((label for label in beams if beams[label] >= _FEWEST), key=lambda label: -beams[label])[
        :_MOST_LABELS
    ]
    if not shown:
        return None
    figure = new_figure(width_in, 1.0 + len(shown) * max(0.3, 0.12 * (len(known) + 1)))
    axes = figure.subplots()
    plain_axes(axes)
    height = 0.8 / len(known)
    place = np.arange(len(shown))
    for k, (name, style) in enumerate(styles_of(list(known)).items()):
        each = known[name]
        share = [each.drawn_right.get(label, 0) / max(each.drawn_beams.get(label, 0), 1) for label in shown]
        axes.barh(place + (k - (len(known) - 1) / 2) * height, share, height * 0.9, color=style["color"], label=name)
    axes.set_yticks(place, [f"{_label_name(label)} ({beams[label]:,})" for label in shown], fontsize="small")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="share with the real label", xlim=(0, 1))
    axes.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def by_learned_distance(scores: "Scores | Comparison", width_in: float = WIDE_IN) -> Any | None:
    """Draw hits found and CRPS over the distance of real returns to the nearest learned one.

    Returns:
        A matplotlib figure, or None if it is not known what was learned from.
    """
    found = {name: each.histograms.learned for name, each in Comparison.of(scores).scores.items()}
    known = {name: each for name, each in found.items() if each is not None}
    if not known:
        return None
    beside = width_in >= WIDE_IN
    figure = new_figure(width_in, 3.6 if beside else 1.5 * width_in)
    left, right = figure.subplots(1, 2) if beside else figure.subplots(2, 1)
    names = _band_names(EDGES_M)
    _draw_bands(left, {name: (each.hits.astype(np.float64), each.beams) for name, each in known.items()}, names)
    _draw_bands(right, {name: (each.crps_m, each.scored) for name, each in known.items()}, names)
    left.set(ylabel="share of real returns found", xlabel="from the nearest learned return [m]", ylim=(0, 1.02))
    right.set(ylabel="mean CRPS [m]", xlabel="from the nearest learned return [m]", ylim=(0, None))
    left.legend(frameon=False, fontsize="small")
    return figure


def _draw_bands(
    axes: Any,
    bands: "Mapping[str, tuple[NDArray[np.float64], NDArray[np.int64]]]",
    names: Sequence[str],
    is_root: bool = False,
) -> None:
    """Draw the means of bands that have enough beams in some column, one line for each column."""
    plain_axes(axes)
    enough = [beams >= _FEWEST for _, beams in bands.values()]
    shown = np.flatnonzero(np.any(enough, axis=0))
    for name, style in styles_of(list(bands)).items():
        sums, beams = bands[name]
        means = sums / np.maximum(beams, 1)
        drawn = np.where(beams >= _FEWEST, np.sqrt(np.maximum(means, 0)) if is_root else means, np.nan)[shown]
        axes.plot(np.arange(len(shown)), drawn, marker="o", markersize=3.5, linewidth=1.4, label=name, **style)
    axes.set_xticks(np.arange(len(shown)), [names[band] for band in shown.tolist()], fontsize="small")
    axes.tick_params(axis="x", rotation=40)


def _draw_cumulative(axes: Any, histogram: GrowingHistogram, name: str, style: dict[str, Any]) -> None:
    below = np.concatenate([[0.0], np.cumsum(histogram.counts) / histogram.n])
    axes.plot(np.arange(len(below)) * histogram.step, below, label=name, **style)


def _draw_shares(
    axes: Any,
    beams: NDArray[np.int64],
    returned: NDArray[np.int64],
    step_deg: float,
    name: str,
    style: dict[str, Any],
) -> None:
    seen = np.flatnonzero(beams)
    span = slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)
    share = np.where(beams >= _FEWEST, returned / np.maximum(beams, 1), np.nan)[span]
    middle_deg = np.arange(len(beams))[span] * step_deg - 90
    axes.plot(middle_deg, share, marker=".", markersize=4, label=name, **style)


def _band_names(edges: Sequence[float]) -> list[str]:
    return [f"{low:g} to {high:g}" if np.isfinite(high) else f"over {low:g}" for low, high in pairwise(edges)]


def _label_name(number: int) -> str:
    return next((name for name, label in LABELS.items() if label.number == number), str(number))
