# SPDX-License-Identifier: Apache-2.0
"""A progress bar for long work; silent where nobody watches."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.markup import escape


@contextmanager
def progress_bar(title: str, total: int | None, console: Console | None = None) -> Generator[Callable[[int], None]]:
    """Show a bar while the block runs, on a terminal only.

    Args:
        title: what is going on.
        total: how much there is to do; None if nobody knows.
        console: where to show it. Default: standard error, so that output can be piped.

    Returns:
        A function to call with how much is done.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = console or Console(stderr=True)
    share = (TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn()) if total is not None else ()
    columns = (TextColumn("{task.description}"), BarColumn(), *share)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def done(amount: int) -> None:
            bar.update(task, completed=amount)

        yield done


@contextmanager
def stage_bar(console: Console | None = None) -> Generator[Callable[[str, int, int], None]]:
    """Show a bar for the running stage and a line for each that is over, on a terminal only.

    Returns:
        A function to call with the stage, how much of it is done, and how much there is.
    """
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
    from rich.table import Column

    shown = console or Console(stderr=True)
    # What a stage tells may be long: it comes last, where nothing but itself can be cut off.
    name = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn(), name)
    with Progress(*columns, console=shown, expand=True, transient=True, disable=not shown.is_terminal) as bar:
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
