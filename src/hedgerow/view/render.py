# SPDX-License-Identifier: Apache-2.0
"""A shaded picture of any scene, made by firing a pinhole camera of beams at it.

    render(scene, "scene.png", eye_m=(-10, 0, 2), look_at_m=(0, 0, 1), colours=named_colours({"grass": 101}))

How bright a surface looks follows from its slope, the sun, the part of the sky it sees, and haze. Beams only report
ranges, so the slope comes from two more beams beside each: three points of one surface make a plane. The three share a
pulse number, hence their random numbers: range noise shifts them together, and permeable elements let all or none pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Array
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError
from hedgerow.log import Beams
from hedgerow.scenes.site import Site
from hedgerow.world import Scene
from hedgerow.world.scene import Hits, Progress

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
_ZENITH, _HORIZON = (np.array(each) ** 2.2 for each in ((0.30, 0.50, 0.85), (0.80, 0.88, 0.96)))
_SUNLIGHT, _SKYLIGHT = (np.array(each) for each in ((1.75, 1.62, 1.38), (0.62, 0.70, 0.82)))
_THROUGH = 0.3
"""Share of the sunlight that thin elements let shine through to the side that faces away from the sun."""
_UNDER_LEAVES = 0.3
"""Share of the skylight that arrives, from leaf to leaf, where the sky itself is hidden."""
_HAZE_M = 800.0
"""Distance over which haze takes all but 1/e of the colour."""
_BESIDE_RAD = 1e-4
"""Angle between a beam and the two beside it: far less than a pixel, far more than float32 steps."""
_STEEPEST = 5.0
"""Hits of neighbouring beams whose ranges differ by more than this slope are not of one surface."""
_SITE_BIAS_M = 0.04
"""Five standard deviations of the roughest material of a site: shadows begin above its noise."""


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
        """Return the (N, 3) unit directions of points of the picture, in pixels from its upper left corner."""
        ahead = (self.look_at_m - self.eye_m) / np.linalg.norm(self.look_at_m - self.eye_m)
        right = np.cross(ahead, [0.0, 0.0, 1.0])
        if np.linalg.norm(right) < 1e-9:  # straight up or down: the picture's right is east
            right = np.array([1.0, 0.0, 0.0])
        right /= np.linalg.norm(right)
        down = np.cross(ahead, right)
        pixel = 2 * np.tan(np.radians(self.fov_deg) / 2) / self.width_px
        u = (column - self.width_px / 2)[:, None] * pixel
        v = (row - self.height_px / 2)[:, None] * pixel
        direction = ahead + u * right + v * down
        return direction / np.linalg.norm(direction, axis=1, keepdims=True)


def named_colours(labels: Mapping[str, int]) -> dict[int, Colour]:
    """Return the colour of each label number of a table from names to numbers."""
    return {number: NAMED_COLOURS.get(name, _GREY) for name, number in labels.items()}


def render(scene: Scene, path: str | Path, eye_m: ArrayLike, look_at_m: ArrayLike, **options: Any) -> None:
    """Draw a scene into an image file.

    Args:
        scene, eye_m, look_at_m, options: as in `render_picture`.
        path: ends in .png, .jpg or .jpeg.

    Raises:
        InputError: an argument is out of bounds.
        FileError: unknown suffix, or the system refuses to write.
    """
    _kind(path)  # a wrong name is refused before the work, not after it
    save_picture(render_picture(scene, eye_m, look_at_m, **options), path)


def save_picture(image: NDArray[np.uint8], path: str | Path) -> None:
    """Write a (height, width, 3) picture as PNG or JPEG, as the suffix says.

    Raises:
        FileError: unknown suffix, or the system refuses to write.
    """
    from PIL import Image

    kind = _kind(path)
    with atomic_file(path) as temporary:
        Image.fromarray(image).save(temporary, format=kind)


def render_picture(
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
            direction = camera.directions(column + rng.random(len(pixel)), row + rng.random(len(pixel)))
            total[pixel] += shade(
                scene, camera.eye_m, direction, pixel, light, table, rng, seed=sample, threads=threads
            )
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


@dataclass(frozen=True, slots=True)
class Light:
    """The sun and the sky."""

    direction: Array
    """(3,) unit vector towards the sun."""
    shadows: bool
    """Whether sunlight and skylight are traced, or reach everything."""
    bias_m: float
    """Shadows begin this far in front of a surface."""


def shade(
    scene: Scene,
    eye_m: Array,
    direction: Array,
    pulse: NDArray[np.int64],
    light: Light,
    table: Array,
    rng: np.random.Generator,
    *,
    seed: int,
    threads: int,
) -> Array:
    """Return the light that comes to the eye.

    Args:
        scene: what there is to see.
        eye_m: (3,) where the eye is [m].
        direction: (N, 3) unit directions in which it looks.
        pulse: (N,) identity of each.
        light: sun and sky.
        table: (L, 3) colour of each label, linear; labels beyond take the last row.
        rng: for the part of the sky that is asked for.
        seed, threads: of the firing.

    Returns:
        (N, 3) red, green and blue, linear; may exceed 1.
    """
    hits, normal = _hit_with_normal(scene, eye_m, direction, pulse, seed, threads)
    colour = _sky(direction)
    hit = np.flatnonzero(np.isfinite(hits.range_m))
    if not len(hit):
        return colour
    range_m, normal = hits.range_m[hit].astype(np.float64), normal[hit]
    facing = normal @ light.direction
    sunlight = np.where(facing > 0, facing, -_THROUGH * facing)
    skylight = np.ones(len(hit))
    if light.shadows:
        point = eye_m + (range_m - light.bias_m)[:, None] * direction[hit] + light.bias_m * normal
        sees_sun, sees_sky = _in_the_open(scene, point, normal, light, rng, seed, threads)
        sunlight, skylight = sunlight * sees_sun, _UNDER_LEAVES + (1 - _UNDER_LEAVES) * sees_sky
    skylight = skylight * (0.75 + 0.25 * normal[:, 2])
    arriving = sunlight[:, None] * _SUNLIGHT + skylight[:, None] * _SKYLIGHT
    haze = (1 - np.exp(-range_m / _HAZE_M))[:, None]
    colour[hit] = (1 - haze) * table[np.minimum(hits.label[hit], len(table) - 1)] * arriving + haze * _HORIZON
    return colour


def _in_the_open(
    scene: Scene, point: Array, normal: Array, light: Light, rng: np.random.Generator, seed: int, threads: int
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
    scene: Scene, eye_m: Array, direction: Array, pulse: NDArray[np.int64], seed: int, threads: int
) -> tuple[Hits, Array]:
    """First hits of beams, and (N, 3) unit normals that face the eye."""
    n = len(direction)
    level = np.cross(direction, np.where(np.abs(direction[:, 2:]) > 0.9, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    level /= np.linalg.norm(level, axis=1, keepdims=True)
    directions = np.stack(
        [direction, direction + _BESIDE_RAD * level, direction + _BESIDE_RAD * np.cross(level, direction)]
    )
    directions = (directions / np.linalg.norm(directions, axis=-1, keepdims=True)).astype(np.float32)
    beams = Beams.from_arrays(origins=eye_m, directions=directions.reshape(-1, 3), pulses=np.tile(pulse, 3))
    three = scene.fire(beams, seed=seed, threads=threads)
    same = _are_one_surface(three, n)
    points = np.where(same[:, None], three.range_m.reshape(3, n, 1).astype(np.float64), 0.0) * directions
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    # At an edge, and on a Gaussian, which has no surface: as if it faced the eye.
    normal = np.where(length > 0, normal / np.maximum(length, 1e-300), -direction)
    hits = Hits(**{each.name: getattr(three, each.name)[:n] for each in fields(Hits)})
    return hits, np.where((normal * direction).sum(axis=1, keepdims=True) > 0, -normal, normal)


def _are_one_surface(three: Hits, n: int) -> NDArray[np.bool_]:
    """Whether the three hits of each of n places are of one element, or of a mesh finer than the beams are apart."""
    element, label, range_m = (each.reshape(3, n) for each in (three.element, three.label, three.range_m))
    one = (element[0] >= 0) & (element[0] == element[1]) & (element[0] == element[2])
    found = (element >= 0).all(axis=0) & (label[0] == label[1]) & (label[0] == label[2])
    with np.errstate(invalid="ignore"):
        steps = np.abs(range_m[1:] - range_m[0]).max(axis=0)
        return one | (found & (steps < _STEEPEST * _BESIDE_RAD * range_m[0]))


def _sky(direction: Array) -> Array:
    height = np.clip(direction[:, 2:], 0, 1) ** 0.5
    return _HORIZON * (1 - height) + _ZENITH * height


def draw_site(site: Site, path: str | Path, *, samples: int = 2, width_px: int = 960, height_px: int = 540) -> None:
    """Draw a site into a PNG or JPEG file; more samples per pixel look smoother.

    Raises:
        FileError: the file cannot be written.
    """
    eye, look_at, fov_deg = choose_view(site)
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
        bias_m=_SITE_BIAS_M,
    )


def choose_view(site: Site) -> tuple[Array, Array, float]:
    """Return where the camera is and what it looks at, (3,) each, map frame [m], and its angle [deg]."""
    view = site.file.view
    if view is not None:
        return _above_ground(site, view.eye_m), _above_ground(site, view.look_at_m), view.fov_deg
    low_x, low_y, high_x, high_y = site.terrain.bounds_m
    size = max(high_x - low_x, high_y - low_y)
    middle = [(low_x + high_x) / 2, (low_y + high_y) / 2, 0.0]
    return _above_ground(site, [low_x - 0.1 * size, low_y - 0.1 * size, 0.35 * size]), _above_ground(site, middle), 60.0


def _above_ground(site: Site, xyz_m: list[float]) -> Array:
    low_x, low_y, high_x, high_y = site.terrain.bounds_m
    x, y, z = xyz_m
    return np.array([x, y, z + float(site.terrain.height_m(np.clip(x, low_x, high_x), np.clip(y, low_y, high_y)))])
