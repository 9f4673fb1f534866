# SPDX-License-Identifier: Apache-2.0
"""One input, read and judged: it is read, or refused in one sentence; anything else is a finding.

Runs in a process of its own (isolate.py), whose output goes to a file and whose memory and time are limited.
"""

import os
import resource
import signal
import sys
import time
import traceback
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from fuzzing.change import Changes, Seed
from hedgerow.errors import HedgerowError, HedgerowWarning

LIMIT_S = 10.0
"""Processor time for one input; more is a hang."""
LIMIT_BYTES = 512 * 2**20
"""Memory for one input, beyond what reading the good one takes; more is a blow-up."""
MOST_CHARACTERS = 500
"""Of a sentence, the folder not counted."""
MOST_SHOWN = 300
_SMALL = ("Unable to allocate", "malloc of size", "out of memory", "MemoryError", "cannot allocate", "bad_alloc")


@dataclass(frozen=True)
class Finding:
    """What is wrong with how an input was read."""

    what: str
    """traceback, abort, hang, memory, prints, warns, sentence, leftover or nonsense."""
    where: str
    """Exception and the places in the code; findings with the same are counted as one."""
    said: str = ""
    """The text that came with it, cut."""

    def content(self) -> dict[str, str]:
        """Return it as plain values."""
        return asdict(self)


class Hang(BaseException):
    """Raised by the timer; not an Exception, so that no reader takes it for a fault of the file."""


class Place:
    """A folder that holds a good input; changed files are put in for one input and taken back after it."""

    def __init__(self, folder: Path, seed: Seed) -> None:
        """Write the good input."""
        self.folder, self.seed = folder, seed
        self.input, self.temporary = folder / "in", folder / "tmp"
        for each in (self.input, self.temporary):
            each.mkdir(parents=True, exist_ok=True)
        for name, data in seed.files.items():
            self._put(name, data)
        self._expected = self._listed()

    @property
    def opened(self) -> Path:
        """The path that is read."""
        return self.input / self.seed.opened

    @contextmanager
    def holding(self, changes: Changes) -> Iterator[None]:
        """Put changed files in, and restore them afterwards."""
        for name, data in changes.items():
            self._put(name, data)
        try:
            yield
        finally:
            for name in changes:
                self._put(name, self.seed.files.get(name))

    def _put(self, name: str, data: bytes | None) -> None:
        path = self.input / name
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def _listed(self) -> set[str]:
        return {os.path.join(at, name) for at, _, names in os.walk(self.folder) for name in names}  # noqa: PTH118

    def leftovers(self, changes: Changes) -> set[str]:
        """Return files that were not there before, and remove them."""
        gone = {str(self.input / name) for name, data in changes.items() if data is None}
        added = {str(self.input / name) for name, data in changes.items() if data is not None}
        found = self._listed() - self._expected - added - gone
        for each in found:
            Path(each).unlink(missing_ok=True)
        return {Path(each).name for each in found}


class Judge:
    """Reads inputs and judges what comes out; `armed` once limits are known."""

    def __init__(self, folder: Path, output: int, may_lack_memory: bool = False) -> None:
        """Take charge of warnings and of the timer.

        Args:
            folder: its path is not counted in the length of sentences.
            output: descriptor of the file that standard output and error go to.
            may_lack_memory: whether an input may be refused for want of memory.
        """
        self.folder, self.output, self.may_lack_memory = str(folder), output, may_lack_memory
        self.limit_bytes: int | None = None
        self._warned: list[str] = []
        self._said: list[str] = []
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, ImportWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = self._note_warning
        signal.signal(signal.SIGPROF, _time_is_up)

    def _note_warning(self, message: Any, category: type[Warning], filename: str, line: int, *_: Any) -> None:
        if issubclass(category, HedgerowWarning):
            self._said.append(str(message))
        else:
            self._warned.append(f"{category.__name__} {_short(filename)}: {message}")

    def limit(self, more_bytes: int = LIMIT_BYTES) -> None:
        """Limit memory to what is in use now and a given number of bytes."""
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        self.limit_bytes = pages * resource.getpagesize() + more_bytes

    def judge(self, steps: Sequence[Any], place: Place, changes: Changes) -> tuple[bool, list[Finding]]:
        """Read an input; return whether it was read, not refused, and all that was wrong."""
        self._warned.clear()
        self._said.clear()
        before = os.fstat(self.output).st_size
        accepted, found = True, []
        with place.holding(changes):
            for step in steps:
                refused, finding = self._run(step, place.opened)
                accepted &= not refused and finding is None
                found += [finding] if finding else []
            leftovers = place.leftovers(changes)
        if leftovers:
            found.append(Finding("leftover", "files left behind", ", ".join(sorted(leftovers))[:MOST_SHOWN]))
        found += [Finding("warns", text.partition(":")[0], text[:MOST_SHOWN]) for text in self._warned[:1]]
        found += [each for text in self._said if (each := self._check_sentence(text, "warning"))][:1]
        printed = self._printed(before)
        if printed:
            found.append(Finding("prints", "to the terminal", printed))
        return accepted, found

    def _run(self, step: Any, path: Path) -> tuple[bool, Finding | None]:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        try:
            if self.limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_AS, (self.limit_bytes, hard))
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
            try:
                step(path)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        except HedgerowError as error:
            if (cause := _out_of_memory(error)) and not self.may_lack_memory:
                return True, Finding("memory", f"{cause} {_places(error)}", str(error)[:MOST_SHOWN])
            return True, self._check_sentence(str(error), type(error).__name__, error)
        except Hang as error:
            return True, Finding("hang", _places(error), f"more than {LIMIT_S:g} s of processor time")
        except BaseException as error:
            what = {"Nonsense": "nonsense", "MemoryError": "memory"}.get(type(error).__name__, "traceback")
            what = "memory" if _out_of_memory(error) else what
            where = str(error).partition(":")[0] if what == "nonsense" else f"{type(error).__name__} {_places(error)}"
            return True, Finding(what, where, str(error)[:MOST_SHOWN])
        return False, None

    def _check_sentence(self, text: str, name: str, error: BaseException | None = None) -> Finding | None:
        text = text.replace(self.folder, "")
        wrong = ""
        if "\n" in text or "\r" in text:
            wrong = "several lines"
        elif any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for letter in text):
            wrong = "control characters"
        elif len(text) > MOST_CHARACTERS:
            wrong = "too long"
        elif len(text) < 10:
            wrong = "too short"
        where = f"{wrong} {name} {_places(error) if error else ''}"
        return Finding("sentence", where, f"({len(text)} characters) {text[:MOST_SHOWN]}") if wrong else None

    def _printed(self, before: int) -> str:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        size = os.fstat(self.output).st_size - before
        return os.pread(self.output, MOST_SHOWN, before).decode("utf-8", "replace") if size else ""


def _time_is_up(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang


def _out_of_memory(error: BaseException) -> str:
    """Return what failed for want of memory, if that is behind an error."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or any(text in str(seen) for text in _SMALL):
            return type(seen).__name__
        seen = seen.__cause__ or seen.__context__
    return ""


def _places(error: BaseException) -> str:
    """Return the last place in Hedgerow's code and the last of all, without lines, which change."""
    code = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]  # without reading the sources
    own = [each for each in code if "/fuzzing/" not in each.co_filename]
    ours = [each for each in own if "/hedgerow/" in each.co_filename]
    anywhere = isinstance(error, RecursionError | MemoryError | Hang)  # the last place is chance
    chosen = ours[-1:] if anywhere and ours else (*ours[-1:], *own[-1:])
    last = [f"{_short(each.co_filename)}:{each.co_name}" for each in chosen]
    return " ".join(dict.fromkeys(last))


def _short(filename: str) -> str:
    for mark in ("/src/", "/site-packages/", "/lib/"):
        filename = filename.rpartition(mark)[2]
    return filename


def now_s() -> float:
    """Return the time by a clock that all processes share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
