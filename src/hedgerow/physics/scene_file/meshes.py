# SPDX-License-Identifier: Apache-2.0
"""Mesh files by trimesh: OBJ, PLY, STL, GLB. A mesh that a GLB places several times is kept once, with its places."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import FileError
from hedgerow.physics.piece import Piece
from hedgerow.physics.scene_file.things import MeshSpec
from hedgerow.physics.shapes import Mesh

_Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


class MeshPart(NamedTuple):
    """One mesh of a file and where it stands."""

    piece: Piece
    places: Array
    """(M, 4, 4) transforms to the thing's frame; scale may be in them."""


def read_mesh(path: Path, spec: MeshSpec) -> list[MeshPart]:
    """Read a mesh file.

    Args:
        path: the file.
        spec: units, axes, materials and labels.

    Returns:
        Its meshes, each once, with their places: z up, metres.

    Raises:
        FileError: damaged, or without triangles.
    """
    import trimesh

    try:
        scene: Any = trimesh.load_scene(path, process=False)  # pyright: ignore[reportUnknownMemberType]  # its **kwargs
    except Exception as error:  # trimesh's readers raise whatever their formats meet
        raise FileError(f"{path}: cannot be read as a mesh: {' '.join(str(error).split())}") from error
    up = spec.up or ("y" if path.suffix.lower() == ".glb" else "z")
    to_thing = np.diag([spec.scale, spec.scale, spec.scale, 1.0]) @ (_Y_UP if up == "y" else np.eye(4))
    places: dict[str, list[Array]] = {}
    for node in sorted(scene.graph.nodes_geometry):  # trimesh's own order changes from run to run
        transform, name = scene.graph[node]
        places.setdefault(name, []).append(to_thing @ np.asarray(transform, dtype=np.float64))
    parts = [
        MeshPart(_piece(scene.geometry[name], name, spec), np.array(places[name]))
        for name in sorted(places)
        if len(getattr(scene.geometry[name], "faces", ()))
    ]
    if not parts:
        raise FileError(f"{path}: has no triangles")
    _require_names(path, spec, [scene.geometry[name] for name in places], list(places))
    return parts


def _piece(geometry: Any, name: str, spec: MeshSpec) -> Piece:
    mesh = Mesh(np.asarray(geometry.vertices, dtype=np.float64), np.asarray(geometry.faces, dtype=np.int64))
    for known in (name, _material(geometry)):
        if known in spec.by_name:
            part = spec.by_name[known]
            return Piece(mesh, part.material or spec.material, part.label or spec.label)
    return Piece(mesh, spec.material, spec.label)


def _material(geometry: Any) -> str:
    return str(getattr(getattr(geometry.visual, "material", None), "name", None) or "")


def _require_names(path: Path, spec: MeshSpec, geometries: list[Any], names: list[str]) -> None:
    known = {*names, *(_material(geometry) for geometry in geometries)} - {""}
    for name in spec.by_name:
        if name not in known:
            raise FileError(f"{path}: by_name: no mesh or material '{name}'; it has {', '.join(sorted(known))}")
