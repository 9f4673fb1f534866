# SPDX-License-Identifier: Apache-2.0
"""Strips along bent lines: blades of grass, fronds, needles. All strips of a plant in one go."""

from typing import Any

import numpy as np

from hedgerow.arrays import Array
from hedgerow.physics.shapes import Mesh


def arc_spines(
    foot_m: Array, height_m: Array, foot_rad: Array, tip_rad: Array, heading_rad: Array, segments: int
) -> Array:
    """Return lines that rise from their feet and bend over like arcs of circles.

    Args:
        foot_m: (N, 3) where they begin [m].
        height_m: (N,) how far they rise above that, at their highest point [m].
        foot_rad, tip_rad: (N,) angle to the vertical at the foot and at the tip [rad].
        heading_rad: (N,) to which side they bend.
        segments: number of straight pieces.

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
        side: (N, 3) unit vectors across. Default: horizontal, square to the way from the first to the last point.
        fold: how far the middle lies below the edges, against half the width; 0 is flat.
    """
    n, points = len(spine_m), int(spine_m.shape[1])
    if side is None:
        way = spine_m[:, -1] - spine_m[:, 0]
        side = np.stack([-way[:, 1], way[:, 0], np.zeros(n)], axis=1)
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
    passes remove what that leaves.
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
