# SPDX-License-Identifier: Apache-2.0
"""Pictures of a target that was measured again and again from one place (Browning 2012 Figs. 1 and 14).

Fig. 14 has histograms of bearing and range of one laser, real and simulated. Fig. 1 has the ranges of two beams of one
laser: of all bearings that hit the target, those are drawn whose real ranges spread least and most.
"""

from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.metrics import Comparison
from hedgerow.metrics.bearing import BearingHistogram
from hedgerow.report.plots import (
    REAL,
    Window,
    bearing_histograms,
    bearing_image,
    busiest_window,
    line_styles,
    plain_axes,
)

BIN_M = 0.01
"""Ranges of single beams are few: bins of 2 mm, as in the histograms of bearing, would hold one or two."""


def draw_target(scores: Comparison, folder: Path, name: str, farthest_m: float) -> list[Path]:
    """Draw the histograms of one target, nearer than `farthest_m`, and those of two of its beams; return the files."""
    real = next(iter(scores.scores.values())).histograms.real_bearing
    if real is None:
        raise TypeError("the comparison is not of a standing sensor")
    simulated = {
        world: histogram
        for world, each in scores.scores.items()
        if (histogram := each.histograms.simulated_bearing) is not None
    }
    window = busiest_window(real, farthest_m)
    images, beams = folder / f"static-targets-{name}.png", folder / f"static-targets-{name}-beams.png"
    save_figure(bearing_histograms(real, simulated, window), images)
    save_figure(draw_two_beams({"real": real, **simulated}, window), beams)
    return [images, beams]


def draw_two_beams(histograms: dict[str, BearingHistogram], window: Window) -> Any:
    """Draw the ranges of the two beams of a window whose real ranges, the first ones, spread least and most."""
    images = {name: bearing_image(each, window).astype(np.float64) for name, each in histograms.items()}
    real = next(iter(images.values()))
    styles = {"real": {"color": REAL, "linestyle": "-"}} | line_styles(name for name in images if name != "real")
    edges = np.linspace(*window.range_m, len(real) + 1)
    step = max(1, round(BIN_M / (edges[1] - edges[0])))
    figure = new_figure(10, 3.6)
    for axes, column in zip(figure.subplots(1, 2), least_and_most_spread(real, edges), strict=True):
        plain_axes(axes)
        for name, image in images.items():
            counts = np.add.reduceat(image[:, column], np.arange(0, len(image), step))
            share = counts / max(counts.sum(), 1.0)
            axes.stairs(share, [*edges[:-1:step], edges[-1]], label=name, linewidth=1.2, **styles[name])
        low, high = window.bearing_deg
        bearing_deg = low + (column + 0.5) / real.shape[1] * (high - low)
        axes.set(xlabel=f"range at bearing {bearing_deg:.2f} deg [m]", ylabel=f"share of returns per {BIN_M:g} m")
    figure.axes[0].legend(frameon=False, fontsize="small")
    return figure


def least_and_most_spread(image: Array, edges: Array) -> tuple[int, int]:
    """Return the columns of a (ranges, bearings) image with the least and the largest deviation of their ranges.

    Columns with less than half the counts of the fullest do not take part.
    """
    counts = image.sum(axis=0)
    middle = (edges[1:] + edges[:-1]) / 2
    mean = middle @ image / np.maximum(counts, 1)
    variance = (middle**2) @ image / np.maximum(counts, 1) - mean**2
    full = counts >= counts.max() / 2
    return int(np.where(full, variance, np.inf).argmin()), int(np.where(full, variance, -np.inf).argmax())
