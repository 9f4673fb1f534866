# SPDX-License-Identifier: Apache-2.0
"""A log split into sweeps for training and sweeps held out for validation, read in chunks as often as needed.

Whole sweeps are held out, never single beams: a beam's neighbours in its own sweep all but tell its range.

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

StartStage = Callable[[str], Callable[[int], object] | None]
"""Called with the name of a stage; returns what to call with the number of beams done, or None if nobody watches."""


def no_progress(stage: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitLog:
    """A log whose sweeps are either for training or held out."""

    chunks: LogChunks
    held_out_sweeps: NDArray[np.int32]
    """Numbers of the held-out sweeps; none: every sweep is for both training and validation."""
    n_training: int
    """Number of sweeps for training."""
    farther_than_all_m: float
    """A range limit for logs that have none: farther than every return [m]."""
    start: StartStage = no_progress
    """Reports progress."""

    @property
    def n_sweeps(self) -> int:
        """Number of all sweeps."""
        return self.n_training + len(self.held_out_sweeps)

    def with_all_sweeps(self) -> Self:
        """Return the same log with every sweep for training."""
        return replace(self, held_out_sweeps=self.held_out_sweeps[:0], n_training=self.n_sweeps)

    def training(self) -> Iterator[Log]:
        """Give the training beams, without reporting progress."""
        return (training for training, _ in self._chunks() if len(training))

    def training_sweeps(self, stage: str) -> Iterator[Log]:
        """Give the training beams sweep by sweep."""
        tell, done = self.start(stage), 0
        for training, held_out in self._chunks():
            for _, sweep in training.iter_sweeps():
                yield sweep
                done += len(sweep)
                if tell:
                    tell(done)
            done += _n_beams(training, held_out) - len(training)

    def training_chunks(self, stage: str) -> Iterator[Log]:
        """Give the training beams in chunks of the log; some may be empty."""
        return (training for training, _ in self._metered(stage))

    def held_out_chunks(self, stage: str) -> Iterator[Log]:
        """Give the beams for validation in chunks of the log; some may be empty."""
        return (held_out for _, held_out in self._metered(stage))

    def _metered(self, stage: str) -> Iterator[tuple[Log, Log]]:
        tell, done = self.start(stage), 0
        for training, held_out in self._chunks():
            yield training, held_out
            done += _n_beams(training, held_out)
            if tell:
                tell(done)

    def _chunks(self) -> Iterator[tuple[Log, Log]]:
        """Give each chunk as its training beams and its held-out beams; either may be empty."""
        for log in self.chunks():
            if len(self.held_out_sweeps) == 0:
                yield log, log
                continue
            held_out = np.isin(log.beams.sweep, self.held_out_sweeps)
            if held_out.all():
                yield log[:0], log
            elif held_out.any():
                yield log[~held_out], log[held_out]
            else:
                yield log, log[:0]


def _n_beams(training: Log, held_out: Log) -> int:
    """Number of beams of a chunk; without held-out sweeps all of them are in both."""
    return len(training) if held_out is training else len(training) + len(held_out)


def hold_out(chunks: LogChunks, every: int, start: StartStage = no_progress) -> SplitLog:
    """Hold out every n-th sweep of a log, by order of their numbers; of fewer than n sweeps the last.

    A single sweep is both trained on and validated with: held-out beams would tell nothing, since their neighbours tell
    their ranges, and a held-out sector would not be learned.

    Args:
        chunks: of the log.
        every: n.
        start: reports progress.

    Raises:
        InputError: nothing returned in the sweeps left for training.
    """
    found: set[int] = set()
    returned: set[int] = set()
    farthest_m = 0.0
    for log in chunks():
        hit = np.isfinite(log.returns.first_m)
        found.update(np.unique(log.beams.sweep).tolist())
        returned.update(np.unique(log.beams.sweep[hit]).tolist())
        farthest_m = max(farthest_m, float(log.returns.first_m.max(initial=0.0, where=hit)))
    if len(found) < 2:
        return SplitLog(chunks, np.zeros(0, dtype=np.int32), 1, farthest_m + 1.0, start)
    sweeps = np.array(sorted(found), dtype=np.int32)
    every = min(every, len(sweeps))
    held_out = sweeps[every - 1 :: every]
    if returned <= set(held_out.tolist()):
        raise InputError("log", "nothing returned in the sweeps that are not held out; there is nothing to learn from")
    return SplitLog(chunks, held_out, len(sweeps) - len(held_out), farthest_m + 1.0, start)
