# SPDX-License-Identifier: Apache-2.0
"""Meshes: simple shapes as vertices and triangles, and mesh parts, which have a material and a label besides.

Plants, terrain and placeables are tuples of mesh parts. Leaves and blades are many small flat triangles, finer than a
lidar's beam: that is what vegetation is to a laser.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base.arrays import Array


class Mesh(NamedTuple):
    """Vertices and triangles."""

    vertices_m: Array
    """(V, 3) [m]."""
    triangles: NDArray[np.int64]
    """(T, 3) numbers of vertices."""

    def moved(self, offset_m: ArrayLike) -> "Mesh":
        """Return the mesh shifted by (3,) metres."""
        return Mesh(self.vertices_m + np.asarray(offset_m, dtype=np.float64), self.triangles)

    def transformed(self, transform: Array) -> "Mesh":
        """Return the mesh moved by a (4, 4) transform."""
        if np.array_equal(transform, np.eye(4)):
            return self
        return Mesh(self.vertices_m @ transform[:3, :3].T + transform[:3, 3], self.triangles)


def join_meshes(*meshes: Mesh) -> Mesh:
    """Join meshes into one."""
    offsets = np.cumsum([0, *[len(mesh.vertices_m) for mesh in meshes[:-1]]])
    triangles = [mesh.triangles + offset for mesh, offset in zip(meshes, offsets, strict=True)]
    return Mesh(np.concatenate([mesh.vertices_m for mesh in meshes]), np.concatenate(triangles))


def rectangle(corner: ArrayLike, first_edge: ArrayLike, second_edge: ArrayLike) -> Mesh:
    """Return the rectangle (or parallelogram) with a (3,) corner and two (3,) edges [m]."""
    p, a, b = (np.asarray(each, dtype=np.float64) for each in (corner, first_edge, second_edge))
    return Mesh(np.array([p, p + a, p + a + b, p + b]), np.array([[0, 1, 2], [0, 2, 3]]))


def box(low: ArrayLike, high: ArrayLike) -> Mesh:
    """Return the box between two (3,) corners [m]."""
    sides = zip(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64), strict=True)
    vertices = np.array(np.meshgrid(*sides, indexing="ij")).reshape(3, -1).T
    faces = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    return Mesh(vertices, np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]]))


def cylinder(
    foot: ArrayLike, height_m: float, radius_m: float, top_radius_m: float | None = None, sides: int = 12
) -> Mesh:
    """Return an upright cylinder, or a cone's stump, without lids, from its (3,) foot up [m]."""
    angle = np.arange(sides) * 2 * np.pi / sides
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(sides)], axis=1)
    top = ring * (radius_m if top_radius_m is None else top_radius_m) + [0, 0, height_m]
    i = np.arange(sides)
    j = (i + 1) % sides
    triangles = np.concatenate([np.stack([i, j, i + sides], 1), np.stack([j, j + sides, i + sides], 1)])
    return Mesh(np.concatenate([ring * radius_m, top]) + np.asarray(foot), triangles)


def height_field(x_m: Array, y_m: Array, z_m: Array) -> Mesh:
    """Return the surface over a grid: (nx,) and (ny,) coordinates, (ny, nx) heights [m]."""
    x, y = np.meshgrid(x_m, y_m)
    n = len(x_m)
    corner = (np.arange(len(y_m) - 1)[:, None] * n + np.arange(n - 1)).ravel()
    lower = np.stack([corner, corner + 1, corner + n], axis=1)
    upper = np.stack([corner + 1, corner + n + 1, corner + n], axis=1)
    return Mesh(np.stack([x.ravel(), y.ravel(), z_m.ravel()], axis=1), np.concatenate([lower, upper]))


def leaves(centre_m: Array, length_m: float, rng: np.random.Generator) -> Mesh:
    """Return one flat, randomly turned leaf (two triangles, half as wide as long) at each of (N, 3) points [m]."""
    n = len(centre_m)
    axis = rng.normal(size=(n, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    side = np.cross(axis, rng.normal(size=(n, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    size = length_m * rng.uniform(0.6, 1.4, (n, 1))
    along, across = axis * size / 2, side * size / 4
    vertices = np.stack([centre_m - along, centre_m + across, centre_m + along, centre_m - across], axis=1)
    first = 4 * np.arange(n)
    triangles = np.concatenate([np.stack([first, first + 1, first + 2], 1), np.stack([first, first + 2, first + 3], 1)])
    return Mesh(vertices.reshape(-1, 3), triangles)


def blades(foot_m: Array, height_m: Array, width_m: float, rng: np.random.Generator, segments: int = 3) -> Mesh:
    """Return one bent blade of grass at each of (N, 3) feet, with (N,) heights; two triangles per segment [m]."""
    n = len(foot_m)
    heading = rng.uniform(0, 2 * np.pi, n)
    lean = height_m * rng.uniform(0.1, 0.7, n)
    s = np.linspace(0, 1, segments + 1)
    out = lean[:, None] * s**2
    rise = height_m[:, None] * (s - 0.25 * (lean / height_m)[:, None] * s**2)
    spine = foot_m[:, None] + np.stack([np.cos(heading)[:, None] * out, np.sin(heading)[:, None] * out, rise], axis=-1)
    across = np.stack([-np.sin(heading), np.cos(heading), np.zeros(n)], axis=1)[:, None] * width_m / 2
    half = (1 - 0.85 * s)[None, :, None] * across
    vertices = np.stack([spine - half, spine + half], axis=2).reshape(-1, 3)
    first = (np.arange(n)[:, None] * 2 * (segments + 1) + 2 * np.arange(segments)).ravel()
    lower = np.stack([first, first + 1, first + 2], axis=1)
    upper = np.stack([first + 1, first + 3, first + 2], axis=1)
    return Mesh(vertices, np.concatenate([lower, upper]))


class MeshPart(NamedTuple):
    """A mesh of one material and one label; building a scene turns these names into reflectances and numbers."""

    mesh: Mesh
    material: str
    """Name in the table of materials, for example "leaf"."""
    label: str
    """Name of the semantic class, for example "leaves"."""


def join_parts(parts: Iterable[MeshPart]) -> list[MeshPart]:
    """Join the parts that have the same material and label."""
    groups: dict[tuple[str, str], list[Mesh]] = {}
    for part in parts:
        groups.setdefault((part.material, part.label), []).append(part.mesh)
    return [MeshPart(join_meshes(*meshes), *names) for names, meshes in groups.items()]


def count_triangles(parts: Iterable[MeshPart]) -> int:
    """Count the triangles of mesh parts."""
    return sum(len(part.mesh.triangles) for part in parts)
