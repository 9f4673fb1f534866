# SPDX-License-Identifier: Apache-2.0
"""From paths to a stage: which are logs, which are worlds, and what is fired at what."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, InputError
from hedgerow.view.web.layers import Layer, fired, named_apart, recorded, require_sweeps
from hedgerow.view.web.stage import Solid, Stage

WAY_SWEEPS = 60
"""The way is drawn through the beams of this many sweeps, evenly chosen: reading all could take long."""
WAY_PER_SWEEP = 4


def open_stage(paths: Sequence[str | Path], seed: int = 0) -> Stage:
    """Open logs and worlds to be shown together.

    The beams of the first log are fired at every world; without a log, only the elements of the worlds are shown.

    Args:
        paths: logs as `open_log` reads them, and worlds (folders with a world.toml).
        seed: for firing.

    Raises:
        FileError: a path is missing, damaged, or of an unknown kind.
        InputError: a log has no beams, or nothing was given.
    """
    from hedgerow.io import open_log
    from hedgerow.world import LearnedWorld, load_world

    if not paths:
        raise InputError("view: name at least one log or world")
    logs: list[Layer] = []
    worlds: list[Solid] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileError(f"{path}: no such file or folder")
        if (path / "world.toml").exists():
            world = load_world(path)
            if isinstance(world, LearnedWorld):  # always: no limit of memory was given
                worlds.append(Solid(path.stem, world))
        else:
            logs.append(recorded(path.stem, open_log(path)))
            require_sweeps(logs[-1])
    simulated = [fired(each.name, each.world, logs[0], seed) for each in worlds] if logs else []
    return _placed(named_apart(logs + simulated), worlds)


def _placed(layers: list[Layer], solids: list[Solid]) -> Stage:
    if layers:
        first = layers[0].read(int(layers[0].sweeps[0]))
        way_m = way_of(layers[0])
        return Stage(layers, solids, np.rint(way_m.mean(axis=0)), first.map_origin_m, way_m)
    header = solids[0].world.header
    return Stage([], solids, np.array(header.origin_m), np.array(header.map_origin_m))


def way_of(layer: Layer) -> NDArray[np.float64]:
    """Return the (K, 3) places that the sensor came through, map frame, in order."""
    chosen = layer.sweeps[np.unique(np.linspace(0, len(layer.sweeps) - 1, WAY_SWEEPS).astype(np.intp))]
    places: list[Any] = []
    for number in chosen.tolist():
        beams = layer.read(number).beams
        in_time = np.argsort(beams.time_ns, kind="stable")
        places.append(beams.origin_m[in_time[np.linspace(0, len(in_time) - 1, WAY_PER_SWEEP).astype(np.intp)]])
    return np.concatenate(places)
