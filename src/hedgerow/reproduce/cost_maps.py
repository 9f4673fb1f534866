# SPDX-License-Identifier: Apache-2.0
"""003 §3.5.3, Fig. 10: one robot, four lidars, the courtyard; what each puts into its cost map and where it drives.

The paper compares the maps by eye. Here each sensor drives the same task in closed loop, and besides looks once from
the same places along the straight way, so that what it sees can be counted against what truly stands there
(yard.py). Only the half ahead counts: the LMS-291 sees 180 degrees. It is mounted level, "only a horizontal slice".
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hedgerow.apps.cost_grid import CostGrid, GridSettings
from hedgerow.apps.navigation import NavigationSettings, Run, navigate
from hedgerow.errors import InputError
from hedgerow.reproduce.cost_map_picture import draw
from hedgerow.reproduce.cost_map_words import Drive, drive_table, seen_table, words
from hedgerow.reproduce.experiment import Outcome, Say
from hedgerow.reproduce.seen import look_around, viewpoints
from hedgerow.reproduce.yard import Truth, Yard, courtyard, look_down, touching
from hedgerow.sensor import Sensor

SENSORS = ("lms-291", "vlp-16", "hdl-32e", "hdl-64e")
"""In the order of Fig. 10."""


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Say = print,
    *,
    sensors: Sequence[str] = SENSORS,
    yard: Yard | None = None,
    settings: NavigationSettings | None = None,
) -> Outcome:
    """Let the robot find its way with each sensor.

    Args:
        folder: takes the picture.
        size: sweeps per second that are fired, at most as many as the sensor has. Default 2: a metre of driving apart.
        seed: of worlds and sensors.
        say: is told how each drive went.
        sensors: names from the catalogue.
        yard: where; default the courtyard.
        settings: robot and task; default the paper's.

    Raises:
        InputError: a size below 1, or a sensor that is not in the catalogue.
    """
    if size is not None and size < 1:
        raise InputError("size", f"expected 1 or more sweeps per second, found {size}")
    place = yard or courtyard()
    chosen = settings or NavigationSettings()
    middle_m = (np.asarray(place.start_m) + place.goal_m) / 2
    say(f"{place.name}: looking from above at what stands there")
    truth = look_down(place, CostGrid.around(middle_m, chosen.grid))
    places = viewpoints(place, truth, CostGrid.around(middle_m, chosen.grid))
    drives: list[Drive] = []
    for name in sensors:
        sensor = Sensor.named(name)
        seen = look_around(place, sensor, truth, places, chosen, seed)
        done = _drive(place, sensor, chosen, 2 if size is None else size, seed)
        drives.append(Drive(name, done, seen, over_grass(done, truth)))
        how = "reached the goal" if done.reached else "did not reach the goal"
        say(f"{name}: {how} after {done.time_s:.1f} s and {done.trajectory.length_m:.0f} m")
    picture = folder / "cost-maps.png"
    draw(picture, place, truth, drives, chosen)
    text = "\n\n".join([drive_table(drives, place, chosen), seen_table(drives, len(places)), words(drives)])
    return Outcome(text=text, pictures=(picture,))


def over_grass(done: Run, truth: Truth) -> float:
    """Return the share of the driven way that led over grass."""
    xy = done.trajectory.position_m[:, :2]
    length_m = np.hypot(*np.diff(xy, axis=0).T)
    middle_m = (xy[1:] + xy[:-1]) / 2
    settings: GridSettings = done.grid.settings
    column, row = np.floor((middle_m - done.grid.corner_m) / settings.cell_m).astype(np.int64).T
    return float(length_m[truth.grass[row, column]].sum() / max(length_m.sum(), 1e-9))


def _drive(yard: Yard, sensor: Sensor, settings: NavigationSettings, sweeps_per_s: int, seed: int) -> Run:
    stride = max(1, round(1 / sensor.sweep_s / sweeps_per_s))
    return navigate(
        yard.world,
        sensor,
        yard.start_m,
        yard.goal_m,
        terrain_height=yard.ground,
        settings=settings.model_copy(update={"sweep_stride": stride}),
        seed=seed,
        collides=touching(yard),
    )
