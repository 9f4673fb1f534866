# SPDX-License-Identifier: Apache-2.0
"""From paths to a stage: which are logs, which are worlds or scenes, and what is fired at what."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, InputError
from hedgerow.view.web.layers import Layer, fired, named_apart, recorded, require_sweeps
from hedgerow.view.web.sites import SiteToFire, Stages, is_scene, scene_names
from hedgerow.view.web.stage import Solid, Stage
from hedgerow.world import LearnedWorld, is_world, load_world

WAY_SWEEPS = 60
"""The way is drawn through the beams of this many sweeps, evenly chosen: reading all could take long."""
WAY_PER_SWEEP = 4


def open_stage(
    paths: Sequence[str | Path],
    seed: int = 0,
    progress: Stages | None = None,
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
        raise InputError("view: name at least one log, world or scene")
    kinds = [(path, _kind(path)) for path in map(Path, paths)]  # wrong ones are told before anything slow
    logs = [_log(path, options or {}) for path, kind in kinds if kind == "log"]
    worlds = [Solid(path.stem, _whole(path)) for path, kind in kinds if kind == "world"]
    sites = [SiteToFire.load(path, progress) for path, kind in kinds if kind == "scene"]
    if not logs and sites:
        logs.append(sites.pop(0).own_pass(seed))
    simulated = [fired(each.name, each.world, logs[0], seed) for each in worlds] if logs else []
    simulated += [site.fired(logs[0], seed) for site in sites]
    return _placed(named_apart(logs + simulated), worlds)


def _kind(path: Path) -> Literal["log", "world", "scene"]:
    from hedgerow.io.formats import format_of

    if is_world(path):
        return "world"
    if is_scene(path):
        SiteToFire.check(path)
        return "scene"
    if not path.exists():
        raise FileError(f"{path}: no such file or folder, nor a scene; the scenes are {', '.join(scene_names())}")
    format_of(path, None, reading=True)
    return "log"


def _whole(path: Path) -> LearnedWorld:
    world = load_world(path)
    assert isinstance(world, LearnedWorld)  # no limit of memory was given
    return world


def _log(path: Path, options: Mapping[str, Any]) -> Layer:
    from hedgerow.io import open_log

    layer = recorded(path.stem, open_log(path, **options))
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
