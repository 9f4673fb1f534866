# SPDX-License-Identifier: Apache-2.0
"""Stock: things made ready for placing, each variant once, as a scene of its own that all its copies share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError
from hedgerow.scenes import mesh as shapes
from hedgerow.scenes.file.cover import transformed
from hedgerow.scenes.file.read import Source
from hedgerow.scenes.file.schema import (
    BoxSpec,
    CylinderSpec,
    EllipsoidSpec,
    MeshSpec,
    PanelSpec,
    PlantSpec,
    Shape,
    WorldSpec,
)
from hedgerow.scenes.labels import Label
from hedgerow.scenes.materials import Material, Surface
from hedgerow.scenes.mesh import Mesh, Piece
from hedgerow.scenes.plants import PLANTS
from hedgerow.world.load import load_world
from hedgerow.world.scene import Scene

# Mesh files by trimesh: OBJ, PLY, STL, GLB. A mesh that a GLB places several times is kept once, with its places.


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


# Stock: things made ready for placing, each variant once, as a scene of its own that all its copies share.


@dataclass(frozen=True)
class Looks:
    """Turns names of materials and labels into what a laser meets."""

    materials: Mapping[str, Material]
    labels: Mapping[str, Label]
    wavelength_nm: float

    def add(self, scene: Scene, piece: Piece, permeability: float = 0.0) -> None:
        """Add a piece to a scene."""
        surface: Surface = self.materials[piece.material].at(self.wavelength_nm)
        if len(piece.mesh.triangles):
            scene.add_mesh(
                *piece.mesh,
                permeability=permeability,
                label=self.labels[piece.label].number,
                reflectance=surface.reflectance,
                lambertian=surface.lambertian,
                noise=surface.noise,
            )

    def scene(self, pieces: Sequence[Piece], permeability: float = 0.0) -> Scene:
        """Make a scene of pieces."""
        scene = Scene()
        for piece in pieces:
            self.add(scene, piece, permeability)
        return scene


class Thing:
    """Something that can be placed."""

    def __init__(self, variants: Sequence[Sequence[MeshPart]], looks: Looks, permeability: float = 0.0) -> None:
        """Take over meshes with their places inside the thing, for each variant."""
        self._variants = variants
        self._looks = looks
        self.permeability = permeability

    @cached_property
    def scenes(self) -> list[Scene]:
        """One scene for each variant; what a mesh file places several times is placed, not copied."""
        return [self._scene(parts) for parts in self._variants]

    @cached_property
    def pieces(self) -> list[tuple[Piece, ...]]:
        """The same as pieces, everything copied, for merging."""
        return [
            tuple(
                part.piece._replace(mesh=transformed(part.piece.mesh, place)) for part in parts for place in part.places
            )
            for parts in self._variants
        ]

    def _scene(self, parts: Sequence[MeshPart]) -> Scene:
        scene = Scene()
        for piece, places in parts:
            if len(places) == 1:
                mesh = transformed(piece.mesh, places[0])
                self._looks.add(scene, piece._replace(mesh=mesh), self.permeability)
            else:
                scene.place(self._looks.scene([piece], self.permeability), places)
        return scene


class LearnedThing(Thing):
    """A learned world that can be placed; it cannot be merged."""

    def __init__(self, scene: Scene, looks: Looks, n_gaussians: int) -> None:
        """Take over a scene."""
        super().__init__([], looks)
        self._scene_of_world = scene
        self.n_gaussians = n_gaussians

    @cached_property
    def scenes(self) -> list[Scene]:
        """The world's own scene."""
        return [self._scene_of_world]


def make_thing(
    name: str,
    spec: PlantSpec | MeshSpec | Shape | WorldSpec,
    source: Source,
    looks: Looks,
    seed: int,
) -> Thing:
    """Make a thing of a scene file ready.

    Args:
        name: of the thing; seeds of plants belong to it.
        spec: what the file says.
        source: the file.
        looks: materials and labels.
        seed: of the scene.

    Raises:
        FileError: its file cannot be used.
    """
    if isinstance(spec, PlantSpec):
        plant = PLANTS[spec.kind]
        parameters = plant.parameters(**spec.parameters)
        grown = [plant.make(parameters, named_rng(seed, name, k)) for k in range(spec.variants)]
        return Thing([[_once(piece) for piece in pieces] for pieces in grown], looks)
    if isinstance(spec, MeshSpec):
        return Thing([read_mesh(source.beside(spec.file), spec)], looks, spec.permeability)
    if isinstance(spec, WorldSpec):
        return _learned(name, spec, source, looks)
    return Thing([[_once(Piece(solid_mesh(spec), spec.material, spec.label))]], looks, spec.permeability)


def named_rng(seed: int, name: str, number: int = 0) -> np.random.Generator:
    """Return random numbers that belong to a name: they do not change when other things come or go."""
    return np.random.default_rng([seed, number, *name.encode()])


def _once(piece: Piece) -> MeshPart:
    return MeshPart(piece, np.eye(4)[None])


def _learned(name: str, spec: WorldSpec, source: Source, looks: Looks) -> Thing:
    world = load_world(source.beside(spec.file))
    counts = world.size().tables
    if counts.get("points"):
        raise source.error(("worlds", name, "file"), "is a world of points, which cannot stand beside meshes")
    scene: Scene | None = getattr(world, "scene", None)
    if scene is None:
        raise FileError(f"{spec.file}: has no scene")
    pivot = np.eye(4)
    pivot[:3, 3] = -np.asarray(spec.pivot_m)
    moved = Scene()
    moved.place(scene, pivot)
    return LearnedThing(moved, looks, counts.get("gaussians", 0))


# Meshes of the simple solids of a scene file; each stands on (0, 0, 0).


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
