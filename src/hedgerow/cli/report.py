# SPDX-License-Identifier: Apache-2.0
"""hedgerow report: the comparison of `hedgerow compare` as one HTML page."""

from pathlib import Path

from hedgerow.cli.app import app
from hedgerow.cli.compare_options import (
    USUAL,
    AnySimulated,
    CompareOptions,
    open_and_compare,
    write_page,
    write_scores,
)
from hedgerow.cli.options import Json, Output, RealLog, Seed, require_places


@app.command
def report(
    real: RealLog,
    simulated: AnySimulated,
    /,
    *,
    output: Output = Path("report.html"),
    title: str = "",
    sweep: int | None = None,
    json: Json = None,
    seed: Seed = 0,
    options: CompareOptions = USUAL,
) -> None:
    """Compare worlds, or simulated logs, with a real log and write one HTML page: tables, plots, pictures, commands.

    The page needs nothing else: mail it, print it, read it on a phone.

    Parameters
    ----------
    output
        the HTML file to write
    title
        headline; default: the names of what is compared
    sweep
        number of the sweep to draw; default: the middle one
    """
    require_places(output, json)
    log, sources, scores = open_and_compare(real, simulated, seed, options, sweep)
    write_scores(json, scores)
    write_page(output, scores, log, sources, seed, title=title, sweep=sweep)
