# SPDX-License-Identifier: Apache-2.0
"""From paths to a stage: which are logs, which are worlds or scenes, and what is fired at what."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.inputs import Kind, Place, open_log, open_place, require_kind
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate
from hedgerow.view.web.layers import Layer, driven, fired, named_apart, recorded, require_sweeps
from hedgerow.view.web.stage import Solid, Stage
from hedgerow.world import LearnedWorld, load_world

if TYPE_CHECKING:
    from hedgerow.physics.scene_file.build import Stages

SHOWN: tuple[Kind, ...] = ("log", "learned world", "scene")

WAY_SWEEPS = 60
"""The way is drawn through the beams of this many sweeps, evenly chosen: reading all could take long."""
WAY_PER_SWEEP = 4


def open_stage(
    paths: Sequence[str | Path],
    seed: int = 0,
    progress: "Stages | None" = None,
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


def _own_drive(place: Place, seed: int, progress: "Stages | None") -> Layer:
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
