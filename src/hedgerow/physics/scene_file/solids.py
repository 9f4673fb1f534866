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
        tube = shapes.cylinder((0, 0, 0), spec.height_m, spec.radius_m, spec.top_radius_m, spec.sides)
        return _laid(_with_lids(tube)) if spec.lying else _with_lids(tube)
    if isinstance(spec, PanelSpec):
        return shapes.rectangle((0, -spec.width_m / 2, 0), (0, spec.width_m, 0), (0, 0, spec.height_m))
    return _ellipsoid(np.asarray(spec.size_m), spec.sides)


def _with_lids(tube: Mesh) -> Mesh:
    """Close an upright tube at both ends."""
    n = len(tube.vertices_m) // 2
    ends = np.arange(n), np.arange(n, 2 * n)
    lids = [np.stack([end, np.roll(end, -1), np.full(n, 2 * n + k)], axis=1) for k, end in enumerate(ends)]
    middles = [tube.vertices_m[end].mean(axis=0) for end in ends]
    return Mesh(np.vstack([tube.vertices_m, *middles]), np.concatenate([tube.triangles, *lids]))


def _laid(standing: Mesh) -> Mesh:
    """Lay an upright thing down along x, its middle over the place, its lowest line on the ground."""
    x, y, z = standing.vertices_m.T
    return Mesh(np.stack([z - z.max() / 2, y, x - x.min()], axis=1), standing.triangles)


def _ellipsoid(size_m: NDArray[np.float64], sides: int) -> Mesh:
    polar = np.linspace(0, np.pi, sides // 2 + 1)
    turn = np.linspace(0, 2 * np.pi, sides + 1)
    grid = shapes.height_field(turn, polar, np.zeros((len(polar), len(turn))))  # a sheet to be wrapped round
    around, down = grid.vertices_m[:, 0], grid.vertices_m[:, 1]
    ball = np.stack([np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down) + 1], axis=1)
    return Mesh(ball * size_m / 2, grid.triangles)
