# SPDX-License-Identifier: Apache-2.0
"""Patches: many plants merged into one square mesh, and one of them cut to what may grow and set on the ground."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.physics.piece import Piece
from hedgerow.physics.plants.grass import PatchParameters
from hedgerow.physics.plants.plant import Plant
from hedgerow.physics.scene_file.placing import ScatterSpec
from hedgerow.physics.scene_file.scatter import transforms
from hedgerow.physics.shapes import Mesh, joined

_GROUNDED_M = 0.01
"""What reaches down to here stands on the ground."""


class Patch(NamedTuple):
    """Plants in a square around (0, 0)."""

    pieces: tuple[Piece, ...]
    plant: tuple[NDArray[np.int64], ...]
    """For each piece, (V,) which plant a vertex belongs to."""
    foot_m: Array
    """(P, 2) where each plant stands [m]."""


def grass_patch(
    plant: Plant, parameters: PatchParameters, side_m: float, density_per_m2: float, rng: np.random.Generator
) -> Patch:
    """Grow a patch of a grass; its stems are told apart as what hangs together, ears and leaves go with the nearest."""
    changes = {"side_m": side_m, "side_y_m": None, "density_per_m2": density_per_m2}
    pieces = plant.make(parameters.model_copy(update=changes), rng)
    parts = [_components(piece.mesh) for piece in pieces]
    feet = [_feet(piece.mesh.vertices_m, *part) for piece, part in zip(pieces, parts, strict=True)]
    foot = np.concatenate([np.zeros((0, 3)), *feet])
    stem = _stem_of(foot)
    first = np.cumsum([0, *[len(each) for each in feet]])
    owners = tuple(stem[owner + start] for (owner, _), start in zip(parts, first, strict=False))
    return Patch(pieces, owners, foot[foot[:, 2] < _GROUNDED_M, :2])


def merged_patch(
    variants: Sequence[tuple[Piece, ...]],
    rule: ScatterSpec,
    side_m: float,
    density_per_m2: float,
    rng: np.random.Generator,
) -> Patch:
    """Merge copies of a thing at random places, turned, scaled and tilted by the rule, into one patch."""
    n = rng.poisson(density_per_m2 * side_m**2)
    feet = np.concatenate([rng.uniform(-side_m / 2, side_m / 2, (n, 2)), np.zeros((n, 1))], axis=1)
    places, variant = transforms(feet, rule, rng), rng.integers(0, len(variants), n)
    groups: dict[tuple[str, str], list[tuple[Mesh, NDArray[np.int64]]]] = {}
    for k, pieces in enumerate(variants):
        chosen = np.flatnonzero(variant == k)
        for piece in pieces:
            copies = _copies(piece.mesh, places[chosen], chosen)
            groups.setdefault((piece.material, piece.label), []).append(copies)
    pieces = tuple(Piece(joined(*[mesh for mesh, _ in group]), *name) for name, group in groups.items())
    return Patch(pieces, tuple(np.concatenate([owner for _, owner in group]) for group in groups.values()), feet[:, :2])


def cut(patch: Patch, keep: NDArray[np.bool_], lift_m: Array) -> tuple[Piece, ...]:
    """Return the plants of a patch that are kept, (P,), each lifted by (P,) metres."""
    pieces: list[Piece] = []
    for piece, owner in zip(patch.pieces, patch.plant, strict=True):
        vertices, triangles = piece.mesh
        kept = keep[owner]
        number = np.cumsum(kept) - 1
        raised = vertices[kept] + np.stack([np.zeros(kept.sum())] * 2 + [lift_m[owner[kept]]], axis=1)
        pieces.append(piece._replace(mesh=Mesh(raised, number[triangles[kept[triangles[:, 0]]]])))
    return tuple(pieces)


def joined_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of the same material and label."""
    groups: dict[tuple[str, str], list[Mesh]] = {}
    for piece in pieces:
        groups.setdefault((piece.material, piece.label), []).append(piece.mesh)
    return [Piece(joined(*meshes), *name) for name, meshes in groups.items()]


def transformed(mesh: Mesh, place: Array) -> Mesh:
    """Return a mesh moved by a (4, 4) transform."""
    if np.array_equal(place, np.eye(4)):
        return mesh
    return Mesh(mesh.vertices_m @ place[:3, :3].T + place[:3, 3], mesh.triangles)


def _copies(mesh: Mesh, places: Array, owner: NDArray[np.int64]) -> tuple[Mesh, NDArray[np.int64]]:
    n, size = len(places), len(mesh.vertices_m)
    vertices = np.einsum("nij,vj->nvi", places[:, :3, :3], mesh.vertices_m) + places[:, None, :3, 3]
    triangles = mesh.triangles[None] + size * np.arange(n)[:, None, None]
    return Mesh(vertices.reshape(-1, 3), triangles.reshape(-1, 3)), np.repeat(owner, size)


def _components(mesh: Mesh) -> tuple[NDArray[np.int64], int]:
    """Number the parts of a mesh that hang together: (V,) numbers, and how many there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(mesh.vertices_m)
    a, b = mesh.triangles[:, [0, 1]].T, mesh.triangles[:, [1, 2]].T
    start, end = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    graph = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(n, n))
    count, number = connected_components(graph, directed=False)
    return number.astype(np.int64), int(count)


def _feet(vertices_m: Array, owner: NDArray[np.int64], n: int) -> Array:
    """Middle of the lowest vertices of each part, (n, 3)."""
    lowest = np.full(n, np.inf)
    np.minimum.at(lowest, owner, vertices_m[:, 2])
    low = vertices_m[:, 2] <= lowest[owner] + 1e-6
    count = np.bincount(owner[low], minlength=n)
    sums = [np.bincount(owner[low], vertices_m[low, k], minlength=n) for k in (0, 1)]
    return np.stack([*sums, lowest * count], axis=1) / count[:, None]


def _stem_of(foot_m: Array) -> NDArray[np.int64]:
    """Number the (n, 3) parts by stem: those that touch the ground are stems, the others belong to the nearest."""
    grounded = foot_m[:, 2] < _GROUNDED_M
    number = np.cumsum(grounded) - 1
    if not grounded.all() and grounded.any():
        from scipy.spatial import KDTree

        number[~grounded] = KDTree(foot_m[grounded, :2]).query(foot_m[~grounded, :2])[1]
    return number
