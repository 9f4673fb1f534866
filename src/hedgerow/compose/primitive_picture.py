# SPDX-License-Identifier: Apache-2.0
"""A picture of a primitive: its elements from the front, from the side and from above."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.scenes.primitive import PrimitiveFacts
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Triangles

_VIEWS = (("front", (1, 2)), ("side", (0, 2)), ("above", (0, 1)))
_MOST = 5000
"""Elements drawn; more are thinned out."""


def draw_primitive(path: str | Path, asset: Asset, facts: PrimitiveFacts) -> None:
    """Draw the one-sigma ellipses of Gaussians and the outlines of triangles, darker where they stop more."""
    figure = new_figure(10.5, 4.2)
    for column, (title, axes) in enumerate(_VIEWS):
        plot: Any = figure.add_subplot(1, 3, column + 1)
        for part in asset.parts:
            chosen = part[:: max(1, len(part) // _MOST)]
            if isinstance(chosen, Gaussians):
                _draw_gaussians(plot, chosen, axes)
            else:
                _draw_triangles(plot, chosen, axes)
        half = facts.extents_m[list(axes)] / 2
        low = [-half[0], 0.0 if axes[1] == 2 else -half[1]]
        wide, high = 2 * half[0], facts.height_m if axes[1] == 2 else 2 * half[1]
        plot.add_patch(_rectangle(low, wide, high))
        plot.set_title(title, fontsize=10)
        plot.set_xlabel(f"{'xyz'[axes[0]]} [m]")
        plot.set_ylabel(f"{'xyz'[axes[1]]} [m]")
        plot.autoscale_view()
        plot.set_aspect("equal")
    figure.suptitle(f"{asset.name}: {asset.n_elements:,} elements", fontsize=11)
    save_figure(figure, path)


def _rectangle(low: list[float], wide: float, high: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((low[0], low[1]), wide, high, fill=False, linestyle="--", linewidth=0.8, edgecolor="#888888")


def _draw_gaussians(plot: Any, table: Gaussians, axes: tuple[int, int]) -> None:
    from matplotlib.collections import EllipseCollection

    flat: Array = table.covariance_m2[:, axes, :][:, :, axes]
    value, vector = np.linalg.eigh(flat)
    size = 2 * np.sqrt(np.maximum(value, 0))
    angle = np.degrees(np.arctan2(vector[:, 1, 1], vector[:, 0, 1]))
    ellipses = EllipseCollection(
        size[:, 1],
        size[:, 0],
        angle,
        units="xy",
        offsets=table.mean_m[:, axes],
        offset_transform=plot.transData,
        facecolors=[(0.13, 0.45, 0.2, each) for each in 0.1 + 0.5 * _stopping(table)],
        edgecolors="none",
    )
    plot.add_collection(ellipses)
    plot.update_datalim(table.mean_m[:, axes])


def _draw_triangles(plot: Any, table: Triangles, axes: tuple[int, int]) -> None:
    from matplotlib.collections import PolyCollection

    flat = table.corners_m[:, :, axes]
    alpha = 0.1 + 0.5 * (1 - table.permeability.astype(np.float64))
    colours = [(0.45, 0.33, 0.2, each) for each in alpha]
    plot.add_collection(PolyCollection(list(flat), facecolors=colours, edgecolors="none"))
    plot.update_datalim(flat.reshape(-1, 2))


def _stopping(table: Gaussians) -> NDArray[np.float64]:
    """Chance that a beam through the middle is stopped, by the table's own law."""
    stop = table.stop.astype(np.float64)
    if table.law == "permeability":
        return 1 - stop
    sigma = np.cbrt(np.maximum(np.linalg.det(table.covariance_m2), 0)) ** 0.5
    return 1 - np.exp(-stop * (sigma if table.law == "extinction" else 1.0))
