# SPDX-License-Identifier: Apache-2.0
"""A picture of a site, from the place its file names, or from above a corner."""

from pathlib import Path

import numpy as np

from hedgerow.arrays import Array
from hedgerow.physics.site import Site
from hedgerow.view.render import named_colours, render

_BIAS_M = 0.04  # five standard deviations of the roughest material: shadows begin above its noise


def draw_site(site: Site, path: str | Path, *, samples: int = 2, width_px: int = 960, height_px: int = 540) -> None:
    """Draw a site into a PNG or JPEG file; more samples per pixel look smoother.

    Raises:
        FileError: the file cannot be written.
    """
    eye, look_at, fov_deg = view_of(site)
    render(
        site.scene,
        path,
        eye,
        look_at,
        width_px=width_px,
        height_px=height_px,
        fov_deg=fov_deg,
        colours=named_colours(site.labels),
        samples=samples,
        bias_m=_BIAS_M,
    )


def view_of(site: Site) -> tuple[Array, Array, float]:
    """Return where the camera is and what it looks at, (3,) each, map frame [m], and its angle [deg]."""
    view = site.file.view
    if view is not None:
        return _above(site, view.eye_m), _above(site, view.look_at_m), view.fov_deg
    low_x, low_y, high_x, high_y = site.terrain.bounds_m
    size = max(high_x - low_x, high_y - low_y)
    middle = [(low_x + high_x) / 2, (low_y + high_y) / 2, 0.0]
    return _above(site, [low_x - 0.1 * size, low_y - 0.1 * size, 0.35 * size]), _above(site, middle), 60.0


def _above(site: Site, place: list[float]) -> Array:
    low_x, low_y, high_x, high_y = site.terrain.bounds_m
    x, y, z = place
    return np.array([x, y, z + float(site.terrain.height_m(np.clip(x, low_x, high_x), np.clip(y, low_y, high_y)))])
