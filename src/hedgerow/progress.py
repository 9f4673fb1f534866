# SPDX-License-Identifier: Apache-2.0
"""A progress bar for long work; silent where nobody watches."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def progress_bar(title: str, total: int, console: Console | None = None) -> Generator[Callable[[int], None]]:
    """Show a bar while the block runs, on a terminal only.

    Args:
        title: what is going on.
        total: how much there is to do.
        console: where to show it. Default: standard error, so that output can be piped.

    Returns:
        A function to call with how much is done.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = console or Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def done(amount: int) -> None:
            bar.update(task, completed=amount)

        yield done
