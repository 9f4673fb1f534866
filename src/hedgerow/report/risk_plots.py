# SPDX-License-Identifier: Apache-2.0
"""Plots of risk: J in simulation against J in reality, losses, J along each parameter, development paths."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure
from hedgerow.report.plots import REAL, WIDE_IN, columns_for, line_styles, plain_axes
from hedgerow.risk.along import Along
from hedgerow.risk.develop import Path


def objective_scatter(j: Mapping[str, NDArray[np.float64]], label: str, width_in: float = WIDE_IN) -> Any | None:
    """Draw J in simulation against J in reality, a point for each setting; on the line both are the same.

    Args:
        j: (settings,) J of each source, reality first.
        label: what J is, with its unit.
        width_in: of the figure.
    """
    (_, real), *simulated = j.items()
    known = [(name, each) for name, each in simulated if (np.isfinite(each) & np.isfinite(real)).any()]
    if not known:
        return None
    figure = new_figure(width_in, min(4.5, width_in))
    axes = figure.subplots()
    plain_axes(axes)
    for (name, each), style in zip(known, line_styles([name for name, _ in known]).values(), strict=True):
        axes.scatter(real, each, s=14, color=style["color"], alpha=0.7, linewidths=0, label=name)
    both = np.concatenate([real, *(each for _, each in known)])
    ends = [np.nanmin(both), np.nanmax(both)]
    axes.plot(ends, ends, color=REAL, linewidth=1)
    axes.set(xlabel=f"real {label}", ylabel=f"simulated {label}")
    axes.legend(frameon=False, fontsize="small")
    return figure


def sorted_losses(losses: Mapping[str, NDArray[np.float64]], label: str, width_in: float = WIDE_IN) -> Any | None:
    """Draw the losses of each simulator in rising order: how many settings have how large a loss."""
    known = {name: np.sort(each[np.isfinite(each)]) for name, each in losses.items() if np.isfinite(each).any()}
    if not known:
        return None
    figure = new_figure(width_in, min(3.5, 0.75 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    for (name, each), style in zip(known.items(), line_styles(known).values(), strict=True):
        share = (np.arange(len(each)) + 1) / len(each)
        axes.step(each, share, where="post", linewidth=1.4, label=name, **style)
    axes.set(xlabel=f"loss, |simulated - real| {label}", ylabel="share of settings with no larger loss")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def curves_along(curves: Sequence[Along], label: str, width_in: float = WIDE_IN) -> Any | None:
    """Draw J along each parameter, mean over all else, in reality and in every simulator."""
    if not curves:
        return None
    columns = columns_for(len(curves), width_in)
    rows = -(-len(curves) // columns)
    figure = new_figure(width_in, 2.6 * rows + 0.3)
    panels = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes, each in zip(panels, curves, strict=False):
        _draw_along(axes, each)
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    for row in range(rows):
        panels[row * columns].set_ylabel(label)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=4, frameon=False, fontsize="small")
    return figure


def _draw_along(axes: Any, each: Along) -> None:
    plain_axes(axes)
    (real, first), *others = each.curves.items()
    styles = {real: {"color": REAL, "linestyle": "-"}} | line_styles([name for name, _ in others])
    apart = 0.05
    is_choice = each.parameter.kind == "choice"
    for number, (name, curve) in enumerate(each.curves.items()):
        place = each.middle + (number - len(others) / 2) * apart if is_choice else each.middle
        style = styles[name] | ({"linestyle": "none"} if is_choice else {})
        width = 2.0 if curve is first else 1.3
        axes.errorbar(place, curve.mean, curve.error, marker="o", markersize=3, linewidth=width, label=name, **style)
    if is_choice:
        axes.set_xticks(each.middle, each.labels)
        axes.set_xlim(each.middle[0] - 0.5, each.middle[-1] + 0.5)
    elif each.parameter.kind == "log":
        from matplotlib.ticker import LogLocator, NullLocator

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    elif each.parameter.kind == "integer":
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(each.name)


def development(paths: Sequence[Path], label: str, width_in: float = WIDE_IN) -> Any | None:
    """Draw J of the best setting so far against the step: as seen in simulation, and what it is worth in reality."""
    if not paths:
        return None
    figure = new_figure(width_in, min(3.8, 0.8 * width_in))
    axes = figure.subplots()
    plain_axes(axes)
    for path, style in zip(paths, line_styles([each.source for each in paths]).values(), strict=True):
        seen, real = path.best_so_far()
        step = np.arange(len(seen)) + 1
        axes.step(
            step, seen, where="post", color=style["color"], linewidth=1.3, linestyle="--", label=f"{path.source}, seen"
        )
        axes.step(step, real, where="post", color=style["color"], linewidth=1.8, label=f"{path.source}, in reality")
    axes.set(xlabel="step of development", ylabel=f"{label} of the best so far")
    axes.legend(frameon=False, fontsize="small")
    return figure
