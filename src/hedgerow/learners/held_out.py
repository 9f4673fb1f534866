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
    """Numbers of the sweeps held out."""

    def __iter__(self) -> Iterator[tuple[Log, Log]]:
        """Give each partition as what is learned from and what is held out; either may be empty."""
        for log in self.parts():
            judge = np.isin(log.beams.sweep, self.sweeps)
            if judge.all():
                yield log[:0], log
            elif judge.any():
                yield log[~judge], log[judge]
            else:
                yield log, log[:0]

    def training(self) -> Iterator[Log]:
        """Give what is learned from."""
        return (log for log, _ in self if len(log))


def hold_out(parts: Parts, every: int) -> HeldOut:
    """Hold out every n-th sweep of a log, by order of their numbers; of fewer than n sweeps the last.

    Raises:
        InputError: there is only one sweep, or nothing returned from all that is left to learn from.
    """
    found: set[int] = set()
    for log in parts():
        found.update(np.unique(log.beams.sweep).tolist())
    if len(found) < 2:
        raise InputError("log: has one sweep only; the refined model learns from some and is judged by others")
    sweeps = np.array(sorted(found), dtype=np.int32)
    every = min(every, len(sweeps))
    held = HeldOut(parts, sweeps[every - 1 :: every])
    if not any(np.isfinite(log.returns.first_m).any() for log in held.training()):
        raise InputError("log: nothing returned in the sweeps that are not held out; there is nothing to learn from")
    return held
