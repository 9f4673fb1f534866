# SPDX-License-Identifier: Apache-2.0
"""What elements buy: likelihood and cloud distance of refined worlds of several sizes, beside the paper's six.

The budget of a refined world is the number of its elements; smaller budgets join elements of the start, larger ones
split those that answer for the most returns. Starts larger than a budget come from topdown all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.evaluate import Scores, compare
from hedgerow.io.figure import new_figure, save_figure
from hedgerow.learners import learn
from hedgerow.log import Log
from hedgerow.reproduce.experiment import Outcome, Say
from hedgerow.reproduce.markdown import markdown_table
from hedgerow.reproduce.mobile import OFFROAD, PAPER_MODELS, learn_all, record
from hedgerow.world import LearnedWorld

BUDGETS = (5_000, 10_000, 20_000, 40_000, 80_000)
COLUMNS = (
    ("nll_binned", "-log L", 1.0, 3),
    ("cloud_distance_m", "cloud to cloud [cm]", 100.0, 2),
    ("sweep_distance_m", "sweep to sweep [cm]", 100.0, 2),
    ("beam_error_mean_m", "beam error [cm]", 100.0, 1),
    ("hits_found", "hits [%]", 100.0, 1),
    ("misses_found", "misses [%]", 100.0, 1),
)


@dataclass(frozen=True)
class Point:
    """One world of the plot."""

    name: str
    elements: int
    parameters: int
    scores: Mapping[str, float]
    """By key, as shown."""

    @classmethod
    def of(cls, name: str, world: LearnedWorld, scores: Scores) -> "Point":
        """Take the numbers of a world that was compared."""
        size = world.size()
        shown = {key: scale * (scores[key] or 0.0) for key, _, scale, _ in COLUMNS}
        return cls(name, size.elements, size.parameters, shown)


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Say = print, *, budgets: tuple[int, ...] = BUDGETS
) -> Outcome:
    """Record two passes of `size` sweeps, learn worlds of all sizes on one, compare on the other, draw the curve."""
    train, test = record(OFFROAD, size or 12, seed)
    others = learn_all(train, PAPER_MODELS, say)
    own = {name: _refined(train, name, say, budget) for name, budget in _named(others["Top Down"], budgets).items()}
    scores = compare(test, {**others, **own}, seed=seed)
    curve = [Point.of(name, world, scores[name]) for name, world in own.items()]
    points = [Point.of(name, world, scores[name]) for name, world in others.items()]
    picture = folder / "budget.png"
    draw(curve, points, picture)
    return Outcome(text=table([*points, *curve]), pictures=(picture,))


def _named(topdown: LearnedWorld, budgets: tuple[int, ...]) -> dict[str, int]:
    """All budgets by name, with that of topdown, small to large."""
    sizes = sorted({*budgets, topdown.size().elements})
    return {f"Refined, {elements:,}": elements for elements in sizes}


def _refined(train: Log, name: str, say: Say, budget: int) -> LearnedWorld:
    world = learn(train, "refined", budget=budget)
    say(f"learned {name}: {world.size().elements:,} elements")
    return world


def table(points: list[Point]) -> str:
    """Return a row per world."""
    head = ("", "elements", "parameters", *(label for _, label, _, _ in COLUMNS))
    rows = [
        (
            each.name,
            f"{each.elements:,}",
            f"{each.parameters:,}",
            *(f"{each.scores[key]:.{digits}f}" for key, _, _, digits in COLUMNS),
        )
        for each in points
    ]
    return markdown_table(head, rows)


def draw(curve: list[Point], points: list[Point], path: Path) -> None:
    """Draw likelihood and cloud distance against parameters."""
    figure = new_figure(12, 4.8)
    panels: Any = figure.subplots(1, 2)
    for axes, (key, label, _, _) in zip(panels, COLUMNS[:2], strict=True):
        axes.plot([p.parameters for p in curve], [p.scores[key] for p in curve], "ko-", label="Refined")
        for point in points:
            axes.plot(point.parameters, point.scores[key], "s", label=point.name)
        axes.set(xscale="log", xlabel="parameters", ylabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    save_figure(figure, path)
