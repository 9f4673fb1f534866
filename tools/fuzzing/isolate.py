# SPDX-License-Identifier: Apache-2.0
"""Inputs in forked processes, a batch in each: what aborts, hangs or eats memory ends the child and names its input.

The parent imports everything but runs nothing, so it has no threads when it forks. A child tells the number of the
input at hand in shared memory before it is read. If the child dies, that input is the culprit, and the next child goes
on behind it. Input number k of a kind follows from the seed, the kind and k alone.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import mmap
import os
import pickle
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzzing.change import Changes, Seed, change_input
from fuzzing.kinds import Kind
from fuzzing.verdict import Finding, Judge, Place, now_s
from hedgerow.errors import HedgerowError

SELDOM = 4
"""Steps after the first are taken with one in so many inputs: most is read by the first."""
BATCH_S = 4.0
"""A child ends after this long."""
CLOCK_S = 60.0
"""By the clock an input may take longer than by processor time: others use the machine too."""
_STATE = struct.Struct("<qdqqd")  # input at hand, since when, number done, number refused, longest time


@dataclass
class Hit:
    """A finding, and the input that shows it."""

    kind: str
    number: int
    finding: Finding
    changes: Changes | None = None
    """Set where the input is not one of the numbered ones."""


@dataclass
class Batch:
    """What a child did."""

    first: int
    n_done: int = 0
    n_refused: int = 0
    slowest_s: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    hits: list[Hit] = field(default_factory=list[Hit])


Source = Callable[[int], Changes | None]
"""Gives input number k, or None when there are no more."""
Try = Callable[[int, Changes], bool]
"""Reads an input under its number; tells whether there is time for another."""
Loop = Callable[[Try], None]
"""Tries inputs until it has no more, or is told to stop."""


def one_by_one(source: Source, first: int) -> Loop:
    """Try the inputs of a series, beginning with number `first`."""

    def loop(try_one: Try) -> None:
        number = first
        while (changes := source(number)) is not None and try_one(number, changes):
            number += 1

    return loop


def numbered(kind: str, seed: Seed, random_seed: int) -> Source:
    """Return the endless series of inputs of a kind."""
    return lambda number: change_input(seed, Random(f"{random_seed}/{kind}/{number}"))


def scratch_folder() -> Path:
    """Make a folder in memory where there is one, since every input is written."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None))


class Child:
    """A process that reads a batch of inputs."""

    def __init__(
        self,
        kind: Kind,
        seed: Seed,
        loop: Loop,
        first: int,
        folder: Path,
        limit_s: float = BATCH_S,
        seldom: int = SELDOM,
    ):
        """Start it.

        Args:
            kind: how inputs are read.
            seed: the good input.
            loop: tries inputs.
            first: number of the first.
            folder: of its own; what is in it is lost.
            limit_s: time after which it ends.
            seldom: one in so many inputs goes through all steps.
        """
        self.kind, self.seed, self.first, self.folder = kind, seed, first, folder
        self._shared = mmap.mmap(-1, _STATE.size)
        self._shared[:] = _STATE.pack(-1, now_s(), 0, 0, 0.0)
        self._start_s, self._cpu_s = now_s(), 0.0
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 70
            try:
                _run_batch(kind, Place(folder / "place", seed), loop, folder, limit_s, self._shared, seldom)
                status = 0
            except BaseException as error:
                with (folder / "broken").open("w") as file:
                    traceback.print_exception(error, file=file)
            finally:
                os._exit(status)

    def poll(self) -> Batch | None:
        """Return what it did once it has ended; a child that takes too long for one input is killed."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        self._cpu_s = usage.ru_utime + usage.ru_stime
        number, since_s, n_done, n_refused, slowest_s = _STATE.unpack(self._shared[:])
        if pid == 0:
            if number >= 0 and now_s() - since_s > CLOCK_S:
                os.kill(self.pid, signal.SIGKILL)
                usage = os.wait4(self.pid, 0)[2]
                self._cpu_s = usage.ru_utime + usage.ru_stime
                said = f"more than {CLOCK_S:g} s by the clock"
                return self._ended(number, n_done, n_refused, slowest_s, Finding("hang", self._stack(), said))
            return None
        finding = None
        if status != 0:
            broken = self.folder / "broken"
            if broken.exists() or number < 0:
                told = broken.read_text() if broken.exists() else f"status {status}, {self._stack()}"
                raise RuntimeError(f"{self.kind.name}: the harness itself failed: {told}")
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
            finding = Finding("abort", f"{name} {self._stack()}", self._output())
        return self._ended(number, n_done, n_refused, slowest_s, finding)

    def wait(self) -> Batch:
        """Wait until it has ended."""
        while (batch := self.poll()) is None:
            time.sleep(0.002)
        return batch

    def _ended(self, number: int, n_done: int, n_refused: int, slowest_s: float, last: Finding | None) -> Batch:
        self._shared.close()
        found = self.folder / "found"
        lines = found.read_text().splitlines() if found.exists() else []
        hits = [Hit(self.kind.name, row["number"], Finding(**row["finding"])) for row in map(json.loads, lines)]
        for hit in hits:
            told = self.folder / f"input{hit.number}"
            hit.changes = pickle.loads(told.read_bytes()) if told.exists() else None
        if last is not None:
            left = self.folder / "place" / "in"  # as the child left it
            names = {
                *self.seed.files,
                *(each.relative_to(left).as_posix() for each in left.rglob("*") if each.is_file()),
            }
            now = {name: (left / name).read_bytes() if (left / name).is_file() else None for name in names}
            changes: Changes = {name: data for name, data in now.items() if data != self.seed.files.get(name)}
            hits.append(Hit(self.kind.name, number, last, changes))
            n_done += 1
        return Batch(self.first, n_done, n_refused, slowest_s, now_s() - self._start_s, self._cpu_s, hits)

    def _stack(self) -> str:
        """Where in Python the child was when it died."""
        dump = self.folder / "stack"
        text = dump.read_text(errors="replace") if dump.exists() else ""
        frames = re.findall(r'File "([^"]+)", line \d+ in (\S+)', text)
        own = [(file, name) for file, name in frames if "/hedgerow/" in file]
        shown = [*frames[:1], *own[:1]]
        return " ".join(dict.fromkeys(f"{'/'.join(file.split('/')[-3:])}:{name}" for file, name in reversed(shown)))

    def _output(self) -> str:
        path = self.folder / "output"
        return path.read_bytes()[-300:].decode("utf-8", "replace") if path.exists() else ""


def _run_batch(
    kind: Kind, place: Place, loop: Loop, folder: Path, limit_s: float, shared: mmap.mmap, seldom: int
) -> None:
    """The life of a child."""
    end_s = now_s() + limit_s
    output = os.open(folder / "output", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
    stack = (folder / "stack").open("w")
    faulthandler.enable(stack)  # all threads: libraries die in threads of their own
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.temporary)
    judge = Judge(place.folder, output, kind.is_recipe)
    judge.judge(kind.steps, place, {})  # starts threads and fills caches before memory is limited
    judge.limit()
    gc.collect()
    gc.freeze()
    n_done = n_refused = 0
    slowest_s = 0.0
    seen: set[Finding] = set()

    def try_one(number: int, changes: Changes) -> bool:
        nonlocal n_done, n_refused, slowest_s
        begin_s = now_s()
        shared[:] = _STATE.pack(number, begin_s, n_done, n_refused, slowest_s)
        accepted, findings = judge.judge(kind.steps if number % seldom == 0 else kind.steps[:1], place, changes)
        n_done, n_refused = n_done + 1, n_refused + (not accepted)
        slowest_s = max(slowest_s, now_s() - begin_s)
        shared[:] = _STATE.pack(number, now_s(), n_done, n_refused, slowest_s)
        for finding in findings:
            found.write(json.dumps({"number": number, "finding": finding.content()}) + "\n")
            found.flush()
        if not seen.issuperset(findings):
            seen.update(findings)
            (folder / f"input{number}").write_bytes(pickle.dumps(changes))
        return now_s() < end_s

    with (folder / "found").open("w") as found:
        loop(try_one)


def run_all(
    kind: Kind, seed: Seed, inputs: Sequence[Changes], folder: Path, limit_s: float = 600
) -> list[list[Finding]]:
    """Read given inputs, each once; return what was found with each."""
    found: list[list[Finding]] = [[] for _ in inputs]
    first = 0
    while first < len(inputs):
        loop = one_by_one(lambda k: inputs[k] if k < len(inputs) else None, first)
        batch = Child(kind, seed, loop, first, folder, limit_s, seldom=1).wait()
        for hit in batch.hits:
            found[hit.number].append(hit.finding)
        if batch.n_done == 0:
            break
        first += batch.n_done
    return found


def prepare(kinds: Sequence[Kind], folder: Path) -> dict[str, Seed]:
    """Make the good inputs and read them once in a child; then import here what it imported.

    Raises:
        RuntimeError: a good input cannot be made or is not read.
    """
    told = folder / "prepared"
    pid = os.fork()
    if pid == 0:
        try:
            seeds = {kind.name: kind.seed() for kind in kinds}
            for kind in kinds:
                place = Place(folder / "warm" / kind.name, seeds[kind.name])
                kind.steps[0](place.opened)
                for step in kind.steps[1:]:
                    with contextlib.suppress(HedgerowError):  # some cannot be described without being told more
                        step(place.opened)
            told.write_bytes(pickle.dumps((seeds, sorted(sys.modules))))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)
    shutil.rmtree(folder / "warm", ignore_errors=True)
    if not told.exists():
        raise RuntimeError("a good input could not be made or read; see above")
    seeds, modules = pickle.loads(told.read_bytes())
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    return seeds
