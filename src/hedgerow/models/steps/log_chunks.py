# SPDX-License-Identifier: Apache-2.0
"""A log in chunks, and the task of learning from it.

A model reads the chunks of a log as often as it needs, and never holds more than one at a time, so the log may be
larger than memory. A chunk is some whole sweeps.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.columns import require_agreement
from hedgerow.base.progress import Progress, ProgressSteps
from hedgerow.errors import InputError
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

LogChunks = Callable[[], Iterable[Log]]
"""Called for each reading of a log; gives its chunks, map frame, in turn."""
_BEAMS_PER_CHUNK = 1_000_000


def chunks_of(source: "Log | LogSource | str | Path | LogChunks") -> LogChunks:
    """Return the chunks of a log: whole sweeps, about a million beams each.

    Args:
        source: a log, one opened with `open_log` or its path (larger than memory is fine; Parquet is fastest, since
            models read it several times), or a function that gives the chunks anew at each call.

    Raises:
        FileError: no such file, or not a log.
    """
    if isinstance(source, Log):
        return lambda: _cut(source)
    if isinstance(source, str | Path):
        from hedgerow.io import open_log

        return chunks_of(open_log(source))
    if callable(source):
        return source
    file = source
    if not hasattr(file, "iter_sweeps"):
        raise InputError("source", f"expected a log, the path of one, or a function, found {type(file).__name__}")
    return lambda: _join(log for _, log in file.iter_sweeps())


@dataclass(frozen=True, slots=True, eq=False)
class LogSummary:
    """What a first reading of a log finds."""

    n_beams: int
    n_returns: int
    """First returns."""
    min_range_m: float
    max_range_m: float
    sensor: str
    map_origin_m: NDArray[np.float64]
    classes: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of the classes that its labels are of, by name, if it says."""


def summarise(chunks: LogChunks) -> LogSummary:
    """Read a log once before learning from it.

    Raises:
        InputError: the log is empty or nothing in it returned, its chunks are of different sensors, or a missing return
            means nothing for want of a maximal range.
    """
    n_beams = n_returns = 0
    first: Log | None = None
    for log in _given(chunks):
        if first is None:
            first = log
        require_agreement([first, log], ("sensor", "min_range_m", "max_range_m", "map_origin_m"))
        n_beams += len(log)
        n_returns += int(np.count_nonzero(np.isfinite(log.returns.first_m)))
    if first is None or n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn from")
    if n_returns == 0:
        raise InputError("log", f"none of its {n_beams:,} beams returned; there is nothing to learn from")
    if n_returns < n_beams and not np.isfinite(first.max_range_m):
        raise InputError("log", "has missing returns but no max_range_m; say within what range nothing came back")
    limits = first.min_range_m, first.max_range_m
    return LogSummary(n_beams, n_returns, *limits, first.sensor, first.map_origin_m, _classes(first.metadata))


def _classes(metadata: dict[str, Any]) -> dict[str, int]:
    """Names of classes that a log carries; those that are none are left out."""
    said = metadata.get("classes")
    entries = cast("dict[object, object]", said).items() if isinstance(said, dict) else ()
    return {name: n for name, n in entries if isinstance(name, str) and type(n) is int and 0 <= n <= 65535}


def _given(chunks: LogChunks) -> Iterator[Log]:
    """Give the chunks, each checked to be a log: they may come from a function of the caller's."""
    given = cast("object", chunks())
    if not isinstance(given, Iterable):
        raise InputError("source", f"expected a function that gives logs, found one that gives {type(given).__name__}")
    for log in cast("Iterable[object]", given):
        if not isinstance(log, Log):
            raise InputError("source", f"expected a function that gives logs, found {type(log).__name__} in it")
        yield log


@dataclass(frozen=True, slots=True)
class LearningTask:
    """What the recipe of a model works on, besides its parameters."""

    chunks: LogChunks
    summary: LogSummary
    stages: ProgressSteps
    """Reports progress."""

    def start(self, stage: str) -> Progress | None:
        """Begin a stage of learning; return what it calls with the number of beams done, None if nobody watches."""
        return self.stages.meter(stage)


def _cut(log: Log) -> Iterator[Log]:
    if len(log) <= _BEAMS_PER_CHUNK:
        if len(log):
            yield log
        return
    yield from _join(sweep for _, sweep in log.iter_sweeps())


def _join(sweeps: Iterable[Log]) -> Iterator[Log]:
    """Join neighbouring sweeps until they hold about a million beams."""
    waiting: list[Log] = []
    n = 0
    for sweep in sweeps:
        if waiting and n + len(sweep) > _BEAMS_PER_CHUNK:
            yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            waiting, n = [], 0
        waiting.append(sweep)
        n += len(sweep)
    if waiting:
        yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
