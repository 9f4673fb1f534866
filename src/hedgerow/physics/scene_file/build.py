# SPDX-License-Identifier: Apache-2.0
"""Build a scene from a checked scene file: ground, walls, objects one by one, then the scatter rules in their order."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import FileError, InputError
from hedgerow.physics.piece import Piece, n_triangles
from hedgerow.physics.plants import PLANTS
from hedgerow.physics.plants.grass import PatchParameters
from hedgerow.physics.plants.plant import Plant
from hedgerow.physics.scene_file.cover import Covered, Grow, cover
from hedgerow.physics.scene_file.patches import grass_patch, joined_pieces, merged_patch
from hedgerow.physics.scene_file.paths import Polyline
from hedgerow.physics.scene_file.placing import ObjectSpec, ScatterSpec
from hedgerow.physics.scene_file.read import Source
from hedgerow.physics.scene_file.references import all_labels, all_materials, check_patch_rules
from hedgerow.physics.scene_file.region import Region
from hedgerow.physics.scene_file.scatter import scattered, transforms
from hedgerow.physics.scene_file.schema import SceneFile
from hedgerow.physics.scene_file.stock import LearnedThing, Looks, Thing, make_thing, named_rng
from hedgerow.physics.scene_file.walls import wall_mesh
from hedgerow.physics.terrain import Terrain
from hedgerow.world.scene import Scene

Stages = Callable[[str, int, int], object]
"""Called with a stage, how much of it is done, and how much there is."""

MERGED_FROM_PER_M2 = 1.0
"""Copies this dense are merged into patches, if they are light."""
LIGHT_TRIANGLES = 500
"""Heavier things are placed one by one however dense: cut at borders, they would fill the memory."""


@dataclass
class Built:
    """A scene and what was counted while building it."""

    scene: Scene
    terrain: Terrain
    trail: Polyline | None
    n_copies: dict[str, int] = field(default_factory=dict[str, int])
    """Copies placed by each object and rule; for grass, blades."""
    n_gaussians: int = 0
    gap_m: float = 0.0
    """Largest distance between a merged patch's foot and the ground [m]."""


class Builder:
    """Builds one scene."""

    def __init__(self, file: SceneFile, source: Source, *, wavelength_nm: float, seed: int, say: Stages) -> None:
        """Prepare; nothing is made yet."""
        self._file, self._source, self._seed, self._say = file, source, seed, say
        self._looks = Looks(all_materials(file), all_labels(file), wavelength_nm)
        self._things: dict[str, Thing] = {}
        self._feet: dict[str, Array] = {}

    def build(self) -> Built:
        """Build the scene.

        Raises:
            FileError: something does not fit; names the field.
        """
        file = self._file
        terrain, trail = self._ground()
        low_x, low_y, high_x, high_y = terrain.bounds_m
        middle = np.rint([(low_x + high_x) / 2, (low_y + high_y) / 2, float(terrain.z_m.mean())])
        self._built = Built(Scene(middle), terrain, trail)
        grass = {name: self._grass(rule) is not None for name, rule in file.scatter.items()}
        merged = {name: grass[name] or self._is_dense(rule) for name, rule in file.scatter.items()}
        check_patch_rules(file, self._source, merged, grass)
        total = 1 + len(file.walls) + len(file.objects) + len(file.scatter)
        for piece in terrain.pieces():
            self._looks.add(self._built.scene, piece)
        steps = [(self._add_wall, name) for name in file.walls] + [(self._add_object, name) for name in file.objects]
        steps += [(self._cover if merged[name] else self._scatter, name) for name in file.scatter]
        for done, (step, name) in enumerate(steps, start=1):
            self._say("building the scene", done, total)
            step(name)
        self._say("building the scene", total, total)
        return self._built

    def _ground(self) -> tuple[Terrain, Polyline | None]:
        from hedgerow.physics.scene_file.landscape import make_terrain, make_trail

        terrain = make_terrain(self._file, self._source, self._seed)
        return make_trail(self._file, self._source, terrain)

    def _grass(self, rule: ScatterSpec) -> PatchParameters | None:
        """Parameters of the rule's plant if that is a grass, which fills a patch by itself."""
        plant = self._file.plants.get(rule.what)
        parameters = None if plant is None else PLANTS[plant.kind].parameters(**plant.parameters)
        return parameters if isinstance(parameters, PatchParameters) else None

    def _is_dense(self, rule: ScatterSpec) -> bool:
        if rule.what in self._file.worlds or (rule.density_per_m2 or 0) < MERGED_FROM_PER_M2:
            return False
        return max(n_triangles(pieces) for pieces in self._thing(rule.what).pieces) <= LIGHT_TRIANGLES

    def _thing(self, name: str) -> Thing:
        if name not in self._things:
            spec = self._file.things()[name]
            self._things[name] = make_thing(name, spec, self._source, self._looks, self._seed)
        return self._things[name]

    def _add_wall(self, name: str) -> None:
        spec = self._file.walls[name]
        try:
            mesh = wall_mesh(spec, self._built.terrain)
        except InputError as error:
            raise self._refusal(("walls", name), error) from None
        self._looks.add(self._built.scene, Piece(mesh, spec.material, spec.label), spec.permeability)

    def _add_object(self, name: str) -> None:
        spec, thing = self._file.objects[name], self._thing(self._file.objects[name].what)
        places = self._object_places(name, spec)
        n = len(thing.scenes)
        variant = np.arange(len(places)) % n if spec.variant is None else np.full(len(places), spec.variant)
        self._place(thing, places, variant)
        self._feet[name] = places[:, :2, 3]
        self._built.n_copies[name] = len(places)

    def _object_places(self, name: str, spec: ObjectSpec) -> Array:
        count, step = (1, [0.0, 0.0]) if spec.repeat is None else (spec.repeat.count, spec.repeat.step_m)
        at = np.zeros((count, 3))
        at[:, : len(spec.at_m)] = spec.at_m
        at[:, : len(step)] += np.arange(count)[:, None] * step
        if len(spec.at_m) == 2:
            if not self._built.terrain.contains(*at[:, :2].T).all():
                raise self._source.error(("objects", name, "at_m"), "lies off the terrain")
            at[:, 2] += self._built.terrain.height_m(*at[:, :2].T)
        yaw, pitch = np.radians(spec.yaw_deg), np.radians(spec.pitch_deg)
        turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
        nod = np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]])
        places = np.tile(np.eye(4), (count, 1, 1))
        places[:, :3, :3] = spec.scale * turn @ nod
        places[:, :3, 3] = at
        return places

    def _region(self, name: str) -> Region:
        rule = self._file.scatter[name]
        others = [(self._feet[other], distance_m) for other, distance_m in rule.away_from.items()]
        return Region(rule, self._built.terrain, self._built.trail, others)

    def _scatter(self, name: str) -> None:
        region, rng = self._region(name), named_rng(self._seed, name)
        xy = scattered(region, rng, lambda field, said: self._source.error(("scatter", name, field), said))
        feet = np.column_stack([xy, self._built.terrain.height_m(*xy.T)])
        thing = self._thing(region.rule.what)
        self._place(thing, transforms(feet, region.rule, rng), rng.integers(0, len(thing.scenes), len(xy)))
        self._feet[name] = xy
        self._built.n_copies[name] = len(xy)

    def _cover(self, name: str) -> None:
        region, rng = self._region(name), named_rng(self._seed, name)
        rule, plant = region.rule, self._file.plants.get(region.rule.what)
        density = rule.density_per_m2 or (rule.count or 0) / max(region.box_area_m2, 1e-9)
        parameters = self._grass(rule)
        grow = self._merged(rule, density)
        if parameters is not None and plant is not None:
            grow = _of_grass(PLANTS[plant.kind], parameters, density)
        covered = cover(region, density, 3 if plant is None else plant.variants, grow, rng)
        self._add_covered(covered, self._thing(rule.what).permeability if parameters is None else 0.0)
        self._feet[name] = np.zeros((0, 2))
        self._built.n_copies[name] = covered.n_plants
        self._built.gap_m = max(self._built.gap_m, covered.gap_m)

    def _merged(self, rule: ScatterSpec, density: float) -> Grow:
        return lambda side_m, rng: merged_patch(self._thing(rule.what).pieces, rule, side_m, density, rng)

    def _add_covered(self, covered: Covered, permeability: float) -> None:
        for patch, places in covered.placed:
            self._built.scene.place(self._looks.scene(patch.pieces, permeability), places)
        for piece in joined_pieces(covered.single):
            self._looks.add(self._built.scene, piece, permeability)

    def _place(self, thing: Thing, places: Array, variant: NDArray[np.int64]) -> None:
        for k, scene in enumerate(thing.scenes):
            if (variant == k).any():
                self._built.scene.place(scene, places[variant == k])
        if isinstance(thing, LearnedThing):
            self._built.n_gaussians += thing.n_gaussians * len(places)

    def _refusal(self, place: tuple[str, ...], error: InputError) -> FileError:
        return self._source.error((*place, error.field), error.said)


def _of_grass(plant: Plant, parameters: PatchParameters, density_per_m2: float) -> Grow:
    return lambda side_m, rng: grass_patch(plant, parameters, side_m, density_per_m2, rng)
