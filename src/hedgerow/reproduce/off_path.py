# SPDX-License-Identifier: Apache-2.0
"""How far from the learned path a world still holds: drives beside the one that it was learned from.

All seven worlds are learned on the first drive of the trail. Then the sensor drives the same path shifted to either
side by up to 4 m, at the same height, and what it measures is compared with each world. What lies behind a bush seen
from the path is seen from beside it; a world knows it as far as beams came through. But places are not alike: among
bushes most beams are short, and some models predict short ones best. So all seven worlds are also learned there, on the
same path shifted as far. What a world of the path has less than its like from there is what the distance costs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.frames import Pose
from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import MODELS, OFFROAD, SCENE_AGAIN, learn_all
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.reproduce.tables import markdown_table

OFFSETS_M = (0.5, 1.0, 2.0, 4.0)
OFFSET_SIGNS = (1, -1)  # left, right
OFF_SCALE = "Nearest Neighbors"  # costs ten times what others do: a beam between its points meets nothing
PANELS = (
    ("nll_binned", "-log L", 1.0),
    ("cloud_distance_m", "cloud to cloud [cm]", 100.0),
    ("beam_error_mean_m", "beam error, mean [cm]", 100.0),
    ("hits_found", "hits found [%]", 100.0),
    ("misses_found", "misses found [%]", 100.0),
)

Found = Mapping[float, Sequence[Comparison]]
"""Scores by offset [m], of each side."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn from `size` sweeps here and there, compare with half as many of each shifted drive, draw the curves."""
    n_sweeps = size or 12
    drive = SceneDrive.open(OFFROAD.scene, OFFROAD.span_s)
    worlds = learn_all(drive.record("first", n_sweeps, seed), say=say)
    found: dict[float, list[Comparison]] = {}
    for offset_m in OFFSETS_M:
        found[offset_m] = []
        for side in OFFSET_SIGNS:
            seed += 3
            test, again = (record_shifted(drive, side * offset_m, max(n_sweeps // 2, 1), seed + k) for k in (0, 1))
            say(f"{side * offset_m:+g} m beside: {len(test):,} beams, {1 - test.returns.hit.mean():.1%} did not return")
            own = learn_all(record_shifted(drive, side * offset_m, n_sweeps, seed + 2), say=say)
            there = {_there(name): world for name, world in own.items()}
            found[offset_m].append(compare(test, {**worlds, **there, SCENE_AGAIN: again}, seed=seed))
    picture = folder / "off-path.png"
    draw(found, picture)
    return Outcome(text="\n\n".join(tables(found)), pictures=(picture,))


def record_shifted(drive: SceneDrive, offset_m: float, n_sweeps: int, seed: int) -> Log:
    """Record the first drive, shifted to the left, or to the right if the offset is negative."""
    mount = Pose.from_xyz_rpy((0.0, offset_m, 0.0))
    return drive.record(drive.site.trajectories["first"] @ mount, n_sweeps, seed)


def tables(found: Found) -> list[str]:
    """Return a table per metric, a row per world: the scores by offset, their change, and what the distance costs."""
    offsets = [f"{offset_m:g} m" for offset_m in found]
    done: list[str] = []
    for key, label, scale in PANELS:
        rows: list[tuple[str, ...]] = []
        for name in (*MODELS, SCENE_AGAIN):
            by_offset, lost = ([scale * value for value in values(found, name, key)] for values in (scores, costs))
            if by_offset:
                shown = [f"{value:.2f}" for value in by_offset]
                cost = [f"{value:+.2f}" for value in lost] or ["-"] * len(offsets)
                rows.append((name, *shown, f"{by_offset[-1] - by_offset[0]:+.2f}", *cost))
        done.append(markdown_table((label, *offsets, "change", *(f"cost at {each}" for each in offsets)), rows))
    return done


def draw(found: Found, path: Path) -> None:
    """Draw two panels per metric, a curve per world: the scores, and below what the distance costs."""
    figure = new_figure(17, 8)
    panels: Any = figure.subplots(2, len(PANELS))
    styles = {"Refined": {"color": "black", "linewidth": 2.5}, SCENE_AGAIN: {"color": "gray", "linestyle": ":"}}
    for values, subject, row in ((scores, "", panels[0]), (costs, "cost: ", panels[1])):
        for axes, (key, label, scale) in zip(row, PANELS, strict=True):
            inside: list[float] = []
            for name in (*MODELS, SCENE_AGAIN):
                by_offset = [scale * value for value in values(found, name, key)]
                if by_offset:
                    axes.plot(list(found), by_offset, marker="o", label=name, **styles.get(name, {}))
                    inside += by_offset if name != OFF_SCALE else []
            axes.set(xlabel="beside the learned path [m]", title=subject + label)
            if values is costs:
                margin = 0.1 * (max(inside) - min(inside)) + 1e-3
                axes.set_ylim(min(inside) - margin, max(inside) + margin)
            axes.grid(alpha=0.3)
    figure.legend(*panels[0][1].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
    save_figure(figure, path)


def scores(found: Found, name: str, key: str) -> list[float]:
    """Return a metric of one world by offset, the mean of both sides; empty if it is not known everywhere."""
    by_offset = [[side[name][key] for side in sides if name in side.scores] for sides in found.values()]
    known = [[value for value in values if value is not None] for values in by_offset]
    return [fmean(values) for values in known] if all(len(values) == len(OFFSET_SIGNS) for values in known) else []


def costs(found: Found, name: str, key: str) -> list[float]:
    """Return what a world of the path has more, by offset, than that of the same model learned there."""
    here, there = scores(found, name, key), scores(found, _there(name), key)
    return [ours - theirs for ours, theirs in zip(here, there, strict=True)] if there else []


def _there(name: str) -> str:
    return f"{name}, there"
