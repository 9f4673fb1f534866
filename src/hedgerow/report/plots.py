# SPDX-License-Identifier: Apache-2.0
"""Plots of a comparison: histograms of ranges, of likelihood, and of bearing and range.

In all of them reality is black and each simulation has one colour. Every plot comes in two sizes, for screen and phone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure
from hedgerow.errors import InputError
from hedgerow.metrics import Comparison, Scores
from hedgerow.metrics.bearing import NO_RETURN, BearingHistogram, split_keys
from hedgerow.metrics.likelihood import HIGHEST, LOWEST, PER_DECADE
from hedgerow.metrics.range_histogram import RangeHistogram

WIDE_IN = 10.0
"""For screens and paper."""
NARROW_IN = 4.4
"""For phones: letters stay readable where the figure is 360 pixels wide."""
REAL = "0.15"
NO_RETURN_COLOUR = "0.8"
# Okabe and Ito: told apart by colour-blind people too; yellow left out, it is too light for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F")
_DASHES = ("-", "--", "-.", ":")
_SHOWN = 0.999  # share of the real returns that the range axis covers
_LEAST_RANGE_M = 0.6  # the cut-outs of Browning 2012 Fig. 14 are this high, and 5 deg wide
_WIDTH_DEG = 5.0


def line_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return colour and dash of each simulation, in order; with more than seven the dashes change."""
    n = len(_COLOURS)
    return {
        name: {"color": _COLOURS[i % n], "linestyle": _DASHES[i // n % len(_DASHES)]} for i, name in enumerate(names)
    }


def plain_axes(axes: Any) -> None:
    """Take away the frame's upper and right side and draw a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def columns_for(n_panels: int, width_in: float) -> int:
    """Return how many panels to draw side by side, so that no row is left nearly empty."""
    if width_in < WIDE_IN:
        return 1 if n_panels <= 3 else 2
    return n_panels if n_panels <= 3 else 2 if n_panels == 4 else 3


def add_bar(figure: Any, shown: Any, axes: Any, label: str, width_in: float) -> None:
    """Add a colour bar: to the right, or below where there is no room beside."""
    beside = width_in >= WIDE_IN
    shape = {"shrink": 0.8} if beside else {"shrink": 0.9, "aspect": 30}
    figure.colorbar(shown, ax=axes, label=label, location="right" if beside else "bottom", pad=0.01, **shape)


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
    """Draw how many real beams have which likelihood, on logarithmic axes (Browning 2012 Fig. 18), `width_in` wide.

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


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a histogram is drawn."""

    ring: int | None
    """None: all rings together."""
    bearing_deg: tuple[float, float]
    range_m: tuple[float, float]


def busiest_window(histogram: BearingHistogram, farthest_m: float = np.inf) -> Window:
    """Return a window on the ring with the most returns: its densest 5 deg, and the ranges found there.

    Returns beyond `farthest_m`, the background of a target, have no say.

    Raises:
        InputError: the histogram has no return.
    """
    ring, bearing_deg, range_m, counts = _returns(histogram)
    near = range_m <= farthest_m
    ring, bearing_deg, range_m, counts = ring[near], bearing_deg[near], range_m[near], counts[near]
    if len(counts) == 0:
        raise InputError("histogram", "nothing returned; there is nothing to draw")
    best = int(np.argmax(np.bincount(ring, counts)))
    on_ring = ring == best
    bearing_deg, range_m, counts = bearing_deg[on_ring], range_m[on_ring], counts[on_ring]
    low = _densest(bearing_deg, counts)
    inside = (bearing_deg >= low) & (bearing_deg <= low + _WIDTH_DEG)
    order = np.argsort(range_m[inside])
    share = np.cumsum(counts[inside][order]) / counts[inside].sum()
    near, far = (float(range_m[inside][order][np.searchsorted(share, at)]) for at in (0.02, 0.98))
    margin = max(0.15 * (far - near), (_LEAST_RANGE_M - (far - near)) / 2)
    return Window(best, (low, low + _WIDTH_DEG), (max(near - margin, 0.0), far + margin))


def bearing_histograms(
    real: BearingHistogram,
    simulated: Mapping[str, BearingHistogram],
    window: Window,
    width_in: float = WIDE_IN,
) -> Any:
    """Draw histograms of bearing and range side by side (Browning 2012 Fig. 14).

    If the window is of one ring, the ranges of its middle bearing are drawn below them.

    Args:
        real, simulated: of the same steps; the simulated ones by name.
        window: what to draw.
        width_in: width of the figure.

    Returns:
        A matplotlib figure.
    """
    images = {name: bearing_image(each, window) for name, each in {"real": real, **simulated}.items()}
    n_rows = -(-len(images) // columns_for(len(images), width_in))
    above_in = 2.4 * n_rows + (0.0 if width_in >= WIDE_IN else 0.8)
    if window.ring is None:
        figure = new_figure(width_in, above_in)
        _draw_images(figure, images, window, width_in)
        return figure
    figure = new_figure(width_in, above_in + 2.4)
    above, below = figure.subfigures(2, 1, height_ratios=[above_in, 2.4])
    _draw_images(above, images, window, width_in)
    _draw_middle(below.subplots(), images, window)
    return figure


def bearing_image(histogram: BearingHistogram, window: Window) -> NDArray[np.int64]:
    """Return the (ranges, bearings) counts of a window, lowest first; beams without return are not in it."""
    ring, bearing_deg, range_m, counts = _returns(histogram)
    steps = (histogram.range_step_m, histogram.directions.step_deg)
    shape = [
        max(round((high - low) / step), 1)
        for (low, high), step in zip((window.range_m, window.bearing_deg), steps, strict=True)
    ]
    row = np.rint((range_m - window.range_m[0]) / steps[0]).astype(np.int64)
    column = np.rint((bearing_deg - window.bearing_deg[0]) / steps[1]).astype(np.int64)
    inside = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1])
    if window.ring is not None:
        inside &= ring == window.ring
    flat = np.bincount((row * shape[1] + column)[inside], counts[inside], minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.int64)


def _draw_images(figure: Any, images: Mapping[str, NDArray[np.int64]], window: Window, width_in: float) -> None:
    from matplotlib.colors import LogNorm

    n_columns = columns_for(len(images), width_in)
    grid = figure.subplots(-(-len(images) // n_columns), n_columns, sharex=True, sharey=True, squeeze=False)
    norm = LogNorm(1, max(2, *(int(image.max()) for image in images.values())))
    extent = (*window.bearing_deg, *window.range_m)
    shown: Any = None
    for axes, (name, image) in zip(grid.flat, images.items(), strict=False):
        shown = axes.imshow(
            np.ma.masked_equal(image, 0), origin="lower", aspect="auto", extent=extent, norm=norm, cmap="viridis_r",
            interpolation="nearest",
        )  # fmt: skip
        axes.set_title(name, fontsize="medium")
    for axes in grid.flat[len(images) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("range [m]")
    for axes in grid[-1]:
        axes.set_xlabel("bearing [deg]")
    add_bar(figure, shown, grid, "beams", width_in)


def _draw_middle(axes: Any, images: Mapping[str, NDArray[np.int64]], window: Window) -> None:
    plain_axes(axes)
    styles = {"real": {"color": REAL, "linestyle": "-"}} | line_styles(name for name in images if name != "real")
    for name, image in images.items():
        profile = image[:, image.shape[1] // 2]
        axes.stairs(profile, np.linspace(*window.range_m, len(profile) + 1), label=name, linewidth=1.2, **styles[name])
    middle = sum(window.bearing_deg) / 2
    axes.set(xlabel=f"range at bearing {middle:.1f} deg [m]", ylabel="beams", xlim=window.range_m)
    axes.legend(frameon=False, fontsize="small")


def _returns(
    histogram: BearingHistogram,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Ring, bearing, range and count of every occupied bin that holds returns."""
    keys, counts = histogram.entries()
    direction, place = split_keys(keys)
    hit = place != NO_RETURN
    ring, bearing_deg = histogram.directions.ring_and_azimuth_deg(direction[hit])
    return ring, bearing_deg, place[hit].astype(np.float64) * histogram.range_step_m, counts[hit]


def _densest(bearing_deg: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """Left end of the 5 deg that hold the most; seen from the left, so it never reaches over the seam at 180 deg."""
    order = np.argsort(bearing_deg)
    ordered, total = bearing_deg[order], np.concatenate([[0], np.cumsum(counts[order])])
    inside = total[np.searchsorted(ordered, ordered + _WIDTH_DEG, side="right")] - total[np.arange(len(ordered))]
    return float(ordered[np.argmax(inside)])
