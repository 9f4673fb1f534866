# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional histograms of bearing and range, real beside simulated, as in 000 Fig. 14."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.evaluate.bearing import NO_RETURN, BearingHistogram, split
from hedgerow.io.figure import new_figure
from hedgerow.report.style import REAL, WIDE_IN, add_bar, columns_for, line_styles, plain_axes

_LEAST_RANGE_M = 0.6  # the cut-outs of 000 Fig. 14 are this high, and 5 deg wide
_WIDTH_DEG = 5.0


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a histogram is drawn."""

    ring: int | None
    """None: all rings together."""
    bearing_deg: tuple[float, float]
    range_m: tuple[float, float]


def busiest_window(histogram: BearingHistogram) -> Window:
    """Return a window on the ring with the most returns: its densest 5 deg, and the ranges found there.

    Raises:
        InputError: the histogram has no return.
    """
    ring, bearing_deg, range_m, counts = _returns(histogram)
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
    """Draw the histograms side by side, and below them, if the window is of one ring, the ranges of its middle bearing.

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
    direction, place = split(keys)
    hit = place != NO_RETURN
    ring, bearing_deg = histogram.directions.ring_and_azimuth_deg(direction[hit])
    return ring, bearing_deg, place[hit].astype(np.float64) * histogram.range_step_m, counts[hit]


def _densest(bearing_deg: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """Left end of the 5 deg that hold the most; seen from the left, so it never reaches over the seam at 180 deg."""
    order = np.argsort(bearing_deg)
    ordered, total = bearing_deg[order], np.concatenate([[0], np.cumsum(counts[order])])
    inside = total[np.searchsorted(ordered, ordered + _WIDTH_DEG, side="right")] - total[np.arange(len(ordered))]
    return float(ordered[np.argmax(inside)])
