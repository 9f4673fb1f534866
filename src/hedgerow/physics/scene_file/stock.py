# SPDX-License-Identifier: Apache-2.0
"""Stock: things made ready for placing, each variant once, as a scene of its own that all its copies share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.errors import FileError
from hedgerow.physics.labels import Label
from hedgerow.physics.materials import Material, Surface
from hedgerow.physics.piece import Piece
from hedgerow.physics.plants import PLANTS
from hedgerow.physics.scene_file.meshes import MeshPart, read_mesh
from hedgerow.physics.scene_file.patches import transformed
from hedgerow.physics.scene_file.read import Source
from hedgerow.physics.scene_file.solids import solid_mesh
from hedgerow.physics.scene_file.things import MeshSpec, PlantSpec, Shape, WorldSpec
from hedgerow.world.load import load_world
from hedgerow.world.scene import Scene


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
