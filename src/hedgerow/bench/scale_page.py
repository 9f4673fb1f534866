# SPDX-License-Identifier: Apache-2.0
"""scale.md: the tables of `hedgerow bench scale`, with what they were measured on."""

from collections.abc import Sequence
from pathlib import Path

from hedgerow.base.atomic import atomic_file
from hedgerow.bench.benchmark import Table
from hedgerow.bench.journal import Row
from hedgerow.reproduce.tables import markdown_table


def write_page(path: Path, tables: Sequence[Table], rows: Sequence[Row], picture: str) -> None:
    """Write tables as Markdown, the picture linked below.

    Raises:
        FileError: it cannot be written.
    """
    parts = [machine_text(rows), *(table_text(table) for table in tables), f"![Cost by size]({picture})"]
    with atomic_file(path) as temporary:
        temporary.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def machine_text(rows: Sequence[Row]) -> str:
    """Say where, when and by what version it was measured, and how busy the machine was."""
    if not rows:
        return ""
    days = sorted({row.when[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    loads = [row.load for row in rows]
    return (
        f"{rows[0].machine}; Hedgerow {rows[0].version}; {when}. Each step is a process of its own. Load average "
        f"before the steps: {min(loads):.1f} to {max(loads):.1f}, what earlier steps left of it included. "
        "Processors [s] is the time that all threads and workers had a processor: on a busy machine, what work costs."
    )


def table_text(table: Table) -> str:
    """Return a table with its title and notes."""
    lines = [f"**{table.title}**", markdown_table(table.columns, table.rows)]
    return "\n\n".join([*lines, "\n".join(f"- {note}" for note in table.notes)])
