# SPDX-License-Identifier: Apache-2.0
"""A log cut into parts of whole sweeps, about a million beams each: seconds of work, whoever does it.

The cut depends on the log alone. Parts of a Parquet log are named by its path, its stamp and their sweeps, so they can
be read by any process that sees the file; parts of other logs are handed over with their beams.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from hedgerow.base.progress import Progress
from hedgerow.errors import FileError, InputError
from hedgerow.log import Log
from hedgerow.parallel.engine import Engine, InProcess, Shared, current_engine
from hedgerow.parallel.kept import keep

if TYPE_CHECKING:
    from hedgerow.io.parquet.reader import LogFile
    from hedgerow.io.source import LogSource

Result = TypeVar("Result")
_T = TypeVar("_T")
BEAMS_PER_PART = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class PartSummary:
    """What a part of a log is, without its beams."""

    start: Log
    """No beam, only sensor, limits, map origin and metadata."""
    n_beams: int
    n_returned: int
    """Beams with a return."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some sweeps of a log."""

    number: int
    """From 0, in the order of the log."""
    n_beams: int
    path: str = ""
    """Of a Parquet log; empty if the beams are here."""
    stamp: str = ""
    """Tells the file from a later one under the same path."""
    sweeps: tuple[int, ...] = ()
    """In the file."""
    held_out: tuple[int, ...] = ()
    """Sweeps that are not read."""
    beams: Shared[Log] | None = None
    """All sweeps of a part that is in no file."""
    prepare: Callable[[Log], Log] | None = None
    """What is done with the beams that are read; a frozen dataclass of plain values."""

    def read(self) -> Log:
        """Return the beams, map frame.

        Raises:
            FileError: the file cannot be read, or has changed since the log was cut.
        """
        log = self._read()
        return log if self.prepare is None else self.prepare(log)

    def _read(self) -> Log:
        if self.beams is None:
            return self._file.read(self._wanted)
        log = self.beams.value
        return log[np.isin(log.beams.sweep, self.held_out, invert=True)] if self.held_out else log

    def look(self) -> "PartSummary":
        """Return what the log says of itself and how many beams returned; of a file, only small columns are read.

        Raises:
            FileError: as `read`.
        """
        if self.beams is None and not self.held_out:
            return PartSummary(self._file.read([]), self.n_beams, self._file.count_returned(self._wanted))
        log = self._read()
        return PartSummary(log[:0], len(log), int(np.count_nonzero(np.isfinite(log.returns.first_m))))

    @property
    def _file(self) -> "LogFile":
        return keep("log", f"{self.path} {self.stamp}", self._open)

    @property
    def _wanted(self) -> list[int]:
        return [sweep for sweep in self.sweeps if sweep not in self.held_out]

    def own_sweeps(self) -> frozenset[int]:
        """Return the numbers of all its sweeps."""
        return frozenset(self.sweeps)

    def __len__(self) -> int:
        """Count the beams, those of held-out sweeps included."""
        return self.n_beams

    def __str__(self) -> str:
        """Name it in a sentence."""
        if not self.sweeps:
            return f"part {self.number + 1}"
        whose = f" of {self.path}" if self.path else ""
        return f"part {self.number + 1} (sweeps {self.sweeps[0]} to {self.sweeps[-1]}{whose})"

    def _open(self) -> "LogFile":
        from hedgerow.io.parquet.reader import LogFile

        file = LogFile(self.path)
        if file.stamp != self.stamp:
            raise FileError(f"{self.path}: changed while it was being read; run the command again")
        return file


@dataclass(frozen=True, slots=True)
class LogInParts:
    """A log cut into parts, and what works on them. Called, it gives the parts read in turn, as often as needed."""

    parts: Callable[[], Iterable[LogPart]]
    engine: Engine = field(default_factory=InProcess)

    def __call__(self) -> Iterator[Log]:
        """Read one part after the other."""
        return (part.read() for part in self.parts())

    def without(self, sweeps: Iterable[int]) -> "LogInParts":
        """Return the log without some sweeps: the same parts, but for those of which nothing is left."""
        held_out = frozenset(sweeps)

        def left() -> Iterator[LogPart]:
            for part in self.parts():
                own = part.own_sweeps()
                if not own <= held_out:
                    yield replace(part, held_out=tuple(sorted(own & held_out)))

        return replace(self, parts=left)

    def prepared(self, prepare: Callable[[Log], Log]) -> "LogInParts":
        """Return the log with something done to the beams of every part that is read."""
        return replace(self, parts=lambda: (replace(part, prepare=prepare) for part in self.parts()))


def cut_log(
    source: "Log | LogSource | str | Path | Callable[[], Iterable[Log]]", engine: Engine | None = None
) -> LogInParts:
    """Cut a log into parts: whole sweeps, about a million beams each.

    Args:
        source: a log; or the path of one, of any format, or `open_log` of it, which may be larger than memory; or a
            function that gives the chunks of a log anew at each call, which are then its parts.
        engine: what will work on them. Default: that of the `using` block around, or this process.

    Raises:
        FileError: no such file, or not a log.
        InputError: something else.
    """
    chosen = engine or current_engine()
    return LogInParts(_parts_of(source, chosen), chosen)


def map_log(
    log: "LogInParts | Callable[[], Iterable[Log]]",
    work: Callable[[LogPart], Result],
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Give the results of all parts of a log, in their order.

    Args:
        log: in parts, or a function that gives its chunks.
        work: called with a part.
        progress: called with the number of beams done.
    """
    if not isinstance(log, LogInParts):
        log = cut_log(log)
    n_done = 0

    def done(part: LogPart) -> None:
        nonlocal n_done
        n_done += len(part)
        if progress is not None:
            progress(n_done)

    return log.engine.map(work, log.parts(), done)


def share_with(log: "LogInParts | Callable[[], Iterable[Log]]", value: _T) -> Shared[_T]:
    """Hand a value to those who will work on the parts of a log."""
    return (log.engine if isinstance(log, LogInParts) else current_engine()).share(value)


def _parts_of(
    source: "Log | LogSource | str | Path | Callable[[], Iterable[Log]]", engine: Engine
) -> Callable[[], Iterable[LogPart]]:
    if isinstance(source, Log):
        return lambda: _handed_over(_cut(source), engine)
    if isinstance(source, str | Path):
        from hedgerow.io import open_log

        return _parts_of(open_log(source), engine)
    if callable(source):
        return lambda: _handed_over(source(), engine)
    file = source
    if not hasattr(file, "iter_sweeps"):
        raise InputError("source", f"expected a log, the path of one, or a function, found {type(file).__name__}")
    from hedgerow.io.parquet.reader import LogFile

    if isinstance(file, LogFile):
        cut = _cut_file(file)
        return lambda: cut
    return lambda: _handed_over(_join(log for _, log in file.iter_sweeps()), engine)


def _handed_over(logs: Iterable[object], engine: Engine) -> Iterator[LogPart]:
    """Hand over the beams themselves, a part at a time."""
    given = cast("object", logs)
    if not isinstance(given, Iterable):
        raise InputError("source", f"expected a function that gives logs, found one that gives {type(given).__name__}")
    for number, log in enumerate(logs):
        if not isinstance(log, Log):
            raise InputError("source", f"expected a function that gives logs, found {type(log).__name__} in it")
        yield LogPart(number, len(log), sweeps=tuple(log.sweeps.tolist()), beams=engine.share(log))


def _cut_file(file: "LogFile") -> list[LogPart]:
    """Join neighbouring sweeps until they hold about a million beams, by what the footers say."""
    found: list[LogPart] = []
    waiting: list[int] = []
    n = 0

    def end() -> None:
        found.append(LogPart(len(found), n, str(file.path.absolute()), file.stamp, tuple(waiting)))

    for sweep, n_beams in file.beams_per_sweep().items():
        if waiting and n + n_beams > BEAMS_PER_PART:
            end()
            waiting, n = [], 0
        waiting.append(sweep)
        n += n_beams
    if waiting:
        end()
    return found


def _cut(log: Log) -> Iterator[Log]:
    if len(log) <= BEAMS_PER_PART:
        if len(log):
            yield log
        return
    yield from _join(sweep for _, sweep in log.iter_sweeps())


def _join(sweeps: Iterable[Log]) -> Iterator[Log]:
    """Join neighbouring sweeps until they hold about a million beams."""
    waiting: list[Log] = []
    n = 0
    for sweep in sweeps:
        if waiting and n + len(sweep) > BEAMS_PER_PART:
            yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
            waiting, n = [], 0
        waiting.append(sweep)
        n += len(sweep)
    if waiting:
        yield Log.concatenate(waiting) if len(waiting) > 1 else waiting[0]
