# SPDX-License-Identifier: Apache-2.0
"""A picture of one sweep: from above, and as the sensor sees it (range by azimuth and ring)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.errors import InputError
from hedgerow.log import Log

Axes = Any  # matplotlib's own annotations are only partial


def draw_sweep(log: Log, path: str | Path, title: str = "", half_m: float = 28.0) -> None:
    """Draw a sweep into an image file: top view coloured by height, range image, and which pulses did not return.

    Args:
        log: one sweep.
        path: image to write, for example "sweep.png".
        title: written above.
        half_m: the top view reaches this far to each side of the sensor [m].

    Raises:
        InputError: the log is empty.
        FileError: the file cannot be written.
    """
    if len(log) == 0:
        raise InputError("log", "has no beams; there is nothing to draw")
    figure = new_figure(13, 9)
    above, image = figure.subplot_mosaic([["above"], ["image"]], height_ratios=[3.4, 1]).values()
    _draw_from_above(figure, above, log, half_m)
    _draw_range_image(figure, image, log)
    figure.suptitle(title or f"sweep {log.beams.sweep[0]}, {log.sensor or 'unknown sensor'}")
    save_figure(figure, path)


def _draw_from_above(figure: Any, axes: Axes, log: Log, half_m: float) -> None:
    points, centre = log.points(), log.beams.origin_m.mean(axis=0)
    points = points[(np.abs(points[:, :2] - centre[:2]) < half_m * np.array([1.7, 1.0])).all(axis=1)]
    points = points[np.argsort(points[:, 2])]  # what is higher covers what is lower, as from above
    low, high = np.percentile(points[:, 2], [1, 99]) if len(points) else (0, 1)
    dots = axes.scatter(*points[:, :2].T, c=points[:, 2], s=0.8, cmap="viridis", vmin=low, vmax=high, linewidths=0)
    axes.plot(*centre[:2], marker="+", color="red", markersize=10, label="sensor")
    axes.set(xlim=centre[0] + np.array([-1.7, 1.7]) * half_m, ylim=centre[1] + np.array([-1, 1]) * half_m)
    axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title="from above")
    axes.legend(loc="upper right")
    figure.colorbar(dots, ax=axes, label="height z [m]", pad=0.01)


def _draw_range_image(figure: Any, axes: Axes, log: Log) -> None:
    image, lowest_first = range_image(log)
    cmap = _with_no_return_colour()
    shown = axes.imshow(
        np.ma.masked_invalid(image), aspect="auto", cmap=cmap, vmin=0, vmax=min(60.0, _reach(image)),
        extent=(180, -180, -0.5, len(image) - 0.5), origin="lower", interpolation="nearest",
    )  # fmt: skip
    axes.set(xlabel="azimuth [deg], left is left of x", ylabel="ring" if lowest_first else "ring, top is 0")
    axes.set_title("range image; grey: no return")
    axes.set_xticks(np.arange(180, -181, -45))
    if not lowest_first:
        axes.invert_yaxis()
    figure.colorbar(shown, ax=axes, label="range [m]", pad=0.01)


def range_image(log: Log, step_deg: float = 0.2) -> tuple[NDArray[np.float32], bool]:
    """Return the first ranges of a sweep as an image.

    Args:
        log: one sweep.
        step_deg: width of a pixel; each takes the pulse of its ring that points nearest to its middle.

    Returns:
        (rings, pixels) ranges [m], inf for no return, from azimuth 180 deg down to -180; and whether ring 0 points
        lowest.
    """
    direction = log.beams.direction.astype(np.float64)
    azimuth = np.degrees(np.arctan2(direction[:, 1], direction[:, 0]))
    middles = 180 - (np.arange(round(360 / step_deg), dtype=np.float64) + 0.5) * step_deg
    rings = np.unique(log.beams.ring)
    image = np.full((int(rings[-1]) + 1, len(middles)), np.inf, dtype=np.float32)
    for ring in rings:
        rows = np.flatnonzero(log.beams.ring == ring)
        rows = rows[np.argsort(azimuth[rows])]
        image[ring] = log.returns.first_m[rows[_nearest_on_circle(azimuth[rows], middles)]]
    height = [direction[log.beams.ring == ring, 2].mean() for ring in (rings[0], rings[-1])]
    return image, bool(height[0] <= height[1])


def _nearest_on_circle(ascending_deg: NDArray[np.float64], wanted_deg: NDArray[np.float64]) -> NDArray[np.intp]:
    around = np.concatenate([ascending_deg[-1:] - 360, ascending_deg, ascending_deg[:1] + 360])
    right = np.clip(np.searchsorted(around, wanted_deg), 1, len(around) - 1)
    left_is_nearer = wanted_deg - around[right - 1] < around[right] - wanted_deg
    return (right - left_is_nearer - 1) % len(ascending_deg)


def _reach(image: NDArray[np.float32]) -> float:
    finite = image[np.isfinite(image)]
    return float(finite.max()) if finite.size else 1.0


def _with_no_return_colour() -> Any:
    from matplotlib import colormaps

    return colormaps["magma_r"].with_extremes(bad="0.75")
