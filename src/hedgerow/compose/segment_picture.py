# SPDX-License-Identifier: Apache-2.0
"""A segmentation from above: objects in colours of their own, and by class, over the ground."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import IMAGE_FORMATS, new_figure, save_figure
from hedgerow.compose.segmentation import RETURNS, Segmentation
from hedgerow.errors import FileError
from hedgerow.scenes.annotation import CLASSES
from hedgerow.scenes.point_source import element_places, log_points
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.io.source import LogSource
    from hedgerow.log import Log

COLOURS = {
    "low-shrub": "#d9e021",
    "small-shrub": "#a5cf30",
    "medium-shrub": "#6aa84f",
    "large-shrub": "#2e7d4f",
    "small-tree": "#35b3b3",
    "medium-tree": "#2b7bba",
    "large-tree": "#2c3e8f",
    "other": "#d1495b",
}
"""Of the classes."""
_GROUND, _NONE = (0.87, 0.84, 0.78), (0.72, 0.72, 0.66)
_MOST_PIXELS = 1600


def require_picture_suffix(path: Path) -> None:
    """Raise FileError if a picture could not be written under such a name."""
    if path.suffix.lower().removeprefix(".") not in IMAGE_FORMATS:
        raise FileError(f"{path}: unknown kind of picture; the suffix must be one of .{', .'.join(IMAGE_FORMATS)}")


def draw_segmentation(
    path: str | Path, segmentation: Segmentation, source: "Log | LogSource | LearnedWorld", title: str = ""
) -> None:
    """Write a picture of a segmentation from above.

    Raises:
        FileError: unknown suffix, or it cannot be written.
    """
    ground = segmentation.ground
    low = np.array([ground.x_m[0], ground.y_m[0]])
    size = np.array([ground.x_m[-1], ground.y_m[-1]]) - low
    pixel_m = max(float(size.max()) / _MOST_PIXELS, 0.1)
    owner, flat = _raster(segmentation, source, low, size, pixel_m)
    by_class, by_object = _colours(segmentation)
    extent = (low[0], low[0] + owner.shape[1] * pixel_m, low[1], low[1] + owner.shape[0] * pixel_m)
    tall = size[1] > size[0]
    share = float(size.min() / size.max())
    long_in, short_in = 13.0, max(13.0 * share, 3.0)
    figure = new_figure(*((2 * short_in + 2, long_in + 1) if tall else (long_in + 1, 2 * short_in + 2)))
    panels: Any = figure.subplots(1, 2) if tall else figure.subplots(2, 1)
    for panel, colours, name in zip(panels, (by_class, by_object), ("classes", "objects"), strict=True):
        panel.imshow(_painted(owner, flat, colours), origin="lower", extent=extent, interpolation="nearest")
        panel.set_title(f"{title}: {name}" if title else name, fontsize=10)
        panel.set_xlabel("x [m]")
        panel.set_ylabel("y [m]")
    _outlines(panels[0], segmentation)
    _legend(figure, segmentation)
    save_figure(figure, path)


def _places(
    segmentation: Segmentation, source: "Log | LogSource | LearnedWorld"
) -> "Iterator[tuple[Array, NDArray[np.uint32], NDArray[np.bool_]]]":
    """Give places with their object and whether they are ground, chunk by chunk."""
    if isinstance(source, LearnedWorld):
        for name, table in source.tables.items():
            yield element_places(table), segmentation.object[name], segmentation.is_ground[name]
        return
    done = 0
    for chunk in log_points(source):
        rows = slice(done, done + len(chunk.points_m))
        yield chunk.points_m, segmentation.object[RETURNS][rows], segmentation.is_ground[RETURNS][rows]
        done = rows.stop


def _raster(
    segmentation: Segmentation, source: "Log | LogSource | LearnedWorld", low: Array, size: Array, pixel_m: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return (h, w) the object of the highest point of each pixel, -1 without any, and whether it is ground."""
    n_x, n_y = (int(each / pixel_m) + 1 for each in size)
    top = np.full(n_x * n_y, -np.inf)
    owner = np.full(n_x * n_y, -1, dtype=np.int64)
    flat = np.zeros(n_x * n_y, dtype=np.bool_)
    for places_m, number, is_ground in _places(segmentation, source):
        i, j = (
            np.clip((places_m[:, k] - low[k]) / pixel_m, 0, n - 1).astype(np.int64) for k, n in ((0, n_x), (1, n_y))
        )
        pixel = j * n_x + i
        order = np.argsort(places_m[:, 2], kind="stable")
        rows = order[places_m[order, 2] > top[pixel[order]]]
        top[pixel[rows]] = places_m[rows, 2]  # the last one, the highest, stays
        owner[pixel[rows]], flat[pixel[rows]] = number[rows], is_ground[rows]
    return owner.reshape(n_y, n_x), flat.reshape(n_y, n_x)


def _colours(segmentation: Segmentation) -> tuple[Array, Array]:
    """Return the colours of objects by id, by class and each its own; row 0 is none."""
    from matplotlib.colors import hsv_to_rgb, to_rgb

    n = 1 + max((each.id for each in segmentation.objects), default=0)
    by_class, by_object = np.tile(_NONE, (n, 1)), np.tile(_NONE, (n, 1))
    for each in segmentation.objects:
        by_class[each.id] = to_rgb(COLOURS[each.class_name])
        # Steps of the golden section keep the hues of neighbours apart.
        by_object[each.id] = hsv_to_rgb((each.id * 0.61803 % 1, 0.75, 0.6 + 0.35 * (each.id * 0.3819 % 1)))
    return by_class, by_object


def _painted(owner: NDArray[np.int64], flat: NDArray[np.bool_], colours: Array) -> Array:
    picture = np.ones((*owner.shape, 3))
    picture[owner >= 0] = colours[owner[owner >= 0]]
    picture[flat] = _GROUND
    return picture


def _outlines(panel: Any, segmentation: Segmentation) -> None:
    for each in segmentation.objects:
        if each.polygon_m is not None:
            panel.plot(*np.concatenate([each.polygon_m, each.polygon_m[:1]]).T, color="black", linewidth=0.6)


def _legend(figure: Any, segmentation: Segmentation) -> None:
    from matplotlib.patches import Patch

    counts = segmentation.counts()
    shown = [Patch(color=COLOURS[name], label=f"{name} ({counts[name]})") for name in CLASSES if counts[name]]
    if shown:
        figure.legend(handles=shown, loc="outside upper center", ncols=4, fontsize=8)
