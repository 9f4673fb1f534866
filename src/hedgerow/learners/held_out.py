# SPDX-License-Identifier: Apache-2.0
"""Sweeps that are not learned from but judge what was learned.

Whole sweeps, never single beams: a beam's neighbours in its own sweep all but tell its range.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.learners.parts import Parts
from hedgerow.log import Log


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Divides every partition of a log by sweep."""

    parts: Parts
    sweeps: NDArray[np.int32]
    """Numbers of the sweeps held out; none: every beam teaches and judges."""
    n_training: int
    """How many sweeps are learned from."""
    beyond_m: float
    """Farther than any range in the log: a limit where the log has none."""

    @property
    def n_sweeps(self) -> int:
        """How many sweeps there are in all."""
        return self.n_training + len(self.sweeps)

    def __iter__(self) -> Iterator[tuple[Log, Log]]:
        """Give each partition as what is learned from and what is held out; either may be empty."""
        for log in self.parts():
            if len(self.sweeps) == 0:
                yield log, log
                continue
            judge = np.isin(log.beams.sweep, self.sweeps)
            if judge.all():
                yield log[:0], log
            elif judge.any():
                yield log[~judge], log[judge]
            else:
                yield log, log[:0]

    def judging(self) -> Iterator[Log]:
        """Give what is held out."""
        return (log for _, log in self if len(log))

    def training(self) -> Iterator[Log]:
        """Give what is learned from."""
        return (log for log, _ in self if len(log))


def hold_out(parts: Parts, every: int) -> HeldOut:
    """Hold out every n-th sweep of a log, by order of their numbers; of fewer than n sweeps the last.

    A single sweep is judged by itself: to hold out single beams would tell nothing, and a sector would not be learned.

    Raises:
        InputError: nothing returned from all that is left to learn from.
    """
    found: set[int] = set()
    returned: set[int] = set()
    farthest_m = 0.0
    for log in parts():
        hit = np.isfinite(log.returns.first_m)
        found.update(np.unique(log.beams.sweep).tolist())
        returned.update(np.unique(log.beams.sweep[hit]).tolist())
        farthest_m = max(farthest_m, float(log.returns.first_m.max(initial=0.0, where=hit)))
    if len(found) < 2:
        return HeldOut(parts, np.zeros(0, dtype=np.int32), 1, farthest_m + 1.0)
    sweeps = np.array(sorted(found), dtype=np.int32)
    every = min(every, len(sweeps))
    judges = sweeps[every - 1 :: every]
    if returned <= set(judges.tolist()):
        raise InputError("log: nothing returned in the sweeps that are not held out; there is nothing to learn from")
    return HeldOut(parts, judges, len(sweeps) - len(judges), farthest_m + 1.0)
