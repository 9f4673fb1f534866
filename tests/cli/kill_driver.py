# SPDX-License-Identifier: Apache-2.0
"""Run one command many times in forked children, and end each at another moment of its work.

    python kill_driver.py FOLDER SIGNAL N_MOMENTS OUTPUT WORD...

A moment is a number of function calls, so it is the same in every run. One in eight is anywhere in a command that still
has to import its modules, which is most of its calls. For the others they are imported before: a quarter is anywhere,
and the rest between the beginning and the end of writing.

The command runs in FOLDER; OUTPUT is what it makes there. `NAME/` is a folder of outputs, each of which is the old one
or a whole new one. What `--live` records is whole if a drive of fewer sweeps would have recorded it; SIGTERM must not
lose it. A table of `risk` is whole if all its rows are right; the next run adds those that are missing. `api NAME`
instead of a command calls a function of the package, which leaves SIGTERM as it is: there it kills. One line for each
thing that is wrong, none if all is well.
"""

import hashlib
import inspect
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType

import hedgerow as hr
from hedgerow.base import atomic
from hedgerow.base.atomic import atomic_file
from hedgerow.cli import main
from hedgerow.risk.table import read_table

WORK_FOLDER = inspect.unwrap(atomic._work_folder).__code__
CALLS: dict[str, Callable[[Path], object]] = {
    "write_log": lambda path: hr.write_log(hr.read_log("drive.parquet"), path),
    "write_folder": lambda path: hr.write_log(hr.read_log("drive.parquet"), path, format="kitti"),
    "save": lambda path: hr.load_world("site.world").save(path),
    "write_trajectory": lambda path: hr.write_trajectory(
        hr.Trajectory.from_poses([0.0, 1.0], [hr.Pose(), hr.Pose()]), path
    ),
}


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    code: int
    """Exit code, or minus the signal that killed it."""
    stderr: str
    n_calls: int = 0
    first_write: int = 0
    """The call at which the first hidden folder is made."""
    last_write: int = 0
    """The call at which the last one is gone."""
    modules: tuple[str, ...] = ()
    """What it imported."""


def in_child(words: list[str], at_call: int | None, number: int) -> Ran:
    """Run the command, with a signal to itself at a call."""
    counted, errors = Path(".calls"), Path(".stderr")
    pid = os.fork()
    if pid == 0:
        with errors.open("w") as stderr, Path(os.devnull).open("w") as stdout:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            os._exit(_run(words, at_call, number, counted))
    status = os.waitpid(pid, 0)[1]
    text = errors.read_text()
    calls = json.loads(counted.read_text()) if counted.exists() else ()
    for each in (errors, counted):
        each.unlink(missing_ok=True)
    return Ran(os.waitstatus_to_exitcode(status), text, *calls)


def _run(words: list[str], at_call: int | None, number: int, counted: Path) -> int:
    sys.argv = ["hedgerow", *words]
    calls = first_write = last_write = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls, first_write, last_write
        if event == "return":  # no signal comes there, and what is raised would pass by the finally of a generator
            return
        calls += 1
        if calls == at_call:
            os.kill(os.getpid(), number)
        if frame.f_code is WORK_FOLDER:
            first_write, last_write = first_write or calls, calls

    sys.setprofile(count)
    try:
        if words[0] == "api":
            CALLS[words[1]](Path(words[2]))
        else:
            main()
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.setprofile(None)
    sys.stderr.flush()
    counted.write_text(json.dumps([calls, first_write, last_write, list(sys.modules)]))
    return code


def digest(path: Path) -> str:
    """Return a sum over all bytes and names of a file or folder; empty if there is none."""
    if not path.exists():
        return ""
    total = hashlib.sha256()
    for each in [path, *sorted(path.rglob("*"))]:
        total.update(str(each.relative_to(path.parent)).encode() + (each.read_bytes() if each.is_file() else b""))
    return total.hexdigest()


def rows_of(path: Path) -> set[str]:
    """Return the rows of a table of runs, without the seconds that they took."""
    return {json.dumps(row) for row in read_table(path).to_arrow().drop_columns("seconds").to_pylist()}


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


class Outputs:
    """What a command makes, and what it is when it is whole."""

    def __init__(self, words: list[str], name: str) -> None:
        """Run the command undisturbed."""
        self.words, self.made, self.in_folder = words, Path(name), name.endswith("/")
        self.is_live, self.is_table = "--live" in words, words[0] == "risk"
        self.ran = self.run()
        self.whole = {path: {found} for path, found in self.now().items()}
        if not self.whole:
            raise SystemExit(f"{name} was not made")
        self._kept = Path(tempfile.mkdtemp()) / self.made.name
        copy(self.made, self._kept)

    def run(self) -> Ran:
        """Run the command undisturbed."""
        ran = in_child(self.words, None, signal.SIGTERM)
        if ran.code or not ran.first_write:
            raise SystemExit(f"undisturbed: exit code {ran.code}, {ran.stderr}")
        return ran

    def import_modules(self) -> None:
        """Import here what the command imports, so that the next runs need not."""
        for module in self.ran.modules:
            with suppress(ImportError):
                import_module(module)
        self.ran = self.run()

    def put_back(self) -> None:
        """Put the outputs of the undisturbed run where they were."""
        remove(self.made)
        copy(self._kept, self.made)

    def end(self) -> None:
        """Remove what is no longer needed."""
        shutil.rmtree(self._kept.parent)

    def take_shorter(self) -> None:
        """Take what fewer sweeps make for whole, too."""
        at = self.words.index("--sweeps") + 1
        for n in range(1, int(self.words[at])):
            in_child([*self.words[:at], str(n), *self.words[at + 1 :]], None, signal.SIGTERM)
            for path, found in self.now().items():
                self.whole[path].add(found)

    def now(self) -> dict[Path, str]:
        """Return the outputs that are there, with their digests."""
        if not self.in_folder:
            return {self.made: digest(self.made)} if self.made.exists() else {}
        return {path: digest(path) for path in self.made.glob("*") if not path.name.startswith(".")}

    def around(self) -> set[Path]:
        """Return all that is there besides."""
        beside = {*Path().iterdir(), *(self.made.iterdir() if self.in_folder and self.made.exists() else ())}
        return beside - {self.made} - self.now().keys()

    def check(self, before: dict[Path, str], say: Callable[[str], None]) -> None:
        """Say which output is neither what it was nor whole."""
        now = self.now()
        for path in before.keys() | now.keys():
            if self.is_table and path in now and rows_of(path) <= rows_of(self._kept):
                continue
            if path not in now or now[path] not in {before.get(path), *self.whole.get(path, ())}:
                say(f"{path} is neither the old one nor a whole new one")


def check_moment(say: Callable[[str], None], outputs: Outputs, at_call: int, number: int) -> None:
    """End the command at one moment and look at what it left."""
    before, beside = outputs.now(), outputs.around()
    ran = in_child(outputs.words, at_call, number)
    left = outputs.around() - beside
    hidden = {path for path in left if path.name.startswith(".") and path.name.endswith(".part")}
    if number == signal.SIGKILL or outputs.words[0] == "api":
        if left - hidden:
            say(f"left {sorted(left - hidden)}")
        for folder in {Path(), *(path.parent for path in hidden)}:
            with atomic_file(folder / "next.txt") as temporary:
                temporary.write_text("the next one that writes here")
            (folder / "next.txt").unlink()
        if any(path.exists() for path in hidden):
            say(f"{sorted(hidden)} is still there after the next run")
    # So late that all was done is well too.
    elif ran.code != 0 and (ran.code != 128 + number or left or not ran.stderr.endswith("hedgerow: told to end\n")):
        say(f"exit code {ran.code}, left {sorted(left)}, said {ran.stderr!r}")
    if "Traceback" in ran.stderr:
        say(ran.stderr)
    if outputs.is_live and number == signal.SIGTERM and at_call > outputs.ran.first_write and not outputs.now():
        say("the record is lost")
    outputs.check(before, say)


def spread(first: int, last: int, n: int) -> list[int]:
    """Return n numbers, evenly spread."""
    return [first + (last - first) * (2 * k + 1) // (2 * n) for k in range(n)]


def check_moments(outputs: Outputs, calls: list[int], number: signal.Signals) -> None:
    """End the command at each of some calls; every other time there is no old output."""
    for moment, call in enumerate(calls):
        if moment % 2:
            remove(outputs.made)
        else:
            outputs.put_back()
        where = f"{number.name} at call {call:,} of {outputs.ran.n_calls:,}"
        check_moment(lambda text, where=where: print(f"{where}: {text}"), outputs, call, number)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    ending, n_moments, command = signal.Signals[sys.argv[2]], int(sys.argv[3]), sys.argv[5:]
    outputs = Outputs(command, sys.argv[4])
    if outputs.is_live:
        outputs.take_shorter()
    n_first, n_anywhere = -(-n_moments // 8), n_moments // 4
    check_moments(outputs, spread(1, outputs.ran.n_calls, n_first), ending)
    outputs.import_modules()
    ran, n_writing = outputs.ran, n_moments - n_first - n_anywhere
    calls = spread(1, ran.n_calls, n_anywhere) + spread(ran.first_write, ran.last_write, n_writing)
    check_moments(outputs, calls, ending)
    outputs.end()
