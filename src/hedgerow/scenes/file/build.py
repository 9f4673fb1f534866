# SPDX-License-Identifier: Apache-2.0
"""Build a scene from a checked scene file: ground, walls, objects one by one, then the scatter rules in their order."""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.progress import StepProgress
from hedgerow.errors import FileError, InputError
from hedgerow.scenes.annotation import Annotation, label_of
from hedgerow.scenes.file.boxes import box_places, read_boxes
from hedgerow.scenes.file.budget import Budget
from hedgerow.scenes.file.cover import GroundCover, Grow, cover, grow_patch, merge_patch
from hedgerow.scenes.file.placeables import (
    Appearance,
    Placeable,
    PlaceablePrimitives,
    make_placeable,
    make_primitives,
    named_rng,
)
from hedgerow.scenes.file.read import Source
from hedgerow.scenes.file.references import all_labels, all_materials, check_patch_rules
from hedgerow.scenes.file.scatter import Region, draw_places, random_transforms
from hedgerow.scenes.file.schema import (
    ANNOTATION,
    AnnotationSpec,
    MeshSpec,
    ObjectSpec,
    PlantSpec,
    PrimitiveSpec,
    ScatterSpec,
    SceneFile,
    TerrainSpec,
    WallSpec,
)
from hedgerow.scenes.mesh import Mesh, MeshPart, count_triangles, join_meshes, join_parts
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.plants.grass import PatchParameters
from hedgerow.scenes.plants.plant import Plant
from hedgerow.scenes.primitive import nearest_extents
from hedgerow.scenes.terrain import Terrain
from hedgerow.scenes.trail import Polyline
from hedgerow.world.recording import RecordingScene
from hedgerow.world.scene import Scene

MERGED_FROM_PER_M2 = 1.0
"""Copies at least this dense are merged into patches, if they are light."""
LIGHT_TRIANGLES = 500
"""Placeables with more triangles are placed one by one however dense: cut at borders, they would fill the memory."""
_TRAIL_STEP_M = 1.0
"""Distance between the points of the line along which a trail is cut."""


@dataclass
class Built:
    """A scene and what was counted while building it."""

    scene: Scene
    terrain: Terrain
    trail: Polyline | None
    """Middle line of the trail, if there is one."""
    n_copies: dict[str, int] = field(default_factory=dict[str, int])
    """Copies placed by each object and rule; for grass, blades."""
    n_gaussians: int = 0
    largest_gap_m: float = 0.0
    """Largest distance between a merged patch's foot and the ground [m]."""
    class_of_object: list[NDArray[np.uint16]] = field(default_factory=list[NDArray[np.uint16]])
    """Numbers of the classes of the objects, which are numbered from 1 on in the order of placing; 0 is none."""
    n_objects: int = 0
    asset_names: dict[int, str] = field(default_factory=dict[int, str])
    """What to call the scenes that were placed, by their identity."""


class Builder:
    """Builds one scene: ground, walls and objects, then rule after rule, each knowing what stands already."""

    def __init__(
        self,
        file: SceneFile,
        source: Source,
        *,
        wavelength_nm: float,
        seed: int,
        report: StepProgress,
        record: bool = False,
    ) -> None:
        """Prepare; nothing is made yet. With `record`, scenes remember what they are made of."""
        self._file, self._source, self._seed, self._report = file, source, seed, report
        self._new_scene = RecordingScene if record else Scene
        self._appearance = Appearance(all_materials(file), all_labels(file), wavelength_nm, self._new_scene)
        self._placeables: dict[str, Placeable] = {}
        self._feet: dict[str, Array] = {}  # (N, 2) of what each object and rule has placed
        self._budget = Budget()

    def build(self) -> Built:
        """Build the scene.

        Raises:
            FileError: something does not fit; names the field.
        """
        file = self._file
        terrain, trail = make_trail(file, self._source, make_terrain(file, self._source, self._seed))
        low_x, low_y, high_x, high_y = terrain.bounds_m
        middle = np.rint([(low_x + high_x) / 2, (low_y + high_y) / 2, float(terrain.z_m.mean())])
        self._built = Built(self._new_scene(middle), terrain, trail)
        grass = {name: self._grass(rule) is not None for name, rule in file.scatter.items()}
        merged = {name: grass[name] or self._is_dense(name) for name in file.scatter}
        check_patch_rules(file, self._source, merged, grass)
        self._count_objects()
        total = 2 + len(file.walls) + len(file.objects) + len(file.scatter)
        for part in terrain.parts():
            self._appearance.add(self._built.scene, part)
        steps = [(self._add_wall, "walls", name) for name in file.walls]
        steps += [(self._add_object, "objects", name) for name in file.objects]
        steps += [(self._add_annotation, ANNOTATION, "")] if file.annotation is not None else []
        steps += [(self._cover if merged[name] else self._scatter, "scatter", name) for name in file.scatter]
        for done, (step, table, name) in enumerate(steps, start=1):
            self._report("building the scene", done, total)
            try:
                step(name)
            except InputError as error:
                place = (table, name, error.field) if name else (table, error.field)
                raise self._source.error(place, error.said) from None
        self._report("building the scene", total, total)
        return self._built

    def _count_objects(self) -> None:
        for name, spec in self._file.objects.items():
            try:
                self._budget.take_copies(1 if spec.repeat is None else spec.repeat.count, "repeat")
            except InputError as error:
                raise self._source.error(("objects", name, error.field), error.said) from None

    def _grass(self, rule: ScatterSpec) -> PatchParameters | None:
        """Parameters of the rule's plant if that is a grass, which fills a patch by itself."""
        plant = self._file.plants.get(rule.what)
        parameters = None if plant is None else PLANTS[plant.kind].parameters(**plant.parameters)
        return parameters if isinstance(parameters, PatchParameters) else None

    def _is_dense(self, name: str) -> bool:
        rule = self._file.scatter[name]
        learned = rule.what in self._file.worlds or rule.what in self._file.primitives
        if learned or (rule.density_per_m2 or 0) < MERGED_FROM_PER_M2:
            return False
        try:
            return self._most_triangles(rule) <= LIGHT_TRIANGLES
        except InputError as error:
            raise self._source.error(("scatter", name, error.field), error.said) from None

    def _most_triangles(self, rule: ScatterSpec) -> int:
        return max(count_triangles(parts) for parts in self._placeable(rule.what).parts)

    def _placeable(self, name: str) -> Placeable:
        spec = self._file.placeables()[name]
        if isinstance(spec, PrimitiveSpec):
            if spec.of is not None:
                return self._placeable(spec.of)
            if name not in self._placeables:
                self._placeables[name] = make_primitives(name, spec, self._source, self._appearance)
            return self._placeables[name]
        if name not in self._placeables:
            if isinstance(spec, PlantSpec):
                grown = PLANTS[spec.kind].parameters(**spec.parameters)
                self._budget.take_triangles(spec.variants * grown.n_triangles, "what")
            self._placeables[name] = make_placeable(name, spec, self._source, self._appearance, self._seed)
            if isinstance(spec, MeshSpec):
                self._budget.take_triangles(self._placeables[name].n_triangles, "what")
        return self._placeables[name]

    def _add_wall(self, name: str) -> None:
        spec = self._file.walls[name]
        mesh = wall_mesh(spec, self._built.terrain)
        self._budget.take_triangles(len(mesh.triangles), "path_m")
        self._appearance.add(self._built.scene, MeshPart(mesh, spec.material, spec.label), spec.permeability)

    def _add_object(self, name: str) -> None:
        spec = self._file.objects[name]
        placeable, places = self._placeable(spec.what), self._object_places(name, spec)
        n = len(placeable.scenes)
        if spec.variant is not None and spec.variant >= n:
            raise InputError("variant", f"{spec.variant}, but {spec.what} has {n}, from 0 on")
        variant = np.arange(len(places)) % n if spec.variant is None else np.full(len(places), spec.variant)
        self._place(spec.what, placeable, places, variant)
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
        expected = (region.rule.density_per_m2 or 0.0) * region.box_area_m2
        self._budget.take_copies(region.rule.count or expected, "density_per_m2")
        xy = draw_places(region, rng, lambda field, said: self._source.error(("scatter", name, field), said))
        feet = np.column_stack([xy, self._built.terrain.height_m(*xy.T)])
        placeable, places = self._placeable(region.rule.what), random_transforms(feet, region.rule, rng)
        self._place(region.rule.what, placeable, places, rng.integers(0, len(placeable.scenes), len(xy)), path=True)
        self._feet[name] = xy
        self._built.n_copies[name] = len(xy)

    def _cover(self, name: str) -> None:
        region, rng = self._region(name), named_rng(self._seed, name)
        rule, plant = region.rule, self._file.plants.get(region.rule.what)
        density = rule.density_per_m2 or (rule.count or 0) / max(region.box_area_m2, 1e-9)
        parameters = self._grass(rule)
        if parameters is not None and plant is not None:
            grow, n_triangles = _grow_grass(PLANTS[plant.kind], parameters, density), parameters.triangles_per_stem
        else:
            grow, n_triangles = self._grow_merged(rule, density), self._most_triangles(rule)
        covered = cover(region, density, 3 if plant is None else plant.variants, grow, rng, self._budget, n_triangles)
        self._add_cover(covered, self._placeable(rule.what).permeability if parameters is None else 0.0)
        self._feet[name] = np.zeros((0, 2))
        self._built.n_copies[name] = covered.n_plants
        self._built.largest_gap_m = max(self._built.largest_gap_m, covered.largest_gap_m)

    def _grow_merged(self, rule: ScatterSpec, density: float) -> Grow:
        return lambda side_m, rng: merge_patch(self._placeable(rule.what).parts, rule, side_m, density, rng)

    def _add_cover(self, covered: GroundCover, permeability: float) -> None:
        for patch, places in covered.placed:
            self._built.scene.place(self._appearance.make_scene(patch.parts, permeability), places)
        for part in join_parts(covered.cut_parts):
            self._appearance.add(self._built.scene, part, permeability)

    def _place(
        self, what: str, placeable: Placeable, places: Array, variant: NDArray[np.int64], *, path: bool = False
    ) -> None:
        """Place copies, each an object; with `path`, those that were half seen face it."""
        built, spec = self._built, self._file.primitives.get(what)
        places = placeable.turned(places, variant, self._towards_path(places[:, :2, 3]) if path else None)
        first, built.n_objects = built.n_objects + 1, built.n_objects + len(places)
        number = np.arange(first, first + len(places), dtype=np.uint32)
        class_label = 0 if spec is None else label_of(spec.class_name)
        built.class_of_object.append(np.full(len(places), class_label, dtype=np.uint16))
        label = self._label(spec)
        for k, scene in enumerate(placeable.scenes):
            if (variant == k).any():
                names = placeable.names if isinstance(placeable, PlaceablePrimitives) else None
                built.asset_names.setdefault(id(scene), names[k] if names else f"{_plain_name(what)}-{k}")
                built.scene.place(scene, places[variant == k], label=label, object=number[variant == k])
        built.n_gaussians += int(np.array(placeable.n_gaussians, dtype=np.int64)[variant].sum())

    def _label(self, spec: PrimitiveSpec | None) -> int:
        """Number of the label that replaces those of the elements; -1 keeps them."""
        if spec is None or spec.label == "keep":
            return -1
        if spec.label is None:
            return label_of(spec.class_name)
        return self._appearance.labels[spec.label].number

    def _towards_path(self, xy_m: Array) -> Array | None:
        """Direction from places to the trail, or to the first trajectory along waypoints; None without either."""
        path = self._built.trail
        if path is None:
            lines = [spec for spec in self._file.trajectories.values() if spec.waypoints_m is not None]
            path = Polyline(lines[0].waypoints_m or [], smooth=lines[0].smooth) if lines else None
        return None if path is None else path.bearing_rad(xy_m)

    def _add_annotation(self, _: str) -> None:
        """Fill each box with a primitive of its class."""
        spec = self._file.annotation
        assert spec is not None
        boxes = read_boxes(spec, self._source, self._built.terrain)
        self._budget.take_copies(len(boxes), "file")
        rng = named_rng(self._seed, ANNOTATION)
        named: dict[str, list[str]] = {}
        for name, primitives in self._file.primitives.items():
            named.setdefault(primitives.class_name, []).append(name)
        for class_name in sorted(set(boxes.class_name.tolist())):
            if class_name not in named:
                said = f"has boxes of class {class_name}, but no [primitives.*] is of that class; add one"
                raise InputError("file", said)
            rows = boxes[boxes.class_name == class_name]
            self._fill_boxes(named[class_name], rows, spec, rng)
        self._feet[ANNOTATION] = boxes.position_m[:, :2]
        self._built.n_copies[ANNOTATION] = len(boxes)

    def _fill_boxes(self, names: list[str], boxes: Annotation, spec: AnnotationSpec, rng: np.random.Generator) -> None:
        things = [self._placeable(name) for name in names]
        extents = np.vstack([thing.extents_m for thing in things])
        chosen = nearest_extents(extents, boxes.size_m, spec.among, rng)
        ends = np.cumsum([len(thing.extents_m) for thing in things])
        places = box_places(boxes, extents[chosen], spec.scale)
        for name, thing, end in zip(names, things, ends, strict=True):
            first = end - len(thing.extents_m)
            mine = (chosen >= first) & (chosen < end)
            if mine.any():
                self._place(name, thing, places[mine], chosen[mine] - first, path=True)


def _plain_name(what: str) -> str:
    """Return a name of the file as assets may have it."""
    return re.sub(r"[^a-z0-9_-]", "_", what.lower()) or "thing"


def _grow_grass(plant: Plant, parameters: PatchParameters, density_per_m2: float) -> Grow:
    return lambda side_m, rng: grow_patch(plant, parameters, side_m, density_per_m2, rng)


def make_terrain(file: SceneFile, source: Source, seed: int) -> Terrain:
    """Make the terrain of a scene file, without its trail.

    Raises:
        FileError: a value or the raster cannot be used; names the field.
    """
    spec = file.terrain
    try:
        terrain = _terrain_of_kind(file, source, seed)
    except InputError as error:
        raise source.error(("terrain", error.field), error.said) from None
    if spec.kind == "raster" and spec.model_fields_set & {"middle_m"}:
        low_x, low_y, high_x, high_y = terrain.bounds_m
        x, y = spec.middle_m
        terrain = terrain.moved((x - (low_x + high_x) / 2, y - (low_y + high_y) / 2, 0))
    if spec.kind != "flat" and spec.height_m:
        terrain = terrain.moved((0, 0, spec.height_m))
    return replace(terrain, cover_kinds=((spec.material, spec.label),))


def make_trail(file: SceneFile, source: Source, terrain: Terrain) -> tuple[Terrain, Polyline | None]:
    """Cut the trail of a scene file, if it has one, into the terrain; return its middle line too.

    Raises:
        FileError: a value does not fit the terrain; names the field.
    """
    spec = file.trail
    if spec is None:
        return terrain, None
    line = Polyline(spec.path_m, smooth=spec.smooth)
    coarse = Polyline(spec.path_m, smooth=spec.smooth, step_m=_TRAIL_STEP_M)
    if file.terrain.kind == "flat":
        terrain = terrain.resampled(file.terrain.spacing_m)
    how = {name: getattr(spec, name) for name in type(spec).model_fields if name not in ("path_m", "smooth", "width_m")}
    try:
        return terrain.with_trail(coarse.points_m, spec.width_m, **how), line
    except InputError as error:
        raise source.error(("trail", error.field), error.said) from None


def _terrain_of_kind(file: SceneFile, source: Source, seed: int) -> Terrain:
    spec = file.terrain
    if spec.kind == "raster":
        heights = None if spec.height_range_m is None else (spec.height_range_m[0], spec.height_range_m[1])
        path = source.beside(spec.file or "")
        return Terrain.from_raster(path, metres_per_pixel=spec.metres_per_pixel, height_range_m=heights)
    if spec.kind == "log":
        return _terrain_of_log(spec, source)
    size, middle = tuple(spec.size_m or ()), tuple(spec.middle_m)
    if spec.kind == "flat":
        flat = Terrain.flat((size[0], size[1]), height_m=spec.height_m)
        return flat.moved((*middle, 0))
    return Terrain.from_noise(
        seed if spec.seed is None else spec.seed,
        (size[0], size[1]),
        relief_m=spec.relief_m,
        wavelength_m=spec.wavelength_m,
        octaves=spec.octaves,
        roughness=spec.roughness,
        spacing_m=spec.spacing_m,
        middle_m=(middle[0], middle[1]),
    )


def _terrain_of_log(spec: TerrainSpec, source: Source) -> Terrain:
    """Fit the ground to the points of a log, a world or a cloud; errors name the field."""
    from hedgerow.scenes.ground_fit import GroundSettings, ground_of
    from hedgerow.scenes.point_source import open_points

    try:
        ground = ground_of(
            open_points(source.beside(spec.file or "")), GroundSettings(spacing_m=spec.spacing_m), thin=spec.thin
        )
    except FileError as error:
        raise InputError("file", str(error)) from None
    except InputError as error:
        field = error.field if error.field in TerrainSpec.model_fields else "file"
        raise InputError(field, error.said if field == error.field else str(error)) from None
    if spec.size_m is not None:
        x, y = spec.middle_m
        if not spec.model_fields_set & {"middle_m"}:
            x, y = ((float(each[0]) + float(each[-1])) / 2 for each in (ground.x_m, ground.y_m))
        ground = ground.cropped((spec.size_m[0], spec.size_m[1]), (x, y))
    return ground.terrain()


def wall_mesh(spec: WallSpec, terrain: Terrain) -> Mesh:
    """Make the mesh of a wall, its foot on the ground: one sheet; or two, a top and two ends if it has a thickness.

    Raises:
        InputError: a corner lies off the terrain; names the field.
    """
    corners = np.array([*spec.path_m, spec.path_m[0]] if spec.closed else spec.path_m)
    outside = ~terrain.contains(*corners.T)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("path_m", f"corner {row}, ({corners[row, 0]:g}, {corners[row, 1]:g}), lies off the terrain")
    return join_meshes(*[_wall_leg(a, b, spec, terrain) for a, b in pairwise(corners)])


def _wall_leg(start: Array, end: Array, spec: WallSpec, terrain: Terrain) -> Mesh:
    length = float(np.linalg.norm(end - start))
    along = (end - start) / length
    reach = spec.thickness_m / 2  # legs overlap at corners, so that these are closed
    # As many segments as the ground has cells; level ground needs one.
    n = int(np.ceil(length / max(min(terrain.spacing_m), 0.25)))
    line = start + np.linspace(-reach, length + reach, n + 1)[:, None] * along
    beside = np.array([-along[1], along[0]]) * spec.thickness_m / 2
    low_x, low_y, high_x, high_y = terrain.bounds_m
    ground = terrain.height_m(np.clip(line[:, 0], low_x, high_x), np.clip(line[:, 1], low_y, high_y))
    if spec.thickness_m == 0:
        return _strips([_raised(line, ground), _raised(line, ground + spec.height_m)], closed=False)
    left, right = line + beside, line - beside
    edges = [_raised(left, ground), _raised(left, ground + spec.height_m)]
    edges += [_raised(right, ground + spec.height_m), _raised(right, ground)]
    return _strips(edges, closed=True)


def _raised(line: Array, z: Array) -> Array:
    return np.column_stack([line, z])


def _strips(edges: list[Array], *, closed: bool) -> Mesh:
    """Join edges, (n, 3) points each, to strips between neighbours; if closed, also the two ends."""
    n, wide = len(edges[0]), len(edges)
    vertices = np.stack(edges, axis=1).reshape(-1, 3)
    first = (np.arange(n - 1)[:, None] * wide + np.arange(wide - 1)).reshape(-1, 1)
    quad = np.array([[0, 1, wide], [1, wide + 1, wide]])
    triangles = (first[:, None] + quad).reshape(-1, 3)
    if closed:
        last = (n - 1) * wide
        ends = [[0, 2, 1], [0, 3, 2], [last, last + 1, last + 2], [last, last + 2, last + 3]]
        triangles = np.concatenate([triangles, np.array(ends)])
    return Mesh(vertices, triangles)
