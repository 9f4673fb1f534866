# SPDX-License-Identifier: Apache-2.0
"""A shaded picture of any scene, made by firing a pinhole camera of beams at it: the way to look at a scene.

render(scene, "scene.png", eye_m=(-10, 0, 2), look_at_m=(0, 0, 1), colours=named_colours({"grass": 101}))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays
from hedgerow.arrays import Array
from hedgerow.errors import FileError, InputError
from hedgerow.io.atomic import atomic_file
from hedgerow.view.shading import Light, seen
from hedgerow.world import Scene
from hedgerow.world.scene import Progress

Colour = Sequence[float]
"""Red, green and blue, 0 to 1, as shown on a screen."""

NAMED_COLOURS: dict[str, Colour] = {
    "grass": (0.45, 0.54, 0.24),
    "shrub": (0.36, 0.47, 0.22),
    "leaves": (0.38, 0.50, 0.22),
    "needles": (0.23, 0.36, 0.23),
    "vegetation": (0.41, 0.55, 0.24),
    "trunk": (0.40, 0.31, 0.23),
    "branch": (0.38, 0.29, 0.21),
    "ground": (0.42, 0.37, 0.28),
    "terrain": (0.42, 0.37, 0.28),
    "road": (0.54, 0.51, 0.45),
    "trail": (0.54, 0.51, 0.45),
    "building": (0.72, 0.66, 0.58),
    "wall": (0.72, 0.66, 0.58),
    "fence": (0.55, 0.50, 0.45),
    "pole": (0.50, 0.52, 0.55),
    "car": (0.55, 0.16, 0.14),
    "rock": (0.48, 0.47, 0.45),
    "log": (0.42, 0.33, 0.25),
    "target": (0.70, 0.62, 0.50),
    "traffic-sign": (0.75, 0.20, 0.15),
}
"""Colours of labels by name; anything else is grey."""
_GREY: Colour = (0.6, 0.6, 0.6)
_GAMMA = 2.2
_CHUNK = 400_000
"""Pixels at once: bounds the memory to some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Camera:
    """A pinhole camera."""

    eye_m: Array
    look_at_m: Array
    width_px: int
    height_px: int
    fov_deg: float
    """Angle from the left to the right edge of the picture."""

    def directions(self, column: Array, row: Array) -> Array:
        """Return the (N, 3) unit directions of places in the picture, in pixels from its upper left corner."""
        ahead = (self.look_at_m - self.eye_m) / np.linalg.norm(self.look_at_m - self.eye_m)
        right = np.cross(ahead, [0.0, 0.0, 1.0])
        if np.linalg.norm(right) < 1e-9:  # straight up or down: the picture's right is east
            right = np.array([1.0, 0.0, 0.0])
        right /= np.linalg.norm(right)
        down = np.cross(ahead, right)
        pixel = 2 * np.tan(np.radians(self.fov_deg) / 2) / self.width_px
        u = (column - self.width_px / 2)[:, None] * pixel
        v = (row - self.height_px / 2)[:, None] * pixel
        way = ahead + u * right + v * down
        return way / np.linalg.norm(way, axis=1, keepdims=True)


def named_colours(labels: Mapping[str, int]) -> dict[int, Colour]:
    """Return the colour of each label number of a table from names to numbers."""
    return {number: NAMED_COLOURS.get(name, _GREY) for name, number in labels.items()}


def render(scene: Scene, path: str | Path, eye_m: ArrayLike, look_at_m: ArrayLike, **options: Any) -> None:
    """Draw a scene into an image file.

    Args:
        scene, eye_m, look_at_m, options: as in `picture`.
        path: ends in .png, .jpg or .jpeg.

    Raises:
        InputError: an argument is out of bounds.
        FileError: unknown suffix, or the system refuses to write.
    """
    _kind(path)  # a wrong name is refused before the work, not after it
    save_picture(picture(scene, eye_m, look_at_m, **options), path)


def save_picture(image: NDArray[np.uint8], path: str | Path) -> None:
    """Write a (height, width, 3) picture as PNG or JPEG, as the suffix says.

    Raises:
        FileError: unknown suffix, or the system refuses to write.
    """
    from PIL import Image

    kind = _kind(path)
    with atomic_file(path) as temporary:
        Image.fromarray(image).save(temporary, format=kind)


def picture(
    scene: Scene,
    eye_m: ArrayLike,
    look_at_m: ArrayLike,
    *,
    width_px: int = 960,
    height_px: int = 540,
    fov_deg: float = 60.0,
    colours: Mapping[int, Colour] | None = None,
    samples: int = 4,
    sun_azimuth_deg: float = 215.0,
    sun_elevation_deg: float = 45.0,
    shadows: bool = True,
    bias_m: float = 0.01,
    threads: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.uint8]:
    """Return a shaded picture of a scene.

    Args:
        scene: it is frozen by this.
        eye_m, look_at_m: (3,) where the camera is and what it looks at, map frame [m].
        width_px, height_px, fov_deg: size of the picture; the angle is that of its width, below 170.
        colours: red, green and blue by label number; what is not listed is grey.
        samples: beams per pixel, 1 to 64; more give smoother edges and shadows.
        sun_azimuth_deg, sun_elevation_deg: where the sun stands, counter-clockwise from x, and above the horizon.
        shadows: whether the sun and the sky can be hidden; takes nearly twice as long.
        bias_m: shadows begin this far in front of a surface; should be more than its range noise [m].
        threads: 0 for all; the picture does not depend on it.
        progress: called now and then with the number of samples done, of width times height times samples.

    Returns:
        (height_px, width_px, 3) uint8.

    Raises:
        InputError: an argument is out of bounds.
    """
    camera = _camera(eye_m, look_at_m, width_px, height_px, fov_deg)
    if not 1 <= samples <= 64:
        raise InputError("samples", f"expected 1 to 64, found {samples}")
    light = Light(_towards(sun_azimuth_deg, sun_elevation_deg), shadows, bias_m)
    table = _linear_table({} if colours is None else colours)
    n = width_px * height_px
    total = np.zeros((n, 3))
    rng = np.random.default_rng(0)
    for sample in range(samples):
        for begin in range(0, n, _CHUNK):
            pixel = np.arange(begin, min(begin + _CHUNK, n))
            row, column = np.divmod(pixel, width_px)
            way = camera.directions(column + rng.random(len(pixel)), row + rng.random(len(pixel)))
            total[pixel] += seen(scene, camera.eye_m, way, pixel, light, table, rng, seed=sample, threads=threads)
            if progress is not None:
                progress(sample * n + int(pixel[-1]) + 1)
    shown = _softened(total / samples) ** (1 / _GAMMA)
    return np.rint(255 * shown).astype(np.uint8).reshape(height_px, width_px, 3)


def _kind(path: str | Path) -> str:
    kind = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}.get(Path(path).suffix.lower())
    if kind is None:
        raise FileError(f"{path}: unknown kind of picture; the suffix must be .png, .jpg or .jpeg")
    return kind


def _camera(eye_m: ArrayLike, look_at_m: ArrayLike, width_px: int, height_px: int, fov_deg: float) -> Camera:
    eye, look_at = arrays.as_floats("eye_m", eye_m, (3,)), arrays.as_floats("look_at_m", look_at_m, (3,))
    arrays.require_finite("eye_m", eye)
    arrays.require_finite("look_at_m", look_at)
    if (eye == look_at).all():
        raise InputError("look_at_m", "is where the eye is; expected another point")
    if not (1 <= width_px <= 16384 and 1 <= height_px <= 16384):
        raise InputError("width_px, height_px", f"expected 1 to 16384, found {width_px}, {height_px}")
    if not 0 < fov_deg < 170:
        raise InputError("fov_deg", f"expected above 0 and below 170, found {fov_deg:g}")
    return Camera(eye, look_at, width_px, height_px, fov_deg)


def _towards(azimuth_deg: float, elevation_deg: float) -> Array:
    azimuth, elevation = np.radians(azimuth_deg), np.radians(elevation_deg)
    level = np.cos(elevation)
    return np.array([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)])


def _linear_table(colours: Mapping[int, Colour]) -> Array:
    """Colours by label number as light, not as shown; the last row is for all numbers above."""
    for label, colour in colours.items():
        if not 0 <= label <= 65535 or len(colour) != 3 or not all(0 <= part <= 1 for part in colour):
            raise InputError("colours", f"label {label} has {colour}; expected three numbers from 0 to 1")
    table = np.tile(np.array(_GREY), (max(colours, default=0) + 2, 1))
    for label, colour in colours.items():
        table[label] = colour
    return table**_GAMMA


def _softened(light: Array) -> Array:
    """Press what is brighter than 0.7 into what is left up to 1, as film does."""
    return np.where(light < 0.7, light, 0.7 + 0.3 * (1 - np.exp(-(np.maximum(light, 0.7) - 0.7) / 0.3)))
