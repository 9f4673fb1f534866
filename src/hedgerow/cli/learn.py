# SPDX-License-Identifier: Apache-2.0
"""hedgerow learn: a log becomes a world."""

import time
from pathlib import Path

from hedgerow.cli.app import app, out
from hedgerow.cli.options import Output, Settings, parse_settings
from hedgerow.cli.worker_options import Scheduler, WorkerCount, WorkerMemory, WorkerOptions, open_engine


@app.command
def learn(
    log: Path,
    /,
    *,
    output: Output,
    model: str = "hybrid",
    preset: str | None = None,
    budget: int | None = None,
    settings: Settings = None,
    workers: WorkerCount = 0,
    scheduler: Scheduler = None,
    worker_memory: WorkerMemory = None,
) -> None:
    """Learn a world from a log and write it to a folder.

    Parameters
    ----------
    log
        a log of any format; larger than memory is fine, and Parquet is fastest
    output
        the folder to write, by custom NAME.world
    model
        name of a model, for example hybrid, topdown or refined; hedgerow models lists all and says when to use which
    preset
        values of a paper in place of the defaults, for example browning-2012; hedgerow models lists them
    budget
        maximum number of elements of a refined world; default: half of its start, or all where the sensor stands
    settings
        set a parameter of the model: NAME=VALUE, or GROUP.NAME=VALUE; may be repeated; hedgerow models NAME lists them
    """
    import hedgerow as hr
    from hedgerow.base.atomic import require_place
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import require_kind

    require_place(output, folder=True)
    require_kind(log, ("log",), "learn")
    spread = WorkerOptions(workers, scheduler, worker_memory)
    start = time.perf_counter()
    parameters = parse_settings(settings) | ({} if budget is None else {"budget": budget})
    with step_bar() as progress, open_engine(output, spread) as engine:
        learned = hr.learn(log, model, preset=preset, progress=progress, engine=engine, **parameters)
        learned.save(output)
    size, took_s = learned.size(), time.perf_counter() - start
    elements = ", ".join(f"{n:,} {name}" for name, n in size.tables.items())
    beams = learned.header.provenance.n_beams
    out.print(f"learned a {model} world of {elements} from {beams:,} beams in {took_s:.1f} s")
    out.print(f"wrote {output} ({size.parameters:,} parameters, {size.bytes / 1e6:.1f} MB in memory)")
