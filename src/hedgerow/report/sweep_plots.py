# SPDX-License-Identifier: Apache-2.0
"""One sweep, real beside simulated: from above, as the sensor sees it, and as a camera behind it would."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure
from hedgerow.log import Log
from hedgerow.report.plots import NO_RETURN_COLOUR, WIDE_IN, add_bar, columns_for
from hedgerow.view.sweep import range_image

_SHOWN = 98  # percentile of the real returns at which axes and colours end
_GAP_DEG = 30.0  # a wider gap between beams is cut out of range images

BEHIND_M, ABOVE_M, DOWN = 11.0, 5.0, 0.26
"""Where the camera is, seen from the sensor, and the tangent of how far it looks down."""
_WIDTH, _SHAPE = 0.75, 0.5  # half width of the picture at 1 m; height over width
_SKY = "#0e131a"
_NEAR_M, _FAR_M = 3.0, 70.0
_MOVED_M = 0.05  # less, and the sensor counts as standing: the camera looks along x then


def sweeps_from_above(sweeps: Mapping[str, Log], width_in: float = WIDE_IN) -> Any:
    """Draw sweeps from above, coloured by height (Browning 2012 Fig. 15).

    Args:
        sweeps: by name; the first is the real one and sets the area and the colours.
        width_in: width of the figure.

    Returns:
        A matplotlib figure.
    """
    real = next(iter(sweeps.values()))
    points, sensor = first_points(real), real.beams.origin_m.mean(axis=0)
    middle, half_m = _area_m(points[:, :2] - sensor[:2])
    low, high = np.percentile(points[:, 2], [1, 99]) if len(points) else (0.0, 1.0)
    n_columns = columns_for(len(sweeps), width_in)
    n_rows = -(-len(sweeps) // n_columns)
    side = (width_in - (1.0 if width_in >= WIDE_IN else 0.5)) / n_columns
    figure = new_figure(width_in, side * n_rows + (0.4 if width_in >= WIDE_IN else 1.2))
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    size = float(np.clip(4e4 / max(len(points), 1), 0.5, 12))
    dots: Any = None
    for axes, (name, log) in zip(grid.flat, sweeps.items(), strict=False):
        points = first_points(log)
        points = points[np.argsort(points[:, 2])]  # what is higher covers what is lower, as from above
        x, y, z = (points - [*sensor[:2], 0.0]).T
        dots = axes.scatter(x, y, c=z, s=size, vmin=low, vmax=high, cmap="viridis", linewidths=0)
        axes.plot(0, 0, marker="+", color="red", markersize=8)
        axes.set(
            xlim=middle[0] + np.array([-half_m, half_m]), ylim=middle[1] + np.array([-half_m, half_m]), aspect="equal"
        )
        axes.set_title(name, fontsize="medium")
    for axes in grid.flat[len(sweeps) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("x from the sensor [m]")
    for axes in grid[:, 0]:
        axes.set_ylabel("y [m]")
    add_bar(figure, dots, grid, "height [m]", width_in)
    return figure


def range_images(sweeps: Mapping[str, Log], width_in: float = WIDE_IN) -> Any | None:
    """Draw sweeps as range images, one below the other.

    Args:
        sweeps: by name; the first is the real one and sets the colours.
        width_in: width of the figure.

    Returns:
        A matplotlib figure, or None if the sensor has a single ring.
    """
    from matplotlib import colormaps

    real = next(iter(sweeps.values()))
    if len(np.unique(real.beams.ring)) < 2:
        return None
    near_m, far_m = _colour_span_m(real)
    view = _View.of(real)
    figure = new_figure(width_in, 1.35 * len(sweeps) + (0.5 if width_in >= WIDE_IN else 1.1))
    grid = figure.subplots(len(sweeps), 1, sharex=True, squeeze=False)[:, 0]
    shown: Any = None
    for axes, (name, log) in zip(grid, sweeps.items(), strict=True):
        image, lowest_first = range_image(log, view.step_deg)
        shown = axes.imshow(
            np.ma.masked_invalid(image[view.rings, view.columns]), aspect="auto", vmin=near_m, vmax=far_m,
            cmap=colormaps["magma_r"].with_extremes(bad=NO_RETURN_COLOUR), origin="lower" if lowest_first else "upper",
            extent=(*view.azimuth_deg, -0.5, 0.5), interpolation="nearest",
        )  # fmt: skip
        axes.set_title(name, fontsize="medium", loc="left")
        axes.set_yticks([])
    grid[-1].set_xlabel("azimuth [deg]; grey: no return")
    add_bar(figure, shown, list(grid), "range [m]", width_in)
    return figure


def first_points(log: Log) -> NDArray[np.float64]:
    """Return the (M, 3) first returns in map coordinates [m]."""
    hit = np.isfinite(log.returns.first_m)
    along = log.returns.first_m[hit].astype(np.float64)[:, None] * log.beams.direction[hit]
    return log.beams.origin_m[hit] + along


def _area_m(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Middle and half side of the square that holds nearly all (M, 2) places."""
    if len(places) == 0:
        return np.zeros(2), 10.0
    low, high = np.percentile(places, [100 - _SHOWN, _SHOWN], axis=0)
    return (low + high) / 2, float(max(1.0, (high - low).max() * 0.55))


def _colour_span_m(real: Log) -> tuple[float, float]:
    finite = real.returns.first_m[np.isfinite(real.returns.first_m)]
    if len(finite) == 0:
        return 0.0, 1.0
    near_m, far_m = (float(each) for each in np.percentile(finite, [100 - _SHOWN, _SHOWN]))
    return (near_m, far_m) if near_m > far_m / 2 else (0.0, far_m)


@dataclass(frozen=True, slots=True)
class _View:
    """The part of a range image in which a sensor has beams."""

    step_deg: float
    rings: slice
    columns: slice

    @classmethod
    def of(cls, log: Log) -> Self:
        azimuth = np.sort(np.degrees(np.arctan2(log.beams.direction[:, 1], log.beams.direction[:, 0])))
        rings = slice(int(log.beams.ring.min()), int(log.beams.ring.max()) + 1)
        if azimuth[0] + 360 - azimuth[-1] < _GAP_DEG:  # the beams go round
            return cls(0.2, rings, slice(0, 1800))
        step = float(np.clip((azimuth[-1] - azimuth[0]) / 500, 0.02, 0.2))
        first, last = (180 - azimuth[-1]) / step, (180 - azimuth[0]) / step
        return cls(step, rings, slice(max(int(first), 0), int(last) + 1))

    @property
    def azimuth_deg(self) -> tuple[float, float]:
        """Azimuths of the left and the right end."""
        return 180 - self.columns.start * self.step_deg, 180 - self.columns.stop * self.step_deg


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
    travel_m = (origin[-1] - origin[0])[:2]
    moved_m = float(np.hypot(*travel_m))
    forward = travel_m / moved_m if moved_m > _MOVED_M else np.array([1.0, 0.0])
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
