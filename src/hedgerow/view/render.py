# SPDX-License-Identifier: Apache-2.0
"""A shaded picture of any scene, made by firing a pinhole camera of beams at it: the way to look at a scene.

The colour is that of the label, times sunlight (shadows by a second firing) and skylight. Beams only report ranges, so
the surface's slope comes from two more beams beside each: three points of one element make a plane. The three share a
pulse number, hence their random numbers: range noise shifts them together and permeable elements let all or none pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays
from hedgerow.errors import FileError, InputError
from hedgerow.io.atomic import atomic_file
from hedgerow.log import Beams
from hedgerow.world import Scene
from hedgerow.world.hits import Hits
from hedgerow.world.scene import Progress

Array = NDArray[np.float64]
Colour = Sequence[float]
"""Red, green and blue, 0 to 1, as seen on a screen."""

NAMED_COLOURS: dict[str, Colour] = {
    "grass": (0.45, 0.54, 0.24),
    "shrub": (0.36, 0.47, 0.22),
    "leaves": (0.38, 0.50, 0.22),
    "needles": (0.23, 0.36, 0.23),
    "vegetation": (0.41, 0.55, 0.24),
    "trunk": (0.40, 0.31, 0.23),
    "branch": (0.38, 0.29, 0.21),
    "ground": (0.45, 0.38, 0.27),
    "road": (0.62, 0.57, 0.48),
    "building": (0.72, 0.66, 0.58),
    "fence": (0.55, 0.50, 0.45),
    "pole": (0.50, 0.52, 0.55),
    "car": (0.55, 0.16, 0.14),
    "trail": (0.50, 0.45, 0.37),
    "rock": (0.48, 0.47, 0.45),
    "log": (0.42, 0.33, 0.25),
    "wall": (0.66, 0.63, 0.58),
    "target": (0.70, 0.62, 0.50),
    "traffic-sign": (0.75, 0.20, 0.15),
}
"""Colours for labels by name; anything else is grey."""
_GREY: Colour = (0.6, 0.6, 0.6)
_ZENITH, _HORIZON = (np.array(each) for each in ((0.30, 0.50, 0.85), (0.80, 0.88, 0.96)))
_SUNLIGHT, _SKYLIGHT = (np.array(each) for each in ((1.75, 1.62, 1.38), (0.62, 0.70, 0.82)))
_THROUGH = 0.3
"""Share of the sunlight that thin things let shine through to the side that faces away from the sun."""
_UNDER_LEAVES = 0.3
"""Share of the skylight that arrives, from leaf to leaf, where the sky itself is hidden."""
_ASIDE_RAD = 1e-4
"""Angle between a beam and the two beside it: far less than a pixel, far more than float32 steps."""
_CHUNK = 400_000
"""Beams at once: bounds the memory to some hundred megabytes."""


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


@dataclass(frozen=True, slots=True)
class Light:
    """The sun, and how its shadows are found."""

    direction: Array
    """(3,) unit vector towards the sun."""
    shadows: bool
    """Whether sunlight and skylight are traced, or reach everything."""
    bias_m: float


def named_colours(labels: Mapping[str, int]) -> dict[int, Colour]:
    """Return the colour of each label number of a table from names to numbers."""
    return {number: NAMED_COLOURS.get(name, _GREY) for name, number in labels.items()}


def render(
    scene: Scene,
    path: str | Path,
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
) -> None:
    """Draw a scene into a PNG or JPEG file; the arguments are those of `picture`."""
    if Path(path).suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise FileError(f"{path}: unknown kind of picture; the suffix must be .png or .jpg")
    image = picture(
        scene,
        eye_m,
        look_at_m,
        width_px=width_px,
        height_px=height_px,
        fov_deg=fov_deg,
        colours=colours,
        samples=samples,
        sun_azimuth_deg=sun_azimuth_deg,
        sun_elevation_deg=sun_elevation_deg,
        shadows=shadows,
        bias_m=bias_m,
        threads=threads,
        progress=progress,
    )
    save_picture(image, path)


def save_picture(image: NDArray[np.uint8], path: str | Path) -> None:
    """Write a (height, width, 3) picture as PNG or JPEG, as the suffix says.

    Raises:
        FileError: the system refuses to write.
    """
    from PIL import Image

    kind = "PNG" if Path(path).suffix.lower() == ".png" else "JPEG"
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
        samples: beams per pixel, 1 to 64; more give smoother edges.
        sun_azimuth_deg, sun_elevation_deg: where the sun stands, counter-clockwise from x, and above the horizon.
        shadows: whether the sun and the sky can be hidden; takes twice as long.
        bias_m: shadows begin this far in front of a surface; more than its range noise, if it has any [m].
        threads: 0 for all.
        progress: called with the number of pixels' beams done.

    Returns:
        (height_px, width_px, 3) uint8.

    Raises:
        InputError: an argument is out of bounds.
    """
    camera = _camera(eye_m, look_at_m, width_px, height_px, fov_deg)
    if not 1 <= samples <= 64:
        raise InputError(f"samples: expected 1 to 64, found {samples}")
    azimuth, elevation = np.radians([sun_azimuth_deg, sun_elevation_deg])
    level = np.cos(elevation)
    sun = np.array([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)])
    light = Light(sun, shadows, bias_m)
    table = _linear_table({} if colours is None else colours)
    n = width_px * height_px
    total = np.zeros((n, 3))
    rng = np.random.default_rng(0)
    for sample in range(samples):
        for begin in range(0, n, _CHUNK):
            pixel = np.arange(begin, min(begin + _CHUNK, n))
            total[pixel] += _seen(scene, camera, pixel, sample, light, table, rng, threads)
            if progress is not None:
                progress(sample * n + int(pixel[-1]) + 1)
    shown = np.clip(_tone(total / samples), 0, 1) ** (1 / 2.2)
    return np.rint(255 * shown).astype(np.uint8).reshape(height_px, width_px, 3)


def _camera(eye_m: ArrayLike, look_at_m: ArrayLike, width_px: int, height_px: int, fov_deg: float) -> Camera:
    eye = arrays.as_floats("eye_m", eye_m, (3,))
    look_at = arrays.as_floats("look_at_m", look_at_m, (3,))
    arrays.require_finite("eye_m", eye)
    arrays.require_finite("look_at_m", look_at)
    if (eye == look_at).all():
        raise InputError("look_at_m: is where the eye is; expected another point")
    if not (1 <= width_px <= 16384 and 1 <= height_px <= 16384):
        raise InputError(f"width_px, height_px: expected 1 to 16384, found {width_px}, {height_px}")
    if not 0 < fov_deg < 170:
        raise InputError(f"fov_deg: expected above 0 and below 170, found {fov_deg:g}")
    return Camera(eye, look_at, width_px, height_px, fov_deg)


def _seen(
    scene: Scene,
    camera: Camera,
    pixel: NDArray[np.int64],
    sample: int,
    light: Light,
    table: Array,
    rng: np.random.Generator,
    threads: int,
) -> Array:
    """Light that reaches some pixels, (N, 3), linear."""
    n = len(pixel)
    row, column = np.divmod(pixel, camera.width_px)
    way = camera.directions(column + rng.random(n), row + rng.random(n))
    hits, normal = _hit_with_normal(scene, camera.eye_m, way, pixel, sample, threads)
    sky = _sky(way)
    hit = np.flatnonzero(np.isfinite(hits.range_m))
    if not len(hit):
        return sky
    range_m, normal, way_hit = hits.range_m[hit].astype(np.float64), normal[hit], way[hit]
    facing = normal @ light.direction
    sunlight = np.where(facing > 0, facing, -_THROUGH * facing)
    skylight = np.ones(len(hit))
    if light.shadows:
        point = camera.eye_m + (range_m - light.bias_m)[:, None] * way_hit + light.bias_m * normal
        sees_sun, sees_sky = _in_the_open(scene, point, normal, light, sample, rng, threads)
        sunlight, skylight = sunlight * sees_sun, _UNDER_LEAVES + (1 - _UNDER_LEAVES) * sees_sky
    skylight = skylight * (0.75 + 0.25 * normal[:, 2])
    arriving = sunlight[:, None] * _SUNLIGHT + skylight[:, None] * _SKYLIGHT
    haze = (1 - np.exp(-range_m / 800.0))[:, None]
    sky[hit] = (1 - haze) * table[np.minimum(hits.label[hit], len(table) - 1)] * arriving + haze * _HORIZON**2.2
    return sky


def _in_the_open(
    scene: Scene, point: Array, normal: Array, light: Light, seed: int, rng: np.random.Generator, threads: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the sun reaches (N, 3) points, and whether a random part of the sky before them does."""
    n = len(point)
    ball = rng.normal(size=(n, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    sky = normal + 0.999 * ball  # Lambert: a ball that touches the surface has the cosine built in
    sky /= np.linalg.norm(sky, axis=1, keepdims=True)
    sun = np.broadcast_to(light.direction, (n, 3))
    beams = Beams.from_arrays(origins=np.concatenate([point, point]), directions=np.concatenate([sun, sky]))
    is_open = np.isinf(scene.fire(beams, seed=seed, threads=threads).range_m)
    return is_open[:n], is_open[n:] & (sky[:, 2] > -0.1)


def _hit_with_normal(
    scene: Scene, eye_m: Array, way: Array, pixel: NDArray[np.int64], sample: int, threads: int
) -> tuple[Hits, Array]:
    """First hits of beams, and (N, 3) unit normals that face the eye."""
    level = np.cross(way, np.where(np.abs(way[:, 2:]) > 0.9, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    level /= np.linalg.norm(level, axis=1, keepdims=True)
    ways = np.stack([way, way + _ASIDE_RAD * level, way + _ASIDE_RAD * np.cross(level, way)])
    ways = (ways / np.linalg.norm(ways, axis=-1, keepdims=True)).astype(np.float32)
    beams = Beams.from_arrays(origins=eye_m, directions=ways.reshape(-1, 3), pulses=np.tile(pixel, 3))
    all_hits = scene.fire(beams, seed=sample, threads=threads)
    range_m = all_hits.range_m.reshape(3, -1).astype(np.float64)
    element = all_hits.element.reshape(3, -1)
    n = len(way)
    hits = Hits(**{each.name: getattr(all_hits, each.name)[:n] for each in fields(Hits)})
    with np.errstate(invalid="ignore"):
        points = range_m[..., None] * ways
        normal = np.cross(points[1] - points[0], points[2] - points[0])
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        plane = (element[0] == element[1]) & (element[0] == element[2]) & (length[:, 0] > 0)
        normal = np.where(plane[:, None], normal / length, -way)  # an edge: as if it faced the eye
    return hits, np.where((normal * way).sum(axis=1, keepdims=True) > 0, -normal, normal)


def _sky(way: Array) -> Array:
    height = np.clip(way[:, 2:], 0, 1) ** 0.5
    return _HORIZON**2.2 * (1 - height) + _ZENITH**2.2 * height


def _linear_table(colours: Mapping[int, Colour]) -> Array:
    """Colours by label number as light, not as shown; the last row is for all numbers above."""
    table = np.tile(np.array(_GREY), (max(colours, default=0) + 2, 1))
    for label, colour in colours.items():
        if not 0 <= label <= 65535 or len(colour) != 3 or not all(0 <= part <= 1 for part in colour):
            raise InputError(f"colours: label {label} has {colour}; expected three numbers from 0 to 1")
        table[label] = colour
    return table**2.2


def _tone(light: Array) -> Array:
    """Soften what is brighter than white, as film does."""
    return np.where(light < 0.7, light, 0.7 + 0.3 * (1 - np.exp(-(np.maximum(light, 0.7) - 0.7) / 0.3)))
