# SPDX-License-Identifier: Apache-2.0
"""Session: what the paths hold, read and fired when it is asked for, and cached as far as the memory goes.

    session = open_session(["drive.parquet", "site.world"])
    session.sweep(1, 0)    # sweep 0 of the log, fired at the world

A layer is one point cloud, given sweep by sweep: of a log (read), of a world at which the beams of the first log are
fired again (`replay`), or of a scene that its own sensor drives through (`Simulation`).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.inputs import Kind, Place, open_log, open_place, require_kind
from hedgerow.log import Log
from hedgerow.metrics.matching import limit_ranges, require_same_beams
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim
from hedgerow.simulate import Simulation, replay, require_same_map, simulate
from hedgerow.world import LearnedWorld, World, load_world

if TYPE_CHECKING:
    from hedgerow.base.progress import StepProgress
    from hedgerow.pulse.receiver import BeamSettings

Rgb = tuple[int, int, int]
LAYER_COLOURS: tuple[Rgb, ...] = ((86, 180, 233), (230, 159, 0), (0, 200, 140), (220, 110, 190), (240, 228, 66))
"""Of the layers in turn: Okabe and Ito's, told apart by colour-blind eyes too, and bright on black."""
SHOWN_KINDS: tuple[Kind, ...] = ("log", "learned world", "scene")
CACHED_BEAMS = 12_000_000
"""Beams of all cached sweeps together: about 0.9 GB."""
CACHED_VALUES = 40_000_000
"""Range errors and log-likelihoods of beams, cached: 0.3 GB."""
PATH_SWEEPS = 60
"""The path is drawn through the beams of this many sweeps, evenly chosen: reading all could take long."""
PATH_POINTS_PER_SWEEP = 4
_HEADING_POINTS = 8
"""Points of the path, before and after, that tell the heading."""
_AHEAD = (1.0, 0.0, 0.0)
"""Heading of a sensor that stands still."""


class Recording(Protocol):
    """A log of which sweeps are read by number: what `open_log` gives."""

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        ...

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read these sweeps."""
        ...


@dataclass(frozen=True)
class Layer:
    """One point cloud, sweep by sweep."""

    name: str
    sweeps: NDArray[np.int32]
    """Numbers of the sweeps there are, ascending."""
    read: Callable[[int], Log]
    """Gives the sweep of that number."""
    colour: Rgb = LAYER_COLOURS[0]
    """Its own, where clouds are told apart by colour."""
    world: World | None = None
    """What the sweeps were fired at; None for a log."""
    path_m: NDArray[np.float64] | None = None
    """(K, 3) path of the sensor, map frame; None if only its beams tell."""

    @property
    def is_fired(self) -> bool:
        """Whether it is a simulation made here."""
        return self.world is not None


@dataclass(frozen=True)
class WorldLayer:
    """A world whose elements are shown themselves."""

    name: str
    world: LearnedWorld


def make_log_layer(name: str, recording: Recording) -> Layer:
    """Return the layer of a log."""
    trajectory: Trajectory | None = getattr(recording, "trajectory", None)  # most formats have one; Parquet has not
    path_m = None if trajectory is None else trajectory.position_m
    return Layer(name, recording.sweeps, lambda number: recording.read(number), path_m=path_m)


def make_replay_layer(name: str, world: World, real: Layer, seed: int) -> Layer:
    """Return the layer of a world at which the beams of another layer are fired; same seed, same cloud.

    Args:
        name: what to call it.
        world: what to fire at.
        real: whose beams.
        seed: for firing.
    """

    def fire(number: int) -> Log:
        recording = real.read(number)
        require_same_map(name, world, recording)
        return replay(world, recording, seed=seed)

    return Layer(name, real.sweeps, fire, world=world)


def make_simulation_layer(name: str, simulation: Simulation) -> Layer:
    """Return the layer of a drive through a world, its sweeps fired when they are looked at."""
    numbers = np.arange(len(simulation), dtype=np.int32)
    path_m = simulation.trajectory.position_m
    return Layer(name, numbers, simulation.sweep, world=simulation.world, path_m=path_m)


def tell_apart(layers: list[Layer]) -> list[Layer]:
    """Give each layer its own colour, and a number where two have one name."""
    names = [layer.name for layer in layers]
    done: list[Layer] = []
    for i, layer in enumerate(layers):
        name = layer.name if names.count(layer.name) == 1 else f"{layer.name} ({names[: i + 1].count(layer.name)})"
        done.append(replace(layer, name=name, colour=LAYER_COLOURS[i % len(LAYER_COLOURS)]))
    return done


T = TypeVar("T")


class Cache(Generic[T]):
    """The last results of something slow, by key; the longest unused go when all together are too large."""

    def __init__(self, budget: int, size: Callable[[T], int]) -> None:
        """Hold results of this total size, and always the newest."""
        self._budget = budget
        self._size = size
        self._results: OrderedDict[Hashable, T] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._results)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what belongs to the key, made now if it is not held."""
        if key in self._results:
            self._results.move_to_end(key)
            return self._results[key]
        made = make()
        self._results[key] = made
        self._total += self._size(made)
        while self._total > self._budget and len(self._results) > 1:
            _, dropped = self._results.popitem(last=False)
            self._total -= self._size(dropped)
        return made


@dataclass
class Session:
    """Layers and worlds in one map frame."""

    layers: list[Layer]
    """The first one says which sweeps there are, and is what the others are compared with."""
    worlds: list[WorldLayer] = field(default_factory=list[WorldLayer])
    centre_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) whole metres, map frame: the browser has float32 and gets coordinates relative to this."""
    map_origin_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) of the map that everything is shown in."""
    path_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    """(K, 3) path of the sensor, map frame."""

    def __post_init__(self) -> None:
        """Start with empty caches."""
        self._sweeps: Cache[Log] = Cache(CACHED_BEAMS, len)
        self._values: Cache[NDArray[np.float64]] = Cache(CACHED_VALUES, len)

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Numbers of the sweeps to step through."""
        return self.layers[0].sweeps if self.layers else np.zeros(0, dtype=np.int32)

    @property
    def comparable(self) -> list[int]:
        """Which layers can be compared with the first one."""
        return list(range(1, len(self.layers)))

    def shift_m(self, map_origin_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (3,) offset that takes coordinates of another map to this one; 0 where one origin is unknown."""
        known = map_origin_m.any() and self.map_origin_m.any()
        return map_origin_m - self.map_origin_m if known else np.zeros(3)

    def window(self, position: int, accumulate: int) -> list[int]:
        """Return the numbers of the sweep at a position of the slider and of those before it, `accumulate` in all."""
        return self.sweeps[max(0, position - accumulate + 1) : position + 1].tolist()

    def sweep(self, layer: int, number: int) -> Log | None:
        """Return a sweep of a layer; None if it has none of that number."""
        chosen = self.layers[layer]
        if number not in chosen.sweeps:
            return None
        return self._sweeps.get((layer, number), lambda: chosen.read(number))

    def sensor_m(self, position: int) -> NDArray[np.float64]:
        """Return where the sensor is, (3,), map frame: its mean over the sweep at a position of the slider."""
        log = self.sweep(0, int(self.sweeps[position])) if len(self.sweeps) else None
        return self.centre_m if log is None else log.beams.origin_m.mean(axis=0)

    def heading(self, position: int) -> NDArray[np.float64]:
        """Return the (3,) level unit vector along which the sensor goes there; x if it stands still."""
        if len(self.path_m) < 2:
            return np.array(_AHEAD)
        here = int(np.argmin(np.linalg.norm(self.path_m - self.sensor_m(position), axis=1)))
        some = self.path_m[max(0, here - _HEADING_POINTS) : here + _HEADING_POINTS + 1]
        step = (some[-1] - some[0]) * [1, 1, 0]
        length = float(np.linalg.norm(step))
        return step / length if length > 0.1 else np.array(_AHEAD)

    def range_error(self, simulated: int, number: int) -> NDArray[np.float64] | None:
        """Return how much farther each beam of a sweep reached in a simulation than in reality.

        Args:
            simulated: which layer is compared with the first.
            number: which sweep.

        Returns:
            (N,) simulated minus real range of the first returns [m], NaN where one of them is missing; None if the
            layer lacks the sweep.

        Raises:
            InputError: the layer holds other beams.
        """
        real, other = self.sweep(0, number), self.sweep(simulated, number)
        if real is None or other is None:
            return None
        return self._values.get(
            ("error", simulated, number), lambda: _range_difference(self.layers[simulated].name, real, other)
        )

    def log_likelihood(self, simulated: int, number: int) -> NDArray[np.float64]:
        """Return the (N,) log density that a layer's world gives what was really measured.

        Raises:
            InputError: the layer knows no densities, or the log has no maximal range.
        """
        layer, real = self.layers[simulated], self.sweep(0, number)
        world = layer.world
        if world is None or not world.has_likelihood or real is None:
            raise InputError(f"{layer.name}", "has no densities; learned worlds do")
        return self._values.get(("likelihood", simulated, number), lambda: world.log_likelihood(real))


def _range_difference(name: str, real: Log, simulated: Log) -> NDArray[np.float64]:
    require_same_beams(name, real, simulated)
    here, there = real.returns.first_m, limit_ranges(simulated.returns.first_m, real)
    both = np.isfinite(here) & np.isfinite(there)
    error = np.full(len(real), np.nan)
    error[both] = there[both].astype(np.float64) - here[both]
    return error


def open_session(
    paths: Sequence[str | Path],
    seed: int = 0,
    progress: "StepProgress | None" = None,
    options: Mapping[str, Any] | None = None,
    *,
    settings: "BeamSettings | None" = None,
    aim: Aim | None = None,
) -> Session:
    """Open logs, worlds and scenes to be shown together.

    The beams of the first log are fired at every world and scene. Without a log they are those of the first scene's
    own sensor on its first trajectory; without a scene either, only the elements of the worlds are shown.

    Args:
        paths: logs as `open_log` reads them, worlds (folders with a world.toml), names or files of scenes.
        seed: for firing.
        progress: called with a step of building a scene, how much of it is done, and how much there is.
        options: of `open_log`, for the logs.
        settings: how pulses are sampled and received, for the scenes.
        aim: how the true pulses of a scene's own sensor differ from its scan pattern.

    Raises:
        FileError: a path is missing, damaged, or of an unknown kind.
        InputError: a log has no beams, nothing was given, or there is nothing that settings or aim are for.
    """
    if not paths:
        raise InputError("view", "name at least one log, world or scene")
    # Before anything slow.
    kinds: list[tuple[Path, Kind]] = [(path, require_kind(path, SHOWN_KINDS, "view")) for path in map(Path, paths)]
    _require_use(tuple(kind for _, kind in kinds), settings, aim)
    scenes = [open_place(path, "view") for path, kind in kinds if kind == "scene"]
    logs = [_open_log_layer(path, options or {}) for path, kind in kinds if kind == "log"]
    worlds = [WorldLayer(path.stem, _load_whole(path)) for path, kind in kinds if kind == "learned world"]
    if not logs and scenes:
        logs.append(_drive_through(scenes.pop(0), seed, progress, settings, aim))
    fired_at: list[tuple[str, World]] = [(each.name, each.world) for each in worlds] if logs else []
    if scenes:
        sensor = Sensor.of(logs[0].read(int(logs[0].sweeps[0])))
        opened = [each.open(sensor, settings=settings, progress=progress) for each in scenes]
        fired_at += [(each.name, place.world) for each, place in zip(scenes, opened, strict=True)]
    simulated = [make_replay_layer(name, world, logs[0], seed) for name, world in fired_at]
    return _centred(tell_apart(logs + simulated), worlds)


def _open_log_layer(path: Path, options: Mapping[str, Any]) -> Layer:
    layer = make_log_layer(path.stem, open_log(path, "view", **options))
    if len(layer.sweeps) == 0:
        raise InputError(f"{layer.name}", "has no beams; there is nothing to see")
    return layer


def _load_whole(path: Path) -> LearnedWorld:
    world = load_world(path)
    assert isinstance(world, LearnedWorld)  # no limit of memory was given
    return world


def _require_use(kinds: tuple[Kind, ...], settings: "BeamSettings | None", aim: Aim | None) -> None:
    """Raise InputError if something is said of pulses that are not fired here."""
    if settings is not None and "scene" not in kinds:
        raise InputError("settings of pulses", "only for scenes, and none is given")
    if aim is not None and ("log" in kinds or "scene" not in kinds):
        said = "only for a scene that its own sensor drives through; the beams of a log are fired as it has them"
        raise InputError("encoder, cone", said)


def _drive_through(
    scene: Place, seed: int, progress: "StepProgress | None", settings: "BeamSettings | None", aim: Aim | None
) -> Layer:
    """Return the layer of the scene's own sensor along the scene's first trajectory."""
    sensor = scene.sensor(None)
    if scene.plan is None or not scene.plan.file.trajectories:
        raise InputError(f"{scene.name}", "the scene names no trajectory; give a log whose beams to fire at it")
    world, trajectories, _ = scene.open(sensor, settings=settings, progress=progress)
    drive = simulate(world, sensor, next(iter(trajectories.values())), seed=seed, aim=aim)
    return make_simulation_layer(scene.name, drive)


def _centred(layers: list[Layer], worlds: list[WorldLayer]) -> Session:
    """Return the session with its centre on the path of the sensor, or in the middle of the first world."""
    if layers:
        first = layers[0].read(int(layers[0].sweeps[0]))
        path_m = trace_path(layers[0])
        return Session(layers, worlds, np.rint(path_m.mean(axis=0)), first.map_origin_m, path_m)
    header = worlds[0].world.header
    return Session([], worlds, np.array(header.origin_m), np.array(header.map_origin_m))


def trace_path(layer: Layer) -> NDArray[np.float64]:
    """Return the (K, 3) path of the sensor, map frame, in order of time."""
    if layer.path_m is not None:
        return layer.path_m
    chosen = layer.sweeps[np.unique(np.linspace(0, len(layer.sweeps) - 1, PATH_SWEEPS).astype(np.intp))]
    points_m: list[NDArray[np.float64]] = []
    for number in chosen.tolist():
        beams = layer.read(number).beams
        in_time = np.argsort(beams.time_ns, kind="stable")
        some = np.linspace(0, len(in_time) - 1, PATH_POINTS_PER_SWEEP).astype(np.intp)
        points_m.append(beams.origin_m[in_time[some]])
    return np.concatenate(points_m)
