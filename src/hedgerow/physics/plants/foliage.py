# SPDX-License-Identifier: Apache-2.0
"""Leaves and needles on twigs; the sum of their areas is what was asked for, exactly."""

from typing import Literal

import numpy as np

from hedgerow.arrays import Array
from hedgerow.physics.plants.branching import GOLDEN_RAD, Branches, across, turned_off, unit
from hedgerow.physics.plants.strips import areas_m2
from hedgerow.physics.shapes import Mesh

LeafTriangles = Literal[2, 4]

# Leaves of length 1 along x, folded up along the middle: (along, across, up) of each corner.
_DIAMOND = np.array([[0, 0, 0], [0.45, 0.5, 0.12], [1, 0, 0], [0.45, -0.5, 0.12]])
_OVAL = np.array([[0, 0, 0], [0.25, 0.42, 0.1], [0.62, 0.4, 0.1], [1, 0, -0.05], [0.62, -0.4, 0.1], [0.25, -0.42, 0.1]])
_CORNERS: dict[LeafTriangles, tuple[Array, list[list[int]]]] = {
    2: (_DIAMOND, [[0, 2, 1], [0, 3, 2]]),
    4: (_OVAL, [[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 5, 4]]),
}


def on_twigs(twigs: Branches, n: int, rng: np.random.Generator, first: float = 0.1) -> tuple[Array, Array]:
    """Spread n places over twigs by their length, beyond a share `first` of each: (n, 3) points [m] and directions."""
    length = twigs.length_m
    which = np.sort(rng.choice(len(length), n, p=length / length.sum()))
    foot, along, _ = twigs.at(which, rng.uniform(first, 1.0, n))
    return foot, along


def leaves(
    twigs: Branches,
    area_m2: float,
    length_m: float,
    width: float,
    top_m: float,
    rng: np.random.Generator,
    *,
    triangles: LeafTriangles = 2,
) -> Mesh:
    """Return leaves on twigs, turned to the side and mostly facing the sky.

    Args:
        twigs: where they grow.
        area_m2: sum of their areas, one side [m²].
        length_m: their mean length; adjusted so that a whole number of them has the area [m].
        width: against the length.
        top_m: none rises above this, nor sinks below the ground [m].
        triangles: 2 for a diamond, 4 for an oval.
    """
    corners, faces = _CORNERS[triangles]
    shape = corners * [1, width, width]
    one_m2 = areas_m2(Mesh(shape, np.array(faces))).sum() * length_m**2
    n = max(1, round(area_m2 / one_m2))
    foot, along = on_twigs(twigs, n, rng)
    out = turned_off(along, rng.uniform(0.6, 1.2, n), np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.3, n))
    out = unit(out + [0, 0, -0.15] + 0.2 * rng.normal(size=(n, 3)))
    up = unit(np.array([0, 0, 0.9]) + 0.5 * rng.normal(size=(n, 3)))
    side = unit(np.cross(up, out))
    frame = np.stack([out, side, np.cross(out, side)], axis=1)
    size = rng.uniform(0.7, 1.3, n)
    size *= np.sqrt(area_m2 / (one_m2 / length_m**2 * (size**2).sum()))
    vertices = _between(foot[:, None] + size[:, None, None] * (shape @ frame), top_m)
    corner = len(shape) * np.arange(n)[:, None, None] + np.array(faces)
    return Mesh(vertices.reshape(-1, 3), corner.reshape(-1, 3))


def needles(
    twigs: Branches, area_m2: float, length_m: float, width_m: float, top_m: float, rng: np.random.Generator
) -> Mesh:
    """Return needles, or small bundles of them, around twigs: one slender triangle each.

    Args:
        twigs: where they grow.
        area_m2: sum of their areas, one side [m²].
        length_m, width_m: of a bundle, on average; adjusted so that a whole number of them has the area [m].
        top_m: none rises above this, nor sinks below the ground [m].
    """
    n = max(1, round(area_m2 / (length_m * width_m / 2)))
    foot, along = on_twigs(twigs, n, rng, 0.0)
    out = turned_off(along, rng.uniform(0.5, 1.1, n), rng.uniform(0, 2 * np.pi, n))
    out = unit(out + np.array([0, 0, 0.1]))
    level, other = across(out)
    turn = rng.uniform(0, np.pi, n)[:, None]
    half = (np.cos(turn) * level + np.sin(turn) * other) * width_m / 2
    size = rng.uniform(0.75, 1.25, (n, 1))
    size *= np.sqrt(area_m2 / (length_m * width_m / 2 * (size**2).sum()))
    # Broad at the foot: a bundle fans out from there only a little, and the tip is what thins out.
    vertices = np.stack([foot - size * half, foot + size * half, foot + size * length_m * out], axis=1)
    return Mesh(_between(vertices, top_m).reshape(-1, 3), np.arange(3 * n).reshape(n, 3))


def _between(corners_m: Array, top_m: float) -> Array:
    """Shift each of (N, C, 3) leaves up or down, as a whole, until it lies between the ground and the top."""
    z = corners_m[..., 2]
    shift = np.maximum(-z.min(axis=1), 0) - np.maximum(z.max(axis=1) - top_m, 0)
    return corners_m + shift[:, None, None] * np.array([0, 0, 1])
