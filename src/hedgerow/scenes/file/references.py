# SPDX-License-Identifier: Apache-2.0
"""Check what a scene file names: plants and their parameters, placeables, materials, labels, files, earlier rules."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from hedgerow.base.labels import LABELS, Label
from hedgerow.errors import Location, ParameterError
from hedgerow.scenes.file.read import Source
from hedgerow.scenes.file.schema import ANNOTATION, SceneFile
from hedgerow.scenes.materials import Material, materials

_KINDS = "plant, mesh, shape, world or primitive"
MESH_SUFFIXES = (".obj", ".ply", ".stl", ".glb")


def all_materials(file: SceneFile) -> dict[str, Material]:
    """Return the shipped materials with the file's own."""
    return {**materials(), **file.materials}


def all_labels(file: SceneFile) -> dict[str, Label]:
    """Return the shipped labels with the file's own."""
    own = {name: Label(spec.number, spec.number, spec.vegetation) for name, spec in file.labels.items()}
    return {**LABELS, **own}


def check_references(file: SceneFile, source: Source) -> None:
    """Check that everything the file names is there.

    Raises:
        FileError: something is not; names the field, its line and what there is.
    """
    _check_plants(file, source)
    _check_labels(file, source)
    _check_surfaces(file, source)
    _check_files(file, source)
    _check_primitives(file, source)
    _check_placing(file, source)
    for name, spec in file.trajectories.items():
        if spec.along_trail and file.trail is None:
            raise source.error(("trajectories", name, "along_trail"), "the scene has no [trail]")


def _require(source: Source, location: Location, name: str, known: Iterable[str], what: str) -> None:
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=2)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise source.error(location, f"there is no {what} '{name}'; {guess}there are {', '.join(names) or 'none'}")


def _check_plants(file: SceneFile, source: Source) -> None:
    from hedgerow.scenes.plants import PLANTS

    for name, spec in file.plants.items():
        _require(source, ("plants", name, "kind"), spec.kind, PLANTS, "plant")
        known = PLANTS[spec.kind].parameters
        for parameter in spec.parameters:
            _require(source, ("plants", name, "parameters", parameter), parameter, known.model_fields, "parameter")
        try:
            known.parse(spec.parameters, spec.kind)
        except ParameterError as error:
            raise source.error(("plants", name, "parameters", *error.location), error.said) from None


def _check_labels(file: SceneFile, source: Source) -> None:
    numbers = {label.number: name for name, label in LABELS.items()}
    for name, spec in file.labels.items():
        if numbers.get(spec.number, name) != name and name not in LABELS:
            place = ("labels", name, "number")
            raise source.error(place, f"{spec.number} is {numbers[spec.number]}; take another, best above 1000")


def _check_surfaces(file: SceneFile, source: Source) -> None:
    known_materials, known_labels = all_materials(file), all_labels(file)

    def check(place: Location, material: str | None, label: str | None) -> None:
        if material is not None:
            _require(source, (*place, "material"), material, known_materials, "material")
        if label is not None:
            _require(source, (*place, "label"), label, known_labels, "label")

    check(("terrain",), file.terrain.material, file.terrain.label)
    if file.trail is not None:
        check(("trail",), file.trail.material, file.trail.label)
    for name, mesh in file.meshes.items():
        check(("meshes", name), mesh.material, mesh.label)
        for part, spec in mesh.by_name.items():
            check(("meshes", name, "by_name", part), spec.material, spec.label)
    for name, shape in file.shapes.items():
        check(("shapes", name), shape.material, shape.label)
    for name, wall in file.walls.items():
        check(("walls", name), wall.material, wall.label)


def _is_there(path: Path) -> bool:
    """Tell whether a file is there; a name too long for the system is not."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    """Tell whether a folder is there, as worlds and some logs are."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _check_files(file: SceneFile, source: Source) -> None:
    for name, mesh in file.meshes.items():
        path, place = source.beside(mesh.file), ("meshes", name, "file")
        if path.suffix.lower() not in MESH_SUFFIXES:
            raise source.error(place, f"'{mesh.file}' is no mesh; expected {', '.join(MESH_SUFFIXES)}")
        if not _is_there(path):
            raise source.error(place, f"there is no file {path}")
    for name, world in file.worlds.items():
        path = source.beside(world.file)
        if not _is_there(path / "world.toml"):
            raise source.error(("worlds", name, "file"), f"{path} is no world; expected a folder with a world.toml")
    if file.terrain.file is not None:
        path = source.beside(file.terrain.file)
        if not _is_there(path) and not (file.terrain.kind == "log" and _is_folder(path)):
            raise source.error(("terrain", "file"), f"there is no file {path}")


def _check_primitives(file: SceneFile, source: Source) -> None:
    from hedgerow.scenes.annotation import CLASSES

    for name, spec in file.primitives.items():
        place = ("primitives", name)
        _require(source, (*place, "class"), spec.class_name, CLASSES, "class")
        if spec.label not in (None, "keep"):
            _require(source, (*place, "label"), spec.label or "", all_labels(file), "label")
        if spec.of is not None:
            known = {**file.plants, **file.meshes, **file.shapes}
            _require(source, (*place, "of"), spec.of, known, "plant, mesh or shape")
        if spec.library is not None and not _is_there(source.beside(spec.library) / "world.toml"):
            path = source.beside(spec.library)
            raise source.error((*place, "library"), f"{path} is no library; expected a folder with a world.toml")
    if file.annotation is not None:
        for class_name in file.annotation.classes or ():
            _require(source, ("annotation", "classes"), class_name, CLASSES, "class")
        if not _is_there(source.beside(file.annotation.file)):
            raise source.error(("annotation", "file"), f"there is no file {source.beside(file.annotation.file)}")


def _check_placing(file: SceneFile, source: Source) -> None:
    placeables = file.placeables()
    for name, spec in file.objects.items():
        _require(source, ("objects", name, "what"), spec.what, placeables, _KINDS)
        plant = file.plants.get(spec.what)
        if spec.what in file.primitives:
            continue  # how many there are is known once the library is open
        if spec.variant is not None and spec.variant >= (1 if plant is None else plant.variants):
            n = 1 if plant is None else plant.variants
            raise source.error(("objects", name, "variant"), f"{spec.variant}, but {spec.what} has {n}, from 0 on")
    earlier = [*file.objects, *([ANNOTATION] if file.annotation is not None else [])]
    for name, rule in file.scatter.items():
        place = ("scatter", name)
        _require(source, (*place, "what"), rule.what, placeables, _KINDS)
        if rule.trail_distance_m is not None and file.trail is None:
            raise source.error((*place, "trail_distance_m"), "the scene has no [trail]")
        for other in rule.away_from:
            _require(source, (*place, "away_from", other), other, earlier, "object or earlier rule")
        earlier.append(name)


def check_patch_rules(file: SceneFile, source: Source, merged: Mapping[str, bool], grass: Mapping[str, bool]) -> None:
    """Refuse what merged patches cannot do.

    Args:
        merged: for each rule, whether its copies are merged into patches.
        grass: for each rule, whether it scatters a grass, whose plant fills a patch by itself.
    """
    for name, rule in file.scatter.items():
        place = ("scatter", name)
        if not merged[name]:
            continue
        if rule.spacing_m > 0:
            raise source.error((*place, "spacing_m"), "copies this dense are merged into patches, without a spacing")
        if grass[name] and (rule.scale is not None or rule.tilt_deg > 0):
            field = "scale" if rule.scale is not None else "tilt_deg"
            raise source.error((*place, field), "a grass has its own spread; set it in the plant's parameters")
