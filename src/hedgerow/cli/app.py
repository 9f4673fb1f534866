# SPDX-License-Identifier: Apache-2.0
"""The application: its verbs under the headings of the help, how it is run, and how verbs print."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from cyclopts import App, CycloptsError, Group
from rich.console import Console

from hedgerow import __version__
from hedgerow.base.interrupt import Ended, end_like_interrupt
from hedgerow.base.places import as_place, is_address
from hedgerow.errors import HedgerowError, HedgerowWarning, one_line

if TYPE_CHECKING:
    from hedgerow.metrics.scores import ScoreTable

app = App(
    name="hedgerow",
    help="A lidar simulator for worlds that a laser sees partly through: grass, shrubs, trees, fences.",
    version=__version__,
    help_epilogue="Begin with: hedgerow demo. Papers such as Browning 2012 are listed in docs/references.md.",
    suppress_keyboard_interrupt=False,  # main says that it was interrupted
)
VERBS: dict[str, tuple[str, ...]] = {
    "See it work": ("demo",),
    "Logs": ("info", "convert", "view"),
    "Learn a site from a log": ("learn", "models", "tune", "segment"),
    "Compose new sites": ("primitives", "compose"),
    "Fire a lidar through a site": ("fire", "serve", "sensors", "scenes", "plants", "materials", "calibrate"),
    "Measure": ("compare", "report", "risk", "reproduce", "bench"),
}
"""Headings of the help with their verbs, in order. A verb is the file of its name in this folder, and a word here."""
out = Console(highlight=False, markup=False, soft_wrap=True)


def load_verbs() -> None:
    """Import every verb, which registers it with the app, and put it under its heading."""
    for row, (title, verbs) in enumerate(VERBS.items()):
        group = Group(title, sort_key=row)
        for verb in verbs:
            import_module(f"hedgerow.cli.{verb}")
            app[verb].group = (group,)
    options = Group("Options", sort_key=len(VERBS))
    for name in ("--help", "--version"):
        app[name].group = (options,)


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning
    end_like_interrupt()
    try:
        # An address may carry keys, which nothing here may print: they are kept, and the verbs see it without them.
        words = [str(as_place(word)) if is_address(word) else word for word in sys.argv[1:]]
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(str(error), "hedgerow --help shows how it is called")
    except HedgerowError as error:
        _fail(str(error))
    except Ended as error:
        print("hedgerow: told to end", file=sys.stderr)
        sys.exit(128 + error.signal_number)
    except KeyboardInterrupt:
        print("hedgerow: interrupted", file=sys.stderr)
        sys.exit(130)


def _fail(message: str, hint: str = "") -> None:
    print(f"hedgerow: {one_line(message)}" + (f" ({hint})" if hint else ""), file=sys.stderr)
    sys.exit(2)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of Hedgerow as one line; those of libraries concern who writes code, not who runs it."""
    if issubclass(category, HedgerowWarning):
        print(f"hedgerow: warning: {message}", file=sys.stderr)


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
