# SPDX-License-Identifier: Apache-2.0
"""Which sweep of a simulated log stands beside a real one: that of the same number, else of the same time, else place.

A candidate counts only if its centre is within `match_place_m` of the real one's, so that two drives which both begin
with sweep 0 are not taken for one another. The simulated log is read forward, once; when its numbers do not help, once
before to learn when and where its sweeps are.

A file that knows no sweeps, such as a LAS file of another program, is read in pieces that end anywhere. Of these the
beams of the real sweep's own time are taken, if there are any.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.parquet.reader import LogFile
from hedgerow.log import Log
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.matching import SweepPlace


@runtime_checkable
class HasSweeps(Protocol):
    """A log in memory or on the disk."""

    def iter_sweeps(self) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log)."""
        ...


def can_look_up(source: object) -> bool:
    """Whether single sweeps of a log can be asked for by their numbers."""
    return isinstance(source, HasSweeps) and hasattr(source, "sweeps")


class SweepsBeside:
    """Looks up the sweeps of one log that stand beside those of another."""

    def __init__(self, source: HasSweeps, settings: CompareSettings) -> None:
        """Take a log whose sweeps can be asked for by number (`can_look_up`)."""
        self._source: Any = source
        self._settings = settings
        self._numbers = {int(number) for number in np.asarray(self._source.sweeps)}
        self._ahead = iter(source.iter_sweeps())
        self._now: tuple[int, Log] | None = None
        self._pieces: dict[int, Log] = {}

    def find(self, real: Log) -> Log | None:
        """Return the sweep beside a real one; None if there is none."""
        wanted = SweepPlace.of(real)
        if not getattr(self._source, "has_sweeps", True):
            cut = self._cut(real)
            if cut is not None:
                return cut if self._is_near(SweepPlace.of(cut), wanted) else None
        if wanted.number in self._numbers:
            found = self.read(wanted.number)
            if self._away_m(SweepPlace.of(found), wanted) <= self._settings.match_place_m:
                return found
        number = self._number_at(wanted)
        return None if number is None else self.read(number)

    def read(self, number: int) -> Log:
        """Return a sweep by its number."""
        if isinstance(self._source, Log):
            return self._source.select(sweep=number)
        if isinstance(self._source, LogFile):
            return self._source.read(number)  # it reads no other sweep for that
        while self._now is None or self._now[0] < number:
            following = next(self._ahead, None)
            if following is None:
                break
            self._now = following
        if self._now is not None and self._now[0] == number:
            return self._now[1]
        return cast("Log", self._source.read(number))  # behind us

    def _cut(self, real: Log) -> Log | None:
        """Return the beams of pieces that were fired while a real sweep was; None if there are none."""
        begin_ns, end_ns = int(real.beams.time_ns.min()), int(real.beams.time_ns.max())
        numbers = [number for number, first, last in self._spans if first <= end_ns and last >= begin_ns]
        # The pieces of the sweep before are mostly those of this one; no others are held.
        self._pieces = {number: self._pieces.get(number) or self.read(number) for number in numbers}
        parts = [
            piece[(piece.beams.time_ns >= begin_ns) & (piece.beams.time_ns <= end_ns)]
            for piece in self._pieces.values()
        ]
        parts = [part for part in parts if len(part)]
        return Log.concatenate(parts) if parts else None

    @cached_property
    def _spans(self) -> list[tuple[int, int, int]]:
        """Number, first and last time of each piece [ns]."""
        times = ((number, piece.beams.time_ns) for number, piece in self._source.iter_sweeps())
        return [(number, int(each.min()), int(each.max())) for number, each in times]

    @cached_property
    def _places(self) -> list[SweepPlace]:
        return [SweepPlace.of(sweep) for _, sweep in self._source.iter_sweeps()]

    def _number_at(self, wanted: SweepPlace) -> int | None:
        """Return the sweep nearest in time, if it is within half a sweep; else the nearest in place."""
        if not self._places:
            return None
        times = np.array([each.time_ns for each in self._places], dtype=np.int64)
        step_ns = float(np.median(np.diff(np.sort(times)))) if len(times) > 1 else 0.0
        late = np.abs(times - wanted.time_ns)
        by_time = self._places[int(late.argmin())]
        if step_ns > 0 and late.min() <= step_ns / 2 and self._is_near(by_time, wanted):
            return by_time.number
        by_place = min(self._places, key=lambda each: self._away_m(each, wanted))
        return by_place.number if self._is_near(by_place, wanted) else None

    def _is_near(self, one: SweepPlace, other: SweepPlace) -> bool:
        return self._away_m(one, other) <= self._settings.match_place_m

    @staticmethod
    def _away_m(one: SweepPlace, other: SweepPlace) -> float:
        apart: NDArray[np.float64] = one.centre_m - other.centre_m
        return float(np.linalg.norm(apart))


class NextSweep:
    """A standing sensor as its own second recording: each sweep is answered by the next, the last by the one before.

    It finds its sweeps by their numbers, so that a part of the log gets the same answers as the whole.
    """

    def __init__(self, source: HasSweeps) -> None:
        """Take the real log itself."""
        self.source = source
        numbers = sorted({int(number) for number in np.asarray(cast("Any", source).sweeps)})
        following = [*numbers[1:], *numbers[-2:-1]]
        self._next = dict(zip(numbers, following, strict=False))

    def number_after(self, number: int) -> int | None:
        """Return the sweep that answers another; None if there is just one."""
        return self._next.get(number)
