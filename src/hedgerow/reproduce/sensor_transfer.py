# SPDX-License-Identifier: Apache-2.0
"""One sensor maps, another one drives: worlds learned with an HDL-64E, fired with the beams of other sensors.

The trail plays reality. An HDL-64E drives first; an HDL-32E and a VLP-16 drive 0.6 m beside, and what they measure is
compared with worlds learned with the HDL-64E, and with worlds of the same models learned with their own beams on the
first drive. The other sensors have fewer beams, other range limits, and the VLP-16's spot is twice as tall. They look
higher too (10 and 15 degrees instead of 2), where a map of the HDL-64E has nothing: so there is one table of the beams
within its field of view, and one of all.

How much that width matters is asked apart: the HDL-64E makes both drives with pulses four times as wide as its own,
and with plain rays, and a refined world is learned from each.
"""

from pathlib import Path

import numpy as np

from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, SCENE_AGAIN
from hedgerow.reproduce.recording import SENSOR, SceneDrive
from hedgerow.reproduce.tables import short_table
from hedgerow.world import LearnedWorld

DEFAULT_WIDTH = "Scene, usual width"
NOT_RANKED = (DEFAULT_WIDTH, SCENE_AGAIN)
MODELS = ("topdown", "hybrid", "refined")
SEEN_DEG = (-24.8, 2.1)
"""Elevations of the HDL-64E's beams."""
SENSORS = ("hdl-32e", "vlp-16")
WIDTHS = {"rays": 0.0, "four times as wide": 4.0}


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn with each sensor on the first drive, compare on the second; `size` is sweeps."""
    n_sweeps = size or 12
    drive = SceneDrive.open(OFFROAD.scene, OFFROAD.span_s)
    brought = learn_models(drive.record("first", n_sweeps, seed), say)
    parts: list[str] = []
    for sensor in SENSORS:
        say(f"{sensor}: learning and comparing")
        for what, scores in compare_transfer(drive, brought, sensor, n_sweeps, seed, say).items():
            parts.append(f"**{sensor.upper()}, {what}**\n\n{short_table(scores, aside=NOT_RANKED)}")
    for name, width in WIDTHS.items():
        say(f"{name}: learning and comparing")
        scores = compare_widened(drive, brought["refined"], width, n_sweeps, seed)
        parts.append(f"**HDL-64E, {name}**\n\n{short_table(scores, aside=NOT_RANKED)}")
    return Outcome(text="\n\n".join(parts))


def learn_models(log: Log, say: Print) -> dict[str, LearnedWorld]:
    """Learn the worlds to be compared from one log."""
    worlds: dict[str, LearnedWorld] = {}
    for model in MODELS:
        worlds[model] = learn(log, model)
        say(f"learned {model} with {log.sensor}: {worlds[model].size().elements:,} elements")
    return worlds


def compare_transfer(
    drive: SceneDrive, brought: dict[str, LearnedWorld], sensor: str, n_sweeps: int, seed: int, say: Print
) -> dict[str, Comparison]:
    """Compare brought worlds, and worlds learned with the sensor itself, with what it measures on the second drive.

    Returns:
        Of the beams that the HDL-64E has too, and of all.
    """
    own = learn_models(drive.record("first", n_sweeps, seed, sensor), say)
    test, again = (drive.record("second", n_sweeps, seed + number, sensor) for number in (1, 2))
    worlds = {
        f"{model}, {source}": world
        for model in MODELS
        for source, world in ((SENSOR.removesuffix("-s2"), brought[model]), ("own", own[model]))
    }
    low, high = SEEN_DEG
    elevation_deg = np.rad2deg(np.arcsin(test.beams.direction[:, 2]))
    seen = (elevation_deg >= low) & (elevation_deg <= high)
    return {
        f"beams from {low:g} to {high:g} degrees": compare(test[seen], {**worlds, SCENE_AGAIN: again[seen]}, seed=seed),
        "all beams": compare(test, {**worlds, SCENE_AGAIN: again}, seed=seed),
    }


def compare_widened(drive: SceneDrive, brought: LearnedWorld, width: float, n_sweeps: int, seed: int) -> Comparison:
    """Compare a world, one learned with pulses of another width, and the scene as the usual pulses see it."""
    own = learn(drive.record("first", n_sweeps, seed, width=width), "refined")
    test, again = (drive.record("second", n_sweeps, seed + number, width=width) for number in (1, 2))
    usual = drive.record("second", n_sweeps, seed + 2)
    simulated = {"refined, usual width": brought, "refined, own": own, DEFAULT_WIDTH: usual, SCENE_AGAIN: again}
    return compare(test, simulated, seed=seed)
