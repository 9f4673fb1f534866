# SPDX-License-Identifier: Apache-2.0
"""A forest that nobody scanned (Tallavajhula 2018 Fig. 4.25): dense, of learned trees, with a path kept free.

The thesis places large trees on both sides of a straight path, in boxes of the sizes met in training. Here rules make
an annotation: boxes of the sizes in the library, larger or smaller by up to a fifth, trees before shrubs, none over the
path, none on top of another. It is written as a file, composed, and fired at like any other site.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base.arrays import Array
from hedgerow.base.atomic import atomic_file
from hedgerow.base.parameters import Length, Parameters, Share
from hedgerow.compose.composition import compose
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.reproduce.composition.cloud_picture import Look, draw_cloud, ramp
from hedgerow.reproduce.composition.sections import SENSOR
from hedgerow.reproduce.composition.sites import of_library
from hedgerow.reproduce.composition.trial import Sizes, learn_library
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation, write_annotation
from hedgerow.scenes.primitive import Library
from hedgerow.scenes.site import Site, load_site
from hedgerow.scenes.trail import Polyline
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate
from hedgerow.view.render import Camera, save_picture
from hedgerow.world.learned import LearnedWorld

N_SWEEPS = 60
PER_HECTARE = {
    "large-tree": 230,
    "medium-tree": 200,
    "small-tree": 120,
    "large-shrub": 12,
    "medium-shrub": 40,
    "small-shrub": 90,
    "low-shrub": 300,
}
"""Boxes of each class; those with trunks come first."""
_TRIES = 30
"""Places that are tried for a box before it is left out."""


class ForestRules(Parameters):
    """Where boxes may stand, and how large they are."""

    length_m: Length = 120.0
    """Of the forest, along x."""
    width_m: Length = 64.0
    """Of the forest, along y."""
    bend_m: float = Field(default=7.0, ge=0, le=100)
    """How far the path swings to each side."""
    path_m: Length = 5.0
    """Width of the path: no box reaches into it."""
    vary: Share = 0.2
    """A box is up to this share larger or smaller than a primitive of its class."""
    overlap: Share = 0.35
    """Two boxes may reach into each other by this share of their half widths together; boxes of shrubs under trees may
    stand closer."""
    density: float = Field(default=1.0, gt=0, le=10)
    """Times the boxes per hectare."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn plants on section 1, draw a forest, compose it, drive through it with `size` sweeps, and draw the cloud."""
    library = learn_library(folder, Sizes(), seed, say)
    rules = ForestRules()
    forest = make_forest(folder, library, rules, seed)
    say(f"composed {len(forest.boxes):,} plants in {forest.took_s:.1f} s")
    log, fired_s = drive(forest, size or N_SWEEPS, seed)
    say(f"fired {len(log):,} beams in {fired_s:.1f} s")
    pictures = folder / "dense-forest.jpg", folder / "dense-forest-plan.png"
    save_picture(draw_forest(forest, log), pictures[0])
    draw_plan(forest, log, pictures[1])
    return Outcome(text=text(forest, log, fired_s), pictures=pictures)


@dataclass(frozen=True)
class Forest:
    """A composed forest."""

    rules: ForestRules
    line: Polyline
    """Middle of the path."""
    boxes: Annotation
    library: Library
    site: Site
    world: LearnedWorld
    took_s: float
    """To compose it."""


def make_forest(folder: Path, library: Library, rules: ForestRules, seed: int) -> Forest:
    """Draw an annotation, write it (forest.csv) with a scene file (forest.toml), and compose that (forest.world)."""
    corners = path_corners(rules)
    boxes = draw_boxes(library, rules, Polyline(corners, smooth=True), seed)
    write_annotation(folder / "forest.csv", boxes)
    with atomic_file(folder / "forest.toml") as temporary:
        temporary.write_text(scene_text(library, rules, corners, seed))
    begin_s = time.perf_counter()
    wavelength_nm = Sensor.named(SENSOR).config.beam.wavelength_nm
    world = compose(folder / "forest.toml", wavelength_nm=wavelength_nm)
    took_s = time.perf_counter() - begin_s
    world.save(folder / "forest.world")
    site = load_site(folder / "forest.toml", wavelength_nm=wavelength_nm)
    return Forest(rules, Polyline(corners, smooth=True), boxes, library, site, world, took_s)


def path_corners(rules: ForestRules) -> list[list[float]]:
    """Return the corners of the path: an S from end to end, a little beyond the forest."""
    x = np.linspace(-rules.length_m / 2, rules.length_m / 2, 9)
    y = rules.bend_m * np.sin(2 * np.pi * x / rules.length_m)
    return [[round(float(a), 2), round(float(b), 2)] for a, b in zip(x, y, strict=True)]


def draw_boxes(library: Library, rules: ForestRules, line: Polyline, seed: int) -> Annotation:
    """Draw the boxes of a forest: sizes from a library, places by the rules.

    Raises:
        InputError: the library has no plants.
    """
    rng = np.random.default_rng(seed)
    area_ha = rules.length_m * rules.width_m / 1e4
    names: list[str] = []
    sizes, feet = np.zeros((0, 3)), np.zeros((0, 2))
    for class_name, per_ha in PER_HECTARE.items():
        known = np.array([library.facts[k].extents_m for k in library.of_class(class_name)]).reshape(-1, 3)
        if not len(known):
            continue
        n = round(rules.density * per_ha * area_ha)
        factor = rng.uniform(1 - rules.vary, 1 + rules.vary, (n, 1))
        wanted = known[rng.integers(0, len(known), n)] * factor
        for size_m in wanted:
            place = _place(size_m, sizes, feet, rules, line, rng)
            if place is not None:
                names.append(class_name)
                sizes, feet = np.vstack([sizes, size_m]), np.vstack([feet, place])
    if not names:
        raise InputError("library", f"has no plants; a forest needs some of {', '.join(PLANT_CLASSES)}")
    return Annotation.of_boxes(names, feet, rng.uniform(-np.pi, np.pi, len(names)), sizes)


def _place(
    size_m: Array, sizes: Array, feet: Array, rules: ForestRules, line: Polyline, rng: np.random.Generator
) -> Array | None:
    """Return a foot that keeps the path free and stands clear of the others; None if none is found in time."""
    half = np.array([rules.length_m, rules.width_m]) / 2 - 1.0
    own_m = reach_of(size_m[None])[0]
    # Under a crown there is room for a shrub: a tree keeps it away by its stem only, a tenth of its width.
    other_m = np.where(sizes[:, 2] > 2.5 * size_m[2], 0.2, 1 - rules.overlap) * reach_of(sizes)
    for _ in range(_TRIES):
        foot = rng.uniform(-half, half)
        if line.distance_m(foot[None])[0] < rules.path_m / 2 + own_m:
            continue
        if (np.hypot(*(feet - foot).T) >= other_m + (1 - rules.overlap) * own_m).all():
            return foot
    return None


def reach_of(size_m: Array) -> Array:
    """Return (N,) how far boxes of (N, 3) extents reach from their feet, along the wider side."""
    return size_m[:, :2].max(axis=1, initial=0) / 2


def scene_text(library: Library, rules: ForestRules, corners: list[list[float]], seed: int) -> str:
    """Return the scene file of the forest."""
    things = of_library(library, among=3, scale="box")
    return f"""# SPDX-License-Identifier: Apache-2.0
about = "A dense forest of learned plants, with a path kept free (Tallavajhula 2018 Fig. 4.25)."
seed = {seed}
sensor = "{SENSOR}"

[terrain]
kind = "noise"
size_m = [{rules.length_m}, {rules.width_m}]
relief_m = 5
wavelength_m = 45

[trail]
path_m = {corners}
width_m = {min(2.6, rules.path_m)}
shoulder_m = 1.0

[annotation]
file = "forest.csv"
among = {things.among}
scale = "{things.scale}"

{things.tables}

[trajectories.along]
along_trail = true
from_m = 4
speed_mps = 2.4
height_m = 2.0
"""


def drive(forest: Forest, n_sweeps: int, seed: int) -> tuple[Log, float]:
    """Drive along the path; return the log, and how long the beams took [s]."""
    way, sensor = forest.site.trajectories["along"], Sensor.named(SENSOR)
    duration_s = (int(way.time_ns[-1]) - int(way.time_ns[0])) / 1e9
    at_s = np.linspace(0.0, duration_s - sensor.sweep_s, n_sweeps)
    begin_s = time.perf_counter()
    sweeps = list(simulate(forest.world, sensor, way, seed=seed, at_s=at_s))
    return Log.concatenate(sweeps), time.perf_counter() - begin_s


GROUND_COLOURS = ((0.16, 0.20, 0.27), (0.30, 0.33, 0.38))
PLANT_COLOURS = (
    (0.10, 0.25, 0.32),
    (0.10, 0.42, 0.42),
    (0.25, 0.60, 0.38),
    (0.62, 0.76, 0.33),
    (0.97, 0.84, 0.38),
    (1.0, 0.95, 0.72),
)


def draw_forest(forest: Forest, log: Log, width_px: int = 1400, height_px: int = 700) -> NDArray[np.uint8]:
    """Draw the cloud from above the path: plants by their height above the ground."""
    points_m = log.points()
    terrain = forest.site.terrain
    low_x, low_y, high_x, high_y = terrain.bounds_m
    x, y = np.clip(points_m[:, 0], low_x, high_x), np.clip(points_m[:, 1], low_y, high_y)
    above_m = points_m[:, 2] - terrain.height_m(x, y)
    owner = log.returns.object
    assert owner is not None
    is_plant = owner[log.returns.hit] > 0
    on_path = forest.line.distance_m(points_m[:, :2]) < forest.rules.path_m / 2
    colour = np.where(is_plant[:, None], ramp(np.sqrt(np.clip(above_m / 14.0, 0, 1)), PLANT_COLOURS), GROUND_COLOURS[0])
    colour[on_path & ~is_plant] = GROUND_COLOURS[1]
    return draw_cloud(points_m, colour, _camera(forest, width_px, height_px), Look(point_m=0.05, haze_m=150.0))


def _camera(forest: Forest, width_px: int, height_px: int) -> Camera:
    """Stand over the path, a sixth of the way in, and look along it."""
    eye, look_at = forest.line.at(np.array([1 / 6, 0.46]) * forest.line.length_m)
    ground_m = forest.site.terrain.height_m(*np.stack([eye, look_at]).T)
    return Camera(np.array([*eye, ground_m[0] + 4.5]), np.array([*look_at, ground_m[1] + 3.5]), width_px, height_px, 75)


def draw_plan(forest: Forest, log: Log, path: Path) -> None:
    """Draw the annotation from above beside what a drive saw of it, as Fig. 4.25 does."""
    from hedgerow.base.figure import new_figure, save_figure

    figure = new_figure(13, 4.2)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    boxes = forest.boxes
    hue = {
        name: ramp(np.array([k / (len(PLANT_CLASSES) - 1)]), PLANT_COLOURS[:-1])[0]
        for k, name in enumerate(PLANT_CLASSES)
    }
    for name in PLANT_CLASSES:
        rows = np.flatnonzero(boxes.class_name == name)
        for row in rows:
            corner = _corners(boxes, int(row))
            left.fill(*corner.T, facecolor=(*hue[name], 0.35), edgecolor=hue[name], linewidth=0.4)
        left.plot([], [], "s", color=hue[name], label=f"{name}, {len(rows)}")
    along = forest.line.points_m
    left.plot(*along.T, color="black", linewidth=1)
    left.legend(fontsize=6, ncols=4, loc="upper center", frameon=False)
    points_m = log.points()[:: max(1, len(log) // 400_000)]
    points_m = points_m[np.argsort(points_m[:, 2])]
    right.scatter(*points_m[:, :2].T, c=points_m[:, 2], s=0.15, cmap="viridis", linewidths=0)
    right.plot(*along.T, color="red", linewidth=0.8)
    half_x, half_y = forest.rules.length_m / 2, forest.rules.width_m / 2
    left.set(title="annotation, made by rules", aspect="equal", xlabel="x [m]", ylabel="y [m]")
    right.set(title="returns of the drive", aspect="equal", xlabel="x [m]")
    left.set(xlim=(-half_x, half_x), ylim=(-half_y, half_y + 6))
    save_figure(figure, path)


def _corners(boxes: Annotation, row: int) -> Array:
    c, s = np.cos(boxes.yaw_rad[row]), np.sin(boxes.yaw_rad[row])
    half = boxes.size_m[row, :2] / 2 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    return half @ np.array([[c, s], [-s, c]]) + boxes.position_m[row, :2]


def text(forest: Forest, log: Log, fired_s: float) -> str:
    """Say what was composed: boxes and primitives by class, and what the drive saw."""
    boxes, library = forest.boxes, forest.library
    rows: list[tuple[str, ...]] = []
    for name in PLANT_CLASSES:
        mine, known = boxes.size_m[boxes.class_name == name], library.of_class(name)
        if len(mine):
            learned_m = float(np.mean([library.facts[k].height_m for k in known]))
            spread = f"{mine[:, 2].min():.1f} to {mine[:, 2].max():.1f}"
            rows.append(
                (name, f"{len(mine):,}", f"{len(known)}", f"{mine[:, 2].mean():.1f}", f"{learned_m:.1f}", spread)
            )
    head = ("class", "boxes", "primitives", "mean height [m]", "in the library [m]", "heights [m]")
    free_m = float((forest.line.distance_m(boxes.position_m[:, :2]) - reach_of(boxes.size_m)).min())
    area_ha = forest.rules.length_m * forest.rules.width_m / 1e4
    owner, hit = log.returns.object, log.returns.hit
    assert owner is not None
    on_plants = float((owner[hit] > 0).mean())
    seen = len(np.unique(owner[hit])) - 1
    size = forest.world.size()
    said = (
        f"{len(boxes):,} plants on {area_ha:.2f} ha ({len(boxes) / area_ha:,.0f} per hectare), composed in "
        f"{forest.took_s:.1f} s; {size.bytes / 1e6:.1f} MB. No box comes nearer to the middle of the path than "
        f"{free_m:.2f} m. {len(log):,} beams of an {SENSOR.upper()} in {fired_s:.1f} s; "
        f"{100 * hit.mean():.0f} % return, {100 * on_plants:.0f} % of these from plants; {seen:,} plants are seen."
    )
    return f"{said}\n\n{markdown_table(head, rows)}"
