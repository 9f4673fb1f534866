# SPDX-License-Identifier: Apache-2.0
"""Tables of the experiments: a paper's beside ours, and plain ones in Markdown.

Hits, misses, beam errors and distances are won by being surer than reality is, so that the best of such a row is the
one nearest to reality again, from either side, as in the tables of `compare`; where that column is missing, as in the
papers, none is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hedgerow.metrics import Comparison
from hedgerow.metrics.catalogue import METRICS
from hedgerow.metrics.metric import AGAIN_NAMES

KEYS = (
    "hits_found",
    "misses_found",
    "beam_error_mean_m",
    "sweep_distance_m",
    "cloud_distance_m",
    "nll_binned",
    "parameters",
)
"""The metrics of a short table."""
_AROUND = {"": "", "best": "**", "worst": ""}


@dataclass(frozen=True)
class PaperTable:
    """A paper's table beside ours: one metric per row; for each column what the paper has and what we have."""

    title: str
    columns: tuple[str, ...]
    rows: "tuple[tuple[str, Mapping[str, float], Mapping[str, float]], ...]"
    """(metric, the paper's values by column, ours by column)."""
    digits: int = 2
    lower_is_better: bool = True
    aside: tuple[str, ...] = ()
    """Columns that are shown for comparison, but not ranked."""

    def lines(self) -> list[tuple[str, ...]]:
        """Return (metric, whose, value per column) with the best of a row in bold Markdown."""
        done: list[tuple[str, ...]] = []
        for metric, paper, ours in self.rows:
            if paper:
                done.append((metric, "paper", *self._cells(metric, paper)))
            done.append(("" if paper else metric, "ours", *self._cells(metric, ours)))
        return done

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        head = ["", "", *self.columns]
        body = ["| " + " | ".join(line) + " |" for line in [tuple(head), tuple("---" for _ in head), *self.lines()]]
        return f"**{self.title}**\n\n" + "\n".join(body)

    def to_text(self) -> tuple[tuple[str, ...], list[list[str]]]:
        """Return headings and rows for the terminal; a star marks the best of a row."""
        rows = [[f"{cell[2:-2]}*" if cell.startswith("**") else cell for cell in line] for line in self.lines()]
        return ("", "", *self.columns), rows

    def order(self, values: Mapping[str, float], among: Iterable[str]) -> list[str]:
        """Return the columns of a row that have a value, best first by size, as papers rank them."""
        known = [name for name in among if name in values]
        return sorted(known, key=lambda name: values[name], reverse=not self.lower_is_better)

    def _cells(self, metric: str, values: Mapping[str, float]) -> Sequence[str]:
        best = self._best(metric, values)
        cells: list[str] = []
        for column in self.columns:
            text = f"{values[column]:,.{self.digits}f}" if column in values else "-"
            is_best = column not in self.aside and column in values and values[column] == best
            cells.append(f"**{text}**" if is_best else text)
        return cells

    def _best(self, metric: str, values: Mapping[str, float]) -> float | None:
        """Return the best value of a row; None if there is none, or nothing to tell it by."""
        known = [values[column] for column in self.columns if column not in self.aside and column in values]
        if not known:
            return None
        if not is_near_reality(metric):
            return min(known) if self.lower_is_better else max(known)
        again = next((value for name, value in values.items() if name.casefold() in AGAIN_NAMES), None)
        return None if again is None else min(known, key=lambda value: abs(value - again))


def is_near_reality(row: str) -> bool:
    """Whether a row is of a metric that is to be near reality again; told by its label, without the unit."""
    name = row.partition(" [")[0]
    labels = (metric.label for metric in METRICS.values() if metric.near == "reality")
    return any(name in (label, label.partition(",")[0]) for label in labels)


def order_table(tables: Iterable[PaperTable]) -> str:
    """Return the columns of each metric that a paper has, ranked by size as the paper does, there and here."""
    rows: list[tuple[str, ...]] = []
    for table in tables:
        for metric, paper, ours in table.rows:
            if paper:
                rows.append((metric, *(", ".join(table.order(values, paper)) for values in (paper, ours))))
    return markdown_table(("ranked by size, as the paper does", "paper", "ours"), rows)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its first column to the left and the others to the right."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def short_table(scores: Comparison, *, aside: Collection[str] = (), keys: Sequence[str] = KEYS) -> str:
    """Return some metrics of several simulations, a row each; the best of a column is bold, `aside` are not ranked."""
    table = scores.table(aside=aside)
    columns = [row for row in table.rows if row.key in keys]
    rows = [
        (name, *(f"{_AROUND[row.cells[k].mark]}{row.cells[k].text}{_AROUND[row.cells[k].mark]}" for row in columns))
        for k, name in enumerate(table.columns)
    ]
    return markdown_table(("", *(_heading(row.key) for row in columns)), rows)


def _heading(key: str) -> str:
    metric = METRICS[key]
    short = metric.label.split(",")[0].removesuffix(" of the range bin")
    return f"{short} [{metric.unit}]" if metric.unit else short
