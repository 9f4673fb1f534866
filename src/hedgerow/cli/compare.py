# SPDX-License-Identifier: Apache-2.0
"""hedgerow compare: how far simulations are from a real log, as a table."""

from pathlib import Path

from hedgerow.cli.app import app, out, print_scores
from hedgerow.cli.options import (
    Json,
    RealLog,
    Seed,
    Simulated,
    open_and_compare,
    require_places,
    write_page,
    write_scores,
)


@app.command
def compare(
    real: RealLog,
    simulated: Simulated,
    /,
    *,
    report: Path | None = None,
    json: Json = None,
    seed: Seed = 0,
) -> None:
    """Measure how far worlds, or simulated logs, are from a real log; print a table.

    Parameters
    ----------
    report
        also write tables, plots and pictures to this HTML file, as hedgerow report does
    """
    require_places(report, json)
    log, sources, scores = open_and_compare(real, simulated, seed)
    print_scores(scores.table())
    for note in scores.notes:
        out.print(f"note: {note}")
    write_scores(json, scores)
    if report is not None:
        write_page(report, scores, log, sources, seed)
