# SPDX-License-Identifier: Apache-2.0
"""Risk in closed loop, which Tallavajhula 2018 §5.2.3 leaves open: a robot drives through the scene and through worlds.

The courtyard of Goodin 2018 plays reality. A robot drove straight through it once and recorded a log with its own
VLP-16; worlds are learned from that. Then the same robot navigates: tasks up to 8 m beside the recorded way, through
reality and through each world, with the same settings of its program (apps/closed_loop.py). All that the robot sees
later depends on what it did before, so small differences can grow. The whole is done twice: with exact poses, and with
the GPS and compass of Browning 2012, which the robot believes (Goodin 2018 §3.5.3 has such and gives no figures).

A robot that finds a gap left or right of a tree by chance takes other times in reality, too: the floor is reality
again, under another seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.closed_loop import Navigation, Task
from hedgerow.apps.navigation import NavigationSettings, Run
from hedgerow.apps.planner import CostGrid, GridSettings
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.recording import record_drive
from hedgerow.reproduce.risk_text import risk_text
from hedgerow.reproduce.tables import markdown_table
from hedgerow.reproduce.yard import Truth, Yard, collision_check, courtyard, map_truth
from hedgerow.risk.measure import open_table
from hedgerow.risk.run import evaluate
from hedgerow.risk.score import failure_share, score
from hedgerow.risk.sources import FunctionSource, Scene
from hedgerow.risk.table import RiskTable
from hedgerow.sensor import Sensor
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.world import World

SENSOR, RATE_HZ = "vlp-16", 20.0
MODELS = ("surface", "voxel", "hybrid", "refined")
GRID = GridSettings(n_cells=200)
"""Of the robot: the tasks are short, and a small map is planned faster."""
TASK_M = 30.0
ASIDE_M = 8.0
"""How far starts and goals lie beside the recorded way."""
MAX_TIME_S = 75.0
_CLEAR_M = 4.0
_DRAWS = 1000  # for each task
_HEIGHT_M = 2.0
_NOISE_M = 0.02
_NOTHING = Log.from_arrays(origins=np.zeros((0, 3)), directions=np.zeros((0, 3)), ranges=np.zeros(0))


@dataclass(frozen=True)
class Place:
    """Where the robot drives, and what truly stands there."""

    yard: Yard
    truth: Truth
    grid: CostGrid
    """Of the truth."""
    tasks: NDArray[np.float64]
    """(K, 2, 2) starts and goals, x, y [m]."""


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    yard: Yard | None = None,
    models: tuple[str, ...] = MODELS,
    n_settings: int = 5,
) -> Outcome:
    """Let the robot drive `size` tasks (default 3) with each setting through reality and through every world."""
    n_tasks = 3 if size is None else size
    if n_tasks < 1:
        raise InputError("--size", f"is {n_tasks}; expected one or more tasks")
    place = survey(yard or courtyard(), n_tasks, seed)
    worlds = learn_worlds(place.yard, models, seed, say)
    app = Navigation()
    parts: list[str] = []
    for title, errors in (("exact poses", PoseErrors()), ("GPS and compass of Browning 2012", _gps(seed))):
        say(f"driving with {title}")
        table = measure_drives(app, place, worlds, errors, n_settings, seed)
        parts += [f"**With {title}**", _means(table, app), risk_text(score(table, app, seed=seed))]
    picture = _draw(folder / "closed-loop-risk.png", app, place, worlds, seed)
    return Outcome(text="\n\n".join(parts), pictures=(picture,))


def _gps(seed: int) -> PoseErrors:
    return PoseErrors.open("browning-2012").model_copy(update={"seed": seed})


def survey(yard: Yard, n_tasks: int, seed: int) -> Place:
    """Look from above, and draw tasks along the recorded way whose ends are clear of trees and walls."""
    start, goal = np.asarray(yard.start_m), np.asarray(yard.goal_m)
    grid = CostGrid.around((start + goal) / 2, GridSettings(n_cells=400))
    truth = map_truth(yard, grid)
    tall_m = grid.centre_m(np.argwhere(truth.height_m >= GRID.max_height_m))
    length_m = float(np.hypot(*(goal - start)))
    ahead = (goal - start) / length_m
    left = np.array([-ahead[1], ahead[0]])
    random = np.random.default_rng(seed + 900)
    tasks: list[NDArray[np.float64]] = []
    for _ in range(_DRAWS * n_tasks):
        first_m = random.uniform(0, max(length_m - TASK_M, 1e-9))
        along_m = np.array([first_m, min(first_m + TASK_M, length_m)])
        ends = start + along_m[:, None] * ahead + random.uniform(-ASIDE_M, ASIDE_M, (2, 1)) * left
        away_m = np.hypot(*(tall_m[:, None] - ends).T)
        if not (away_m < _CLEAR_M).any():
            tasks.append(ends if random.uniform() < 0.5 else ends[::-1])
        if len(tasks) == n_tasks:
            break
    else:
        raise InputError("yard", f"has no {n_tasks} tasks whose ends are {_CLEAR_M:g} m clear of trees and walls")
    return Place(yard, truth, grid, np.array(tasks))


def learn_worlds(yard: Yard, models: tuple[str, ...], seed: int, say: Print) -> dict[str, World]:
    """Drive straight through the yard once, a sweep each second, and learn it."""
    xy_m = np.array([yard.start_m, yard.goal_m])
    start_m, end_m = np.column_stack([xy_m, np.asarray(yard.ground(*xy_m.T)) + _HEIGHT_M])
    way = Trajectory.line(start_m, end_m, speed_mps=NavigationSettings().vehicle.max_speed_mps)
    lasts_s = (way.end_ns - way.start_ns) * 1e-9
    sensor = Sensor.named(SENSOR, RATE_HZ)
    n_sweeps = max(2, int(lasts_s))
    log = Log.concatenate(
        list(record_drive(yard.world, sensor, way, n_sweeps, seed, span_s=(0.0, lasts_s), noise_m=_NOISE_M))
    )
    worlds: dict[str, World] = {}
    for name in models:
        say(f"learning {name} from {n_sweeps} sweeps")
        worlds[name] = learn(log, name)
    return worlds


def measure_drives(
    app: Navigation, place: Place, worlds: Mapping[str, World], errors: PoseErrors, n_settings: int, seed: int
) -> RiskTable:
    """Let the robot drive all tasks with all settings through reality, reality again, and every world."""
    names = [f"{number:02d}" for number in range(len(place.tasks))]
    seen = {"real": place.yard.world, "again": place.yard.world} | dict(worlds)
    sources: list[FunctionSource] = []
    for number, (name, world) in enumerate(seen.items()):
        # Reality is one recording, and another; a simulator has seeds of its own.
        role = name if name in ("real", "again") else "simulated"
        make = _Make(place, world, errors, None if role == "simulated" else seed + 1000 * number)
        sources.append(FunctionSource(name, names, make, role=role, is_random=role == "simulated"))
    table = open_table(app, sources, settings=n_settings, seed=seed)
    evaluate(app, table, sources, seeds=(seed + 5,))
    return table


@dataclass(frozen=True)
class _Make:
    """Makes the scene of a task."""

    place: Place
    world: World
    errors: PoseErrors
    seed: int | None
    """Of reality; None takes that of the simulation."""

    def __call__(self, name: str, seed: int) -> Scene:
        return Scene(
            _NOTHING, task_in(self.world, self.place, int(name), self.errors, seed if self.seed is None else self.seed)
        )


def task_in(world: World, place: Place, number: int, errors: PoseErrors, seed: int) -> Task:
    """Return one of the tasks, seen through a world."""
    sensor = Sensor.named(SENSOR, RATE_HZ)
    start, goal = place.tasks[number].tolist()
    return Task(
        world,
        sensor,
        (start[0], start[1]),
        (goal[0], goal[1]),
        place.yard.ground,
        collision_check(place.yard),
        NavigationSettings(
            grid=GRID,
            sensor_height_m=_HEIGHT_M,
            sweep_stride=max(1, round(1 / sensor.sweep_s)),
            max_time_s=MAX_TIME_S,
            pose_errors=errors,
            snapshot_s=None,
        ),
        seed,
    )


def _means(table: RiskTable, app: Navigation) -> str:
    """Return what came of all drives of a source, in Markdown."""
    rows: list[tuple[str, ...]] = []
    for name in ("real", "again", *table.names("simulated")):
        runs = table.of(name)
        well = runs.well
        sums = {key: np.where(well, values, 0.0).sum() for key, values in runs.sums.items()}
        means = [f"{float(each.reduce(sums)):.2f}" if sums else "-" for each in app.objectives.values()]
        rows.append((name, f"{100 * (1 - failure_share(runs)):.0f} %", *means))
    units = (f"{name} [{each.unit}]" if each.unit else name for name, each in app.objectives.items())
    return markdown_table(("drives through", "reached", *units), rows)


def _draw(path: Path, app: Navigation, place: Place, worlds: Mapping[str, World], seed: int) -> Path:
    """Draw the ways of the robot with its usual settings, in reality, in reality again, and in every world."""
    figure = new_figure(9.5, 8.5)
    axes: Any = figure.subplots()
    grid = place.grid
    shown = np.ma.masked_less(place.truth.height_m, GRID.max_height_m)
    axes.imshow(shown, origin="lower", extent=grid.extent_m(), cmap="Greens", vmin=0, vmax=15, interpolation="nearest")
    usual = app.space.start()
    seen: dict[str, tuple[World, int]] = {"real": (place.yard.world, seed), "again": (place.yard.world, seed + 1000)}
    seen |= {name: (world, seed + 5) for name, world in worlds.items()}
    for colour, (name, (world, drawn)) in enumerate(seen.items()):
        style = {"color": "k", "linewidth": 1.8, "linestyle": "-" if name == "real" else ":"}
        style = style if name in ("real", "again") else {"color": f"C{colour - 2}", "linewidth": 1.2}
        for number in range(len(place.tasks)):
            done: Run = app.drive(task_in(world, place, number, PoseErrors(), drawn), usual)
            axes.plot(*done.trajectory.position_m[:, :2].T, label=name if number == 0 else None, **style)
    for start, goal in place.tasks:
        axes.plot(*start, "o", color="k", markersize=5)
        axes.plot(*goal, "*", color="k", markersize=10)
    low, high = place.tasks.reshape(-1, 2).min(axis=0) - 12, place.tasks.reshape(-1, 2).max(axis=0) + 12
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel="east [m]", ylabel="north [m]")
    axes.set_title("ways from start (dot) to goal (star); green: higher than the vehicle crosses")
    axes.legend(loc="upper left")
    save_figure(figure, path)
    return path
