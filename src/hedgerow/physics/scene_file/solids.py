# SPDX-License-Identifier: Apache-2.0
"""Meshes of the simple solids of a scene file; each stands on (0, 0, 0)."""

import numpy as np
from numpy.typing import NDArray

from hedgerow.physics import shapes
from hedgerow.physics.scene_file.things import BoxSpec, CylinderSpec, EllipsoidSpec, PanelSpec
from hedgerow.physics.shapes import Mesh


def solid_mesh(spec: BoxSpec | CylinderSpec | PanelSpec | EllipsoidSpec) -> Mesh:
    """Make the mesh of a shape [m]."""
    if isinstance(spec, BoxSpec):
        x, y, z = spec.size_m
        return shapes.box((-x / 2, -y / 2, 0), (x / 2, y / 2, z))
    if isinstance(spec, CylinderSpec):
        return _with_lid(shapes.cylinder((0, 0, 0), spec.height_m, spec.radius_m, spec.top_radius_m, spec.sides))
    if isinstance(spec, PanelSpec):
        return shapes.rectangle((0, -spec.width_m / 2, 0), (0, spec.width_m, 0), (0, 0, spec.height_m))
    return _ellipsoid(np.asarray(spec.size_m), spec.sides)


def _with_lid(tube: Mesh) -> Mesh:
    """Close an upright tube at the top."""
    n = len(tube.vertices_m) // 2
    top = np.arange(n, 2 * n)
    lid = np.stack([top, np.roll(top, -1), np.full(n, 2 * n)], axis=1)
    middle = tube.vertices_m[n:].mean(axis=0)
    return Mesh(np.vstack([tube.vertices_m, middle]), np.concatenate([tube.triangles, lid]))


def _ellipsoid(size_m: NDArray[np.float64], sides: int) -> Mesh:
    polar = np.linspace(0, np.pi, sides // 2 + 1)
    turn = np.linspace(0, 2 * np.pi, sides + 1)
    grid = shapes.height_field(turn, polar, np.zeros((len(polar), len(turn))))  # a sheet to be wrapped round
    around, down = grid.vertices_m[:, 0], grid.vertices_m[:, 1]
    ball = np.stack([np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down) + 1], axis=1)
    return Mesh(ball * size_m / 2, grid.triangles)
