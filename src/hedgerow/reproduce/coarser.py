# SPDX-License-Identifier: Apache-2.0
"""A knob for fidelity (Tallavajhula 2018 §5.2.2): error against speed of worlds with ever fewer elements.

A refined and a top-down world of the trail are merged down to a half, a quarter and so on of their elements
(world/coarser.py), without looking at the log again. Beside them stand worlds that were learned with as many elements
from the start: what merging costs against learning anew. All are compared on a second drive. Speed is how many beams
per second of processor time are fired at a world on one thread, as a multiple of the refined world before merging; all
worlds are timed in turns, so that what else runs on the machine slows all of them alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, record
from hedgerow.reproduce.tables import markdown_table
from hedgerow.world import LearnedWorld

SHARES = (2, 4, 8, 16, 32, 64)
"""One in so many elements stays."""
LEARNED = (4, 32)
"""Where a world is learned with as many elements, too: a refined one takes a minute or two each."""
TURNS = 5
_SPLIT_POINTS = 120
"""Of a top-down world; with n times as many it has about one in n elements."""
COLUMNS = (
    ("nll_binned", "-log L", 1.0, 2),
    ("hits_found", "hits found [%]", 100.0, 1),
    ("misses_found", "misses found [%]", 100.0, 1),
    ("beam_error_mean_m", "beam error [cm]", 100.0, 1),
    ("cloud_distance_m", "cloud to cloud [cm]", 100.0, 1),
)
PANELS = ("nll_binned", "misses_found", "beam_error_mean_m", "cloud_distance_m")
FAMILIES = {
    "Refined, merged": "ko-",
    "Refined, learned": "ks--",
    "Top Down, merged": "C0o-",
    "Top Down, learned": "C0s--",
}


@dataclass(frozen=True)
class Sized:
    """A world with about one in `share` of the elements of its family."""

    family: str
    share: int
    world: LearnedWorld

    @property
    def name(self) -> str:
        """Return the family and the share."""
        return self.family.split(",")[0] if self.share == 1 else f"{self.family}, 1/{self.share}"


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    shares: Sequence[int] = SHARES,
    learned: Sequence[int] = LEARNED,
) -> Outcome:
    """Record two drives of `size` sweeps, learn on one, merge, compare on the other, time, and draw the curves."""
    train, test = record(OFFROAD, size or 4, seed)
    say(f"recorded two drives of {len(train):,} beams")
    worlds = make_worlds(train, shares, learned, say)
    scores = compare(test, {each.name: each.world for each in worlds}, seed=seed)
    speed = measure_speed(worlds, test, seed)
    picture = folder / "coarser.png"
    draw(worlds, scores, speed, picture)
    return Outcome(text=table(worlds, scores, speed), pictures=(picture,))


def make_worlds(train: Log, shares: Sequence[int], learned: Sequence[int], say: Print) -> list[Sized]:
    """Learn both worlds, merge them, and learn them anew with fewer elements; the refined one before merging first."""
    refined, topdown = learn(train, "refined"), learn(train, "topdown")
    done: list[Sized] = []
    for name, full in (("Refined", refined), ("Top Down", topdown)):
        done.append(Sized(f"{name}, merged", 1, full))
        say(f"learned {name}: {full.size().elements:,} elements")
        for share in shares:
            begin_s = perf_counter()
            done.append(Sized(f"{name}, merged", share, full.coarser(max(1, full.size().elements // share))))
            say(f"merged {done[-1].name}: {perf_counter() - begin_s:.1f} s")
    for share in learned:
        budget = max(1, refined.size().elements // share)
        done.append(Sized("Refined, learned", share, learn(train, "refined", budget=budget)))
        done.append(Sized("Top Down, learned", share, learn(train, "topdown", split_points=_SPLIT_POINTS * share)))
        say(f"learned {done[-2].name} and {done[-1].name}")
    return done


def measure_speed(worlds: Sequence[Sized], log: Log, seed: int) -> dict[str, float]:
    """Return how many times as many beams per second each world answers as the first does: medians of some turns."""
    beams = log.beams
    for each in worlds:
        each.world.fire(beams[:1], seed)  # builds what firing needs
    took_s = np.empty((TURNS, len(worlds)))
    for turn in range(TURNS):
        for number, each in enumerate(worlds):
            begin_s = process_time()
            each.world.fire(beams, seed, threads=1)
            took_s[turn, number] = process_time() - begin_s
    ratio = np.median(took_s[:, :1] / took_s, axis=0)
    return {each.name: float(value) for each, value in zip(worlds, ratio, strict=True)}


def table(worlds: Sequence[Sized], scores: Comparison, speed: Mapping[str, float]) -> str:
    """Return elements, speed and scores of all worlds, family by family."""
    head = ("", "elements", "speed", *(label for _, label, _, _ in COLUMNS))
    rows = [
        (
            each.name,
            f"{each.world.size().elements:,}",
            f"{speed[each.name]:.2f}",
            *(f"{scale * (scores[each.name][key] or 0.0):.{digits}f}" for key, _, scale, digits in COLUMNS),
        )
        for family in FAMILIES
        for each in worlds
        if each.family == family
    ]
    return markdown_table(head, rows)


def draw(worlds: Sequence[Sized], scores: Comparison, speed: Mapping[str, float], path: Path) -> None:
    """Draw scores against speed, a curve for each family; merged worlds begin with the full one."""
    figure = new_figure(11, 7.5)
    panels: Any = figure.subplots(2, 2)
    shown = {key: (label, scale) for key, label, scale, _ in COLUMNS}
    for axes, key in zip(panels.flat, PANELS, strict=True):
        label, scale = shown[key]
        for family, style in FAMILIES.items():
            own = [each for each in worlds if each.family == family]
            y = [scale * (scores[each.name][key] or 0.0) for each in own]
            (line,) = axes.plot([speed[each.name] for each in own], y, style, label=family, markersize=4)
            for each, value in zip(own, y, strict=True):
                place, said = (speed[each.name], value), f"{each.world.size().elements:,}"
                axes.annotate(said, place, (3, 3), textcoords="offset points", fontsize=6, color=line.get_color())
        axes.set(xlabel="speed: beams per second, refined world = 1", ylabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path)
