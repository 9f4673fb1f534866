# SPDX-License-Identifier: Apache-2.0
"""Run one command many times in forked children, and end each at another moment of its work.

    python kill_driver.py FOLDER SIGNAL N_MOMENTS OUTPUT WORD...

A moment is a number of function calls, so it is the same in every run. The command runs in FOLDER; OUTPUT is what it
makes there. `api NAME` instead of a command calls a function of the package, which leaves SIGTERM as it is: there it
kills. One line for each thing that is wrong, none if all is well.
"""

import hashlib
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import hedgerow as hr
from hedgerow.base.atomic import atomic_file
from hedgerow.cli import main

CALLS: dict[str, Callable[[Path], object]] = {
    "write_log": lambda path: hr.write_log(hr.read_log("drive.parquet"), path),
    "write_folder": lambda path: hr.write_log(hr.read_log("drive.parquet"), path, format="kitti"),
    "save": lambda path: hr.load_world("site.world").save(path),
    "write_trajectory": lambda path: hr.io.write_trajectory(
        hr.Trajectory.from_poses([0.0, 1.0], [hr.Pose(), hr.Pose()]), path
    ),
}


def in_child(words: list[str], at_call: int | None, number: int) -> tuple[int, str, int]:
    """Run the command, with a signal to itself at a call; return exit code (or minus the signal), stderr, calls."""
    counted, errors = Path(".calls"), Path(".stderr")
    pid = os.fork()
    if pid == 0:
        with errors.open("w") as stderr, Path(os.devnull).open("w") as stdout:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            os._exit(_run(words, at_call, number, counted))
    status = os.waitpid(pid, 0)[1]
    text = errors.read_text()
    calls = int(counted.read_text()) if counted.exists() else 0
    for each in (errors, counted):
        each.unlink(missing_ok=True)
    return os.waitstatus_to_exitcode(status), text, calls


def _run(words: list[str], at_call: int | None, number: int, counted: Path) -> int:
    sys.argv = ["hedgerow", *words]
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at_call:
            os.kill(os.getpid(), number)

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
    counted.write_text(str(calls))
    return code


def digest(path: Path) -> str:
    """Return a sum over all bytes and names of a file or folder; empty if there is none."""
    if not path.exists():
        return ""
    total = hashlib.sha256()
    for each in [path, *sorted(path.rglob("*"))]:
        total.update(str(each.relative_to(path.parent)).encode() + (each.read_bytes() if each.is_file() else b""))
    return total.hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_moment(say: Callable[[str], None], words: list[str], output: Path, at_call: int, number: int) -> None:
    """End the command at one moment and look at what it left."""
    there, before = digest(output), {each.name for each in Path().iterdir()}
    code, stderr, _ = in_child(words, at_call, number)
    left = {each.name for each in Path().iterdir()} - before - {output.name}
    hidden = {name for name in left if name.startswith(".") and name.endswith(".part")}
    if number == signal.SIGKILL or words[0] == "api":
        if left - hidden:
            say(f"left {sorted(left - hidden)}")
        with atomic_file("next.txt") as temporary:
            temporary.write_text("the next one that writes here")
        Path("next.txt").unlink()
        if any(each.name in hidden for each in Path().iterdir()):
            say(f"{sorted(hidden)} is still there after the next run")
    # So late that all was done is well too.
    elif code != 0 and (code != 128 + number or left or not stderr.endswith("hedgerow: told to end\n")):
        say(f"exit code {code}, left {sorted(left)}, said {stderr!r}")
    if "Traceback" in stderr:
        say(stderr)
    if digest(output) not in (there, WHOLE):
        say(f"{output} is neither the old one nor a whole new one")


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    ending, n_moments = signal.Signals[sys.argv[2]], int(sys.argv[3])
    made, command = Path(sys.argv[4]), sys.argv[5:]
    failed, said, n_calls = in_child(command, None, ending)
    WHOLE = digest(made)
    if failed or not WHOLE:
        print(f"undisturbed: exit code {failed}, {said}")
    for moment in range(n_moments):
        if moment % 2:
            remove(made)  # the other times there is an old one
        call = 1 + n_calls * (2 * moment + 1) // (2 * n_moments)
        where = f"{ending.name} at call {call:,} of {n_calls:,}"
        check_moment(lambda text, where=where: print(f"{where}: {text}"), command, made, call, ending)
        if not made.exists():
            in_child(command, None, ending)
