# SPDX-License-Identifier: Apache-2.0
"""A picture of a scan: where one sweep points, and a closer look that shows in which order."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.sensor.sensor import Sensor

# Matplotlib's own annotations are only partial, and it must not be imported before it is needed.
Axes = Any
Dots = Any
_MAX_DOTS = 40_000


def draw_pattern(sensor: Sensor, path: str | Path) -> None:
    """Draw a sensor's scan into an image file.

    Above: one sweep, azimuth against elevation, coloured by time (a planar scanner: azimuth against time). Below: the
    first pulses in firing order; a scan that does not repeat shows its coverage after 1 s as well.

    Args:
        sensor: which, at its rate.
        path: image to write, for example "vlp-16.png".

    Raises:
        FileError: the file cannot be written.
    """
    figure = new_figure(12, 8)
    whole, close, extra = figure.subplot_mosaic([["whole", "whole"], ["close", "extra"]]).values()
    kind = sensor.config.pattern.kind
    if kind == "planar":
        dots = _draw_planar(sensor, whole, close, extra)
    else:
        dots = _draw_sweep(sensor, whole)
        _draw_order(sensor, close)
        if kind == "rosette":
            _draw_coverage(sensor, extra)
        else:
            _draw_rings(sensor, extra)
    figure.colorbar(dots, ax=whole, label="time in sweep [ms]", pad=0.01)
    config = sensor.config
    rings = "1 ring" if sensor.n_rings == 1 else f"{sensor.n_rings} rings"
    rate = f"{sensor.rate_hz:g} Hz, {sensor.pulses_per_sweep:,} pulses per sweep, {rings}"
    figure.suptitle(f"{config.maker} {sensor.name}: {rate}")
    save_figure(figure, path)


def _angles_deg(sensor: Sensor, rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y, z = sensor.pattern.direction[rows].astype(np.float64).T
    return np.rad2deg(np.arctan2(y, x)), np.rad2deg(np.arcsin(z))


def _draw_sweep(sensor: Sensor, axes: Axes) -> Dots:
    rows = sensor.pattern.rows(0)
    azimuth, elevation = _angles_deg(sensor, rows)
    time_ms = sensor.pattern.time_ns[rows] * 1e-6
    # Each ring is thinned by itself: one pulse in so many of the whole sweep could miss a ring altogether.
    skip = -(-len(azimuth) // _MAX_DOTS)
    shown = _rank_in_ring(sensor.pattern.ring[rows]) % skip == 0
    dots = axes.scatter(azimuth[shown], elevation[shown], c=time_ms[shown], s=1.2, cmap="viridis", linewidths=0)
    thinned = "" if skip == 1 else f" (one pulse in {skip} of each ring drawn)"
    axes.set_title(f"one sweep, {sensor.sweep_s * 1e3:.4g} ms{thinned}", fontsize=10)
    _label(axes, (-180, 180))
    return dots


def _rank_in_ring(ring: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return how many pulses of the same ring came before each pulse, (P,)."""
    by_ring = np.argsort(ring, kind="stable")
    counts = np.bincount(ring)
    rank = np.empty(len(ring), dtype=np.int64)
    rank[by_ring] = np.arange(len(ring)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def _draw_order(sensor: Sensor, axes: Axes) -> None:
    """Join the pulses of the first few slots in the order in which they are fired."""
    kind = sensor.config.pattern.kind
    count = min(sensor.pulses_per_sweep, 4 * sensor.n_rings if kind == "spinning" else 80)
    azimuth, elevation = _angles_deg(sensor, slice(0, count))
    azimuth = np.rad2deg(np.unwrap(np.deg2rad(azimuth)))
    time_us = sensor.pattern.time_ns[:count] * 1e-3
    axes.plot(azimuth, elevation, color="0.75", linewidth=0.5, zorder=1)
    dots = axes.scatter(azimuth, elevation, c=time_us, s=9, cmap="plasma", zorder=2, linewidths=0)
    axes.figure.colorbar(dots, ax=axes, label="time [us]")
    axes.annotate("first", (azimuth[0], elevation[0]), textcoords="offset points", xytext=(5, 5), fontsize=8)
    axes.set_title(f"the first {count} pulses, joined in firing order", fontsize=10)
    _label(axes, None)


def _draw_rings(sensor: Sensor, axes: Axes) -> None:
    """Show ring numbers against elevation, and when each laser fires in its slot."""
    ring, first = np.unique(sensor.pattern.ring, return_index=True)
    elevation = _angles_deg(sensor, slice(None))[1][first]
    start_ns = sensor.pattern.time_ns[first]
    latest_us = max(1.0, float(start_ns.max()) * 1e-3)
    dots = axes.scatter(ring, elevation, c=start_ns * 1e-3, cmap="plasma", s=12, vmin=0, vmax=latest_us)
    axes.figure.colorbar(dots, ax=axes, label="first fired [us]")
    axes.set_xlabel("ring")
    axes.set_ylabel("elevation [deg]")
    axes.set_title("ring numbers", fontsize=10)
    axes.grid(linewidth=0.3)


def _draw_coverage(sensor: Sensor, axes: Axes) -> None:
    count = min(len(sensor.pattern), round(sensor.pulses_per_sweep / sensor.sweep_s))
    azimuth, elevation = _angles_deg(sensor, slice(0, count))
    axes.scatter(azimuth, elevation, s=0.25, color="0.2", linewidths=0)
    axes.set_title(f"coverage after 1 s ({count:,} pulses)", fontsize=10)
    _label(axes, (-180, 180))


def _draw_planar(sensor: Sensor, whole: Axes, close: Axes, extra: Axes) -> Dots:
    azimuth = _angles_deg(sensor, sensor.pattern.rows(0))[0]
    time_ms = sensor.pattern.time_ns * 1e-6
    dots = whole.scatter(azimuth, time_ms, c=time_ms, s=6, cmap="viridis")
    whole.set_title(f"one sweep, {sensor.sweep_s * 1e3:.4g} ms", fontsize=10)
    near = np.argsort(np.abs(azimuth - azimuth[0]))[:20]
    close.scatter(azimuth[near], time_ms[near], c=time_ms[near], s=20, cmap="viridis")
    close.set_title("the first few degrees", fontsize=10)
    for axes in (whole, close):
        axes.set_xlabel("azimuth [deg], counter-clockwise from straight ahead")
        axes.set_ylabel("time [ms]")
        axes.grid(linewidth=0.3)
    direction = sensor.pattern.direction
    extra.scatter(direction[:, 0], direction[:, 1], c=time_ms, s=6, cmap="viridis")
    extra.set_aspect("equal")
    extra.set_xlabel("x, straight ahead")
    extra.set_ylabel("y, left")
    extra.set_title("directions from above", fontsize=10)
    return dots


def _label(axes: Axes, azimuth_span: tuple[float, float] | None) -> None:
    axes.set_xlabel("azimuth [deg], counter-clockwise from straight ahead")
    axes.set_ylabel("elevation [deg]")
    axes.grid(linewidth=0.3)
    if azimuth_span:
        axes.set_xlim(*azimuth_span)
        axes.set_xticks(range(-180, 181, 45))
