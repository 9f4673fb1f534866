# SPDX-License-Identifier: Apache-2.0
"""LogSource: a log that can be read sweep by sweep, whatever the format. LogSink: one that is being written.

The Parquet `LogFile` is a LogSource. Readers of other formats derive from `SweepSource`, which needs one method,
`iter_sweeps`, and gives `read`. Nothing but one sweep is in memory at a time. What else readers share is here too:
whatever goes wrong with a file, too little memory included, becomes one sentence.
"""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Numbers
from hedgerow.base.columns import require_agreement
from hedgerow.errors import FileError, HedgerowError, warn
from hedgerow.frames import Trajectory
from hedgerow.log import Beams, Log, Returns

PULSES_PER_SWEEP = 2**32
"""Pulse ids of sweep n start at n times this, so that a sweep has the same ids whether it is read alone or not."""


@runtime_checkable
class LogSource(Protocol):
    """A log on the disk, opened but not read."""

    path: Path
    sensor: str
    min_range_m: float
    max_range_m: float
    map_origin_m: NDArray[np.float64]
    metadata: dict[str, Any]
    n_per_pulse: int
    """Returns that a pulse can have."""
    arrays: list[str]
    """Which of intensity, label and element there are."""
    trajectory: Trajectory | None
    """T_map_sensor where the source knows it."""

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending; some formats must be read through to find out."""
        ...

    @property
    def n_beams(self) -> int | None:
        """How many pulses there are, or None if only reading tells."""
        ...

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read all sweeps, or those with the given numbers."""
        ...

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        ...


@dataclass(slots=True)
class Written:
    """What was given to a sink, and what of it the format could not hold."""

    n_beams: int = 0
    n_returns: int = 0
    n_misses: int = 0
    """Beams without a return."""
    n_misses_left_out: int = 0
    """Those that will not come back when the log is read again; known when writing has ended."""
    losses: list[str] = field(default_factory=list[str])
    """One clause for each kind of thing that was left out or changed, for example '12 misses left out: ...'."""

    def count(self, log: Log) -> None:
        """Count the beams of a log."""
        self.n_beams += len(log)
        self.n_returns += int(np.count_nonzero(log.returns.hit))
        self.n_misses += int(np.count_nonzero(log.returns.first_m == np.inf))


class LogSink(AbstractContextManager["LogSink"]):
    """A log being written; it appears when the `with` block ends well, and only then.

    What the format cannot hold is counted in `written` and said by one warning at the end.
    """

    path: Path
    """What is being made."""
    holds_misses: ClassVar[bool]
    """Whether beams without a return come back when the log is read again."""
    _context: AbstractContextManager[None] | None = None

    def __init__(self, path: str | Path) -> None:
        """Prepare to write; nothing is made until the block is entered."""
        self.path = Path(path)
        self.written = Written()

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Open a temporary beside the path; publish it after the block, or remove every trace of it after an error."""

    def __enter__(self) -> Self:
        """Open a temporary beside the path. Raises FileError if that is not possible."""
        self._context = self._writing()
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Publish the log, or after an error remove every trace of it. Raises FileError if writing fails."""
        handled = None if self._context is None else self._context.__exit__(kind, error, trace)
        if kind is None:
            self._say_losses()
        return handled

    def append(self, log: Log) -> None:
        """Write the pulses of a log, by custom one sweep.

        Raises:
            InputError: it does not fit to what was appended before.
            FileError: it cannot be written.
        """
        self._append(log)
        self.written.count(log)

    @abstractmethod
    def _append(self, log: Log) -> None:
        """Write the pulses of a log; see `append`."""

    def _say_losses(self) -> None:
        written = self.written
        if written.n_misses and not self.holds_misses:
            written.n_misses_left_out = written.n_misses
            written.losses.insert(
                0,
                f"{written.n_misses:,} of {written.n_beams:,} beams left out: they have no return, and this "
                "format holds points alone",
            )
        if written.losses:
            warn(f"{self.path}: {'; '.join(written.losses)}")


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What all sweeps of a log have in common."""

    sensor: str = ""
    min_range_m: float = 0.0
    max_range_m: float = float("inf")
    map_origin_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    n_per_pulse: int = 1
    arrays: list[str] = field(default_factory=list[str])

    def log(self, beams: Beams, returns: Returns) -> Log:
        """Make a log of these beams and returns."""
        limits = self.min_range_m, self.max_range_m
        return Log(beams, returns, self.sensor, *limits, self.map_origin_m, self.metadata)


class SweepSource(ABC):
    """Base of the readers: give it a path and settings, and `iter_sweeps`. A LogSource."""

    n_left_out: int = 0
    """Points of the sweeps read so far that became no return: without a finite place, or out of range."""

    def __init__(self, path: str | Path, settings: Settings, trajectory: Trajectory | None = None) -> None:
        """Remember what is known before any sweep is read."""
        self.path = Path(path)
        self.settings = settings
        self.sensor = settings.sensor
        self.min_range_m, self.max_range_m = settings.min_range_m, settings.max_range_m
        self.map_origin_m = settings.map_origin_m
        self.metadata = settings.metadata
        self.n_per_pulse = settings.n_per_pulse
        self.arrays = settings.arrays
        self.trajectory = trajectory

    @property
    @abstractmethod
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""

    @property
    def n_beams(self) -> int | None:
        """How many pulses there are; None, since only reading tells."""
        return None

    @abstractmethod
    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time.

        Args:
            sweeps: a number, a range or a list of those wanted; default all. Others are not read if that is possible.

        Raises:
            FileError: damaged, or its content is no valid log.
        """

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read all sweeps, or those with the given numbers, into memory.

        Raises:
            FileError: damaged, or none of these sweeps are there.
        """
        parts = [log for _, log in self.iter_sweeps(sweeps)]
        if not parts:
            raise FileError(f"{self.path}: holds none of the sweeps asked for; it has {_listed(self.sweeps)}")
        return Log.concatenate(parts) if len(parts) > 1 else parts[0]

    def selected_sweeps(self, sweeps: Numbers | None) -> list[int]:
        """Return the sweep numbers of this log that are asked for."""
        return self.sweeps[arrays.is_member(self.sweeps, sweeps)].tolist()


def read_spread(source: LogSource, max_beams: int) -> Log:
    """Read sweeps that are spread evenly over a log, as many as hold about so many beams; all of a smaller log.

    The log may be larger than memory: no more than `max_beams` beams and one sweep are held.

    Raises:
        FileError: the file cannot be read.
    """
    held: list[Log] = []
    every, n_beams = 1, 0
    for number, (_, sweep) in enumerate(source.iter_sweeps()):
        if number % every:
            continue
        held.append(sweep)
        n_beams += len(sweep)
        while n_beams > max_beams and len(held) > 1:
            every *= 2
            held = held[::2]
            n_beams = sum(map(len, held))
    return Log.concatenate(held) if held else source.read([])


def require_same_settings(first: Log, log: Log) -> None:
    """Refuse a log that does not belong to the first one of a file.

    Raises:
        InputError: it has another sensor, other limits or another map origin.
    """
    require_agreement([first, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])


def pulse_ids(sweep: int, n: int) -> NDArray[np.int64]:
    """Return the ids of the n pulses of a sweep."""
    return np.arange(n, dtype=np.int64) + sweep * PULSES_PER_SWEEP


def _listed(sweeps: NDArray[np.int32]) -> str:
    return f"{sweeps[0]} to {sweeps[-1]}" if len(sweeps) else "none"


@contextmanager
def translate_errors(path: object, what: str) -> Generator[None]:
    """Turn any error of a library that parses a file into FileError; a damaged file can make it raise anything.

    Args:
        path: of the file.
        what: what it was taken for, for example "a PCD file".
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except HedgerowError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileError(f"{path}: not {what}, or damaged ({reason})") from error


def read_bytes(path: Path, hint: str = "") -> bytes:
    """Read a file.

    Args:
        path: of the file.
        hint: what to add when it is not there.

    Raises:
        FileError: missing, or not readable.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path}: no such file" + (f"; {hint}" if hint else "")) from None
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error


def read_text(path: Path, hint: str = "") -> str:
    """Read a text file; as `read_bytes`, and also raises FileError if it is not text."""
    try:
        return read_bytes(path, hint).decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a text file") from None


def require_rows(path: Path, offset: int, row_bytes: int, n_rows: int) -> None:
    """Refuse a file that ends before its last point.

    Args:
        path: of the file.
        offset: bytes before the first point.
        row_bytes: of one point.
        n_rows: points that its header promises.

    Raises:
        FileError: it ends before.
    """
    n_found = max(path.stat().st_size - offset, 0) // max(row_bytes, 1)
    if n_found < n_rows:
        raise FileError(f"{path}: ends after {n_found:,} of {n_rows:,} points; is it cut off?")


def require_memory(path: Path, n_bytes: int) -> None:
    """Refuse a file of points that memory cannot hold, before that much is asked for.

    Raises:
        FileError: fewer than n_bytes are free.
    """
    free = free_memory_bytes()
    if free is not None and n_bytes > free:
        raise FileError(
            f"{path}: is read whole, and would need {n_bytes / 1e9:.1f} GB of the {free / 1e9:.1f} GB of free memory; "
            "split it, or have it written as Parquet or LAS, which are read in parts"
        )


def free_memory_bytes() -> int | None:
    """Return how much memory is free, by Linux's own estimate; elsewhere how much there is; None if nothing tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None
