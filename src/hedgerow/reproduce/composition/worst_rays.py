# SPDX-License-Identifier: Apache-2.0
"""Where simulated rays err most, and why (Tallavajhula 2018 Figs. 4.20 to 4.23).

The thesis shows four rays by hand. Here every beam of a drive is scored (CRPS) in four worlds of section 2: learned
directly, composed of primitives, composed of primitives of finer clusters, and composed of plain meshes. The worst ray
of each class of what was really hit is drawn with all elements on it. What the thesis names as the weakness of learned
worlds is counted: returns where reality had none (false hits), and returns off by more than half a metre, by where they
lie and by whether the element that answered is a large ellipsoid: one that spreads the range by more than 25 cm.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.metrics.crps import crps
from hedgerow.models import learn
from hedgerow.reproduce.composition.meshes import plain_solids
from hedgerow.reproduce.composition.ray_picture import Ray, choose_span, draw_ray
from hedgerow.reproduce.composition.scoring import DRAWS
from hedgerow.reproduce.composition.sections import open_section
from hedgerow.reproduce.composition.sites import make_library, of_library
from hedgerow.reproduce.composition.trial import MODEL, Sizes, Trial, open_trial
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.scenes.primitive import Library
from hedgerow.simulate import replay
from hedgerow.world.elements import Elements, Gaussians, Instances, Triangles
from hedgerow.world.learned import LearnedWorld

NOTHING, GROUND = "nothing", "ground, grass"
KINDS = (*PLANT_CLASSES, GROUND, NOTHING)
"""What a beam may really have hit."""
OFF_M = 0.5
"""A return that is farther off than this is wrong."""
LARGE_M = 0.25
"""An element that spreads the range of a beam by more than this is large."""
LEARNED, PRIMITIVES, FINER, MESHES = "learned directly", "primitives", "primitives, finer", "plain meshes"
FINER_POINTS = 30
"""Clusters of more points are split, where they are finer; by default 120."""
_MESH_SIGMA_M = 0.02
_ASKED = 200_000  # beams whose elements are looked up, at most


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Score every beam of `size` sweeps in four worlds, count what is wrong, and draw the worst rays."""
    sizes = Sizes.of(size) if size else Sizes(judged_sweeps=6)
    coarse, finer = learn_libraries(folder, sizes, seed, say)
    trial = open_trial(folder, coarse, sizes, seed, say)
    worlds = {
        LEARNED: learn(trial.mapping, MODEL),
        PRIMITIVES: trial.compose("primitives", trial.truth),
        FINER: trial.compose("finer", trial.truth, of_library(finer)),
        MESHES: trial.compose("meshes", trial.truth, plain_solids(folder, _MESH_SIGMA_M)),
    }
    answers: dict[str, Answers] = {"reality again": Answers.of_logs(trial.judged, trial.again)}
    for name, world in worlds.items():
        answers[name] = Answers.of_world(world, trial.judged, seed)
        say(f"scored {name}: CRPS {answers[name].crps_m.mean():.3f} m")
    kind = hit_kinds(trial)
    parts = [by_kind_text(answers, kind), wrong_text(answers, worlds, trial.truth)]
    pictures: list[Path] = []
    for name in (PRIMITIVES, MESHES):
        pictures.append(folder / f"worst-rays-{name.split()[-1]}.png")
        draw_worst(pictures[-1], name, {each: worlds[each] for each in (PRIMITIVES, MESHES)}, answers, trial, kind)
    return Outcome(text="\n\n".join([introduce(trial), *parts]), pictures=tuple(pictures))


def learn_libraries(folder: Path, sizes: Sizes, seed: int, say: Print) -> tuple[Library, Library]:
    """Learn section 1 twice, with clusters of the default size and with finer ones, and cut its plants out."""
    section = open_section(folder, 1, sizes.learned, seed)
    log = section.record(0.0, max(4, round(section.length_m / sizes.metre_per_sweep)), seed)
    boxes = section.truth_annotation()
    coarse = make_library(learn(log, MODEL), boxes, log, folder / "library.world")
    fine = learn(log, MODEL, topdown={"split_points": FINER_POINTS})
    finer = make_library(fine, boxes, log, folder / "finer.world")
    n_coarse, n_fine = sum(coarse.n_elements), sum(finer.n_elements)
    say(f"section 1: {len(coarse)} primitives of {n_coarse:,} elements, finer {n_fine:,}")
    return coarse, finer


@dataclass(frozen=True, eq=False)
class Answers:
    """What a world answers to the beams of a log."""

    real_m: NDArray[np.float32]
    """(N,) what was measured; inf is no return."""
    drawn_m: NDArray[np.float32]
    """(K, N) simulated ranges."""
    crps_m: Array
    """(N,)."""
    first: Log
    """The first draw."""

    @classmethod
    def of_logs(cls, real: Log, simulated: tuple[Log, ...]) -> "Answers":
        """Score logs of the same beams."""
        drawn = np.stack([log.returns.first_m for log in simulated])
        return cls(real.returns.first_m, drawn, crps(real.returns.first_m, drawn, real.max_range_m), simulated[0])

    @classmethod
    def of_world(cls, world: LearnedWorld, real: Log, seed: int) -> "Answers":
        """Fire the beams several times."""
        seeds = np.random.SeedSequence(seed).generate_state(DRAWS, np.uint64)
        return cls.of_logs(real, tuple(replay(world, real, seed=int(each)) for each in seeds))

    @property
    def is_wrong(self) -> dict[str, NDArray[np.bool_]]:
        """(N,) of the first draw: which returns are false hits, too short or too long; and which are missing."""
        real, mine = np.isfinite(self.real_m), np.isfinite(self.drawn_m[0])
        with np.errstate(invalid="ignore"):
            off_m = self.drawn_m[0] - self.real_m
        both = real & mine
        return {
            "false hit": mine & ~real,
            "short": both & (off_m < -OFF_M),
            "long": both & (off_m > OFF_M),
            "false miss": real & ~mine,
        }


def hit_kinds(trial: Trial) -> NDArray[np.str_]:
    """Return (N,) what each beam of the judging drive really hit."""
    owner = trial.judged.returns.object
    assert owner is not None
    name = trial.section.object_class[owner]
    kind = np.where(name == "", GROUND, name)
    return np.where(np.isfinite(trial.judged.returns.first_m), kind, NOTHING)


def kinds_at(points_m: Array, boxes: Annotation) -> NDArray[np.str_]:
    """Return (N,) the class of the box that each point lies in, the nearest if there are several; else ground."""
    found = np.full(len(points_m), GROUND, dtype=f"U{max(map(len, KINDS))}")
    nearest = np.full(len(points_m), np.inf)
    for k in range(len(boxes)):
        c, s = np.cos(boxes.yaw_rad[k]), np.sin(boxes.yaw_rad[k])
        away = (points_m - boxes.position_m[k]) @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        half = boxes.size_m[k] / 2
        inside = (np.abs(away[:, :2]) <= half[:2]).all(axis=1) & (away[:, 2] > 0.2) & (away[:, 2] <= 2 * half[2] + 0.2)
        distance = np.linalg.norm((away - [0, 0, half[2]]) / half, axis=1)
        nearer = inside & (distance < nearest)
        found[nearer], nearest[nearer] = str(boxes.class_name[k]), distance[nearer]
    return found


def answering_sigma_m(world: LearnedWorld, log: Log) -> Array:
    """Return (N,) how far the ellipsoid that answered each beam spreads its range; 0 for triangles, and for nothing."""
    element = log.returns.element
    assert element is not None
    element = element if element.ndim == 1 else element[:, 0]
    pierced = world.scene.pierced(log.beams, max_range_m=log.max_range_m)
    beam = np.repeat(np.arange(len(log)), np.diff(pierced.begin))
    mine = (pierced.element == element[beam]) & are_ellipsoids(world)[pierced.element]
    sigma = np.zeros(len(log))
    np.maximum.at(sigma, beam[mine], pierced.sigma_m[mine].astype(np.float64))
    return sigma


def are_ellipsoids(world: LearnedWorld) -> NDArray[np.bool_]:
    """Return (E,) which elements of a world are Gaussians, by the numbers that returns carry."""
    parts = [np.full(len(table), isinstance(table, Gaussians)) for table in world.tables.values() if _is_own(table)]
    instances = world.tables.get("instances")
    if isinstance(instances, Instances):
        of_asset = [
            np.concatenate([np.full(len(part), isinstance(part, Gaussians)) for part in asset.parts])
            for asset in world.assets
        ]
        parts += [of_asset[number] for number in instances.asset.tolist()]
    return np.concatenate(parts)


def _is_own(table: Elements) -> bool:
    return isinstance(table, Triangles | Gaussians)


def introduce(trial: Trial) -> str:
    """Say what was scored."""
    return (
        f"Section 2, {trial.section.length_m:.0f} m, {len(trial.truth)} plants, {len(trial.judged):,} beams of a drive "
        f"beside the one that mapped it. Primitives stand in true boxes; finer ones come of clusters of at most "
        f"{FINER_POINTS} points in the place of 120. Wrong is off by more than {OFF_M:g} m."
    )


def by_kind_text(answers: Mapping[str, Answers], kind: NDArray[np.str_]) -> str:
    """Return the table of mean CRPS, and one of what is wrong, by what was really hit."""
    names = list(answers)
    scores = [
        (each, f"{int(mine.sum()):,}", *(f"{answers[name].crps_m[mine].mean():.2f}" for name in names))
        for each in KINDS
        if (mine := kind == each).any()
    ]
    wrong = {name: answers[name].is_wrong for name in names}
    shares = [
        (each, *(_shares(wrong[name], mine, each) for name in names)) for each in KINDS if (mine := kind == each).any()
    ]
    first = markdown_table(("CRPS [m] where reality hit", "beams", *names), scores)
    second = markdown_table(("short, long, missed [%]; of nothing: false hits", *names), shares)
    return f"{first}\n\n{second}"


def _shares(wrong: Mapping[str, NDArray[np.bool_]], mine: NDArray[np.bool_], kind: str) -> str:
    shown = ("false hit",) if kind == NOTHING else ("short", "long", "false miss")
    return ", ".join(f"{100 * wrong[each][mine].mean():.1f}" for each in shown)


def wrong_text(answers: Mapping[str, Answers], worlds: Mapping[str, LearnedWorld], truth: Annotation) -> str:
    """Return how many wrong returns there are, where they lie, and how many of them a large ellipsoid gave."""
    rows: list[tuple[str, ...]] = []
    for name, world in worlds.items():
        wrong = answers[name].is_wrong
        for what in ("false hit", "short", "long"):
            beams = np.flatnonzero(wrong[what])
            some = beams[:: max(1, -(-len(beams) // _ASKED))]
            if not len(some):
                continue
            log = answers[name].first[some]
            large = answering_sigma_m(world, log) > LARGE_M
            place = kinds_at(log.points(), truth)
            low = place == "low-shrub"
            tree = np.char.endswith(place, "tree")
            shares = (large, tree, ~tree & ~low & (place != GROUND), low, large & low)
            n_all = len(answers[name].real_m)
            shown = (f"{100 * each.mean():.1f}" for each in shares)
            rows.append((f"{name}: {what}", f"{len(beams):,}", f"{100 * len(beams) / n_all:.2f}", *shown))
    head = (
        "wrong returns", "beams", "of all [%]", "by large ellipsoids [%]", "in trees [%]", "in other shrubs [%]",
        "in low shrubs [%]", "large, in low shrubs [%]",
    )  # fmt: skip
    return markdown_table(head, rows)


def worst_beams(answers: Answers, kind: NDArray[np.str_]) -> dict[str, int]:
    """Return the beam with the highest score of each kind of what was really hit."""
    return {
        each: int(np.flatnonzero(kind == each)[np.argmax(answers.crps_m[kind == each])])
        for each in KINDS
        if (kind == each).any()
    }


def draw_worst(
    path: Path,
    name: str,
    worlds: Mapping[str, LearnedWorld],
    answers: Mapping[str, Answers],
    trial: Trial,
    kind: NDArray[np.str_],
) -> None:
    """Draw the worst rays of one world, a row for each kind, beside what the other world makes of them."""
    chosen = worst_beams(answers[name], kind)
    figure = new_figure(13, 1.5 * len(chosen) + 0.6)
    panels = figure.subplots(len(chosen), len(worlds), squeeze=False)
    points_m = trial.judged.points()
    for row, (each, beam) in zip(panels, chosen.items(), strict=True):
        ray = ray_of(trial.judged, beam, points_m)
        drawn = np.stack([answers[other].drawn_m[:, beam] for other in worlds])
        span = choose_span(ray.real_m, drawn)
        for axes, (other, world) in zip(row, worlds.items(), strict=True):
            mine = answers[other].drawn_m[:, beam].astype(np.float64)
            draw_ray(axes, ray, world, mine, span)
            missed = int(np.isinf(mine).sum())
            real = "nothing" if np.isinf(ray.real_m) else f"{ray.real_m:.1f} m"
            said = f"{other}; really {each}" + (f", {real}" if each != NOTHING else "")
            axes.set_title(f"{said}; {missed} of {len(mine)} draws without return", fontsize=7, loc="left")
        row[0].set_ylabel("above [m]", fontsize=6)
    figure.supxlabel("range [m]; ring: real return, crosses: simulated, grey: measured points", fontsize=8)
    save_figure(figure, path)


def ray_of(log: Log, beam: int, points_m: Array) -> Ray:
    """Return one beam of a log, with the points around it."""
    origin_m = log.beams.origin_m[beam]
    direction = log.beams.direction[beam].astype(np.float64)
    return Ray(origin_m, direction / np.linalg.norm(direction), float(log.returns.first_m[beam]), points_m)
