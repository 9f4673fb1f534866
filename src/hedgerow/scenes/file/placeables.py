# SPDX-License-Identifier: Apache-2.0
"""Placeables: the plants, mesh files, shapes and learned worlds of a scene file, made ready to be placed many times.

Each variant is made once, as a scene of its own that all its copies share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.labels import Label
from hedgerow.errors import FileError
from hedgerow.scenes import mesh as shapes
from hedgerow.scenes.file.mesh_file import PlacedPart, read_mesh
from hedgerow.scenes.file.read import Source
from hedgerow.scenes.file.schema import (
    BoxSpec,
    CylinderSpec,
    EllipsoidSpec,
    MeshSpec,
    PanelSpec,
    PlantSpec,
    PrimitiveSpec,
    Shape,
    WorldSpec,
)
from hedgerow.scenes.materials import Material, Surface
from hedgerow.scenes.mesh import Mesh, MeshPart
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.primitive import Library, PrimitiveFacts
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians
from hedgerow.world.load import load_world
from hedgerow.world.scene import Scene


@dataclass(frozen=True)
class Appearance:
    """Materials and labels of a scene: turns their names into what a laser of one wavelength meets."""

    materials: Mapping[str, Material]
    labels: Mapping[str, Label]
    wavelength_nm: float
    new_scene: Callable[[], Scene] = Scene
    """Makes an empty scene: a native one, or one that remembers what it is made of."""

    def add(self, scene: Scene, part: MeshPart, permeability: float = 0.0) -> None:
        """Add a mesh part to a scene."""
        surface: Surface = self.materials[part.material].at(self.wavelength_nm)
        if len(part.mesh.triangles):
            scene.add_mesh(
                *part.mesh,
                permeability=permeability,
                label=self.labels[part.label].number,
                reflectance=surface.reflectance,
                lambertian=surface.lambertian,
                noise=surface.noise,
            )

    def make_scene(self, parts: Sequence[MeshPart], permeability: float = 0.0) -> Scene:
        """Make a scene of mesh parts."""
        scene = self.new_scene()
        for part in parts:
            self.add(scene, part, permeability)
        return scene


class Placeable:
    """Something that can be placed, in one or more variants."""

    def __init__(
        self, variants: Sequence[Sequence[PlacedPart]], appearance: Appearance, permeability: float = 0.0
    ) -> None:
        """Take over the placed parts of each variant."""
        self._variants = variants
        self._appearance = appearance
        self.permeability = permeability

    @cached_property
    def scenes(self) -> list[Scene]:
        """One scene for each variant; what a mesh file places several times is placed, not copied."""
        return [self._make_scene(variant) for variant in self._variants]

    @property
    def n_triangles(self) -> int:
        """Different triangles of all variants."""
        return sum(len(part.mesh.triangles) for variant in self._variants for part, _ in variant)

    @cached_property
    def parts(self) -> list[tuple[MeshPart, ...]]:
        """The mesh parts of each variant, everything copied to its place; for merging into patches."""
        return [
            tuple(_moved(part, place) for part, places in variant for place in places) for variant in self._variants
        ]

    @cached_property
    def extents_m(self) -> Array:
        """(K, 3) length, width and height of each variant."""
        boxes = [np.vstack([part.mesh.vertices_m for part in parts]) for parts in self.parts]
        reach = [2 * np.abs(box[:, :2]).max(axis=0, initial=0) for box in boxes]
        return np.array([[*xy, box[:, 2].max(initial=0)] for xy, box in zip(reach, boxes, strict=True)])

    @property
    def n_gaussians(self) -> list[int]:
        """Number of Gaussians of each variant."""
        return [0] * len(self._variants)

    def turned(self, places: Array, variant: NDArray[np.int64], towards_rad: Array | None) -> Array:
        """Return (N, 4, 4) places, turned where a variant has a side that must face the path; meshes have none."""
        return places

    def _make_scene(self, variant: Sequence[PlacedPart]) -> Scene:
        scene = self._appearance.new_scene()
        for part, places in variant:
            if len(places) == 1:
                self._appearance.add(scene, _moved(part, places[0]), self.permeability)
            else:
                scene.place(self._appearance.make_scene([part], self.permeability), places)
        return scene


def _moved(part: MeshPart, place: Array) -> MeshPart:
    return part._replace(mesh=part.mesh.transformed(place))


class PlaceableWorld(Placeable):
    """A learned world that can be placed; it cannot be merged."""

    def __init__(self, scene: Scene, appearance: Appearance, n_gaussians: int) -> None:
        """Take over a scene."""
        super().__init__([], appearance)
        self._scene_of_world = scene
        self._n_gaussians = n_gaussians

    @property
    def n_gaussians(self) -> list[int]:
        """Number of Gaussians of the world."""
        return [self._n_gaussians]

    @cached_property
    def scenes(self) -> list[Scene]:
        """The world's own scene."""
        return [self._scene_of_world]


class PlaceablePrimitives(Placeable):
    """Learned primitives of one class; they cannot be merged."""

    def __init__(self, library: Library, numbers: Sequence[int], appearance: Appearance) -> None:
        """Take primitives of a library; they are read when they are placed."""
        super().__init__([], appearance)
        self._library, self._numbers = library, numbers

    @cached_property
    def _facts(self) -> list[PrimitiveFacts]:
        return [self._library.facts[number] for number in self._numbers]

    @cached_property
    def _assets(self) -> list[Asset]:
        return [self._library.read(number) for number in self._numbers]

    @cached_property
    def scenes(self) -> list[Scene]:
        """One scene for each primitive."""
        made: list[Scene] = []
        for asset in self._assets:
            made.append(self._appearance.new_scene())
            for part in asset.parts:
                part.add_to(made[-1])
        return made

    @property
    def names(self) -> list[str]:
        """Name of each primitive in its library."""
        return [self._library.names[number] for number in self._numbers]

    @cached_property
    def extents_m(self) -> Array:
        """(K, 3) length, width and height of each."""
        return np.array([each.extents_m for each in self._facts])

    @property
    def n_gaussians(self) -> list[int]:
        """Number of Gaussians of each."""
        return [sum(len(part) for part in asset.parts if isinstance(part, Gaussians)) for asset in self._assets]

    def turned(self, places: Array, variant: NDArray[np.int64], towards_rad: Array | None) -> Array:
        """Return (N, 4, 4) places in which primitives that were half seen face the path as they were seen.

        Args:
            places: as they would stand.
            variant: (N,) which primitive.
            towards_rad: (N,) direction from each place to the path, map frame; None if there is no path.
        """
        half = np.array([each.is_half_seen for each in self._facts])[variant]
        if towards_rad is None or not half.any():
            return places
        side = np.array([each.seen_side_rad for each in self._facts])[variant]
        yaw = np.arctan2(places[:, 1, 0], places[:, 0, 0])
        turn = np.where(half, towards_rad - side - yaw, 0.0)
        c, s = np.cos(turn), np.sin(turn)
        turned = places.copy()
        turned[:, 0, :3] = c[:, None] * places[:, 0, :3] - s[:, None] * places[:, 1, :3]
        turned[:, 1, :3] = s[:, None] * places[:, 0, :3] + c[:, None] * places[:, 1, :3]
        return turned


def make_primitives(name: str, spec: PrimitiveSpec, source: Source, appearance: Appearance) -> PlaceablePrimitives:
    """Open the primitives of a class in a library.

    Raises:
        FileError: the library cannot be used, or has none of that class; names the field.
    """
    try:
        library = Library(source.beside(spec.library or ""))
    except FileError as error:
        raise source.error(("primitives", name, "library"), str(error)) from None
    numbers = library.of_class(spec.class_name)
    if not numbers:
        there = ", ".join(sorted({facts.class_name for facts in library.facts}))
        said = f"{library.path.name} has no primitive of class {spec.class_name}; it has {there}"
        raise source.error(("primitives", name, "class"), said)
    return PlaceablePrimitives(library, numbers, appearance)


def make_placeable(
    name: str,
    spec: PlantSpec | MeshSpec | Shape | WorldSpec,
    source: Source,
    appearance: Appearance,
    seed: int,
) -> Placeable:
    """Make a placeable from what a scene file says about it.

    Args:
        name: its name in the file; seeds of plants belong to it.
        spec: what the file says.
        source: the file.
        appearance: materials and labels.
        seed: of the scene.

    Raises:
        FileError: its file cannot be used.
    """
    if isinstance(spec, PlantSpec):
        plant = PLANTS[spec.kind]
        parameters = plant.parameters(**spec.parameters)
        grown = [plant.make(parameters, named_rng(seed, name, k)) for k in range(spec.variants)]
        return Placeable([[_at_origin(part) for part in parts] for parts in grown], appearance)
    if isinstance(spec, MeshSpec):
        return Placeable([read_mesh(source.beside(spec.file), spec)], appearance, spec.permeability)
    if isinstance(spec, WorldSpec):
        return _placeable_world(name, spec, source, appearance)
    solid = MeshPart(solid_mesh(spec), spec.material, spec.label)
    return Placeable([[_at_origin(solid)]], appearance, spec.permeability)


def named_rng(seed: int, name: str, number: int = 0) -> np.random.Generator:
    """Return random numbers that belong to a name: they do not change when other names come or go."""
    return np.random.default_rng([seed, number, *name.encode()])


def _at_origin(part: MeshPart) -> PlacedPart:
    return PlacedPart(part, np.eye(4)[None])


def _placeable_world(name: str, spec: WorldSpec, source: Source, appearance: Appearance) -> Placeable:
    world = load_world(source.beside(spec.file))
    counts = world.size().tables
    if counts.get("points") or counts.get("beams"):
        raise source.error(("worlds", name, "file"), "is a world of points, which cannot stand beside meshes")
    pivot = np.eye(4)
    pivot[:3, 3] = -np.asarray(spec.pivot_m)
    moved = appearance.new_scene()
    moved.place(world.scene_of(appearance.new_scene), pivot)
    return PlaceableWorld(moved, appearance, counts.get("gaussians", 0))


def solid_mesh(spec: BoxSpec | CylinderSpec | PanelSpec | EllipsoidSpec) -> Mesh:
    """Make the mesh of a shape, which stands on (0, 0, 0) [m]."""
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
    """Lay an upright mesh down along x, its middle over the place, its lowest line on the ground."""
    x, y, z = standing.vertices_m.T
    return Mesh(np.stack([z - z.max() / 2, y, x - x.min()], axis=1), standing.triangles)


def _ellipsoid(size_m: NDArray[np.float64], sides: int) -> Mesh:
    polar = np.linspace(0, np.pi, sides // 2 + 1)
    turn = np.linspace(0, 2 * np.pi, sides + 1)
    grid = shapes.height_field(turn, polar, np.zeros((len(polar), len(turn))))  # a sheet to be wrapped round
    around, down = grid.vertices_m[:, 0], grid.vertices_m[:, 1]
    ball = np.stack([np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down) + 1], axis=1)
    return Mesh(ball * size_m / 2, grid.triangles)
