# SPDX-License-Identifier: Apache-2.0
"""The application that commands register with, and how they print."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cyclopts import App, Group
from rich.console import Console

from hedgerow import __version__

if TYPE_CHECKING:
    from hedgerow.metrics.scores import ScoreTable

app = App(
    name="hedgerow",
    help="A lidar simulator for worlds that a laser sees partly through: grass, shrubs, trees, fences.",
    version=__version__,
    help_epilogue="Begin with: hedgerow demo. Papers such as Browning 2012 are listed in docs/references.md.",
    suppress_keyboard_interrupt=False,  # main says that it was interrupted
)
GROUPS = {
    "See it work": ("demo",),
    "Logs": ("info", "convert", "view"),
    "Learn a site from a log": ("learn", "models", "tune"),
    "Fire a lidar through a site": ("fire", "serve", "sensors", "scenes", "plants", "materials", "calibrate"),
    "Measure": ("compare", "report", "reproduce"),
    "Options": ("--help", "--version"),
}
"""Headings of the help, in order."""
out = Console(highlight=False, markup=False, soft_wrap=True)


def group_commands() -> None:
    """Sort the commands under headings, once all are registered."""
    for place, (title, names) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=place)
        for name in names:
            app[name].group = (group,)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print labels and texts in two columns."""
    from rich.table import Table
    from rich.text import Text  # as Text, brackets in names are not taken for markup

    table = Table.grid(padding=(0, 2))
    for label, text in pairs:
        table.add_row(Text(label, style="bold"), Text(text))
    out.print(table)


def print_table(columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings."""
    # By hand: a rich table folds its cells to 80 columns when the output is piped.
    table = [list(columns), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        out.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_scores(table: "ScoreTable") -> None:
    """Print scores; the column of counts is left out where it would not fit, since folded rows are hard to read."""
    from rich.measure import Measurement

    whole = table.to_rich()
    fits = Measurement.get(out, out.options.update_width(10_000), whole).maximum <= out.width
    out.print(whole if fits else table.to_rich(counts=False), soft_wrap=False)


def settings_of(texts: list[str] | None) -> dict[str, Any]:
    """Read NAME=VALUE texts; a value is JSON or else a word.

    Raises:
        InputError: a text has no name or no value.
    """
    import json

    from hedgerow.errors import InputError

    settings: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InputError(f"--set {text}", "expected NAME=VALUE")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value  # a word
    return settings
