# SPDX-License-Identifier: Apache-2.0
"""One opener for every verb: a path or a name is a log, a learned world, a scene, a sensor or a trajectory.

    log = inputs.open_log("drive/", verb="learn")           # refuses a world: "site.world is a learned world; ..."
    place = inputs.open_place("trail", verb="fire")         # a scene or a learned world, checked but not yet built
    sensor = place.sensor("vlp-16")
    world, trajectories, _ = place.open(sensor)

A path that exists is known by its content, anything else by the names of the shipped scenes and sensors. An input of
the wrong kind is refused in one sentence that says what it is, an unknown name in one that says what is near.
"""

import difflib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hedgerow.base.places import Address, as_place
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.sensor import Sensor
from hedgerow.world import World, is_world, load_world

if TYPE_CHECKING:
    from hedgerow.base.progress import StepProgress
    from hedgerow.io.source import LogSource
    from hedgerow.pulse.receiver import BeamSettings
    from hedgerow.scenes.site import ScenePlan

Kind = Literal["log", "learned world", "scene", "sensor", "trajectory"]
PLACES: tuple[Kind, ...] = ("scene", "learned world")
"""What a sensor can be fired at."""
_DEFAULT_NM = 905.0
"""Wavelength at which a scene is built where no sensor says otherwise."""


def kind_of(given: str | Path) -> Kind:
    """Return what a path or a name is, reading no more of it than that takes.

    Raises:
        FileError: a file or folder of no known kind.
        InputError: no file, and no name of a scene or sensor; says which are near.
    """
    from hedgerow.io import TRAJECTORY_FORMATS
    from hedgerow.io.formats import format_of
    from hedgerow.scenes.file.read import SUFFIXES, scene_names

    path = as_place(given)
    suffix = path.suffix.lower()
    if _is_there(path):
        if is_world(path):
            return "learned world"
        if isinstance(path, Address):
            return _kind_at_address(path)
        if path.is_file() and suffix == ".toml":
            return "sensor" if _is_sensor_file(path) else "scene"
        if path.is_file() and suffix in TRAJECTORY_FORMATS:
            return "trajectory"
        if path.is_file() and suffix in SUFFIXES:
            return "scene"
        format_of(path, None, reading=True)
        return "log"
    if isinstance(path, Address):
        raise FileError(f"{path}: no such file or folder")
    if str(given) in scene_names():
        return "scene"
    if Sensor.is_name(str(given)):
        return "sensor"
    near = difflib.get_close_matches(str(given), _known_names(path), n=2)
    guess = f"; did you mean {' or '.join(near)}?" if near else ", nor the name of a scene or sensor"
    raise FileError(f"{given}: no such file or folder{guess}")


def require_kind(given: str | Path, wanted: tuple[Kind, ...], verb: str) -> Kind:
    """Return what a path or a name is. Raises InputError if the verb wants another kind."""
    found = kind_of(given)
    if found not in wanted:
        raise InputError(f"{given}", f"is a {found}; {verb} wants {_one_of(wanted)}")
    return found


def open_log(given: str | Path, verb: str, **options: Any) -> "LogSource":
    """Open a log of any format; options as in `hr.open_log`.

    Raises:
        FileError, InputError: it is missing, damaged, or no log.
    """
    from hedgerow import io

    if options.get("format") is None:
        require_kind(given, ("log",), verb)
    return io.open_log(given, **options)


def open_sensor(given: str | Path, rate_hz: float | None = None) -> Sensor:
    """Return a sensor of the catalogue by its name, or read one from a TOML file.

    Raises:
        FileError, InputError: no such sensor, the file is wrong, or a rate that it does not have.
    """
    is_file = str(given).lower().endswith(".toml")
    return Sensor.load(given, rate_hz) if is_file else Sensor.named(str(given), rate_hz)


class Opened(NamedTuple):
    """A scene that was built, or a learned world that was loaded."""

    world: World
    trajectories: dict[str, Trajectory]
    """The trajectories of the scene by name, T_map_sensor."""
    summary: str
    """What was built or loaded, in one line."""


@dataclass(frozen=True)
class Place:
    """A scene or a learned world to fire at; its file is checked, but it is built or loaded only by `open`."""

    given: str
    plan: "ScenePlan | None"
    """The scene, read and checked; None for a learned world."""
    seed: int | None = None
    """Seed that the scene is built with. Default: that of its file."""

    @property
    def name(self) -> str:
        """Short name."""
        return as_place(self.given).stem if self.plan is None else self.plan.name

    def sensor(self, name: str | None, rate_hz: float | None = None) -> Sensor:
        """Return the sensor that was named, or else the scene's own.

        Raises:
            FileError, InputError: no such sensor; or no name is given, and a learned world names none.
        """
        if name is None and self.plan is None:
            raise InputError("--sensor", "a learned world names none; give one, for example --sensor hdl-64e")
        own = "" if self.plan is None else self.plan.file.sensor
        return open_sensor(name or own, rate_hz)

    def choose_trajectory(self, name: str | None, rate_hz: float | None = None) -> Trajectory | str:
        """Return the trajectory of a file, or the name of one of the scene, which need not be built for that.

        Raises:
            InputError: neither; says which there are.
        """
        from hedgerow.io import read_trajectory

        names = [] if self.plan is None else list(self.plan.file.trajectories)
        wanted = name or next(iter(names), "")
        if wanted in names:
            return wanted
        if not wanted or not _is_there(Path(wanted)):
            known = f"the scene has {', '.join(names)}" if names else f"{self.name} names none"
            said = f"give a trajectory of the scene or a file of poses; {known}"
            raise InputError(f"--trajectory {wanted}".strip(), said)
        return read_trajectory(wanted, rate_hz=rate_hz)

    def open(
        self,
        sensor: Sensor | None = None,
        *,
        settings: "BeamSettings | None" = None,
        progress: "StepProgress | None" = None,
        memory_bytes: int | None = None,
    ) -> Opened:
        """Build the scene at the wavelength of a sensor, or load the learned world.

        Args:
            sensor: what will be fired. Default: one of the usual wavelength.
            settings: how pulses are sampled and received, for scenes.
            progress: called with (step, amount done, amount in all).
            memory_bytes: memory for the tiles of a learned world, which are then read as the beams need them. Default:
                all of it is loaded.
        """
        start_s = time.perf_counter()
        if self.plan is None:
            world = load_world(self.given, max_bytes=memory_bytes)
            return Opened(world, {}, f"loaded {self.name}: {world.size().elements:,} elements")
        wavelength_nm = _DEFAULT_NM if sensor is None else sensor.config.beam.wavelength_nm
        site = self.plan.build(wavelength_nm=wavelength_nm, seed=self.seed, progress=progress)
        took_s = time.perf_counter() - start_s
        summary = f"built {site.name}: {site.n_triangles:,} triangles in {took_s:.1f} s"
        return Opened(site.world(settings), site.trajectories, summary)


def open_place(
    given: str | Path, verb: str, changes: Mapping[str, Any] | None = None, seed: int | None = None
) -> Place:
    """Open a scene, reading and checking its file once, or a learned world.

    Args:
        given: a shipped scene's name, a scene file, or the folder of a learned world.
        verb: the command that opens it, for the error.
        changes: values of parameters or fields of the scene, by name.
        seed: seed that the scene is built with. Default: that of its file.

    Raises:
        FileError, InputError: the file is wrong, or no scene and no learned world; or changes or a seed, which only
            scenes have, are given for a learned world.
    """
    from hedgerow.scenes.site import open_scene

    try:
        kind = require_kind(given, PLACES, verb)
    except FileError:
        if not Path(given).is_dir():
            raise
        # Not what a folder of logs would have to hold.
        raise FileError(f"{given}: no learned world (it has no world.toml), and no scene file (.toml)") from None
    if kind == "scene":
        return Place(str(given), open_scene(given, changes), seed)
    if changes or seed is not None:
        raise InputError("--set, --scene-seed", f"only for scenes, and {given} is a learned world")
    return Place(str(given), None)


def open_simulated(
    given: str | Path, verb: str, sensor: Sensor | None, progress: "StepProgress | None" = None
) -> "LogSource | World":
    """Open what a real log is compared with: a simulated log, a learned world, or a scene built for that sensor."""
    if require_kind(given, ("log", *PLACES), verb) == "log":
        return open_log(given, verb)
    return open_place(given, verb).open(sensor, progress=progress).world


def describe(given: str | Path, options: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Describe a log, world, scene, sensor or trajectory in labelled lines: the content of `hedgerow info`.

    Args:
        given: a path or a name.
        options: for reading a log that does not say all itself, as in `hr.open_log`.

    Raises:
        FileError, InputError: missing, damaged, or of no known kind; or options for what is no log.
    """
    from hedgerow.io.describe import describe as describe_file
    from hedgerow.scenes.site import open_scene
    from hedgerow.sensor.describe import details
    from hedgerow.world.store.files import describe_world

    kind = kind_of(given)
    if options and kind != "log":
        raise InputError(", ".join(options), f"only for logs, and {given} is a {kind}")
    match kind:
        case "learned world":
            return list(describe_world(given).items())
        case "scene":
            return open_scene(given).details()
        case "sensor":
            return details(open_sensor(given))
        case "log" | "trajectory":
            return list(describe_file(given, **(options or {})).items())


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for the system
        return False


def _kind_at_address(address: Address) -> Kind:
    """Tell a log: a file of its suffix, or a folder of its parts. Scenes, sensors and trajectories lie on the disk."""
    if address.suffix.lower() == ".parquet" if address.is_file() else any(address.glob("part-*.parquet")):
        return "log"
    wanted = "a Parquet log, a folder of parts of one, or a learned world with its world.toml"
    raise FileError(f"{address}: nothing that is read from an address; expected {wanted}")


def _is_sensor_file(path: Path) -> bool:
    """Return whether a TOML file describes a sensor; one that cannot be read is left to the scene reader to refuse."""
    try:
        return "pattern" in read_toml(path, "sensor file")
    except FileError:
        return False


def _known_names(path: Path) -> list[str]:
    """Return all names that may have been meant: scenes, sensors, and the content of the same folder."""
    from hedgerow.scenes.file.read import scene_names

    beside = [str(path.parent / each.name) for each in path.parent.iterdir()] if path.parent.is_dir() else []
    return [*scene_names(), *Sensor.names(), *beside]


def _one_of(kinds: tuple[Kind, ...]) -> str:
    *others, last = (f"a {kind}" for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last
