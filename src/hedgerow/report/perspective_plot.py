# SPDX-License-Identifier: Apache-2.0
"""One sweep, real beside simulated, as a camera behind the sensor would see its points."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.figure import new_figure
from hedgerow.log import Log
from hedgerow.report.style import WIDE_IN, columns_for
from hedgerow.report.sweep_plot import first_points

BEHIND_M, ABOVE_M, DOWN = 11.0, 5.0, 0.26
"""Where the camera is, seen from the sensor, and the tangent of how far it looks down."""
_WIDTH, _SHAPE = 0.75, 0.5  # half width of the picture at 1 m; height over width
_SKY = "#0e131a"
_NEAR_M, _FAR_M = 3.0, 70.0
_MOVED_M = 0.05  # less, and the sensor counts as standing: the camera looks along x then


def sweeps_in_perspective(sweeps: Mapping[str, Log], width_in: float = WIDE_IN) -> Any:
    """Draw sweeps in perspective, coloured by height, near points large and over far ones.

    Args:
        sweeps: by name; the first is the real one and sets the camera and the colours.
        width_in: width of the figure.

    Returns:
        A matplotlib figure.
    """
    real = next(iter(sweeps.values()))
    height = first_points(real)[:, 2]
    low, high = np.percentile(height, [1, 99]) if len(height) else (0.0, 1.0)
    low -= 0.35 * (high - low)  # the darkest colours would not show before the sky
    n_columns = columns_for(len(sweeps), width_in)
    n_rows = -(-len(sweeps) // n_columns)
    panel_in = width_in / n_columns
    figure = new_figure(width_in, n_rows * (panel_in * _SHAPE + 0.3))
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes in grid.flat[len(sweeps) :]:
        axes.set_visible(False)
    for axes, (name, log) in zip(grid.flat, sweeps.items(), strict=False):
        across, up, depth_m, height_m = project(first_points(log), real)
        size = (max(panel_in, 3.0) * np.maximum(2.4 / depth_m, 0.12)) ** 2
        axes.scatter(across, up, c=height_m, s=size, vmin=low, vmax=high, cmap="viridis", linewidths=0)
        axes.set(xlim=(-_WIDTH, _WIDTH), ylim=(-_WIDTH * _SHAPE, _WIDTH * _SHAPE), facecolor=_SKY, xticks=[], yticks=[])
        axes.set_title(name, fontsize="medium")
    return figure


def project(points: NDArray[np.float64], seen_from: Log) -> tuple[NDArray[np.float64], ...]:
    """Return across, up (at 1 m), depth and height [m] of the (N, 3) points before the camera, the farthest first."""
    origin = seen_from.beams.origin_m
    way = (origin[-1] - origin[0])[:2]
    moved_m = float(np.hypot(*way))
    forward = way / moved_m if moved_m > _MOVED_M else np.array([1.0, 0.0])
    left = np.array([-forward[1], forward[0]])
    from_camera = points - origin.mean(axis=0)
    along_m = from_camera[:, :2] @ forward + BEHIND_M
    up_m = from_camera[:, 2] - ABOVE_M
    # The camera looks down a little: turned about its axis to the left.
    turn = np.hypot(1.0, DOWN)
    depth_m, lift_m = (along_m - DOWN * up_m) / turn, (up_m + DOWN * along_m) / turn
    inside = (depth_m > _NEAR_M) & (depth_m < _FAR_M)
    order = np.flatnonzero(inside)[np.argsort(-depth_m[inside])]
    across_m = -(from_camera[order, :2] @ left)
    return across_m / depth_m[order], lift_m[order] / depth_m[order], depth_m[order], points[order, 2]
