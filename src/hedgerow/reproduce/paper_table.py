# SPDX-License-Identifier: Apache-2.0
"""A paper's table beside ours, for the terminal and for documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PaperTable:
    """One metric per row; for each column what the paper has and what we have."""

    title: str
    columns: tuple[str, ...]
    rows: "tuple[tuple[str, Mapping[str, float], Mapping[str, float]], ...]"
    """(metric, the paper's values by column, ours by column)."""
    digits: int = 2
    lower_is_better: bool = True

    def lines(self) -> list[tuple[str, ...]]:
        """Return (metric, whose, value per column) with the best of a row in bold Markdown."""
        done: list[tuple[str, ...]] = []
        for metric, paper, ours in self.rows:
            done.append((metric, "paper", *self._cells(paper)))
            done.append(("", "ours", *self._cells(ours)))
        return done

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        head = ["", "", *self.columns]
        body = ["| " + " | ".join(line) + " |" for line in [tuple(head), tuple("---" for _ in head), *self.lines()]]
        return f"**{self.title}**\n\n" + "\n".join(body)

    def to_rich(self) -> Any:
        """Return a table for the terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table("", "", *self.columns, title=self.title, title_justify="left")
        for line in self.lines():
            table.add_row(*[Text(cell.strip("*"), style="bold" if cell.startswith("**") else "") for cell in line])
        return table

    def _cells(self, values: Mapping[str, float]) -> Sequence[str]:
        known = [values[column] for column in self.columns if column in values]
        best = (min(known) if self.lower_is_better else max(known)) if known else None
        cells: list[str] = []
        for column in self.columns:
            text = f"{values[column]:,.{self.digits}f}" if column in values else "-"
            cells.append(f"**{text}**" if column in values and values[column] == best else text)
        return cells
