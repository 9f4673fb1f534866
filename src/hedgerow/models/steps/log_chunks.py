# SPDX-License-Identifier: Apache-2.0
"""A log in chunks, and the task of learning from it.

A model reads the chunks of a log as often as it needs, and never holds more than one at a time, so the log may be
larger than memory. A chunk is some whole sweeps.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.columns import require_agreement
from hedgerow.base.progress import Progress, ProgressSteps
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.parallel.log_parts import LogInParts, LogPart, PartSummary, map_log

LogChunks = LogInParts | Callable[[], Iterable[Log]]
"""A log in parts (parallel/log_parts.py), or a function that gives its chunks, map frame, anew at each call."""


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


def _look_at(part: LogPart) -> PartSummary:
    return part.look()


def summarise(chunks: LogChunks) -> LogSummary:
    """Look through a log before learning from it.

    Raises:
        InputError: the log is empty or nothing in it returned, its chunks are of different sensors, or a missing return
            means nothing for want of a maximal range.
    """
    n_beams = n_returns = 0
    first: Log | None = None
    for found in map_log(chunks, _look_at):
        if first is None:
            first = found.start
        require_agreement([first, found.start], ("sensor", "min_range_m", "max_range_m", "map_origin_m"))
        n_beams += found.n_beams
        n_returns += found.n_returned
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
