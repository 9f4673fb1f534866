# SPDX-License-Identifier: Apache-2.0
"""Meshes of plants from elsewhere, made ready to fill boxes: what Tallavajhula 2018 §4.3.2 compares primitives with.

Free meshes of single plants are few, as the thesis found too. From a folder `meshes`: nine low-poly trees (Kenney,
CC0), parted from the two tiles of ground that they stand on, for the three classes of trees; a fern, a greater
celandine and a clump of grass (MAVS, MIT), scaled up to the boxes of shrubs. Without the folder: plain solids of our
own, of the same make as Kenney's: two blunt cones on a trunk, and for shrubs an ellipsoid.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError
from hedgerow.reproduce.composition.sites import Things
from hedgerow.scenes.annotation import PLANT_CLASSES
from hedgerow.scenes.file.placeables import solid_mesh
from hedgerow.scenes.file.schema import EllipsoidSpec
from hedgerow.scenes.mesh import Mesh, cylinder, join_meshes

FOLDER = "meshes"
_TREES = ("kenney/grass-trees.glb", "kenney/grass-trees-tall.glb")
_SHRUBS = ("mavs/fern_1.obj", "mavs/greater_celandine_1.obj", "mavs/grass_clump_2.obj")
_TILE_M = 0.06
"""What of Kenney's tiles is no higher than this is their ground."""


def foreign_meshes(data: Path, folder: Path, sigma_m: float) -> Things:
    """Copy the meshes of a folder, one file a plant, and return tables of a scene file that fill boxes with them.

    Args:
        data: holds the folder `meshes`.
        folder: of the scene files; the plants are written there.
        sigma_m: spread of returns about their surfaces.

    Raises:
        FileError: a mesh is missing or cannot be read.
    """
    trees = [tree for name in _TREES for tree in _trees_of(data / FOLDER / name)]
    shrubs = [_on_foot(_read(data / FOLDER / name, up="z")) for name in _SHRUBS]
    return _things(folder, "foreign", trees, shrubs, sigma_m)


def plain_solids(folder: Path, sigma_m: float) -> Things:
    """Return tables that fill boxes with plain solids: cones on trunks, ellipsoids."""
    trunk = cylinder((0, 0, 0), 0.4, 0.04, sides=8)
    cones = [cylinder((0, 0, z), 0.4, r, 0.3 * r, sides=8) for z, r in ((0.25, 0.25), (0.6, 0.2))]
    bush = solid_mesh(EllipsoidSpec(kind="ellipsoid", size_m=[1.0, 1.0, 1.0], sides=12))
    return _things(folder, "solid", [join_meshes(trunk, *cones)], [bush], sigma_m)


def _things(folder: Path, kind: str, trees: list[Mesh], shrubs: list[Mesh], sigma_m: float) -> Things:
    tables = [
        f'[materials.mesh-leaf]\nabout = "leaves of a mesh, with noise"\nwavelength_nm = [905]\nreflectance = [0.55]\n'
        f"sigma0_m = {sigma_m}"
    ]
    for what, plants in (("tree", trees), ("shrub", shrubs)):
        names = [f"{kind}-{what}-{k}" for k in range(len(plants))]
        for name, plant in zip(names, plants, strict=True):
            _write_obj(folder / f"{name}.obj", plant)
            tables.append(f'[meshes.{name}]\nfile = "{name}.obj"\nmaterial = "mesh-leaf"\nlabel = "vegetation"')
        for class_name in PLANT_CLASSES:
            if class_name.endswith(what):
                tables += [_primitive(class_name, name) for name in names]
    return Things("\n\n".join(tables), scale="box")


def _primitive(class_name: str, mesh: str) -> str:
    return f'[primitives.{class_name}-{mesh}]\nof = "{mesh}"\nclass = "{class_name}"'


def _read(path: Path, up: str) -> Mesh:
    """Read a mesh file as one mesh, z up."""
    import trimesh

    if not path.is_file():
        raise FileError(f"{path}: is not there; --data wants the folder that holds {FOLDER}/kenney and {FOLDER}/mavs")
    try:
        scene: Any = trimesh.load_scene(path, process=False)  # pyright: ignore[reportUnknownMemberType]
        parts: list[Mesh] = []
        for node in sorted(scene.graph.nodes_geometry):
            transform, name = scene.graph[node]
            corners = np.asarray(scene.geometry[name].vertices) @ transform[:3, :3].T + transform[:3, 3]
            parts.append(Mesh(corners, np.asarray(scene.geometry[name].faces, dtype=np.int64)))
    except Exception as error:  # trimesh's readers raise whatever their formats meet
        raise FileError(f"{path}: cannot be read as a mesh: {error}") from error
    mesh = join_meshes(*parts)
    return Mesh(mesh.vertices_m[:, [0, 2, 1]] * [1, -1, 1], mesh.triangles) if up == "y" else mesh


def _trees_of(path: Path) -> list[Mesh]:
    """Part a tile into its trees: pieces whose middles lie near one another, without the ground."""
    mesh = _read(path, up="y")
    piece = _pieces(mesh)
    boxes = [mesh.vertices_m[np.unique(mesh.triangles[piece == k])] for k in range(int(piece.max()) + 1)]
    middle = np.array([(box.min(axis=0) + box.max(axis=0))[:2] / 2 for box in boxes])
    tall = np.array([box[:, 2].max() > _TILE_M for box in boxes])
    trunks = [k for k, box in enumerate(boxes) if tall[k] and box[:, 2].min() <= _TILE_M]
    trees: list[Mesh] = []
    for trunk in trunks:
        near = [k for k in range(len(boxes)) if tall[k] and _nearest(middle[k], middle[trunks]) == trunks.index(trunk)]
        trees.append(_on_foot(Mesh(mesh.vertices_m, mesh.triangles[np.isin(piece, near)])))
    return trees


def _nearest(place: Array, others: Array) -> int:
    return int(np.argmin(np.linalg.norm(others - place, axis=1)))


def _pieces(mesh: Mesh) -> NDArray[np.int64]:
    """(T,) which connected piece each triangle belongs to; corners at one place are one."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    _, same = np.unique(mesh.vertices_m.round(4), axis=0, return_inverse=True)
    corner: NDArray[np.int64] = same.ravel()[mesh.triangles]
    n = int(corner.max()) + 1
    ends = np.concatenate([corner[:, :2], corner[:, 1:]])
    graph: Any = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    found: Any = connected_components(graph, directed=False)
    return np.asarray(found[1], dtype=np.int64)[corner[:, 0]]


def _on_foot(mesh: Mesh) -> Mesh:
    """Return the corners that triangles use, their foot at zero and their middle over it."""
    used, index = np.unique(mesh.triangles, return_inverse=True)
    corners = mesh.vertices_m[used]
    low, high = corners.min(axis=0), corners.max(axis=0)
    foot = np.array([*((low + high)[:2] / 2), low[2]])
    return Mesh(corners - foot, index.reshape(mesh.triangles.shape))


def _write_obj(path: Path, mesh: Mesh) -> None:
    lines = [f"v {x:.5f} {y:.5f} {z:.5f}" for x, y, z in mesh.vertices_m.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.triangles.tolist()]
    path.write_text("\n".join(lines) + "\n")
