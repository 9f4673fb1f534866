# SPDX-License-Identifier: Apache-2.0
"""Site: a scene file made ready to fire at: its scene, ground, labels and named trajectories.

Three steps lead to it. Read: `read_scene` finds the file, parses it and sets values from outside. Plan: `open_scene`
checks every field and name, which is quick and needs no sensor. Build: `ScenePlan.build` makes the meshes and search
trees for one laser wavelength, which takes seconds to minutes. `load_site` does all three.

    site = load_site("trail")
    log = site.world().fire(sensor.drive(site.trajectories["first"]))
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import numbers_of, vegetation_of
from hedgerow.base.progress import StepProgress
from hedgerow.errors import FileError, InputError, one_line
from hedgerow.frames import Trajectory
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.scenes.annotation import read_annotation
from hedgerow.scenes.file.build import Builder, Built
from hedgerow.scenes.file.read import Source, read_scene
from hedgerow.scenes.file.references import all_labels, check_references
from hedgerow.scenes.file.schema import AnnotationSpec, SceneFile
from hedgerow.scenes.terrain import Terrain
from hedgerow.scenes.trail import Polyline, make_trajectory
from hedgerow.world.learned import BEAM, LearnedWorld
from hedgerow.world.pulsed import PhysicsWorld
from hedgerow.world.recording import RecordingScene, composed_world
from hedgerow.world.scene import Scene
from hedgerow.world.store.header import Provenance

_LONGEST_LINE = 2000  # characters of a line about a file


@dataclass(frozen=True)
class Site:
    """A built scene with everything that its file says about it."""

    name: str
    """Name of the scene."""
    file: SceneFile
    """What the file says, after all that was set from outside."""
    scene: Scene
    """To fire at."""
    terrain: Terrain
    """The ground."""
    labels: dict[str, int]
    """Number of each semantic class."""
    vegetation_labels: frozenset[int]
    """Numbers of the classes that a beam may pass in part."""
    trajectories: dict[str, Trajectory]
    """Named trajectories of the sensor, T_map_sensor."""
    n_triangles: int
    """Number of triangles, all copies counted."""
    n_gaussians: int
    """Number of Gaussians of learned worlds, all copies counted."""
    n_copies: dict[str, int]
    """Number of copies that each object and rule placed; for a grass, of blades."""
    source: dict[str, Any]
    """What to build it again from: name or file, seed, wavelength, and what was set from outside."""
    largest_gap_m: float
    """Largest distance between the foot of a merged patch and the ground, 0 on level ground [m]."""
    class_of_object: NDArray[np.uint16]
    """(K,) number of the class of each object, from object 0, none, on; 0 where it has none."""
    asset_names: dict[int, str]
    """What the scenes that were placed are called, by their identity."""

    def world(self, settings: BeamSettings | None = None) -> PhysicsWorld:
        """Return the world to fire at, seen by pulses with width; the settings' defaults are those of Goodin 2018."""
        return PhysicsWorld(self.scene, settings, source=self.source, classes=self.classes)

    @property
    def classes(self) -> dict[str, int]:
        """Numbers of the classes that its labels are of, by name."""
        return self.labels

    def composed(self, settings: BeamSettings | None = None) -> LearnedWorld:
        """Return the site as a world of assets and instances, to be saved; it answers as `world` does.

        Raises:
            InputError: it was built without `record`.
        """
        if not isinstance(self.scene, RecordingScene):
            raise InputError("site", "does not remember what it is made of; build it with record=True")
        beam = (settings or BeamSettings()).model_dump(mode="json")
        return composed_world(
            self.scene,
            names=self.asset_names,
            classes=self.classes,
            class_of_object=self.class_of_object,
            parameters={BEAM: beam, "scene": self.source},
            provenance=Provenance(log=self.name),
        )


def load_site(
    name_or_path: str | Path,
    *,
    wavelength_nm: float = 905.0,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    record: bool = False,
    progress: StepProgress | None = None,
) -> Site:
    """Read, plan and build a scene.

    Args:
        name_or_path: a shipped scene's name, such as "courtyard", or a .toml file.
        wavelength_nm: of the laser; sets the reflectance of every material [nm].
        seed: in the place of the file's: same seed, same scene.
        set: values of fields by dotted path, or of the file's parameters by name; see `read.read_scene`.
        record: remember what it is made of, for `Site.composed`; takes more memory.
        progress: called with the name of the step, how much of it is done, and how much there is.

    Raises:
        FileError: the file or one of its fields is wrong; names it, with its line.
        InputError: no such scene, or an argument is out of bounds.
    """
    plan = open_scene(name_or_path, set)
    return plan.build(wavelength_nm=wavelength_nm, seed=seed, record=record, progress=progress)


@dataclass(frozen=True)
class ScenePlan:
    """A scene file, read and checked but not built: building takes seconds to minutes, and needs the wavelength."""

    given: str
    """Name or path of the scene, as it was given."""
    source: Source
    """The parsed file, for errors that point into it."""
    file: SceneFile
    """What the file says, after all that was set from outside."""
    changes: dict[str, Any]
    """What was set from outside."""

    @property
    def name(self) -> str:
        """Name of the scene."""
        return self.source.name

    def details(self) -> list[tuple[str, str]]:
        """Say what is in the file, as labelled lines; nothing is built."""
        file = self.file
        placeables = {"plants": file.plants, "meshes": file.meshes, "shapes": file.shapes, "worlds": file.worlds}
        placeables |= {"primitives": file.primitives}
        placed = {"objects": file.objects, "scatter": file.scatter, "walls": file.walls}
        lines = [
            ("Scene", f"{self.source.path}"),
            ("About", file.about),
            ("Sensor", file.sensor),
            ("Trajectories", ", ".join(map(self._trajectory_text, file.trajectories)) or "none"),
            *((name.capitalize(), ", ".join(table)) for name, table in (placeables | placed).items() if table),
            *([("Annotation", self._annotation_text(file.annotation))] if file.annotation is not None else []),
            ("Parameters", ", ".join(f"{name} = {value}" for name, value in file.parameters.items()) or "none"),
            ("Seed", str(file.seed)),
            ("More", f"hedgerow scenes {self.given} builds it, counts its triangles and draws it"),
        ]
        return [(what, one_line(text, _LONGEST_LINE)) for what, text in lines]

    def _trajectory_text(self, name: str) -> str:
        """Name a trajectory, with its length and duration where they follow from the file."""
        spec, trail = self.file.trajectories[name], self.file.trail
        corners = spec.waypoints_m or (trail.path_m if spec.along_trail and trail is not None else None)
        if corners is None:
            return name
        smooth = spec.smooth if spec.waypoints_m is not None or trail is None else trail.smooth
        end_m = Polyline(corners, smooth=smooth).length_m
        length_m = max(0.0, min(end_m, spec.to_m or end_m) - spec.from_m)
        return f"{name} ({length_m:.0f} m, {length_m / spec.speed_mps:.0f} s)"

    def _annotation_text(self, spec: AnnotationSpec) -> str:
        """Say how many boxes and patches of each class an annotation has."""
        rows = read_annotation(self.source.beside(spec.file))
        counts = Counter(str(each) for each in rows.class_name[~rows.is_patch])
        patches = Counter(str(each) for each in rows.class_name[rows.is_patch])
        said = [f"{n:,} {name}" for name, n in sorted(counts.items())]
        said += [f"{n:,} patches of {name}" if n > 1 else f"1 patch of {name}" for name, n in sorted(patches.items())]
        return f"{spec.file}: {', '.join(said) or 'no boxes'}"

    def build(
        self,
        *,
        wavelength_nm: float = 905.0,
        seed: int | None = None,
        record: bool = False,
        progress: StepProgress | None = None,
    ) -> Site:
        """Build the scene; arguments and errors as in `load_site`."""
        if not 0 < wavelength_nm < float("inf"):
            raise InputError("wavelength_nm", f"expected a finite number above 0, found {wavelength_nm}")
        file, source = self.file, self.source
        chosen = file.seed if seed is None else seed
        if not 0 <= chosen < 1 << 63:
            raise InputError("seed", f"expected 0 to 2**63 - 1, found {chosen}")
        report = progress or _report_nothing
        try:
            how: dict[str, Any] = {"wavelength_nm": wavelength_nm, "seed": chosen, "report": report, "record": record}
            built = Builder(file, source, **how).build()
            trajectories = _make_trajectories(file, source, built)
            report("building the search trees", 0, 1)
            built.scene.build()
            report("building the search trees", 1, 1)
        except MemoryError:
            what_to_do = "ask for fewer plants, or a coarser ground"
            raise FileError(f"{source.path}: the scene does not fit into the memory; {what_to_do}") from None
        labels = all_labels(file)
        return Site(
            name=source.name,
            file=file,
            scene=built.scene,
            terrain=built.terrain,
            labels=numbers_of(labels),
            vegetation_labels=vegetation_of(labels.values()),
            trajectories=trajectories,
            n_triangles=built.scene.n_elements - built.n_gaussians,
            n_gaussians=built.n_gaussians,
            n_copies=built.n_copies,
            source={"scene": self.given, "seed": chosen, "wavelength_nm": wavelength_nm, "set": self.changes},
            largest_gap_m=built.largest_gap_m,
            class_of_object=np.concatenate([np.zeros(1, dtype=np.uint16), *built.class_of_object]),
            asset_names=built.asset_names,
        )


def open_scene(name_or_path: str | Path, set: Mapping[str, Any] | None = None) -> ScenePlan:
    """Read and check a scene file, without building anything; arguments and errors as in `load_site`."""
    source = read_scene(name_or_path, set)
    file = source.check()
    check_references(file, source)
    return ScenePlan(str(name_or_path), source, file, dict(set or {}))


def _report_nothing(step: str, done: int, total: int) -> None:
    pass


def _make_trajectories(file: SceneFile, source: Source, built: Built) -> dict[str, Trajectory]:
    made: dict[str, Trajectory] = {}
    for name, spec in file.trajectories.items():
        try:
            made[name] = replace(make_trajectory(spec, built.terrain, built.trail), source=f"{source.name}: {name}")
        except InputError as error:
            raise source.error(("trajectories", name, error.field), error.said) from None
    return made
