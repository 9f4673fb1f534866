# SPDX-License-Identifier: Apache-2.0
"""How far from the learned path a world still holds: passes beside the one that was learned from.

All seven worlds are learned on the first pass of the trail. Then the sensor drives the same way shifted to the left by
up to 4 m, at the same height, and what it measures is compared with each world. What lies behind a bush seen from the
path is seen from beside it; a world knows it as far as beams came through. Places are not alike, so worlds that were
learned there, by the same way shifted as far, tell what could be known.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.evaluate import Comparison, compare
from hedgerow.frames import Pose
from hedgerow.io.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.reproduce.course import Course
from hedgerow.reproduce.experiment import Outcome, Say
from hedgerow.reproduce.markdown import markdown_table
from hedgerow.reproduce.mobile import AGAIN, MODELS, OFFROAD, learn_all

OFFSETS_M = (0.5, 1.0, 2.0, 4.0)
THERE = {f"{name}, there": name for name in ("Top Down", "Refined")}
ROWS = (*MODELS, *THERE, AGAIN)
PANELS = (
    ("nll_binned", "-log L", 1.0),
    ("cloud_distance_m", "cloud to cloud [cm]", 100.0),
    ("beam_error_mean_m", "beam error, mean [cm]", 100.0),
    ("hits_found", "hits found [%]", 100.0),
    ("misses_found", "misses found [%]", 100.0),
)


def run(folder: Path, size: int | None = None, seed: int = 1, say: Say = print) -> Outcome:
    """Learn from `size` sweeps here and there, compare with half as many of each shifted pass, draw the curves."""
    n_sweeps = size or 12
    course = Course.open(OFFROAD.scene, OFFROAD.span_s)
    worlds = learn_all(course.record("first", n_sweeps, seed), say=say)
    found: dict[float, Comparison] = {}
    for number, offset_m in enumerate(OFFSETS_M):
        test, again = (beside(course, offset_m, max(n_sweeps // 2, 1), seed + 1 + 2 * number + k) for k in range(2))
        first = beside(course, offset_m, n_sweeps, seed + 1 + 2 * len(OFFSETS_M) + number)
        there = learn_all(first, {name: MODELS[name] for name in THERE.values()}, say=say)
        taught = {name: there[own] for name, own in THERE.items()}
        found[offset_m] = compare(test, {**worlds, **taught, AGAIN: again}, seed=seed)
        say(f"{offset_m:g} m beside: {len(test):,} beams, {1 - test.returns.hit.mean():.1%} did not return")
    picture = folder / "off-path.png"
    draw(found, picture)
    return Outcome(text="\n\n".join(tables(found)), pictures=(picture,))


def beside(course: Course, offset_m: float, n_sweeps: int, seed: int) -> Log:
    """Record the first pass, shifted to the left."""
    mount = Pose.from_xyz_rpy((0.0, offset_m, 0.0))
    return course.record(course.place.trajectories["first"] @ mount, n_sweeps, seed)


def tables(found: Mapping[float, Comparison]) -> list[str]:
    """Return a table per metric: a row per world, a column per offset, and the change from first to last."""
    done: list[str] = []
    for key, label, scale in PANELS:
        rows: list[tuple[str, ...]] = []
        for name in ROWS:
            values = _values(found, name, key, scale)
            if values:
                change = f"{values[-1] - values[0]:+.2f}"
                rows.append((name, *(f"{value:.2f}" for value in values), change))
        head = (label, *(f"{offset_m:g} m" for offset_m in found), "change")
        done.append(markdown_table(head, rows))
    return done


def draw(found: Mapping[float, Comparison], path: Path) -> None:
    """Draw a panel per metric, a curve per world."""
    figure = new_figure(13, 7.5)
    panels: Any = figure.subplots(2, 3)
    styles = {
        "Refined": {"color": "black", "linewidth": 2.5},
        "Refined, there": {"color": "black", "linestyle": "--"},
        "Top Down, there": {"color": "C1", "linestyle": "--"},
        AGAIN: {"color": "gray", "linestyle": ":"},
    }
    for axes, (key, label, scale) in zip(panels.flat, PANELS, strict=False):
        for name in ROWS:
            values = _values(found, name, key, scale)
            if values:
                axes.plot(list(found), values, marker="o", label=name, **styles.get(name, {}))
        axes.set(xlabel="beside the learned path [m]", title=label)
        axes.grid(alpha=0.3)
    last: Any = panels.flat[-1]
    last.axis("off")
    last.legend(*panels.flat[1].get_legend_handles_labels(), loc="center", frameon=False)
    save_figure(figure, path)


def _values(found: Mapping[float, Comparison], name: str, key: str, scale: float) -> list[float]:
    """The metric of one world by offset; none if it is not known everywhere."""
    values = [scores[name][key] for scores in found.values() if name in scores.scores]
    known = [scale * value for value in values if value is not None]
    return known if len(known) == len(found) else []
