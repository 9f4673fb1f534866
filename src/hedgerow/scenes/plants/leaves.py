# SPDX-License-Identifier: Apache-2.0
"""Leaves: leaves and needles on twigs, and strips for blades and fronds; their areas sum up to what was asked for."""

from typing import Any, Literal

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.scenes.mesh import Mesh
from hedgerow.scenes.plants.branching import GOLDEN_RAD, Branches, across, turn_away, unit

LeafTriangles = Literal[2, 4]

# Leaves of length 1 along x, folded up along the middle: (along, across, up) of each corner.
_DIAMOND = np.array([[0, 0, 0], [0.45, 0.5, 0.12], [1, 0, 0], [0.45, -0.5, 0.12]])
_OVAL = np.array([[0, 0, 0], [0.25, 0.42, 0.1], [0.62, 0.4, 0.1], [1, 0, -0.05], [0.62, -0.4, 0.1], [0.25, -0.42, 0.1]])
_CORNERS: dict[LeafTriangles, tuple[Array, list[list[int]]]] = {
    2: (_DIAMOND, [[0, 2, 1], [0, 3, 2]]),
    4: (_OVAL, [[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 5, 4]]),
}


def places_on_twigs(twigs: Branches, n: int, rng: np.random.Generator, first: float = 0.1) -> tuple[Array, Array]:
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
    foot, along = places_on_twigs(twigs, n, rng)
    out = turn_away(along, rng.uniform(0.6, 1.2, n), np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.3, n))
    out = unit(out + [0, 0, -0.15] + 0.2 * rng.normal(size=(n, 3)))
    up = unit(np.array([0, 0, 0.9]) + 0.5 * rng.normal(size=(n, 3)))
    side = unit(np.cross(up, out))
    frame = np.stack([out, side, np.cross(out, side)], axis=1)
    size = rng.uniform(0.7, 1.3, n)
    size *= np.sqrt(area_m2 / (one_m2 / length_m**2 * (size**2).sum()))
    vertices = _shift_within(foot[:, None] + size[:, None, None] * (shape @ frame), top_m)
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
    foot, along = places_on_twigs(twigs, n, rng, 0.0)
    out = turn_away(along, rng.uniform(0.5, 1.1, n), rng.uniform(0, 2 * np.pi, n))
    out = unit(out + np.array([0, 0, 0.1]))
    level, other = across(out)
    turn = rng.uniform(0, np.pi, n)[:, None]
    half = (np.cos(turn) * level + np.sin(turn) * other) * width_m / 2
    size = rng.uniform(0.75, 1.25, (n, 1))
    size *= np.sqrt(area_m2 / (length_m * width_m / 2 * (size**2).sum()))
    # Broad at the foot: a bundle fans out from there only a little, and the tip is what thins out.
    vertices = np.stack([foot - size * half, foot + size * half, foot + size * length_m * out], axis=1)
    return Mesh(_shift_within(vertices, top_m).reshape(-1, 3), np.arange(3 * n).reshape(n, 3))


def _shift_within(corners_m: Array, top_m: float) -> Array:
    """Shift each of (N, C, 3) leaves up or down, as a whole, until it lies between the ground and the top."""
    z = corners_m[..., 2]
    shift = np.maximum(-z.min(axis=1), 0) - np.maximum(z.max(axis=1) - top_m, 0)
    return corners_m + shift[:, None, None] * np.array([0, 0, 1])


def arc_spines(
    foot_m: Array, height_m: Array, foot_rad: Array, tip_rad: Array, heading_rad: Array, segments: int
) -> Array:
    """Return lines that rise from their feet and bend over like arcs of circles.

    Args:
        foot_m: (N, 3) where they begin [m].
        height_m: (N,) how far they rise above that, at their highest point [m].
        foot_rad, tip_rad: (N,) angle to the vertical at the foot and at the tip [rad].
        heading_rad: (N,) to which side they bend.
        segments: number of straight segments.

    Returns:
        (N, segments + 1, 3) points [m].
    """
    middle = (np.arange(segments) + 0.5) / segments
    angle = foot_rad[:, None] + (tip_rad - foot_rad)[:, None] * middle
    out = np.cumsum(np.sin(angle), axis=1)
    rise = np.cumsum(np.cos(angle), axis=1)
    scale = (height_m / rise.max(axis=1, initial=1e-6))[:, None]
    turned = np.stack([np.cos(heading_rad)[:, None] * out, np.sin(heading_rad)[:, None] * out, rise], axis=-1)
    start = np.zeros((len(foot_m), 1, 3))
    return foot_m[:, None] + np.concatenate([start, turned * scale[..., None]], axis=1)


def strips(spine_m: Array, half_m: Array, side: Array | None = None, fold: float = 0.0) -> Mesh:
    """Return flat or folded strips along lines; two triangles per segment, four if folded.

    Args:
        spine_m: (N, K + 1, 3) middle lines [m].
        half_m: (N, K + 1) half the width at each point [m].
        side: (N, 3) unit vectors across. Default: horizontal, square to the line from the first to the last point.
        fold: how far the middle lies below the edges, against half the width; 0 is flat.
    """
    n, points = len(spine_m), int(spine_m.shape[1])
    if side is None:
        chord = spine_m[:, -1] - spine_m[:, 0]
        side = np.stack([-chord[:, 1], chord[:, 0], np.zeros(n)], axis=1)
        length = np.linalg.norm(side, axis=1, keepdims=True)
        side = np.where(length > 1e-9, side / np.maximum(length, 1e-9), [1.0, 0.0, 0.0])
    across = side[:, None] * half_m[..., None]
    lines = [spine_m - across, spine_m + across]
    if fold:
        tangent: Any = np.gradient(spine_m, axis=1)
        under: Any = np.cross(across, tangent / np.linalg.norm(tangent, axis=-1, keepdims=True))
        lines.insert(1, spine_m + fold * under)
    wide = len(lines)
    vertices = np.stack(lines, axis=2).reshape(-1, 3)
    first = np.add.outer(wide * np.add.outer(points * np.arange(n), np.arange(points - 1)), np.arange(wide - 1))
    quad = np.array([[0, 1, wide], [1, wide + 1, wide]])
    return Mesh(vertices, np.add.outer(first, quad).reshape(-1, 3))


def scaled_to_area(spine_m: Array, half_m: Array, area_m2: float | None, fold: float = 0.0) -> Mesh:
    """Return strips whose widths are scaled so that their areas (one side) sum up to `area_m2`, unless that is None.

    Each strip is flat or folded with a fixed side, so the area is linear in the width but for strips that bend; a few
    repetitions remove what that leaves.
    """
    mesh = strips(spine_m, half_m, fold=fold)
    if area_m2 is None or not len(mesh.triangles):
        return mesh
    for _ in range(4):
        half_m = half_m * (area_m2 / areas_m2(mesh).sum())
        mesh = strips(spine_m, half_m, fold=fold)
    return mesh


def areas_m2(mesh: Mesh) -> Array:
    """Return the (T,) areas of the triangles, one side each [m²]."""
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
