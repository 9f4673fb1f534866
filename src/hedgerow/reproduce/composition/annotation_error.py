# SPDX-License-Identifier: Apache-2.0
"""What errors of an annotation cost (ours; Tallavajhula 2018 Fig. 2.3 calls it the projection onto simulated scenes).

Section 2 is composed of the plants of section 1, once by its true boxes and once for each kind of error: plants missed,
classes exchanged, feet and boxes off. Errors of one kind are nested: the 5 % that are missed are among the 20 %. Beside
these stand annotations that nobody made by hand: the objects that `segment` finds in the mapping drive, and in a third
of it. Two more rows frame all: the ground alone, and the section learned directly from the mapping drive.

Each is scored by beams (CRPS, F1), by clouds, and by how far two programs go astray on it: segmentation and cost map
(application risk, Tallavajhula 2018 eq. 2.5). The floor is reality again, with other seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import io
from hedgerow.apps.registry import open_app
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.compose.segmentation import segment
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.scoring import BeamScores, difference, score_world
from hedgerow.reproduce.composition.trial import MODEL, Sizes, Trial, learn_library, open_trial
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.measure import measure
from hedgerow.risk.score import RiskScores, score
from hedgerow.risk.sources import Drive, RecordedSource, SimulatedSource
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.world.learned import LearnedWorld

TRUE, FLOOR = "true boxes", "reality again"
PROGRAMS = ("segmentation", "cost-map")
SETTINGS = 8
SCENE_SWEEPS = 2
_SMALLEST_M = 0.2
"""Of a box whose extents are off."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Compose section 2 with errors of each kind and score it on `size` sweeps."""
    sizes = Sizes.of(size) if size else Sizes(judged_sweeps=8)
    trial = open_trial(folder, learn_library(folder, sizes, seed, say), sizes, seed, say)
    boxes = {TRUE: trial.truth} | wrong_boxes(trial.truth, seed) | found_boxes(trial.mapping)
    worlds = {name: trial.compose(_file_name(name), each) for name, each in boxes.items()}
    worlds["ground alone"] = trial.compose("ground-alone", far_off(trial.truth))
    say(f"composed {len(worlds)} sites")
    worlds["section learned directly"] = learn(trial.mapping, MODEL)
    scores = {FLOOR: trial.floor()}
    for name, world in worlds.items():
        scores[name] = score_world(world, trial.judged, seed=seed)
        say(f"scored {name}: CRPS {scores[name].values['crps_m']:.3f} m")
    risks = measure_risks(trial, worlds, seed, say)
    rows = [Cost.of(name, scores, risks, len(boxes.get(name, ()))) for name in scores]
    picture = folder / "annotation-error.png"
    draw(rows, picture)
    return Outcome(text=text(rows, trial), pictures=(picture,))


def wrong_boxes(truth: Annotation, seed: int) -> dict[str, Annotation]:
    """Return the true boxes with errors, by what is wrong."""
    made: dict[str, Annotation] = {}
    for share in (0.05, 0.2, 0.5):
        made[f"{share:.0%} missed".replace("%", " %")] = without_some(truth, share, seed)
    for share in (0.2, 0.5):
        made[f"{share:.0%} of another class".replace("%", " %")] = with_other_classes(truth, share, seed)
    for off_m in (0.1, 0.3, 1.0):
        made[f"feet off by {off_m:g} m"] = with_feet_off(truth, off_m, seed)
    for off_m in (0.1, 0.3, 1.0):
        made[f"boxes off by {off_m:g} m"] = with_boxes_off(truth, off_m, seed)
    return made


def without_some(boxes: Annotation, share: float, seed: int) -> Annotation:
    """Leave out a share of the boxes, at least one stays; a larger share leaves out the same ones, and more."""
    order = np.random.default_rng([seed, 1]).permutation(len(boxes))
    n_out = min(round(share * len(boxes)), len(boxes) - 1)
    return boxes[np.sort(order[n_out:])]


def with_other_classes(boxes: Annotation, share: float, seed: int) -> Annotation:
    """Give a share of the boxes one of the six other classes; their extents stay."""
    rng = np.random.default_rng([seed, 2])
    order = rng.permutation(len(boxes))
    step = rng.integers(1, len(PLANT_CLASSES), len(boxes))
    number = np.array([PLANT_CLASSES.index(str(name)) for name in boxes.class_name])
    wrong = order[: round(share * len(boxes))]
    number[wrong] = (number[wrong] + step[wrong]) % len(PLANT_CLASSES)
    return replace(boxes, class_name=np.array(PLANT_CLASSES)[number])


def with_feet_off(boxes: Annotation, off_m: float, seed: int) -> Annotation:
    """Move every foot by so many metres, in a direction of its own."""
    angle = np.random.default_rng([seed, 3]).uniform(-np.pi, np.pi, len(boxes))
    place = boxes.position_m.copy()
    place[:, :2] += off_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return replace(boxes, position_m=place)


def with_boxes_off(boxes: Annotation, off_m: float, seed: int) -> Annotation:
    """Make length, width and height of every box larger or smaller by so many metres, each on its own."""
    sign = np.random.default_rng([seed, 4]).choice([-1.0, 1.0], (len(boxes), 3))
    return replace(boxes, size_m=np.maximum(boxes.size_m + off_m * sign, _SMALLEST_M))


def far_off(boxes: Annotation) -> Annotation:
    """Return one small box at the rim of the site: an annotation needs a row, but nobody sees this one."""
    outermost = int(np.argmax(np.abs(boxes.position_m[:, 1])))
    alone = boxes[[outermost]]
    low = np.isin(boxes.class_name, "low-shrub")
    name = "low-shrub" if low.any() else str(alone.class_name[0])
    return replace(alone, class_name=np.array([name]), size_m=np.full((1, 3), _SMALLEST_M))


def found_boxes(mapping: Log) -> dict[str, Annotation]:
    """Return what `segment` finds in the mapping drive, and in a third of its sweeps; no labels are used."""
    numbers = np.unique(mapping.beams.sweep)
    thinned = Log.concatenate([mapping.select(sweep=int(number)) for number in numbers[::3]])
    return {
        "automatic": segment(mapping, use_labels=False).annotation(PLANT_CLASSES),
        "automatic, a third of the sweeps": segment(thinned, use_labels=False).annotation(PLANT_CLASSES),
    }


def _file_name(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name.lower().replace(" %", "pc"))


def measure_risks(trial: Trial, worlds: Mapping[str, LearnedWorld], seed: int, say: Print) -> dict[str, RiskScores]:
    """Run both programs on reality, on reality again, and on every world."""
    io.write_log(trial.judged, trial.folder / "judged.parquet")
    io.write_log(trial.again[0], trial.folder / "again.parquet")
    drive = Drive(io.open_log(trial.folder / "judged.parquet"), SCENE_SWEEPS)
    again = SimulatedSource(FLOOR, drive, io.open_log(trial.folder / "again.parquet"))
    sources = [RecordedSource(drive), again, *(SimulatedSource(name, drive, each) for name, each in worlds.items())]
    found: dict[str, RiskScores] = {}
    for name in PROGRAMS:
        say(f"running {name}")
        app = open_app(name)
        found[name] = score(measure(app, sources, settings=SETTINGS, seed=seed, seeds=[seed]), app, seed=seed)
    return found


@dataclass(frozen=True)
class Cost:
    """What one annotation costs."""

    name: str
    n_boxes: int
    values: Mapping[str, float]
    """Scores by key; risks by the name of the program."""
    against_true: str
    """CRPS less that of the true boxes, with an interval."""

    @classmethod
    def of(cls, name: str, scores: Mapping[str, BeamScores], risks: Mapping[str, RiskScores], n_boxes: int) -> "Cost":
        """Gather the scores of one row."""
        mine = scores[name].values | {each: risks[each].scores[name].risk for each in PROGRAMS}
        if name == TRUE:
            return cls(name, n_boxes, mine, "")
        found = difference(scores[name], scores[TRUE], "crps_m")
        span = "" if found.interval is None else f" ({found.interval[0]:+.3f} to {found.interval[1]:+.3f})"
        return cls(name, n_boxes, mine, f"{found.difference:+.3f}{span}")


COLUMNS = (
    ("crps_m", "CRPS [m]", 3),
    ("f1", "F1", 3),
    ("cloud_distance_average_m", "cloud distance [m]", 3),
    ("segmentation", "risk, segmentation", 4),
    ("cost-map", "risk, cost map", 3),
)


def text(rows: list[Cost], trial: Trial) -> str:
    """Return the table, and what it is of."""
    said = (
        f"Section 2, {trial.section.length_m:.0f} m, {len(trial.truth)} plants, composed of {len(trial.library)} "
        f"primitives of section 1. {len(trial.judged):,} beams, {SETTINGS} settings of each program. In brackets the "
        "95 % interval over sweeps. Low is good, but for F1."
    )
    head = ("annotation", "boxes", "CRPS against true boxes [m]", *(label for _, label, _ in COLUMNS))
    lines = [
        (
            each.name,
            f"{each.n_boxes:,}" if each.n_boxes else "-",
            each.against_true or "-",
            *(f"{each.values[key]:.{digits}f}" for key, _, digits in COLUMNS),
        )
        for each in rows
    ]
    return f"{said}\n\n{markdown_table(head, lines)}"


def draw(rows: list[Cost], path: Path) -> None:
    """Draw a bar for each annotation and score; a line marks the true boxes, another the floor."""
    by_name = {each.name: each for each in rows}
    if TRUE not in by_name or FLOOR not in by_name:
        raise InputError("rows", f"expected {TRUE} and {FLOOR} among them")
    figure = new_figure(13, 0.3 * len(rows) + 1.2)
    panels: Any = figure.subplots(1, len(COLUMNS), sharey=True)
    place = np.arange(len(rows))[::-1]
    colour = [_colour(each.name) for each in rows]
    for axes, (key, label, _) in zip(panels, COLUMNS, strict=True):
        axes.barh(place, [_shown(each, key) for each in rows], color=colour, height=0.7)
        axes.axvline(_shown(by_name[TRUE], key), color="black", linewidth=0.8)
        axes.axvline(_shown(by_name[FLOOR], key), color="black", linewidth=0.8, linestyle=":")
        title = "1 - F1" if key == "f1" else label
        axes.set(title=title, yticks=place, yticklabels=[each.name for each in rows])
        axes.grid(axis="x", alpha=0.3)
        axes.tick_params(labelsize=8)
    figure.supxlabel("line: true boxes; dotted: reality again", fontsize=9)
    save_figure(figure, path)


def _shown(row: Cost, key: str) -> float:
    """Return a score so that low is good."""
    return 1 - row.values[key] if key == "f1" else row.values[key]


def _colour(name: str) -> str:
    kinds = {"missed": "C0", "class": "C1", "feet": "C2", "boxes off": "C3", "automatic": "C4"}
    return next((colour for kind, colour in kinds.items() if kind in name), "0.6")
