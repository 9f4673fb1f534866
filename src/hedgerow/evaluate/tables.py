# SPDX-License-Identifier: Apache-2.0
"""Scores as tables like those of the papers: simulations as columns, the best bold, the worst italic.

Ties are judged by what is shown, as in 000 Table 4. Two columns have a best but no worst, as in 000 Table 3.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import compress
from typing import Any, Literal

from hedgerow.evaluate.catalogue import METRICS, Metric
from hedgerow.evaluate.values import Value

Mark = Literal["", "best", "worst"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One number as shown."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of all simulations."""

    key: str
    label: str
    """With the unit."""
    cells: tuple[Cell, ...]
    rests_on: str
    """How many beams or returns."""


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Rows of metrics, one column per simulation."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def to_rich(self, *, counts: bool = True) -> Any:
        """Return a table for `rich` to print; without `counts`, what each number rests on is left out."""
        from rich.table import Table
        from rich.text import Text

        style = {"": "", "best": "bold", "worst": "italic"}
        table = Table(box=None, padding=(0, 1), header_style="")
        table.add_column("")
        for name in self.columns:
            table.add_column(Text(name), justify="right")
        if counts:
            table.add_column("of", justify="right", style="dim")
        for row in self.rows:
            cells = [Text(cell.text, style=style[cell.mark]) for cell in row.cells]
            table.add_row(Text(row.label), *cells, *([Text(row.rests_on)] if counts else []))
        return table

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        around = {"": "", "best": "**", "worst": "*"}
        lines = [["", *self.columns, "of"], ["---", *["---:"] * (len(self.columns) + 1)]]
        for row in self.rows:
            cells = [f"{around[cell.mark]}{cell.text}{around[cell.mark]}" for cell in row.cells]
            lines.append([row.label, *cells, row.rests_on])
        escaped = ([text.replace("|", "\\|") for text in line] for line in lines)
        return "".join(f"| {' | '.join(line)} |\n" for line in escaped)

    def to_html(self) -> str:
        """Return an HTML table element; the report styles it by its class names."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(_html_row(row) for row in self.rows)
        return (
            f'<table class="scores"><thead><tr><th></th>{head}<th class="of">of</th></tr></thead>\n'
            f"<tbody>\n{body}</tbody></table>\n"
        )


def score_table(columns: Mapping[str, Mapping[str, Value]], aside: Collection[str] = ()) -> ScoreTable:
    """Lay out the values of several simulations; metrics that none of them has are left out, `aside` is not judged."""
    judged = [name not in aside for name in columns]
    rows = [
        _row(key, metric, [values.get(key, Value(None)) for values in columns.values()], judged)
        for key, metric in METRICS.items()
        if any(key in values for values in columns.values())
    ]
    return ScoreTable(tuple(columns), tuple(rows))


def _row(key: str, metric: Metric, values: Sequence[Value], judged: Sequence[bool]) -> Row:
    texts = [metric.text(value.value) for value in values]
    among = iter(_marks(metric, list(compress(values, judged)), list(compress(texts, judged))))
    marks: list[Mark] = [next(among) if counts else "" for counts in judged]
    label = f"{metric.label} [{metric.unit}]" if metric.unit else metric.label
    cells = tuple(Cell(text, mark) for text, mark in zip(texts, marks, strict=True))
    return Row(key, label, cells, _rests_on(metric, values))


def _marks(metric: Metric, values: Sequence[Value], texts: Sequence[str]) -> list[Mark]:
    known = sorted({(value.value, text) for value, text in zip(values, texts, strict=True) if value.value is not None})
    if metric.better is None or len({text for _, text in known}) < 2:
        return [""] * len(texts)
    ordered = known if metric.better == "low" else known[::-1]
    best, worst = ordered[0][1], ordered[-1][1] if len(texts) > 2 else None
    return ["best" if text == best else "worst" if text == worst else "" for text in texts]


def _rests_on(metric: Metric, values: Sequence[Value]) -> str:
    counts = sorted({value.n for value in values if value.n is not None})
    if not metric.of or not counts:
        return ""
    span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{span} {metric.of}"


def _html_row(row: Row) -> str:
    tags = {"": ("", ""), "best": ("<b>", "</b>"), "worst": ("<i>", "</i>")}
    cells = "".join(f"<td>{tags[cell.mark][0]}{escape(cell.text)}{tags[cell.mark][1]}</td>" for cell in row.cells)
    return f'<tr><th>{escape(row.label)}</th>{cells}<td class="of">{escape(row.rests_on)}</td></tr>\n'
