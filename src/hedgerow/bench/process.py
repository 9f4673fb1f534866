# SPDX-License-Identifier: Apache-2.0
"""A step in a process of its own, so that its memory is its own; seconds, and the peaks of memory, come back.

    python -m hedgerow.bench.process ANSWER.json '{"step": "learn", "arguments": {"log": ...}}'

The answer comes in a file, since standard output is the user's. Progress is shown as the verbs show it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hedgerow.base.interrupt import end_like_interrupt
from hedgerow.errors import FileError, HedgerowError

_END_S = 20
"""How long a step that is interrupted may take to end its workers."""


def measure(step: str, arguments: Mapping[str, Any], *, threads: int | None = None) -> dict[str, Any]:
    """Run a step of `steps.py` in a process of its own.

    Args:
        step: its name.
        arguments: plain values, and paths.
        threads: of the process, and of each of its workers. Default: as many as there are cores, shared out.

    Returns:
        What the step returns, and `own_mb`, the peak of the process's memory, None where the system does not tell.

    Raises:
        FileError: the step refused, or ended without an answer; says why.
    """
    spec = json.dumps({"step": step, "arguments": dict(arguments)}, default=str)
    environment = {**os.environ, **({} if threads is None else {"HEDGEROW_THREADS": str(threads)})}
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        answer = Path(folder) / "answer.json"
        words = [sys.executable, "-m", "hedgerow.bench.process", str(answer), spec]
        # In a session of its own: Ctrl-C comes once, from here, and not twice.
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            code = process.wait()
        except BaseException:
            _end(process)
            raise
        if code != 0 or not answer.exists():
            killed = -code == getattr(signal, "SIGKILL", 9)
            why = "was killed, most likely for want of memory" if killed else f"ended with {code}"
            raise FileError(f"{step}: the process that measures it {why}; the same command goes on from there")
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "refused" in found:
        raise FileError(f"{step}: {found['refused']}")
    return found


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a step as Ctrl-C does, so that its workers end too."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def peak_mb(pid: int | None = None) -> float | None:
    """Return the largest memory that this process, or another one, ever held [MB]; None where that is not told."""
    try:
        # Not getrusage where this is there: a new process inherits the peak of the one that it comes from.
        lines = Path(f"/proc/{'self' if pid is None else pid}/status").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")), None)
    except OSError:
        return _rusage_mb() if pid is None else None


def processor_s(pids: Sequence[int] = ()) -> float:
    """Return the processor time that all threads of this process, and of others, have taken so far [s].

    Beside other programs it tells what work costs; the time on the clock then tells how busy the machine was.
    """
    total_s = time.process_time()
    for pid in pids:
        with suppress(OSError):
            # Behind the name, which may have blanks: user and system time are the 12th and 13th of what follows.
            words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total_s += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return total_s


def _rusage_mb() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main() -> None:
    """Do what the command line says, and write the answer."""
    from hedgerow.bench.steps import STEPS

    end_like_interrupt()
    path, spec = Path(sys.argv[1]), json.loads(sys.argv[2])
    try:
        found = STEPS[spec["step"]](**spec["arguments"])
        found["own_mb"] = peak_mb()
    except HedgerowError as error:
        found = {"refused": str(error)}
    except KeyboardInterrupt:
        sys.exit(130)  # whoever started this says it
    path.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
