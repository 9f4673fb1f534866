# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: counted by the loop that does it, shown as a bar; silent where nobody watches."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console


Progress = Callable[[int], object]
"""Called with how much is done."""
Thing = TypeVar("Thing")


def counted(things: Iterable[Thing], progress: Progress | None, amount: Callable[[Any], int] = len) -> Iterator[Thing]:
    """Give each thing in turn, and report how much is done each time that the loop asks for the next.

    Args:
        things: sweeps or parts of a log, or whatever is gone through.
        progress: called after each with what is done so far; None if nobody watches.
        amount: how much a thing is worth. Default: its length, for a log its beams.
    """
    done = 0
    for thing in things:
        yield thing
        done += amount(thing)
        if progress is not None:
            progress(done)


def of_beams(progress: Progress | None, n_beams: int, n_things: int) -> Progress | None:
    """Return a progress that is told of things done and reports the beams they stand for; each for as many."""
    return None if progress is None else lambda done: progress(n_beams * done // n_things)


def one(_: object) -> int:
    """Return 1: the `amount` for counting things by their number."""
    return 1


@contextmanager
def progress_bar(title: str, total: int | None, console: "Console | None" = None) -> Generator[Callable[[int], None]]:
    """Show a bar while the block runs, on a terminal only.

    Args:
        title: what is going on.
        total: how much there is to do; None if nobody knows.
        console: where to show it. Default: standard error, so that output can be piped.

    Returns:
        A function to call with how much is done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    shown = console or Console(stderr=True)
    share = (TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn()) if total is not None else ()
    columns = (TextColumn("{task.description}"), BarColumn(), *share)
    with Bar(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def done(amount: int) -> None:
            bar.update(task, completed=amount)

        yield done


@contextmanager
def stage_bar(console: "Console | None" = None) -> Generator[Callable[[str, int, int], None]]:
    """Show a bar for the running stage and a line for each that is over, on a terminal only.

    Returns:
        A function to call with the stage, how much of it is done, and how much there is.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    shown = console or Console(stderr=True)
    # What a stage tells may be long: it comes last, where nothing but itself can be cut off.
    name = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn(), name)
    with Bar(*columns, console=shown, expand=True, transient=True, disable=not shown.is_terminal) as bar:
        running: dict[str, tuple[TaskID, float]] = {}

        def over() -> None:
            for stage, (task, began) in running.items():
                bar.remove_task(task)
                if shown.is_terminal:
                    line = f"{monotonic() - began:6.1f} s  {stage}"
                    shown.print(line, highlight=False, markup=False, no_wrap=True, overflow="ellipsis")
            running.clear()

        def done(stage: str, amount: int, total: int) -> None:
            if stage not in running:
                over()
                running[stage] = bar.add_task(escape(stage), total=total), monotonic()
            bar.update(running[stage][0], completed=amount)

        yield done
        over()


# Progress of learning: which stage runs, and how far it is.


Report = Callable[[str, int, int], object]
"""Called with the name of the stage, how much of it is done, and how much there is (beams, sweeps, objects)."""


@dataclass(slots=True)
class Stages:
    """Reports the progress of one stage after the other. A stage ends when the next begins, even if it read only a part
    of the beams."""

    n_beams: int
    report: Report | None = None
    prefix: str = ""
    """Put before the name of every stage."""
    running: str = ""
    """Name of the stage that has not ended yet; empty between stages."""

    def meter(self, stage: str) -> Callable[[int], None] | None:
        """Begin a stage; return what it calls with the number of beams done, None if nobody watches."""
        report = self.report
        if report is None:
            return None
        self.finish()
        self.running = stage = self.prefix + stage
        report(stage, 0, self.n_beams)
        return lambda done: _tell(report, stage, done, self.n_beams)

    def finish(self) -> None:
        """End the running stage."""
        if self.report is not None and self.running:
            self.report(self.running, self.n_beams, self.n_beams)
        self.running = ""


def _tell(report: Report, stage: str, done: int, total: int) -> None:
    report(stage, min(done, total), total)
