# SPDX-License-Identifier: Apache-2.0
"""Small pictures for the panel: the colour bar, and the range density of a beam. Dark, as the panel is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.figure import new_figure
from hedgerow.view.web.beam import SIGMA_M, BeamView, interesting
from hedgerow.view.web.colours import TITLES, Legend, scale
from hedgerow.view.web.labels import UNKNOWN
from hedgerow.view.web.layers import Rgb

Picture = NDArray[np.uint8]
"""(height, width, 4) red, green, blue, alpha."""
_PAPER, _INK = "#242424", "#d8d8d8"
_DPI = 200
_ENTRIES_AT_MOST = 30


def legend_picture(legend: Legend) -> Picture:
    """Draw what the colours mean."""
    if legend.limits is None:
        return _swatches(legend)
    figure = _new(3.0, 0.62)
    axes = figure.subplots()
    bar = scale(legend.quantity, np.linspace(0, 1, 256))
    low, high = legend.limits
    axes.imshow(bar[None], aspect="auto", extent=(low, high, 0, 1))
    axes.set(yticks=[], xlabel=TITLES[legend.quantity])
    _ink(axes)
    return _pixels(figure)


def density_picture(view: BeamView) -> Picture:
    """Draw the range densities of a beam, with the first ranges that the layers measured."""
    figure = _new(3.0, 1.9)
    axes = figure.subplots()
    low, high = interesting(view)
    for name, density in view.density.items():
        part = (density.range_m >= low) & (density.range_m <= high)
        label = f"{name}: no return {density.no_return:.0%}"
        axes.plot(density.range_m[part], density.density_per_m[part], color=_hex(view.colour[name]), lw=1, label=label)
    for name, range_m in view.measured_m.items():
        x = [range_m, range_m] if np.isfinite(range_m) else []
        said = f"{range_m:.3f} m" if x else "no return"
        # With a triangle on top of the frame: it is seen where the line is one with a peak.
        axes.plot(
            x, [0.0, 1.0][: len(x)], color=_hex(view.colour[name]), lw=0.9, ls="--", marker="v", ms=5, clip_on=False,
            markevery=[1] if x else None, transform=axes.get_xaxis_transform(), label=f"{name}: {said}",
        )  # fmt: skip
    axes.set(xlim=(low, high), xlabel="range [m]", ylabel="density [1/m]")
    axes.set_ylim(bottom=0)
    _ink(axes)
    axes.legend(fontsize=5.5, labelcolor=_INK, facecolor=_PAPER, edgecolor="none", framealpha=0.7)
    if view.density:
        axes.set_title(f"elements under {100 * SIGMA_M:.0f} cm are drawn that wide", fontsize=5.5, color=_INK)
    return _pixels(figure)


def _swatches(legend: Legend) -> Picture:
    entries = legend.entries[:_ENTRIES_AT_MOST] or (("nothing to see", UNKNOWN),)
    columns = 2 if legend.quantity == "label" else 1
    rows = -(-len(entries) // columns)
    figure = _new(3.0, 0.1 + 0.17 * rows)
    axes = figure.subplots()
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.axis("off")
    for i, (name, rgb) in enumerate(entries):
        x, y = i % columns, i // columns + 0.5
        axes.plot(x + 0.06, y, "s", color=_hex(rgb), ms=5, clip_on=False)
        axes.text(x + 0.06 + 0.08 * columns / 2, y, name, color=_INK, fontsize=7, va="center")
    return _pixels(figure)


def _new(width_in: float, height_in: float) -> Any:
    figure = new_figure(width_in, height_in)
    figure.set_facecolor("none")
    return figure


def _ink(axes: Any) -> None:
    axes.set_facecolor("none")
    axes.tick_params(colors=_INK, labelsize=6, width=0.5, length=2, pad=1)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=_INK, fontsize=6.5)
    for spine in axes.spines.values():
        spine.set(edgecolor="#555555", linewidth=0.5)


def _pixels(figure: Any) -> Picture:
    figure.set_dpi(_DPI)
    figure.canvas.draw()
    return np.array(figure.canvas.buffer_rgba(), dtype=np.uint8)


def _hex(rgb: Rgb) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
