# SPDX-License-Identifier: Apache-2.0
"""Range and intensity images, one below the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.metrics.novel_view import INTENSITY_PEAK, PEAK_M, View
from hedgerow.metrics.range_image import Pixels


def draw_images(path: Path, views: Mapping[str, View], pixels: Pixels, what: str) -> None:
    """Draw the images of several views, each with its name.

    Args:
        path: of the picture.
        views: a row for each beam.
        pixels: where each goes in the image.
        what: "ranges" or "intensities".
    """
    from matplotlib import colormaps

    figure = new_figure(13, 0.7 + 1.55 * len(views))
    panels: Any = figure.subplots(len(views), 1, squeeze=False)[:, 0]
    colours = {
        "ranges": colormaps["turbo"].with_extremes(bad="white"),
        "intensities": colormaps["gray"].with_extremes(bad="#20304a"),
    }[what]
    shown: Any = None
    for axes, (name, view) in zip(panels, views.items(), strict=True):
        values = view.range_m if what == "ranges" else view.intensity
        image = np.full(pixels.shape, np.nan)
        if values is not None:
            kept = view.range_m[pixels.beam] < PEAK_M
            image.ravel()[pixels.place[kept]] = values[pixels.beam][kept]
        # Near things have most of the structure: ranges by their root, as eyes would spread them.
        limit = PEAK_M**0.5 if what == "ranges" else 0.7 * INTENSITY_PEAK
        shown = axes.imshow(
            np.sqrt(image) if what == "ranges" else image,
            cmap=colours,
            vmin=0,
            vmax=limit,
            aspect="auto",
            interpolation="nearest",
        )
        axes.set_title(name, fontsize=9, loc="left", pad=2)
        axes.set(xticks=[], yticks=[])
    bar = figure.colorbar(shown, ax=list(panels), fraction=0.012, pad=0.005)
    if what == "ranges":
        ticks = np.array([1, 5, 10, 20, 40, 80])
        bar.set_ticks(np.sqrt(ticks), labels=[str(each) for each in ticks])
    bar.set_label("range [m]; white: none" if what == "ranges" else "intensity; blue: none", fontsize=8)
    save_figure(figure, path)
