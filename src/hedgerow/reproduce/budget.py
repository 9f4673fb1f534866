# SPDX-License-Identifier: Apache-2.0
"""What elements buy: likelihood and cloud distance of refined worlds of several sizes, beside the paper's six.

The budget of a refined world is the number of its elements. All start from topdown: smaller budgets join elements of
it, larger ones split those that answer for many returns, as far as there are such.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, PAPER_MODELS, learn_all, record
from hedgerow.reproduce.tables import KEYS, short_table
from hedgerow.world import LearnedWorld

BUDGETS = (5_000, 10_000, 20_000, 40_000, 80_000)
PANELS = (("nll_binned", "-log L", 1.0), ("cloud_distance_m", "cloud to cloud [cm]", 100.0))


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, budgets: Sequence[int] = BUDGETS
) -> Outcome:
    """Record two drives of `size` sweeps, learn worlds of all sizes on one, compare on the other, draw the curve."""
    train, test = record(OFFROAD, size or 12, seed)
    others = learn_all(train, PAPER_MODELS, say)
    own: dict[str, LearnedWorld] = {}
    for budget in sorted({*budgets, others["Top Down"].size().elements}):
        name = f"Refined, {budget:,}"
        own[name] = learn(train, "refined", budget=budget)
        say(f"learned {name}: {own[name].size().elements:,} elements")
    scores = compare(test, {**others, **own}, seed=seed)
    picture = folder / "budget.png"
    draw(scores, list(own), list(others), picture)
    return Outcome(text=short_table(scores, keys=("elements", *KEYS)), pictures=(picture,))


def draw(scores: Comparison, curve: Sequence[str], points: Sequence[str], path: Path) -> None:
    """Draw likelihood and cloud distance against parameters: a curve of refined worlds, a point for each other one."""
    figure = new_figure(12, 4.8)
    panels: Any = figure.subplots(1, 2)

    def at(names: Sequence[str], key: str, scale: float = 1.0) -> list[float]:
        return [scale * (scores[name][key] or 0.0) for name in names]

    for axes, (key, label, scale) in zip(panels, PANELS, strict=True):
        axes.plot(at(curve, "parameters"), at(curve, key, scale), "ko-", label="Refined")
        for name in points:
            axes.plot(at([name], "parameters"), at([name], key, scale), "s", label=name)
        axes.set(xscale="log", xlabel="parameters", ylabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    save_figure(figure, path)
