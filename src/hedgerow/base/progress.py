# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: counted by the loop that does it, shown as a bar; silent where nobody watches."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console


Progress = Callable[[int], object]
"""Called with how much is done."""
StepProgress = Callable[[str, int, int], object]
"""Called with the name of a step, how much of it is done, and how much there is."""
Item = TypeVar("Item")


def counted(items: Iterable[Item], progress: Progress | None, amount: Callable[[Any], int] = len) -> Iterator[Item]:
    """Give each item in turn, and report how much is done each time that the loop asks for the next.

    Args:
        items: sweeps or chunks of a log, or whatever a loop goes through.
        progress: called after each item with what is done so far; None if nobody watches.
        amount: how much an item is worth. Default: its length, for a log its beams.
    """
    done = 0
    for item in items:
        yield item
        done += amount(item)
        if progress is not None:
            progress(done)


def of_beams(progress: Progress | None, n_beams: int, n_items: int) -> Progress | None:
    """Return a progress that is told how many items are done and reports the beams that they stand for."""
    return None if progress is None else lambda done: progress(n_beams * done // n_items)


def one(_: object) -> int:
    """Return 1: the `amount` for counting items by their number."""
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
def step_bar(console: "Console | None" = None) -> Generator[StepProgress]:
    """Show a bar for the current step and a line for each that has ended, on a terminal or in a notebook only.

    Returns:
        A function to call with the name of the step, how much of it is done, and how much there is.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    shown = console or Console(stderr=True)
    # The name of a step may be long: it comes last, where nothing but itself can be cut off.
    name = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn(), name)
    watched = shown.is_terminal or shown.is_jupyter
    with Bar(*columns, console=shown, expand=True, transient=True, disable=not watched) as bar:
        running: dict[str, tuple[TaskID, float]] = {}

        def end_step() -> None:
            for step, (task, began) in running.items():
                bar.remove_task(task)
                if watched:
                    line = f"{monotonic() - began:6.1f} s  {step}"
                    shown.print(line, highlight=False, markup=False, no_wrap=True, overflow="ellipsis")
            running.clear()

        def done(step: str, amount: int, total: int) -> None:
            if step not in running:
                end_step()
                running[step] = bar.add_task(escape(step), total=total), monotonic()
            bar.update(running[step][0], completed=amount)

        yield done
        end_step()


@contextmanager
def late_step_bar(console: "Console | None" = None, *, after_s: float = 3.0) -> Generator[StepProgress]:
    """Show what `step_bar` shows, but only of work that takes longer than some seconds."""
    began, opened = monotonic(), ExitStack()
    bar: StepProgress | None = None

    def done(step: str, amount: int, total: int) -> None:
        nonlocal bar
        if bar is None and monotonic() - began > after_s:
            bar = opened.enter_context(step_bar(console))
        if bar is not None:
            bar(step, amount, total)

    with opened:
        yield done


@dataclass(slots=True)
class ProgressSteps:
    """Reports the progress of one step after the other; a step ends, finished or not, when the next begins."""

    n_beams: int
    """How much there is to do in each step."""
    report: StepProgress | None = None
    """Whom to tell."""
    prefix: str = ""
    """Put before the name of every step."""
    current: str = ""
    """Name of the step that has not ended yet; empty between steps."""

    def meter(self, step: str) -> Progress | None:
        """Begin a step; return what it calls with the number of beams done, None if nobody watches."""
        report = self.report
        if report is None:
            return None
        self.finish()
        self.current = name = self.prefix + step
        report(name, 0, self.n_beams)
        return lambda done: report(name, min(done, self.n_beams), self.n_beams)

    def finish(self) -> None:
        """End the current step."""
        if self.report is not None and self.current:
            self.report(self.current, self.n_beams, self.n_beams)
        self.current = ""
