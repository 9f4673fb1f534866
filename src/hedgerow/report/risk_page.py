# SPDX-License-Identifier: Apache-2.0
"""The page of risk: one HTML file with what a table of runs says, as the report of a comparison is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any

from hedgerow.apps.app import App
from hedgerow.base.atomic import atomic_file, require_place
from hedgerow.metrics import Comparison
from hedgerow.report.page import for_script, render
from hedgerow.report.pictures import Picture, picture
from hedgerow.report.risk_plots import curves_along, development, objective_scatter, sorted_losses
from hedgerow.risk.along import Along, along
from hedgerow.risk.bootstrap import losses
from hedgerow.risk.develop import Path
from hedgerow.risk.objectives import pair
from hedgerow.risk.score import RiskScores, objective_by_source
from hedgerow.risk.table import DRAWN, RiskTable
from hedgerow.risk.words import MEANINGS, rank_words, risk_rows


def write_risk_page(
    path: str | FilePath,
    table: RiskTable,
    scores: RiskScores,
    app: App,
    *,
    paths: Sequence[Path] = (),
    observed: Comparison | None = None,
    commands: Sequence[str] = (),
) -> None:
    """Write what a table of runs says as one HTML file.

    Args:
        path: the file to write, replaced as a whole.
        table: the runs.
        scores: what `score` gave.
        app: the program.
        paths: developments to draw.
        observed: what `compare` says of the same simulators.
        commands: how this was made, a line each.

    Raises:
        FileError: the file cannot be written.
    """
    require_place(path)
    objective = app.objectives[scores.objective]
    curves = along(app.space, table.settings[DRAWN], objective_by_source(table, objective))
    columns, rows = risk_rows(scores)
    text = render(
        "risk.html.j2",
        title=f"{scores.app}: {', '.join(scores.scores)} against reality",
        facts=_facts(scores),
        meaning=objective.meaning,
        columns=columns,
        rows=rows,
        differences=[each.words() for each in scores.differences],
        curves=[each.words() for each in curves],
        notes=scores.notes,
        plots=_plots(table, scores, app, curves, paths),
        observed=None if observed is None else observed.table().to_html(),
        ranks="" if observed is None else rank_words(scores, observed),
        best=[(name, each.best) for name, each in scores.scores.items() if each.best is not None],
        meanings=MEANINGS.items(),
        commands=commands,
        data=for_script(scores.to_dict()),
    )
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _facts(scores: RiskScores) -> list[tuple[str, str]]:
    floor = "not known" if scores.floor is None else f"{scores.floor.value:.3g} ({scores.floor.how})"
    return [
        ("program", scores.app),
        ("J", f"{scores.objective}{f' [{scores.unit}]' if scores.unit else ''}"),
        ("settings", f"{scores.n_settings:,}"),
        ("scenes", str(scores.n_scenes)),
        ("seeds", str(len(scores.seeds))),
        ("reality against itself", floor),
        ("real runs that failed", f"{scores.failures:.1%}"),
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _plots(
    table: RiskTable, scores: RiskScores, app: App, curves: Sequence[Along], paths: Sequence[Path]
) -> list[Picture]:
    objective = app.objectives[scores.objective]
    label = f"J [{scores.unit}]" if scores.unit else "J"
    j = objective_by_source(table, objective)
    real = table.of(table.real)
    lost = {name: losses(pair(real, table.of(name), objective)) for name in scores.scores}

    def drawn(draw: Any, values: Any, caption: str) -> Picture | None:
        return picture(lambda width_in: draw(values, label, width_in), "svg", caption)

    found = (
        drawn(objective_scatter, j, "Every setting: its error in simulation against that in reality."),
        drawn(sorted_losses, lost, "Losses of the settings, in rising order."),
        drawn(curves_along, curves, "J along each parameter, mean over all else; bars are standard errors."),
        drawn(
            development, paths, "Development on each simulator: what was seen there, and what it is worth in reality."
        ),
    )
    return [each for each in found if each is not None]
