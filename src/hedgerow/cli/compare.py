# SPDX-License-Identifier: Apache-2.0
"""Commands that measure: compare, and report, which writes the same comparison as one HTML page."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_scores

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.metrics import Comparison
    from hedgerow.world import World

    Source = LogSource | World


@app.command
def compare(
    real: Path,
    simulated: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    report: Path | None = None,
    json: Path | None = None,
    seed: int = 0,
) -> None:
    """Measure how far worlds, or simulated logs, are from a real log; print a table.

    Parameters
    ----------
    real
        the real log, best one that the worlds were not learned from
    simulated
        one or more learned worlds or scenes, at which the real log's beams are fired, or logs of these beams
    report
        also write tables, plots and pictures to this HTML file, as hedgerow report does
    json
        also write every number to this file
    seed
        for firing
    """
    _require_places(report, json)
    log, sources, scores = _compared(real, simulated, seed)
    print_scores(scores.table())
    for note in scores.notes:
        out.print(f"note: {note}")
    _write_json(json, scores)
    if report is not None:
        _write_page(report, scores, log, sources, seed)


@app.command
def report(
    real: Path,
    simulated: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html"),
    title: str = "",
    sweep: int | None = None,
    json: Path | None = None,
    seed: int = 0,
) -> None:
    """Compare worlds, or simulated logs, with a real log and write one HTML page: tables, plots, pictures, commands.

    The page needs nothing else: mail it, print it, read it on a phone.

    Parameters
    ----------
    real
        the real log, best one that the worlds were not learned from
    simulated
        one or more learned worlds or scenes, at which the real log's beams are fired, or logs of these beams
    output
        the HTML file to write
    title
        headline; default: the names of what is compared
    sweep
        number of the sweep to draw; default: the middle one
    json
        also write every number to this file
    seed
        for firing
    """
    _require_places(output, json)
    log, sources, scores = _compared(real, simulated, seed, sweep)
    _write_json(json, scores)
    _write_page(output, scores, log, sources, seed, title=title, sweep=sweep)


def _require_places(*paths: Path | None) -> None:
    # Before the long work, not after it.
    from hedgerow.base.atomic import require_place

    for path in paths:
        if path is not None:
            require_place(path)


def _compared(
    real: Path, simulated: list[Path], seed: int, sweep: int | None = None
) -> "tuple[LogSource, dict[str, Source], Comparison]":
    import hedgerow as hr
    from hedgerow.base.progress import progress_bar, step_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import PLACES, open_log, open_simulated, require_kind
    from hedgerow.sensor import Sensor

    log = open_log(real, "compare")
    if sweep is not None and sweep not in log.sweeps:
        raise InputError(
            f"--sweep {sweep}", f"{real} has no such sweep; it has {log.sweeps.min()} to {log.sweeps.max()}"
        )
    for path in simulated:
        require_kind(path, ("log", *PLACES), "compare")  # before any scene is built
    sensor = Sensor.of(log)
    with step_bar() as stages:
        sources = {_name(path, simulated): open_simulated(path, "compare", sensor, stages) for path in simulated}
    with progress_bar("comparing", log.n_beams) as progress:
        return log, sources, hr.compare(log, sources, seed=seed, progress=progress)


def _write_json(path: Path | None, scores: "Comparison") -> None:
    from hedgerow.base.atomic import atomic_file

    if path is None:
        return
    with atomic_file(path) as temporary:
        temporary.write_text(scores.to_json(), encoding="utf-8")
    out.print(f"wrote {path}")


def _write_page(
    path: Path,
    scores: "Comparison",
    log: "LogSource",
    sources: "dict[str, Source]",
    seed: int,
    *,
    title: str = "",
    sweep: int | None = None,
) -> None:
    from hedgerow.report import write_report

    command = shlex.join(["hedgerow", *sys.argv[1:]])
    write_report(path, scores, log, sources, title=title, sweep=sweep, seed=seed, commands=[command])
    out.print(f"wrote {path}; open it in a browser")


def _name(path: Path, paths: list[Path]) -> str:
    """Short if that tells the worlds apart, else the whole path."""
    short = [each.stem for each in paths]
    return path.stem if short.count(path.stem) == 1 else str(path)
