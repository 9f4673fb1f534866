# SPDX-License-Identifier: Apache-2.0
"""Clouds of millions of points in perspective, shaded so that what stands before something else stands out.

Points are discs of a size in metres, nearer ones cover farther ones. Shade follows from depth alone: a pixel is darker
the farther it lies behind its neighbours, so stems and crowns have outlines (eye-dome lighting).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.view.render import Camera

NIGHT = (0.035, 0.047, 0.066)
"""Colour behind the points."""
_FINER = 2  # pixels are drawn so many times finer each way, then averaged
_CHUNK = 100_000
_LARGEST_PX = 4
_OUTLINE = 9.0  # how dark an outline is, for a step of one octave of depth
_RINGS_PX = (1, 3)  # neighbours at these distances


@dataclass(frozen=True, slots=True)
class Look:
    """How points are drawn."""

    point_m: float = 0.05
    """Diameter of a point."""
    haze_m: float = 150.0
    """Distance over which all but 1/e of the colour fades into the background."""
    background: tuple[float, float, float] = NIGHT
    near_m: float = 1.0
    """Nearer points are not drawn."""


def draw_cloud(points_m: ArrayLike, colour: ArrayLike, camera: Camera, look: Look | None = None) -> NDArray[np.uint8]:
    """Draw points.

    Args:
        points_m: (N, 3), map frame.
        colour: (N, 3) red, green and blue, 0 to 1.
        camera: where from, and how large the picture is.
        look: how.

    Returns:
        (height, width, 3) picture.

    Raises:
        InputError: arrays of other shapes.
    """
    look = look or Look()
    points = arrays.as_floats("points_m", points_m, ("N", 3))
    rgb = arrays.as_floats("colour", colour, ("N", 3))
    if len(rgb) != len(points):
        raise InputError("colour", f"has {len(rgb)} rows, expected {len(points)}")
    shape = _FINER * camera.height_px, _FINER * camera.width_px
    depth_m, owner = _splat(points, camera, look, shape)
    seen = owner >= 0
    picture = np.tile(np.array(look.background), (*shape, 1))
    haze = np.exp(-depth_m[seen] / look.haze_m)[:, None]
    lit = rgb[owner[seen]] * _outlines(depth_m)[seen][:, None]
    picture[seen] = haze * lit + (1 - haze) * picture[seen]
    fine = picture.reshape(camera.height_px, _FINER, camera.width_px, _FINER, 3).mean(axis=(1, 3))
    return np.rint(255 * np.clip(fine, 0, 1)).astype(np.uint8)


def _splat(points_m: Array, camera: Camera, look: Look, shape: tuple[int, int]) -> tuple[Array, NDArray[np.int64]]:
    """Return depth [m] and number of the nearest point of each pixel; inf and -1 where there is none."""
    column, row, depth_m = project(points_m, camera)
    inside = (depth_m > look.near_m) & (column > 0) & (column < camera.width_px) & (row > 0) & (row < camera.height_px)
    order = np.flatnonzero(inside)
    order = order[np.argsort(-depth_m[order], kind="stable")]
    depth = np.full(shape[0] * shape[1], np.inf)
    owner = np.full(shape[0] * shape[1], -1, dtype=np.int64)
    focal_px = _FINER * camera.width_px / (2 * np.tan(np.radians(camera.fov_deg) / 2))
    for begin in range(0, len(order), _CHUNK):
        mine = order[begin : begin + _CHUNK]
        radius = np.clip(look.point_m / 2 * focal_px / depth_m[mine], 0.6, _LARGEST_PX)
        reach = int(np.ceil(radius.max()))
        dx, dy = (each.ravel() for each in np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1)))
        x = (_FINER * column[mine]).astype(np.int64)[:, None] + dx
        y = (_FINER * row[mine]).astype(np.int64)[:, None] + dy
        drawn = (np.hypot(dx, dy) <= radius[:, None]) & (x >= 0) & (x < shape[1]) & (y >= 0) & (y < shape[0])
        pixel = (y * shape[1] + x)[drawn]
        # Far to near: of points that share a pixel the last one, the nearest, stays.
        which = np.repeat(mine, drawn.sum(axis=1))
        depth[pixel], owner[pixel] = depth_m[which], which
    return depth.reshape(shape), owner.reshape(shape)


def project(points_m: Array, camera: Camera) -> tuple[Array, Array, Array]:
    """Return column and row in pixels from the upper left corner, and depth along the view [m], of (N, 3) points."""
    ahead = (camera.look_at_m - camera.eye_m) / np.linalg.norm(camera.look_at_m - camera.eye_m)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    down = np.cross(ahead, right)
    away = points_m - camera.eye_m
    depth_m = away @ ahead
    focal_px = camera.width_px / (2 * np.tan(np.radians(camera.fov_deg) / 2))
    scale = focal_px / np.where(depth_m > 0, depth_m, np.inf)
    return camera.width_px / 2 + scale * (away @ right), camera.height_px / 2 + scale * (away @ down), depth_m


def _outlines(depth_m: Array) -> Array:
    """Return how much light is left at each pixel: less where neighbours are nearer."""
    octave = np.log2(np.where(np.isfinite(depth_m), depth_m, 1e6))
    behind = np.zeros_like(octave)
    for step in _RINGS_PX:
        for dy, dx in ((-step, 0), (step, 0), (0, -step), (0, step)):
            there = np.roll(octave, (dy, dx), axis=(0, 1))
            behind += np.clip(octave - there, 0, 0.5)
    return np.exp(-_OUTLINE * behind / (4 * len(_RINGS_PX)))


def ramp(value: Array, stops: ArrayLike) -> Array:
    """Return (N, 3) colours of values from 0 to 1, between (K, 3) evenly spaced stops."""
    colours = np.asarray(stops, dtype=np.float64)
    at = np.linspace(0, 1, len(colours))
    return np.stack([np.interp(value, at, colours[:, k]) for k in range(3)], axis=1)
