# SPDX-License-Identifier: Apache-2.0
"""hedgerow compare: how far simulations are from a real log, as a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.app import app
from hedgerow.cli.compare_options import (
    USUAL,
    AnySimulated,
    CompareOptions,
    open_and_compare,
    open_compared,
    print_comparison,
    write_page,
    write_scores,
)
from hedgerow.cli.options import Json, RealLog, Seed, require_places, short_name
from hedgerow.cli.worker_options import Scheduler, WorkerCount, WorkerMemory, WorkerOptions, open_engine

if TYPE_CHECKING:
    from hedgerow.metrics import Comparison


@app.command
def compare(
    real: RealLog,
    simulated: AnySimulated,
    /,
    *,
    report: Path | None = None,
    json: Json = None,
    seed: Seed = 0,
    options: CompareOptions = USUAL,
    workers: WorkerCount = 0,
    scheduler: Scheduler = None,
    worker_memory: WorkerMemory = None,
) -> None:
    """Measure how far worlds, or simulated logs of any program, are from a real log; print a table.

    Parameters
    ----------
    report
        also write tables, plots and pictures to this HTML file, as hedgerow report does
    """
    require_places(report, json)
    spread = WorkerOptions(workers, scheduler, worker_memory)
    spread.memory()
    log = sources = None
    if spread.is_spread:
        scores = _compare_on_workers(real, simulated, seed, json, options, spread)
    else:
        log, sources, scores = open_and_compare(real, simulated, seed, options)
    print_comparison(scores)
    write_scores(json, scores)
    if report is not None:
        if log is None or sources is None:
            log, sources, _ = open_compared(real, simulated, options)
        write_page(report, scores, log, sources, seed)


def _compare_on_workers(
    real: Path,
    simulated: list[Path],
    seed: int,
    json: Path | None,
    options: CompareOptions,
    spread: WorkerOptions,
) -> "Comparison":
    """Compare part by part; finished parts are kept beside the file of numbers, if there is one."""
    from hedgerow.base.progress import progress_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import PLACES, open_log, require_kind
    from hedgerow.metrics.in_parts import compare_in_parts

    settings = options.compare_settings()
    if options.reading:
        raise InputError(
            "--from, --trajectory, --sensor, --topic", "not with workers; make a Parquet log first: hedgerow convert"
        )
    if spread.scheduler is not None and json is None:
        raise InputError("--scheduler", "give --json FILE too: finished parts are kept beside it, seen by all workers")
    log = open_log(real, "compare")
    if options.learned is not None:
        open_log(options.learned, "compare")
    for path in [*simulated, *([] if options.again is None else [options.again])]:
        require_kind(path, ("log", *PLACES), "compare")  # before any worker starts
    named = {short_name(path, simulated): path for path in simulated}
    with open_engine(json, spread) as engine, progress_bar("comparing", log.n_beams) as progress:
        beside: dict[str, Any] = {"floors": options.floors, "again": options.again, "learned": options.learned}
        return compare_in_parts(real, named, engine, seed=seed, progress=progress, **beside, **settings)
