# SPDX-License-Identifier: Apache-2.0
"""Goodin 2018 §3.5.3, Fig. 10: one robot drives through a courtyard with four lidars; their cost maps and paths.

The paper compares the maps by eye. Here each sensor drives the same task in closed loop, and besides looks once from
the same places along the straight line, so that what it sees can be counted against what truly stands there
(yard.py). Only the half ahead counts: the LMS-291 sees 180 degrees. It is mounted level, "only a horizontal slice".

`cost-maps-paper` keeps to the letter of the paper where ours differs: no cell is closed and no distance kept
(`PAPER_GRID`), every sweep is fired, and the LMS-291 sees the 100 degrees of Table 3. `cost-maps-gps` is ours with a
GPS and a compass that err as Browning 2012 tells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.apps.navigation import NavigationSettings, Run, navigate
from hedgerow.apps.planner import MAX_COST, PAPER_GRID, CostGrid, GridSettings
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.errors import InputError
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.yard import (
    BANDS_M,
    SeenCells,
    Truth,
    Yard,
    collision_check,
    count_seen,
    courtyard,
    map_truth,
    viewpoints,
)
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Planar
from hedgerow.sensor.pose_errors import PoseErrors

SENSORS = ("lms-291", "vlp-16", "hdl-32e", "hdl-64e")
"""In the order of Fig. 10."""
ALL_SWEEPS = 1000
"""Sweeps per second: more than any sensor has."""
PAPER_PLANE_DEG = 100.0
PLANNED, DRIVEN, TRUE = "#56B4E9", "#FFFFFF", "#009E73"
"""Colours of the picture."""


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    sensors: Sequence[str] = SENSORS,
    yard: Yard | None = None,
    settings: NavigationSettings | None = None,
    paper: bool = False,
    pose_errors: str | None = None,
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
        paper: take its grid, all sweeps, and 100 degrees of the LMS-291.
        pose_errors: a preset or file of errors of the pose that the robot believes.

    Raises:
        InputError: a size below 1, or a sensor that is not in the catalogue.
    """
    if size is not None and size < 1:
        raise InputError("size", f"expected 1 or more sweeps per second, found {size}")
    place = yard or courtyard()
    chosen = settings or NavigationSettings()
    if paper:
        changes = PAPER_GRID.model_dump(include={"blocks", "keep_off_m"})
        chosen = chosen.model_copy(update={"grid": chosen.grid.model_copy(update=changes)})
    if pose_errors is not None:
        errors = PoseErrors.open(pose_errors).model_copy(update={"seed": seed})
        chosen = chosen.model_copy(update={"pose_errors": errors})
    n_per_s = size or (ALL_SWEEPS if paper else 2)
    middle_m = (np.asarray(place.start_m) + place.goal_m) / 2
    say(f"{place.name}: looking from above at what stands there")
    truth = map_truth(place, CostGrid.around(middle_m, chosen.grid))
    places = viewpoints(place, truth, CostGrid.around(middle_m, chosen.grid))
    drives: list[Drive] = []
    for name in sensors:
        sensor = narrowed(Sensor.named(name)) if paper else Sensor.named(name)
        seen = count_seen(place, sensor, truth, places, chosen, seed)
        done = _drive(place, sensor, chosen, n_per_s, seed)
        drives.append(Drive(name, done, seen, over_grass(done, truth)))
        how = "reached the goal" if done.reached else "did not reach the goal"
        say(f"{name}: {how} after {done.time_s:.1f} s and {done.trajectory.length_m:.0f} m")
    picture = folder / f"cost-maps{'-paper' if paper else ''}{'-gps' if pose_errors else ''}.png"
    draw(picture, place, truth, drives, chosen)
    text = "\n\n".join([drive_table(drives, place, chosen), seen_table(drives, len(places)), words(drives)])
    return Outcome(text=text, pictures=(picture,))


def narrowed(sensor: Sensor) -> Sensor:
    """Return an LMS-291 over the angles of Goodin 2018 Table 3, -50 to 50 degrees; other sensors as they are."""
    pattern = sensor.config.pattern
    if not isinstance(pattern, Planar):
        return sensor
    half_deg = PAPER_PLANE_DEG / 2
    plane = pattern.model_copy(update={"first_azimuth_deg": -half_deg, "extent_deg": PAPER_PLANE_DEG})
    return replace(sensor, config=sensor.config.model_copy(update={"pattern": plane}))


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
        collides=collision_check(yard),
    )


@dataclass(frozen=True)
class Drive:
    """One sensor's drive and what it saw."""

    sensor: str
    run: Run
    seen: SeenCells
    over_grass: float
    """Share of the way that led over grass."""


def drive_table(drives: Sequence[Drive], yard: Yard, settings: NavigationSettings) -> str:
    """Return the drives and the cells of their maps by height, in Markdown."""
    straight_m = float(np.hypot(*(np.asarray(yard.goal_m) - yard.start_m)))
    at = "at the end" if settings.snapshot_s is None else f"after {settings.snapshot_s:g} s"
    top_m = settings.grid.max_height_m
    rows: list[tuple[str, Callable[[Drive], str]]] = [
        ("goal reached", lambda d: "yes" if d.run.reached else "no"),
        ("time [s]", lambda d: f"{d.run.time_s:.1f}"),
        (f"way driven [m] ({straight_m:.0f} straight)", lambda d: f"{d.run.trajectory.length_m:.1f}"),
        ("share of the way over grass", lambda d: _percent(d.over_grass)),
        ("collisions", lambda d: str(d.run.n_collisions)),
        ("plans", lambda d: str(len(d.run.plans))),
        (f"cells known {at}", lambda d: _cells(d, 0, np.inf)),
        ("... below 0.15 m", lambda d: _cells(d, 0, 0.15)),
        ("... 0.15 to 0.5 m", lambda d: _cells(d, 0.15, 0.5)),
        (f"... 0.5 to {top_m:g} m", lambda d: _cells(d, 0.5, top_m)),
        (f"... {top_m:g} m and above (cost {MAX_COST:g})", lambda d: _cells(d, top_m, np.inf)),
        ("cells known at the end", lambda d: f"{int(d.run.grid.known.sum()):,}"),
    ]
    title = f"**Four lidars on one robot in the {yard.name} (Goodin 2018 §3.5.3)**"
    return title + "\n\n" + _table(drives, rows)


def seen_table(drives: Sequence[Drive], n_places: int) -> str:
    """Return what one sweep sees of what truly stands ahead, by distance, in Markdown."""
    rows: list[tuple[str, Callable[[Drive], str]]] = []
    for kind, name in (("grass", "grass"), ("tall", "trees")):
        for band, (near, far) in enumerate(BANDS_M):
            n_cells = getattr(drives[0].seen, f"n_{kind}")[band]
            if n_cells == 0:
                continue
            title = f"{name}, {near} to {far} m ({n_cells:,} cells)"
            rows.append((title, lambda d, kind=kind, band=band: _percent(share(d.seen, kind, (band,)))))
    title = f"**Share of the cells ahead that one sweep marks, from {n_places} places along the straight way**"
    note = "Grass: a return from grass. Trees, where they are too high to cross: full cost."
    return f"{title}\n\n{_table(drives, rows)}\n\n{note}"


def share(seen: SeenCells, kind: str, bands: Sequence[int]) -> float:
    """Return the share of the cells of a kind ("grass" or "tall") seen in some bands; NaN if there are none."""
    of = sum(getattr(seen, f"n_{kind}")[band] for band in bands)
    return sum(getattr(seen, kind)[band] for band in bands) / of if of else float("nan")


def words(drives: Sequence[Drive]) -> str:
    """Return what the paper found by eye, beside what the numbers say, in Markdown."""
    by_name = {drive.sensor: drive for drive in drives}
    lines = [_grass_words(drives)]
    if {"vlp-16", "hdl-64e"} <= by_name.keys():
        lines += [
            _tall_words(by_name["vlp-16"], by_name["hdl-64e"]),
            _near_words(by_name["vlp-16"], by_name["hdl-64e"]),
        ]
    lines.append(_path_words(drives))
    return "**In words**\n\n" + "\n".join(f"- {line}" for line in lines)


def _grass_words(drives: Sequence[Drive]) -> str:
    shares = {drive.sensor: share(drive.seen, "grass", (0, 1)) for drive in drives}
    told = ", ".join(f"{name} {_percent(value)}" for name, value in shares.items())
    text = f"Grass within {BANDS_M[1][1]} m, share of its cells seen in one sweep: {told}."
    if "lms-291" not in shares or len(shares) < 2:
        return text
    others = min(value for name, value in shares.items() if name != "lms-291")
    result = "misses most of it and the others see more" if shares["lms-291"] < min(0.5, others) else "does not miss it"
    return f"{text} The paper: the LMS-291 does not detect most of the grass. Here it {result}."


def _tall_words(vlp: Drive, hdl: Drive) -> str:
    if not any(vlp.seen.n_tall):
        return "No trees stand along the way."
    parts: list[str] = []
    better: list[str] = []
    for band, (near, far) in enumerate(BANDS_M):
        if vlp.seen.n_tall[band] == 0:
            continue
        mine, theirs = share(vlp.seen, "tall", (band,)), share(hdl.seen, "tall", (band,))
        parts.append(f"{near} to {far} m {_percent(mine)} against {_percent(theirs)}")
        better += [f"{near} to {far} m"] if mine > theirs else []
    result = f"it marks more of them at {', '.join(better)}" if better else "it marks more of them at no distance"
    paper = "The paper: the VLP-16 detects tall obstacles at intermediate ranges somewhat better"
    return f"Trees, VLP-16 against HDL-64E: {', '.join(parts)}. {paper}. Here {result}."


def _near_words(vlp: Drive, hdl: Drive) -> str:
    mine, theirs = share(hdl.seen, "grass", (0,)), share(vlp.seen, "grass", (0,))
    result = "So it is here" if mine > theirs else "Not so here"
    paper = "The paper: the HDL-64E is better at smaller nearby obstacles"
    told = f"of the grass within {BANDS_M[0][1]} m it sees {_percent(mine)}, the VLP-16 {_percent(theirs)}"
    return f"{paper}. {result}: {told}."


def _path_words(drives: Sequence[Drive]) -> str:
    told = [f"{d.sensor} {d.run.trajectory.length_m:.0f} m, {_percent(d.over_grass)} over grass" for d in drives]
    failed = [d.sensor for d in drives if not d.run.reached]
    reached = "All reached the goal" if not failed else f"Not at the goal: {', '.join(failed)}"
    touched = [f"{d.sensor} {d.run.n_collisions} times" for d in drives if d.run.n_collisions]
    hits = f"touched something solid: {', '.join(touched)}" if touched else "none touched anything solid"
    return f"What is seen decides the way: {'; '.join(told)}. {reached}; {hits}."


def _cells(drive: Drive, low_m: float, high_m: float) -> str:
    grid: CostGrid = drive.run.snapshot or drive.run.grid
    height_m = grid.height_m()
    with np.errstate(invalid="ignore"):
        return f"{int(((height_m >= low_m) & (height_m < high_m)).sum()):,}"


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _table(drives: Sequence[Drive], rows: Sequence[tuple[str, Callable[[Drive], str]]]) -> str:
    head = ["", *(drive.sensor for drive in drives)]
    lines = [head, ["---"] * len(head)]
    lines += [[title, *(cell(drive) for drive in drives)] for title, cell in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(path: Path, yard: Yard, truth: Truth, drives: Sequence[Drive], settings: NavigationSettings) -> None:
    """Draw two maps for each sensor, as Fig. 10: after some seconds and at the end, with planned and driven paths."""
    figure = new_figure(4.0 * len(drives) + 0.8, 8.9)
    axes: Any = figure.subplots(2, len(drives), squeeze=False, sharex=True, sharey=True)
    image: Any = None
    for column, drive in enumerate(drives):
        run = drive.run
        moments = [
            (run.snapshot or run.grid, min(settings.snapshot_s or run.time_s, run.time_s)),
            (run.grid, run.time_s),
        ]
        for row, (grid, time_s) in enumerate(moments):
            image = _draw_map(axes[row, column], grid, truth)
            _draw_paths(axes[row, column], yard, drive, time_s)
            axes[row, column].set_title(f"{drive.sensor}, {time_s:.0f} s", fontsize=11)
        axes[1, column].set_xlabel("east [m]")
    for row in range(2):
        axes[row, 0].set_ylabel("north [m]")
    _crop(axes[0, 0], drives[0].run.grid, truth)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.01)
    bar.set_label(f"cost; {MAX_COST:g} is {settings.grid.max_height_m:g} m and higher. Black: nothing seen")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=5, frameon=True, facecolor="0.25", labelcolor="white"
    )
    save_figure(figure, path, dpi=110)


def _draw_map(axes: Any, grid: CostGrid, truth: Truth) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    # Nothing seen is black, as in the paper; ground that was seen and costs nothing is a shade lighter.
    colours = LinearSegmentedColormap.from_list("cost", ["#2b2440", "#7b2f6f", "#e0633a", "#ffd45c", "#fffbe0"])
    extent = grid.extent_m()
    shown = np.ma.masked_where(~grid.known, grid.cost())
    axes.set_facecolor("black")
    image = axes.imshow(
        shown, origin="lower", extent=extent, cmap=colours, vmin=0, vmax=MAX_COST, interpolation="nearest"
    )
    tall = truth.height_m >= grid.settings.max_height_m
    if tall.any():
        middles = [np.linspace(a + 0.25, b - 0.25, grid.settings.n_cells) for a, b in (extent[:2], extent[2:])]
        axes.contour(*middles, tall.astype(np.float64), levels=[0.5], colors=TRUE, linewidths=0.6)
    return image


def _crop(axes: Any, grid: CostGrid, truth: Truth) -> None:
    """Show only where something stands: the grid may reach far beyond the walls."""
    standing = np.argwhere((truth.height_m > 0) | truth.grass)
    if len(standing) == 0:
        return
    low, high = grid.centre_m([standing.min(axis=0), standing.max(axis=0)])
    axes.set_xlim(low[0] - 3, high[0] + 3)
    axes.set_ylim(low[1] - 3, high[1] + 3)


def _draw_paths(axes: Any, yard: Yard, drive: Drive, time_s: float) -> None:
    planned = [each for each in drive.run.plans if each.time_s <= time_s + 1e-6]
    if planned and len(planned[-1].xy_m):
        axes.plot(*planned[-1].xy_m.T, color=PLANNED, linewidth=1.6, linestyle="--", label="planned last")
    until = drive.run.trajectory.time_ns <= round(time_s * 1e9)
    axes.plot(*drive.run.trajectory.position_m[until, :2].T, color=DRIVEN, linewidth=1.8, label="driven")
    mark: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "black", "markersize": 9}
    axes.plot(*yard.start_m, marker="o", color=DRIVEN, label="start", **mark)
    axes.plot(*yard.goal_m, marker="*", color="#F0E442", label="goal", **(mark | {"markersize": 15}))
    axes.plot([], [], color=TRUE, linewidth=1.2, label="walls and trees, true outline")
