# SPDX-License-Identifier: Apache-2.0
"""How bright what a beam meets looks: its slope, the sun, the part of the sky it sees, and haze.

Beams only report ranges, so the slope of a surface comes from two more beams beside each: three points of one element
make a plane. The three share a pulse number, hence their random numbers: range noise shifts them together, and
permeable elements let all or none of them pass.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.log import Beams
from hedgerow.world import Scene
from hedgerow.world.hits import Hits

_ZENITH, _HORIZON = (np.array(each) ** 2.2 for each in ((0.30, 0.50, 0.85), (0.80, 0.88, 0.96)))
_SUNLIGHT, _SKYLIGHT = (np.array(each) for each in ((1.75, 1.62, 1.38), (0.62, 0.70, 0.82)))
_THROUGH = 0.3
"""Share of the sunlight that thin things let shine through to the side that faces away from the sun."""
_UNDER_LEAVES = 0.3
"""Share of the skylight that arrives, from leaf to leaf, where the sky itself is hidden."""
_HAZE_M = 800.0
"""Distance over which haze takes all but 1/e of the colour."""
_ASIDE_RAD = 1e-4
"""Angle between a beam and the two beside it: far less than a pixel, far more than float32 steps."""


@dataclass(frozen=True, slots=True)
class Light:
    """The sun and the sky."""

    direction: Array
    """(3,) unit vector towards the sun."""
    shadows: bool
    """Whether sunlight and skylight are traced, or reach everything."""
    bias_m: float
    """Shadows begin this far in front of a surface."""


def seen(
    scene: Scene,
    eye_m: Array,
    way: Array,
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
        way: (N, 3) unit directions in which it looks.
        pulse: (N,) identity of each.
        light: sun and sky.
        table: (L, 3) colour of each label, linear; labels beyond take the last row.
        rng: for the part of the sky that is asked for.
        seed, threads: of the firing.

    Returns:
        (N, 3) red, green and blue, linear; may exceed 1.
    """
    hits, normal = _hit_with_normal(scene, eye_m, way, pulse, seed, threads)
    colour = _sky(way)
    hit = np.flatnonzero(np.isfinite(hits.range_m))
    if not len(hit):
        return colour
    range_m, normal = hits.range_m[hit].astype(np.float64), normal[hit]
    facing = normal @ light.direction
    sunlight = np.where(facing > 0, facing, -_THROUGH * facing)
    skylight = np.ones(len(hit))
    if light.shadows:
        point = eye_m + (range_m - light.bias_m)[:, None] * way[hit] + light.bias_m * normal
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
    scene: Scene, eye_m: Array, way: Array, pulse: NDArray[np.int64], seed: int, threads: int
) -> tuple[Hits, Array]:
    """First hits of beams, and (N, 3) unit normals that face the eye."""
    n = len(way)
    level = np.cross(way, np.where(np.abs(way[:, 2:]) > 0.9, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    level /= np.linalg.norm(level, axis=1, keepdims=True)
    ways = np.stack([way, way + _ASIDE_RAD * level, way + _ASIDE_RAD * np.cross(level, way)])
    ways = (ways / np.linalg.norm(ways, axis=-1, keepdims=True)).astype(np.float32)
    beams = Beams.from_arrays(origins=eye_m, directions=ways.reshape(-1, 3), pulses=np.tile(pulse, 3))
    three = scene.fire(beams, seed=seed, threads=threads)
    element = three.element.reshape(3, n)
    same = (element[0] >= 0) & (element[0] == element[1]) & (element[0] == element[2])
    points = np.where(same[:, None], three.range_m.reshape(3, n, 1).astype(np.float64), 0.0) * ways
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    # At an edge, and on a Gaussian, which has no surface: as if it faced the eye.
    normal = np.where(length > 0, normal / np.maximum(length, 1e-300), -way)
    hits = Hits(**{each.name: getattr(three, each.name)[:n] for each in fields(Hits)})
    return hits, np.where((normal * way).sum(axis=1, keepdims=True) > 0, -normal, normal)


def _sky(way: Array) -> Array:
    height = np.clip(way[:, 2:], 0, 1) ** 0.5
    return _HORIZON * (1 - height) + _ZENITH * height
