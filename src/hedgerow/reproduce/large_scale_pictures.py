# SPDX-License-Identifier: Apache-2.0
"""The clouds of whole passes from above, coloured by height (Browning 2012 Fig. 21), and a stretch of them close up.

Logs are read sweep by sweep. From above a pixel shows the highest point in it, lit from the north-west, so that slopes
and crowns stand out. Close up, clouds are drawn in perspective, seen from behind and above the way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.io.parquet.reader import LogFile
from hedgerow.report.sweep_plots import first_points
from hedgerow.reproduce.composition.cloud_picture import NIGHT, Look, draw_cloud
from hedgerow.view.render import Camera

PIXEL_M = 0.25
MARGIN_M = 45.0
"""How far around the way is drawn from above."""
NEAR_M = 45.0
"""How far around its place a close-up shows."""
MOST_POINTS = 3_000_000
"""Points of a close-up; of more, some are left out."""
WIDTH_IN = 12.0


@dataclass(frozen=True)
class Frame:
    """The ground that is drawn from above, and the colours of heights."""

    low_m: Array
    """(2,) least x and y."""
    shape: tuple[int, int]
    """Rows and columns."""
    heights_m: tuple[float, float]
    """Where colours begin and end."""

    @property
    def extent_m(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top."""
        rows, columns = self.shape
        x, y = self.low_m.tolist()
        return x, x + columns * PIXEL_M, y, y + rows * PIXEL_M


def draw_passes(folder: Path, passes: Mapping[str, Path]) -> tuple[Path, ...]:
    """Draw passes below one another, from above and close up, in the frame of the first.

    Args:
        folder: takes the picture.
        passes: Parquet logs by name; the first is the real one.
    """
    logs = {name: LogFile(path) for name, path in passes.items()}
    way_m = _way(next(iter(logs.values())))
    frame = _frame(next(iter(logs.values())), way_m)
    figure = new_figure(WIDTH_IN, _height_in(frame, len(logs)))
    grid = figure.add_gridspec(len(logs) + 1, len(logs), height_ratios=[*(frame.shape[0] for _ in logs), 480])
    shown: Any = None
    above: list[Any] = []
    for row, (name, log) in enumerate(logs.items()):
        axes = figure.add_subplot(grid[row, :])
        top_m, n_points = highest(log, frame)
        shown = _draw_from_above(axes, top_m, frame)
        axes.plot(*way_m[:, :2].T, color="white", linewidth=0.7, alpha=0.8)
        axes.set_title(f"{name}: {n_points:,} points", fontsize="medium", loc="left")
        axes.set_ylabel("y [m]")
        above.append(axes)
    above[-1].set_xlabel("x [m]; the line is the way of the sensor")
    figure.colorbar(shown, ax=above, label="height [m]", pad=0.01, fraction=0.03)
    camera = _camera(way_m)
    for column, (name, log) in enumerate(logs.items()):
        axes = figure.add_subplot(grid[len(logs), column])
        axes.imshow(close_up(log, camera, frame.heights_m), interpolation="antialiased")
        axes.set_title(f"{name}, close up", fontsize="medium", loc="left")
        axes.set_axis_off()
    path = folder / "large-scale.jpg"
    save_figure(figure, path, dpi=96)
    return (path,)


def highest(log: LogFile, frame: Frame) -> tuple[Array, int]:
    """Return the height of the highest point of each pixel, NaN where there is none, and how many points there are."""
    top_m = np.full(frame.shape[0] * frame.shape[1], -np.inf)
    n_points = 0
    for _, sweep in log.iter_sweeps():
        points_m = first_points(sweep)
        n_points += len(points_m)
        column, row = np.floor((points_m[:, :2] - frame.low_m) / PIXEL_M).astype(np.int64).T
        inside = (row >= 0) & (row < frame.shape[0]) & (column >= 0) & (column < frame.shape[1])
        np.maximum.at(top_m, row[inside] * frame.shape[1] + column[inside], points_m[inside, 2])
    return np.where(np.isfinite(top_m), top_m, np.nan).reshape(frame.shape), n_points


def close_up(log: LogFile, camera: Camera, heights_m: tuple[float, float]) -> NDArray[np.uint8]:
    """Return a picture of the points around what a camera looks at, of all sweeps together."""
    from matplotlib import colormaps

    clouds: list[Array] = [np.zeros((0, 3))]
    for _, sweep in log.iter_sweeps():
        if np.linalg.norm(sweep.beams.origin_m[0] - camera.look_at_m) > 2 * NEAR_M:
            continue
        points_m = first_points(sweep)
        clouds.append(points_m[np.linalg.norm(points_m[:, :2] - camera.look_at_m[:2], axis=1) < NEAR_M])
    points_m = np.concatenate(clouds)
    points_m = points_m[:: 1 + len(points_m) // MOST_POINTS]
    low_m, high_m = heights_m
    colour = colormaps["viridis"](np.clip((points_m[:, 2] - low_m) / (high_m - low_m), 0, 1))[:, :3]
    return draw_cloud(points_m, colour, camera, Look(point_m=0.05))


def _way(log: LogFile) -> Array:
    """Return the (S, 3) places from which the sweeps were fired, map frame."""
    return np.array([sweep.beams.origin_m[0] for _, sweep in log.iter_sweeps()])


def _frame(log: LogFile, way_m: Array) -> Frame:
    low_m, high_m = way_m[:, :2].min(axis=0) - MARGIN_M, way_m[:, :2].max(axis=0) + MARGIN_M
    columns, rows = np.ceil((high_m - low_m) / PIXEL_M).astype(int).tolist()
    some = log.sweeps[:: 1 + len(log.sweeps) // 8].tolist()
    heights_m = np.percentile(first_points(log.read(some))[:, 2], [1, 99.8])
    return Frame(low_m, (rows, columns), (float(heights_m[0]), float(heights_m[1])))


def _draw_from_above(axes: Any, top_m: Array, frame: Frame) -> Any:
    """Draw heights with their shade; return what the colour bar is made of."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LightSource, Normalize

    norm = Normalize(*frame.heights_m)
    known = np.isfinite(top_m)
    filled = np.where(known, top_m, frame.heights_m[0])
    rgb = colormaps["viridis"](norm(filled))[:, :, :3]
    light: Any = LightSource(315, 45)
    lit = light.shade_rgb(rgb, filled, vert_exag=0.5, dx=PIXEL_M, dy=PIXEL_M, blend_mode="soft")
    lit[~known] = NIGHT
    axes.imshow(lit, origin="lower", extent=frame.extent_m, interpolation="antialiased")
    return ScalarMappable(norm, "viridis")


def _camera(way_m: Array) -> Camera:
    """Look along the way from behind and above, two fifths of it behind."""
    here = way_m[int(0.4 * (len(way_m) - 1))]
    ahead = way_m[min(len(way_m) - 1, int(0.4 * (len(way_m) - 1)) + 1)] - way_m[max(0, int(0.4 * (len(way_m) - 1)) - 1)]
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-9)
    return Camera(here - 22 * ahead + np.array([0, 0, 9.0]), here + np.array([0, 0, -1.0]), 800, 480, 62.0)


def _height_in(frame: Frame, n: int) -> float:
    rows, columns = frame.shape
    return n * (WIDTH_IN * 0.9 * rows / columns + 0.45) + WIDTH_IN / n * 0.6 + 0.5
