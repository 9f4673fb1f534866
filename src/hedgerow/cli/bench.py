# SPDX-License-Identifier: Apache-2.0
"""hedgerow bench: measures what Hedgerow costs on this machine."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Flag, Folder


@app.command(usage="Usage: hedgerow bench [OPTIONS] [NAME]")
def bench(
    name: str | None = None,
    /,
    *,
    folder: Folder = Path("out"),
    only: Annotated[list[str] | None, Parameter(negative=())] = None,
    beams: Annotated[list[float] | None, Parameter(negative=(), consume_multiple=True)] = None,
    size: Literal["full", "small"] = "full",
    anew: Flag = False,
) -> None:
    """Measure speed and memory on this machine, and print tables; without a name, list the benchmarks.

    Parameters
    ----------
    name
        which benchmark
    folder
        where to write rows (NAME.json), tables (NAME.md) and plots (NAME.png); made if it does not exist. Rows that are
        there are not measured again, so that the same command goes on after a stop
    only
        measure only this part: beams, workers, tiles or processors; may be repeated
    beams
        how many beams to record and learn, for example 1e6 1e7 1e8; default: 1 and 10 million
    size
        small is for a quick look: seconds, and figures that say little
    anew
        measure again what is there already
    """
    from hedgerow.base.atomic import output_folder, require_place
    from hedgerow.bench.benchmark import BENCHMARKS, Asked, find_benchmark

    if name is None:
        width = max(map(len, BENCHMARKS)) + 2
        for each, benchmark in BENCHMARKS.items():
            out.print(f"{each.ljust(width)}{benchmark.about}")
        return
    benchmark = find_benchmark(name)
    with output_folder(folder):
        require_place(folder / f"{name}.md")
        found = benchmark.run(folder, Asked(tuple(only or ()), tuple(beams or ()), size, anew), out.print)
    for table in found.tables:
        out.print(f"\n{table.title}")
        print_table(table.columns, table.rows)
        for note in table.notes:
            out.print(note)
    out.print("")
    for path in found.files:
        out.print(f"wrote {path}")
