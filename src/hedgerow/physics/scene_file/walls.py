# SPDX-License-Identifier: Apache-2.0
"""Walls and fences along lines, their feet on the ground."""

from itertools import pairwise

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import InputError
from hedgerow.physics.scene_file.things import WallSpec
from hedgerow.physics.shapes import Mesh, joined
from hedgerow.physics.terrain import Terrain


def wall_mesh(spec: WallSpec, terrain: Terrain) -> Mesh:
    """Make the mesh of a wall: one sheet, or two sheets, a top and two ends if it has a thickness.

    Raises:
        InputError: a corner lies off the terrain; names the field.
    """
    corners = np.array([*spec.path_m, spec.path_m[0]] if spec.closed else spec.path_m)
    outside = ~terrain.contains(*corners.T)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("path_m", f"corner {row}, ({corners[row, 0]:g}, {corners[row, 1]:g}), lies off the terrain")
    return joined(*[_leg(a, b, spec, terrain) for a, b in pairwise(corners)])


def _leg(start: Array, end: Array, spec: WallSpec, terrain: Terrain) -> Mesh:
    length = float(np.linalg.norm(end - start))
    along = (end - start) / length
    reach = spec.thickness_m / 2  # legs overlap at corners, so that these are closed
    # As many pieces as the ground has cells; level ground needs one.
    n = int(np.ceil(length / max(min(terrain.spacing_m), 0.25)))
    line = start + np.linspace(-reach, length + reach, n + 1)[:, None] * along
    beside = np.array([-along[1], along[0]]) * spec.thickness_m / 2
    low_x, low_y, high_x, high_y = terrain.bounds_m
    ground = terrain.height_m(np.clip(line[:, 0], low_x, high_x), np.clip(line[:, 1], low_y, high_y))
    if spec.thickness_m == 0:
        return _strips([_raised(line, ground), _raised(line, ground + spec.height_m)], closed=False)
    left, right = line + beside, line - beside
    edges = [_raised(left, ground), _raised(left, ground + spec.height_m)]
    edges += [_raised(right, ground + spec.height_m), _raised(right, ground)]
    return _strips(edges, closed=True)


def _raised(line: Array, z: Array) -> Array:
    return np.column_stack([line, z])


def _strips(edges: list[Array], *, closed: bool) -> Mesh:
    """Join edges, (n, 3) points each, to strips between neighbours; if closed, also the two ends."""
    n, wide = len(edges[0]), len(edges)
    vertices = np.stack(edges, axis=1).reshape(-1, 3)
    first = (np.arange(n - 1)[:, None] * wide + np.arange(wide - 1)).reshape(-1, 1)
    quad = np.array([[0, 1, wide], [1, wide + 1, wide]])
    triangles = (first[:, None] + quad).reshape(-1, 3)
    if closed:
        last = (n - 1) * wide
        ends = [[0, 2, 1], [0, 3, 2], [last, last + 1, last + 2], [last, last + 2, last + 3]]
        triangles = np.concatenate([triangles, np.array(ends)])
    return Mesh(vertices, triangles)
