# SPDX-License-Identifier: Apache-2.0
"""Picture of cost maps side by side, as Fig. 10 of 003: after some seconds, and at the end of the drive."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.apps.cost_grid import MAX_COST, CostGrid
from hedgerow.apps.navigation import NavigationSettings
from hedgerow.io.figure import new_figure, save_figure
from hedgerow.reproduce.cost_map_words import Drive
from hedgerow.reproduce.yard import Truth, Yard

PLANNED, DRIVEN, TRUE = "#56B4E9", "#FFFFFF", "#009E73"


def draw(path: Path, yard: Yard, truth: Truth, drives: Sequence[Drive], settings: NavigationSettings) -> None:
    """Draw two maps for each sensor, with what was planned and driven by then."""
    figure = new_figure(4.0 * len(drives) + 0.8, 8.9)
    axes: Any = figure.subplots(2, len(drives), squeeze=False, sharex=True, sharey=True)
    image: Any = None
    for column, drive in enumerate(drives):
        run = drive.run
        moments = [
            (run.snapshot or run.grid, min(settings.snapshot_s or run.time_s, run.time_s)),
            (run.grid, run.time_s),
        ]
        for row, (grid, time_s) in enumerate(moments):
            image = _map(axes[row, column], grid, truth)
            _ways(axes[row, column], yard, drive, time_s)
            axes[row, column].set_title(f"{drive.sensor}, {time_s:.0f} s", fontsize=11)
        axes[1, column].set_xlabel("east [m]")
    for row in range(2):
        axes[row, 0].set_ylabel("north [m]")
    _crop(axes[0, 0], drives[0].run.grid, truth)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.01)
    bar.set_label(f"cost; {MAX_COST:g} is {settings.grid.max_height_m:g} m and higher. Black: nothing seen")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=5, frameon=True, facecolor="0.25", labelcolor="white"
    )
    save_figure(figure, path, dpi=110)


def _map(axes: Any, grid: CostGrid, truth: Truth) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    # Nothing seen is black, as in the paper; ground that was seen and costs nothing is a shade lighter.
    colours = LinearSegmentedColormap.from_list("cost", ["#2b2440", "#7b2f6f", "#e0633a", "#ffd45c", "#fffbe0"])
    extent = grid.extent_m()
    shown = np.ma.masked_where(~grid.known, grid.cost())
    axes.set_facecolor("black")
    image = axes.imshow(
        shown, origin="lower", extent=extent, cmap=colours, vmin=0, vmax=MAX_COST, interpolation="nearest"
    )
    tall = truth.height_m >= grid.settings.max_height_m
    if tall.any():
        middles = [np.linspace(a + 0.25, b - 0.25, grid.settings.n_cells) for a, b in (extent[:2], extent[2:])]
        axes.contour(*middles, tall.astype(np.float64), levels=[0.5], colors=TRUE, linewidths=0.6)
    return image


def _crop(axes: Any, grid: CostGrid, truth: Truth) -> None:
    """Show only where something stands: the grid may reach far beyond the walls."""
    standing = np.argwhere((truth.height_m > 0) | truth.grass)
    if len(standing) == 0:
        return
    low, high = grid.centre_m([standing.min(axis=0), standing.max(axis=0)])
    axes.set_xlim(low[0] - 3, high[0] + 3)
    axes.set_ylim(low[1] - 3, high[1] + 3)


def _ways(axes: Any, yard: Yard, drive: Drive, time_s: float) -> None:
    planned = [each for each in drive.run.plans if each.time_s <= time_s + 1e-6]
    if planned and len(planned[-1].xy_m):
        axes.plot(*planned[-1].xy_m.T, color=PLANNED, linewidth=1.6, linestyle="--", label="planned last")
    until = drive.run.trajectory.time_ns <= round(time_s * 1e9)
    axes.plot(*drive.run.trajectory.position_m[until, :2].T, color=DRIVEN, linewidth=1.8, label="driven")
    mark: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "black", "markersize": 9}
    axes.plot(*yard.start_m, marker="o", color=DRIVEN, label="start", **mark)
    axes.plot(*yard.goal_m, marker="*", color="#F0E442", label="goal", **(mark | {"markersize": 15}))
    axes.plot([], [], color=TRUE, linewidth=1.2, label="walls and trees, true outline")
