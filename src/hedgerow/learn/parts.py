# SPDX-License-Identifier: Apache-2.0
"""Logs in partitions: learners pass over them as often as they need and never hold more than one at a time."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.errors import InputError
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.io.parquet import LogFile

Parts = Callable[[], Iterable[Log]]
"""Called for a fresh pass over the partitions of a log."""
Source = "Log | LogFile | str | Path | Parts"
_BEAMS_PER_PART = 1_000_000


def parts_of(source: "Log | LogFile | str | Path | Parts") -> Parts:
    """Return the partitions of a log: whole sweeps, about a million beams each.

    Args:
        source: a log, a Parquet log opened with `open_log` or its path (larger than memory is fine), or a function
            that gives the partitions anew each time it is called.

    Raises:
        FileError: no such file, or not a log.
    """
    if isinstance(source, Log):
        return lambda: _cut(source)
    if isinstance(source, str | Path):
        from hedgerow.io import open_log

        return parts_of(open_log(source))
    if callable(source):
        return source
    file = source
    return lambda: _joined(log for _, log in file.iter_sweeps())


def n_beams(parts: Parts) -> int:
    """Count the beams of a log, in one pass."""
    return sum(len(log) for log in parts())


def require_limits(parts: Parts) -> tuple[float, float]:
    """Return the range limits (min, max) that all partitions share [m].

    Raises:
        InputError: the log is empty, partitions differ, or a missing return means nothing for want of a maximal range.
    """
    limits: set[tuple[float, float]] = set()
    total, missed = 0, False
    for log in parts():
        limits.add((log.min_range_m, log.max_range_m))
        total += len(log)
        missed = missed or not bool(np.isfinite(log.returns.first_m).all())
    if total == 0:
        raise InputError("log: is empty; there is nothing to learn from")
    if len(limits) > 1:
        raise InputError(f"log: its parts have different range limits, {sorted(limits)}; give logs of one sensor")
    min_range_m, max_range_m = limits.pop()
    if missed and not np.isfinite(max_range_m):
        raise InputError("log: has missing returns but no max_range_m; say within what range nothing came back")
    return min_range_m, max_range_m


def _cut(log: Log) -> Iterator[Log]:
    if len(log) <= _BEAMS_PER_PART:
        if len(log):
            yield log
        return
    yield from _joined(part for _, part in log.iter_sweeps())


def _joined(sweeps: Iterable[Log]) -> Iterator[Log]:
    """Join neighbouring sweeps until they hold about a million beams."""
    waiting: list[Log] = []
    n = 0
    for sweep in sweeps:
        if waiting and n + len(sweep) > _BEAMS_PER_PART:
            yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            waiting, n = [], 0
        waiting.append(sweep)
        n += len(sweep)
    if waiting:
        yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
