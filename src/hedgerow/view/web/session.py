# SPDX-License-Identifier: Apache-2.0
"""Session: what the paths hold, read and fired when it is asked for, and cached as far as the memory goes."""

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
from hedgerow.metrics.inputs import limit_ranges, require_same_beams
from hedgerow.sensor import Sensor
from hedgerow.simulate import Simulation, replay, require_same_map, simulate
from hedgerow.world import LearnedWorld, World, load_world

if TYPE_CHECKING:
    from hedgerow.base.progress import StepProgress


# Layers: clouds that can be shown over each other, each read or fired sweep by sweep.


Rgb = tuple[int, int, int]
OWN_COLOURS: tuple[Rgb, ...] = ((86, 180, 233), (230, 159, 0), (0, 200, 140), (220, 110, 190), (240, 228, 66))
"""Of the layers in turn: Okabe and Ito's, told apart by colour-blind eyes too, and bright on black."""


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
    """One cloud."""

    name: str
    sweeps: NDArray[np.int32]
    """Numbers of the sweeps there are, ascending."""
    read: Callable[[int], Log]
    """Gives the sweep of that number."""
    colour: Rgb = OWN_COLOURS[0]
    """Its own, where clouds are told apart by colour."""
    world: World | None = None
    """What the sweeps were fired at; None for a recording."""
    way_m: NDArray[np.float64] | None = None
    """(K, 3) where the sensor goes, map frame; None if only its beams tell."""

    @property
    def is_fired(self) -> bool:
        """Whether it is a simulation made here."""
        return self.world is not None


def recorded(name: str, recording: Recording) -> Layer:
    """Return the layer of a log."""
    trajectory: Trajectory | None = getattr(recording, "trajectory", None)  # most formats have one; Parquet has not
    way_m = None if trajectory is None else trajectory.position_m
    return Layer(name, recording.sweeps, lambda number: recording.read(number), way_m=way_m)


def fired(name: str, world: World, real: Layer, seed: int) -> Layer:
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


def driven(name: str, simulation: Simulation) -> Layer:
    """Return the layer of a drive through a world, its sweeps fired when they are looked at."""
    numbers = np.arange(len(simulation), dtype=np.int32)
    way_m = simulation.trajectory.position_m
    return Layer(name, numbers, simulation.sweep, world=simulation.world, way_m=way_m)


def named_apart(layers: list[Layer]) -> list[Layer]:
    """Give each layer its own colour, and a number where two have one name."""
    names = [layer.name for layer in layers]
    done: list[Layer] = []
    for i, layer in enumerate(layers):
        name = layer.name if names.count(layer.name) == 1 else f"{layer.name} ({names[: i + 1].count(layer.name)})"
        done.append(replace(layer, name=name, colour=OWN_COLOURS[i % len(OWN_COLOURS)]))
    return done


def require_sweeps(layer: Layer) -> None:
    """Raise InputError if a log is empty."""
    if len(layer.sweeps) == 0:
        raise InputError(f"{layer.name}", "has no beams; there is nothing to see")


# Stage: everything that can be shown, read and fired when it is asked for, and kept as far as the memory goes.


KEPT_BEAMS = 12_000_000
"""Beams of all kept sweeps together: about 0.9 GB."""
KEPT_VALUES = 40_000_000
_AROUND = 8
"""Places of the way, before and after, that tell the heading."""


def _no_way() -> NDArray[np.float64]:
    return np.zeros((0, 3))


@dataclass(frozen=True)
class Solid:
    """A world whose elements are shown themselves."""

    name: str
    world: LearnedWorld


@dataclass
class Stage:
    """Layers and solids in one map frame."""

    layers: list[Layer]
    """The first one says which sweeps there are, and is what the others are compared with."""
    solids: list[Solid] = field(default_factory=list[Solid])
    centre_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) whole metres, map frame: the browser has float32 and gets coordinates relative to this."""
    map_origin_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) of the map that everything is shown in."""
    way_m: NDArray[np.float64] = field(default_factory=_no_way)
    """(K, 3) where the sensor went, map frame."""

    def __post_init__(self) -> None:
        """Start with nothing kept."""
        self._sweeps: Kept[Log] = Kept(KEPT_BEAMS, len)
        self._values: Kept[NDArray[np.float64]] = Kept(KEPT_VALUES, len)

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Numbers of the sweeps to step through."""
        return self.layers[0].sweeps if self.layers else np.zeros(0, dtype=np.int32)

    @property
    def partners(self) -> list[int]:
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

    def place_m(self, position: int) -> NDArray[np.float64]:
        """Return the (3,) middle of the sensor's places during the sweep at a position of the slider, map frame."""
        log = self.sweep(0, int(self.sweeps[position])) if len(self.sweeps) else None
        return self.centre_m if log is None else log.beams.origin_m.mean(axis=0)

    def heading(self, position: int) -> NDArray[np.float64]:
        """Return the (3,) level unit vector along which the sensor goes there; x if it stands still."""
        if len(self.way_m) < 2:
            return np.array([1.0, 0.0, 0.0])
        here = int(np.argmin(np.linalg.norm(self.way_m - self.place_m(position), axis=1)))
        some = self.way_m[max(0, here - _AROUND) : here + _AROUND + 1]
        step = (some[-1] - some[0]) * [1, 1, 0]
        length = float(np.linalg.norm(step))
        return step / length if length > 0.1 else np.array([1.0, 0.0, 0.0])

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
            ("error", simulated, number), lambda: _difference(self.layers[simulated].name, real, other)
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


def _difference(name: str, real: Log, simulated: Log) -> NDArray[np.float64]:
    require_same_beams(name, real, simulated)
    here, there = real.returns.first_m, limit_ranges(simulated.returns.first_m, real)
    both = np.isfinite(here) & np.isfinite(there)
    error = np.full(len(real), np.nan)
    error[both] = there[both].astype(np.float64) - here[both]
    return error


# Kept: the last results of something slow, as far as the memory goes.


T = TypeVar("T")


class Kept(Generic[T]):
    """Results by key; the longest unused go when all together are too large."""

    def __init__(self, budget: int, size: Callable[[T], int]) -> None:
        """Keep results of this total size, and always the newest."""
        self._budget = budget
        self._size = size
        self._held: OrderedDict[Hashable, T] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._held)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what belongs to the key, made now if it is not held."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        made = make()
        self._held[key] = made
        self._total += self._size(made)
        while self._total > self._budget and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._total -= self._size(dropped)
        return made


# From paths to a stage: which are logs, which are worlds or scenes, and what is fired at what.


SHOWN: tuple[Kind, ...] = ("log", "learned world", "scene")

WAY_SWEEPS = 60
"""The way is drawn through the beams of this many sweeps, evenly chosen: reading all could take long."""
WAY_PER_SWEEP = 4


def open_stage(
    paths: Sequence[str | Path],
    seed: int = 0,
    progress: "StepProgress | None" = None,
    options: Mapping[str, Any] | None = None,
) -> Stage:
    """Open logs, worlds and scenes to be shown together.

    The beams of the first log are fired at every world and scene. Without a log they are those of the first scene's
    own sensor on its first pass; without a scene either, only the elements of the worlds are shown.

    Args:
        paths: logs as `open_log` reads them, worlds (folders with a world.toml), names or files of scenes.
        seed: for firing.
        progress: called with a stage of building a scene, how much of it is done, and how much there is.
        options: of `open_log`, for the logs.

    Raises:
        FileError: a path is missing, damaged, or of an unknown kind.
        InputError: a log has no beams, or nothing was given.
    """
    if not paths:
        raise InputError("view", "name at least one log, world or scene")
    kinds = [(path, require_kind(path, SHOWN, "view")) for path in map(Path, paths)]  # before anything slow
    places = [open_place(path, "view") for path, kind in kinds if kind == "scene"]
    logs = [_log(path, options or {}) for path, kind in kinds if kind == "log"]
    worlds = [Solid(path.stem, _whole(path)) for path, kind in kinds if kind == "learned world"]
    if not logs and places:
        logs.append(_own_drive(places.pop(0), seed, progress))
    simulated = [fired(each.name, each.world, logs[0], seed) for each in worlds] if logs else []
    if places:
        sensor = Sensor.of(logs[0].read(int(logs[0].sweeps[0])))
        simulated += [fired(each.name, each.open(sensor, progress=progress).world, logs[0], seed) for each in places]
    return _placed(named_apart(logs + simulated), worlds)


def _own_drive(place: Place, seed: int, progress: "StepProgress | None") -> Layer:
    """Return the layer of the scene's own sensor along the scene's first trajectory."""
    sensor = place.sensor(None)
    if place.plan is None or not place.plan.file.trajectories:
        raise InputError(f"{place.name}", "the scene names no trajectory; give a log whose beams to fire at it")
    world, trajectories, _ = place.open(sensor, progress=progress)
    return driven(place.name, simulate(world, sensor, next(iter(trajectories.values())), seed=seed))


def _whole(path: Path) -> LearnedWorld:
    world = load_world(path)
    assert isinstance(world, LearnedWorld)  # no limit of memory was given
    return world


def _log(path: Path, options: Mapping[str, Any]) -> Layer:
    layer = recorded(path.stem, open_log(path, "view", **options))
    require_sweeps(layer)
    return layer


def _placed(layers: list[Layer], solids: list[Solid]) -> Stage:
    if layers:
        first = layers[0].read(int(layers[0].sweeps[0]))
        way_m = way_of(layers[0])
        return Stage(layers, solids, np.rint(way_m.mean(axis=0)), first.map_origin_m, way_m)
    header = solids[0].world.header
    return Stage([], solids, np.array(header.origin_m), np.array(header.map_origin_m))


def way_of(layer: Layer) -> NDArray[np.float64]:
    """Return the (K, 3) places that the sensor came through, map frame, in order."""
    if layer.way_m is not None:
        return layer.way_m
    chosen = layer.sweeps[np.unique(np.linspace(0, len(layer.sweeps) - 1, WAY_SWEEPS).astype(np.intp))]
    places: list[Any] = []
    for number in chosen.tolist():
        beams = layer.read(number).beams
        in_time = np.argsort(beams.time_ns, kind="stable")
        places.append(beams.origin_m[in_time[np.linspace(0, len(in_time) - 1, WAY_PER_SWEEP).astype(np.intp)]])
    return np.concatenate(places)
