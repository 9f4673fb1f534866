# SPDX-License-Identifier: Apache-2.0
"""A log split into sweeps for training and sweeps held out for validation, read in chunks as often as needed.

Whole sweeps are held out, never single beams: a beam's neighbours in its own sweep all but tell its range. Sweeps
between training sweeps tell how well beams are interpolated; the last sweeps of a log are views from places where no
training sweep was.

Equations: docs/models.md §16.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LogChunks
from hedgerow.parallel.log_parts import LogInParts, LogPart, cut_log, map_log

StartStage = Callable[[str], Callable[[int], object] | None]
"""Called with the name of a stage; returns what to call with the number of beams done, or None if nobody watches."""


_STEP_M = 0.5


def no_progress(stage: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitLog:
    """A log whose sweeps are either for training or held out."""

    chunks: LogInParts
    sweeps: NDArray[np.int32]
    """Numbers of all sweeps."""
    held_out_sweeps: NDArray[np.int32]
    """Numbers of the held-out sweeps; none: every sweep is for both training and validation."""
    farther_than_all_m: float
    """A range limit for logs that have none: farther than every return [m]."""
    from_one_place: bool = False
    """Whether all beams start within a step of each other: a single sweep, or a sensor that stands."""
    start: StartStage = no_progress
    """Reports progress."""
    prepare: Callable[[Log], Log] | None = None
    """What is done with training beams that are read."""

    @property
    def n_sweeps(self) -> int:
        """Number of all sweeps."""
        return len(self.sweeps)

    @property
    def n_training(self) -> int:
        """Number of sweeps for training."""
        return len(self.sweeps) - len(self.held_out_sweeps)

    def with_all_sweeps(self) -> Self:
        """Return the same log with every sweep for training."""
        return replace(self, held_out_sweeps=self.held_out_sweeps[:0])

    @property
    def training(self) -> LogInParts:
        """The training beams, prepared."""
        return self.measured if self.prepare is None else self.measured.prepared(self.prepare)

    @property
    def measured(self) -> LogInParts:
        """The training beams as they were measured."""
        return self.chunks.without(self.held_out_sweeps.tolist())

    @property
    def validation(self) -> LogInParts:
        """The beams for validation."""
        if len(self.held_out_sweeps) == 0:
            return self.chunks
        return self.chunks.without(set(self.sweeps.tolist()) - set(self.held_out_sweeps.tolist()))

    def training_sweeps(self, stage: str) -> Iterator[Log]:
        """Give the training beams sweep by sweep."""
        tell, before = self.start(stage), 0
        for part in self.training.parts():
            done = before
            for _, sweep in part.read().iter_sweeps():
                yield sweep
                done += len(sweep)
                if tell:
                    tell(done)
            before += len(part)


def hold_out(chunks: LogChunks, every: int, start: StartStage = no_progress, *, end_share: float = 0.0) -> SplitLog:
    """Hold out every n-th sweep of a log, by order of their numbers; of fewer than n sweeps the last.

    A single sweep is both trained on and validated with: held-out beams would tell nothing, since their neighbours tell
    their ranges, and a held-out sector would not be learned.

    Args:
        chunks: of the log.
        every: n.
        start: reports progress.
        end_share: of the sweeps, the last ones, that are held out instead of every n-th; 0: none.

    Raises:
        InputError: nothing returned in the sweeps left for training.
    """
    log = chunks if isinstance(chunks, LogInParts) else cut_log(chunks)
    found: set[int] = set()
    returned: set[int] = set()
    farthest_m = 0.0
    low_m, high_m = np.full(3, np.inf), np.full(3, -np.inf)
    for some in map_log(log, _find_sweeps):
        found |= some.sweeps
        returned |= some.returned
        farthest_m = max(farthest_m, some.farthest_m)
        low_m, high_m = np.minimum(low_m, some.low_m), np.maximum(high_m, some.high_m)
    sweeps = np.array(sorted(found), dtype=np.int32)
    from_one_place = len(sweeps) < 2 or bool((high_m - low_m).max() <= _STEP_M)
    if len(sweeps) < 2:
        return SplitLog(log, sweeps, sweeps[:0], farthest_m + 1.0, from_one_place, start)
    every = min(every, len(sweeps))
    n_last = min(max(1, round(end_share * len(sweeps))), len(sweeps) - 1)
    held_out = sweeps[len(sweeps) - n_last :] if end_share > 0 else sweeps[every - 1 :: every]
    if returned <= set(held_out.tolist()):
        raise InputError("log", "nothing returned in the sweeps that are not held out; there is nothing to learn from")
    return SplitLog(log, sweeps, held_out, farthest_m + 1.0, from_one_place, start)


@dataclass(frozen=True, slots=True)
class _Sweeps:
    sweeps: set[int]
    returned: set[int]
    """Those of which something returned."""
    farthest_m: float
    low_m: NDArray[np.float64]
    """(3,) lower corner of the box around the origins of its beams."""
    high_m: NDArray[np.float64]


def _find_sweeps(part: LogPart) -> _Sweeps:
    log = part.read()
    hit = np.isfinite(log.returns.first_m)
    return _Sweeps(
        set(np.unique(log.beams.sweep).tolist()),
        set(np.unique(log.beams.sweep[hit]).tolist()),
        float(log.returns.first_m.max(initial=0.0, where=hit)),
        log.beams.origin_m.min(axis=0, initial=np.inf),
        log.beams.origin_m.max(axis=0, initial=-np.inf),
    )
