# SPDX-License-Identifier: Apache-2.0
"""Mesh files that a scene names: OBJ, PLY, STL and GLB, read by trimesh.

A mesh that a GLB places several times is kept once, with its places. What a damaged file could ask for is checked
before trimesh sees it (a GLB's counts), and what trimesh returns is checked before the scene does.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError
from hedgerow.scenes.file.budget import MAX_TRIANGLES
from hedgerow.scenes.file.schema import MeshSpec
from hedgerow.scenes.mesh import Mesh, MeshPart

MAX_BYTES = 2_000_000_000
"""Largest mesh file; it takes a few times that much memory."""
MAX_DEPTH = 100
"""Most nodes of a GLB inside each other."""
MAX_PLACES = 1_000_000
"""Most places of all the meshes in a file."""
_MAX_VALUES = 4 * MAX_TRIANGLES
"""Most numbers of a GLB, each counted as often as a mesh uses it."""
FARTHEST_M = 1e9
"""Vertices and places beyond this are taken for damage."""
_GLB_START, _PART, _JSON = 12, struct.Struct("<II"), 0x4E4F534A
_MAX_PARTS = 100

_Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Turns y up into z up."""


class PlacedPart(NamedTuple):
    """A mesh part and where it stands within its placeable."""

    part: MeshPart
    places: Array
    """(M, 4, 4) transforms to the placeable's frame; they may scale."""


def read_mesh(path: Path, spec: MeshSpec) -> list[PlacedPart]:
    """Read a mesh file.

    Args:
        path: the file.
        spec: units, axes, materials and labels.

    Returns:
        Its meshes, each once, with their places: z up, metres.

    Raises:
        FileError: damaged, or without triangles.
    """
    scene, nodes = _load(path)
    up = spec.up or ("y" if path.suffix.lower() == ".glb" else "z")
    to_frame = np.diag([spec.scale, spec.scale, spec.scale, 1.0]) @ (_Y_UP if up == "y" else np.eye(4))
    places: dict[str, list[Array]] = {}
    for transform, name in nodes:
        places.setdefault(name, []).append(to_frame @ np.asarray(transform, dtype=np.float64))
    parts = [
        PlacedPart(_mesh_part(scene.geometry[name], name, spec), np.array(places[name]))
        for name in sorted(places)
        if len(getattr(scene.geometry[name], "faces", ()))
    ]
    if not parts:
        raise FileError(f"{path}: has no triangles")
    for part in parts:
        _require_sound(path, part)
    _require_names(path, spec, [scene.geometry[name] for name in places], list(places))
    return parts


def _mesh_part(geometry: Any, name: str, spec: MeshSpec) -> MeshPart:
    mesh = Mesh(np.asarray(geometry.vertices, dtype=np.float64), np.asarray(geometry.faces, dtype=np.int64))
    for known in (name, _material(geometry)):
        if known in spec.by_name:
            part = spec.by_name[known]
            return MeshPart(mesh, part.material or spec.material, part.label or spec.label)
    return MeshPart(mesh, spec.material, spec.label)


def _material(geometry: Any) -> str:
    return str(getattr(getattr(geometry.visual, "material", None), "name", None) or "")


def _require_names(path: Path, spec: MeshSpec, geometries: list[Any], names: list[str]) -> None:
    known = {*names, *(_material(geometry) for geometry in geometries)} - {""}
    for name in spec.by_name:
        if name not in known:
            raise FileError(f"{path}: by_name: no mesh or material '{name}'; it has {', '.join(sorted(known))}")


def _load(path: Path) -> tuple[Any, list[tuple[Any, str]]]:
    """Read a file; return trimesh's scene, and transform and name of each mesh in it."""
    import trimesh

    try:
        if path.stat().st_size > MAX_BYTES:
            raise FileError(f"{path}: is larger than {MAX_BYTES // 10**9} GB, the most that a mesh file may have")
        if path.suffix.lower() == ".glb":
            _require_small_glb(path)
        with np.errstate(all="ignore"):
            scene: Any = trimesh.load_scene(path, process=False)  # pyright: ignore[reportUnknownMemberType]  # **kwargs
            # Sorted: trimesh's own order changes from run to run.
            return scene, [scene.graph[node] for node in sorted(scene.graph.nodes_geometry)]
    except FileError:
        raise
    except Exception as error:  # trimesh's readers raise whatever their formats meet
        raise FileError(f"{path}: cannot be read as a mesh: {str(error) or type(error).__name__}") from error


def _require_small_glb(path: Path) -> None:
    """Refuse a GLB whose meshes add up to more numbers than a scene could hold, however small the file is."""
    header = _glb_header(path)
    counts = [_count(each) for each in _tables(header, "accessors")]
    uses = [0] * len(counts)
    for mesh in _tables(header, "meshes"):
        for primitive in _tables(mesh, "primitives"):
            attributes = primitive.get("attributes")
            named = list(cast("dict[str, Any]", attributes).values()) if isinstance(attributes, dict) else []
            for index in (*named, primitive.get("indices")):
                if isinstance(index, int) and 0 <= index < len(uses):
                    uses[index] += 1
    n = sum(count * max(1, used) for count, used in zip(counts, uses, strict=True))
    if n > _MAX_VALUES:
        raise FileError(f"{path}: its meshes have {n:.3g} vertices and corners; at most {_MAX_VALUES:,} may be")
    hollow = sum(_count(each) for each in _tables(header, "accessors") if each.get("bufferView") is None)
    if hollow > path.stat().st_size:  # trimesh would make as many zeros
        raise FileError(f"{path}: its meshes have {hollow:,} vertices and corners whose numbers are not in the file")
    nodes = list(_tables(header, "nodes"))
    if len(nodes) > MAX_PLACES:
        raise FileError(f"{path}: has {len(nodes):,} nodes; at most {MAX_PLACES:,} may be")
    if _is_deep(nodes):
        raise FileError(f"{path}: its nodes lie in a circle, or more than {MAX_DEPTH} deep inside each other")


def _glb_header(path: Path) -> Any:
    """Return the JSON of a GLB, None where there is none, which trimesh tells; refuse parts that claim to be longer."""
    size, header, at = path.stat().st_size, None, _GLB_START
    with path.open("rb") as file:
        for number in range(_MAX_PARTS):
            file.seek(at)
            head = file.read(_PART.size)
            if len(head) < _PART.size:
                break
            length, kind = _PART.unpack(head)
            if at + _PART.size + length > size:
                said = f"its part at byte {at} should have {length:,} bytes"
                raise FileError(f"{path}: cannot be read as a mesh: it is cut off or damaged; {said}")
            if number == 0 and kind == _JSON:
                header = json.loads(file.read(length))
            at += _PART.size + length
        else:
            raise FileError(f"{path}: cannot be read as a mesh: it has more than {_MAX_PARTS} parts; two are usual")
    return header


def _is_deep(nodes: list[dict[str, Any]]) -> bool:
    """Tell whether some node lies below too many others, by walking up from level to level."""
    children: list[Any] = [each.get("children") for each in nodes]
    level = {i for i in range(len(nodes)) if isinstance(children[i], list)}
    for _ in range(MAX_DEPTH):
        level = {
            child for i in level for child in cast("list[Any]", children[i])
            if isinstance(child, int) and 0 <= child < len(nodes) and isinstance(children[child], list)
        }  # fmt: skip
        if not level:
            return False
    return True


def _tables(owner: Any, name: str) -> Iterator[dict[str, Any]]:
    """Give the tables of a list, if it is one; what else stands there is left to trimesh."""
    entries: Any = cast("dict[str, Any]", owner).get(name) if isinstance(owner, dict) else None
    for entry in cast("list[Any]", entries) if isinstance(entries, list) else []:
        yield cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}


def _count(accessor: dict[str, Any]) -> int:
    count = accessor.get("count")
    return count if isinstance(count, int) and count > 0 else 0


def _require_sound(path: Path, placed: PlacedPart) -> None:
    """Check vertices, triangles and places, which come from the file as they are."""
    vertices, triangles = placed.part.mesh
    if vertices.ndim != 2 or vertices.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise FileError(f"{path}: has vertices without three coordinates, or faces that are no triangles")
    if len(triangles) > MAX_TRIANGLES:
        raise FileError(f"{path}: has {len(triangles):,} triangles; at most {MAX_TRIANGLES:,} may be")
    if not (np.abs(vertices) < FARTHEST_M).all() or not (np.abs(placed.places) < FARTHEST_M).all():
        raise FileError(f"{path}: has vertices or places that are no numbers, or beyond {FARTHEST_M:g} of its units")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        wrong = int(triangles.max() if triangles.min() >= 0 else triangles.min())
        raise FileError(f"{path}: a triangle names vertex {wrong}, but it has {len(vertices):,}")
    if (np.abs(np.linalg.det(placed.places[:, :3, :3])) < 1e-24).any():
        raise FileError(f"{path}: a mesh is placed with no size; remove that node")
