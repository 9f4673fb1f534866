# SPDX-License-Identifier: Apache-2.0
"""Plain tables in Markdown, and scores with a row per simulation, for where there are many of them."""

from collections.abc import Collection, Iterable, Sequence

from hedgerow.evaluate import Comparison
from hedgerow.evaluate.catalogue import METRICS

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


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its first column to the left and the others to the right."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def short_table(scores: Comparison, *, aside: Collection[str] = (), keys: Sequence[str] = KEYS) -> str:
    """Return some metrics of several simulations, a row each; the best of a column is bold, `aside` is not judged."""
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
