# SPDX-License-Identifier: Apache-2.0
"""A progress bar for long work; silent where nobody watches."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import TaskID


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
    """Show one bar after the other for work in stages, on a terminal only.

    Returns:
        A function to call with the stage, how much of it is done, and how much there is.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=shown, disable=not shown.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def done(stage: str, amount: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=amount)

        yield done
