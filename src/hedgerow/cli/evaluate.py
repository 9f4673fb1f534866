# SPDX-License-Identifier: Apache-2.0
"""Commands that measure: compare."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.world import LearnedWorld
    from hedgerow.world.tiled import TiledWorld


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
    """Measure how far worlds, or simulated logs, are from a real log.

    Parameters
    ----------
    real
        the real log, best one that the worlds were not learned from
    simulated
        one or more worlds (folders with a world.toml), at which the real log's beams are fired, or logs of these beams
    report
        also write tables, plots and pictures to this HTML file
    json
        also write every number to this file
    seed
        for firing
    """
    import hedgerow as hr
    from hedgerow.io.atomic import atomic_file
    from hedgerow.progress import progress_bar

    log = hr.open_log(real)
    sources = {_name(path, simulated): _opened(path) for path in simulated}
    with progress_bar("comparing", log.n_beams) as progress:
        scores = hr.compare(log, sources, seed=seed, progress=progress)
    out.print(scores.table().to_rich(), soft_wrap=False)
    for note in scores.notes:
        out.print(f"note: {note}")
    if json is not None:
        with atomic_file(json) as path:
            path.write_text(scores.to_json(), encoding="utf-8")
        out.print(f"wrote {json}")
    if report is not None:
        from hedgerow.report import write_report

        write_report(report, scores, log, sources, seed=seed, commands=["hedgerow " + " ".join(sys.argv[1:])])
        out.print(f"wrote {report}")


def _opened(path: Path) -> "LogSource | LearnedWorld | TiledWorld":
    import hedgerow as hr

    return hr.load_world(path) if (path / "world.toml").exists() else hr.open_log(path)


def _name(path: Path, paths: list[Path]) -> str:
    """Short if that tells the worlds apart, else the whole path."""
    short = [each.stem for each in paths]
    return path.stem if short.count(path.stem) == 1 else str(path)
