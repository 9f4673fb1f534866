# SPDX-License-Identifier: Apache-2.0
"""Any program as a command: an app.toml says how it is called, what its parameters are, and what it writes.

    command = "my_slam {log} --voxel {voxel_m} -o {out}"
    log_format = "kitti"             # what {log} is written as: a format of hedgerow convert
    result = "tum"                   # what {out} is: a trajectory, or "json"
    timeout_s = 600

    [parameters]
    voxel_m = { kind = "log", low = 0.1, high = 2.0, default = 0.5 }

The result is a TUM trajectory, whose errors are computed here (trajectory_error.py), or JSON: one number, a table with
J, or a table of sums, for which `objective` is the formula (formula.py). The command is split into words as a shell
would, and the words in braces are replaced; no shell runs it. `{python}` is the Python that runs Hedgerow. It runs in
the folder of the app.toml. A crash, a time-out, no or broken output and numbers that are not finite are failures of the
run. On time-out the command ends with all that it started.
"""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from hedgerow import io
from hedgerow.apps.app import MEAN_J, Objective, Outcome, fail, outcome_of
from hedgerow.apps.drive import DriveTruth
from hedgerow.apps.formula import Formula
from hedgerow.apps.space import Setting, Space
from hedgerow.apps.trajectory_error import OBJECTIVES, trajectory_sums
from hedgerow.base.parameters import Parameters, Positive
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError, HedgerowError, HedgerowWarning, InputError, ParameterError
from hedgerow.io.formats import BY_NAME
from hedgerow.log import Log

_OWN = ("log", "out", "python")
_BRACES = re.compile(r"\{(\w+)\}")
_LARGEST_RESULT = 10_000_000  # bytes
_LAST_WORDS = 400  # bytes of what a failed command wrote


class CommandFile(Parameters):
    """What an app.toml holds."""

    command: str
    """How the program is called; {log}, {out}, {python} and the names of parameters in braces are replaced."""
    name: str = ""
    """What to call it. Default: the name of the file."""
    log_format: str = "kitti"
    """What the log is written as: a format that hedgerow convert writes, such as kitti, pcd-folder, mcap or parquet."""
    result: Literal["json", "tum"] = "json"
    """What the program writes to {out}."""
    objective: str = ""
    """Formula of J from the sums in the JSON. Default: the JSON holds J itself, and scenes are averaged."""
    timeout_s: Positive = 600.0
    """A run that takes longer is ended, and counted as failed."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """A table for each parameter: kind, and low and high, or choices."""


class CommandApp:
    """A program that is run as a command."""

    needs_ground: ClassVar[bool] = False

    def __init__(self, settings: CommandFile, folder: Path, name: str) -> None:
        """Check what the file says.

        Raises:
            InputError: a wrong parameter, a name in braces that is none, an unknown format or formula.
        """
        self.settings, self.folder, self.name = settings, folder, name
        self.space = Space.parse(settings.parameters, "parameters")
        self.objectives: Mapping[str, Objective] = self._objectives()
        self._words = self._split()
        found = BY_NAME.get(settings.log_format)
        if found is None or not found.writes:
            able = ", ".join(each.name for each in BY_NAME.values() if each.writes)
            raise InputError("log_format", f"expected one of {able}, found {settings.log_format!r}")
        self._suffix = found.suffixes[0] if found.suffixes else ""
        self._written: tuple[Log, tempfile.TemporaryDirectory[str]] | None = None

    def __reduce__(self) -> tuple[type["CommandApp"], tuple[CommandFile, Path, str]]:
        """Let it pass between processes without the log that it wrote last."""
        return CommandApp, (self.settings, self.folder, self.name)

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Write the log, unless it was the last one, run the command, and read what it wrote."""
        given = self._write(log, truth)
        with tempfile.TemporaryDirectory(prefix="hedgerow-app-") as folder:
            out = Path(folder) / f"out.{self.settings.result}"
            values = {"log": str(given), "out": str(out), "python": sys.executable} | {
                name: _text(value) for name, value in parameters.items()
            }
            words = [_BRACES.sub(lambda name: values[name[1]], word) for word in self._words]
            failure = run_command(words, self.folder, self.settings.timeout_s)
            if failure is not None:
                return failure
            if not out.is_file():
                return fail("no output", "the command ended well, but wrote nothing to {out}")
            return self._read_tum(out, truth) if self.settings.result == "tum" else self._read_json(out)

    def _objectives(self) -> Mapping[str, Objective]:
        if self.settings.result == "tum":
            if self.settings.objective:
                raise InputError("objective", "only for JSON; the errors of a trajectory are known")
            return OBJECTIVES
        if self.settings.objective:
            formula = Formula(self.settings.objective)
            return {"J": Objective(formula, meaning=formula.text)}
        return MEAN_J

    def _split(self) -> list[str]:
        try:
            words = shlex.split(self.settings.command)
        except ValueError as error:
            raise InputError("command", f"cannot be split into words: {error}") from None
        named = set(_BRACES.findall(self.settings.command))
        for name in ("log", "out"):
            if name not in named:
                raise InputError("command", f"has no {{{name}}}; the program must be told where it is")
        for name in named - set(_OWN):
            self.space.check({name: self.space.parameters[name].start} if name in self.space.parameters else {name: 0})
        for name in self.space.parameters:
            if name in _OWN:
                raise InputError(f"parameters.{name}", "this name is taken; choose another")
            if name not in named:
                raise InputError("command", f"has no {{{name}}}, so that this parameter would do nothing")
        return words

    def _write(self, log: Log, truth: Any) -> Path:
        """Return where the log is; it is written once for all settings that are tried on it."""
        if self._written is None or self._written[0] is not log:
            folder = tempfile.TemporaryDirectory(prefix="hedgerow-log-")
            trajectory = truth.poses if isinstance(truth, DriveTruth) else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)  # what a format cannot hold, for every scene
                path = Path(folder.name) / f"log{self._suffix}"
                io.write_log(log, path, format=self.settings.log_format, trajectory=trajectory)
            self._written = log, folder
        return Path(self._written[1].name) / f"log{self._suffix}"

    def _read_json(self, path: Path) -> Outcome:
        if path.stat().st_size > _LARGEST_RESULT:
            return fail("broken output", f"larger than {_LARGEST_RESULT // 1_000_000} MB")
        try:
            found: object = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            return fail("broken output", f"no JSON: {error}")
        if isinstance(found, Mapping) and self.objectives is MEAN_J:
            table = cast("Mapping[str, object]", found)
            if "J" not in table:
                return fail("broken output", "the JSON has no J")
            found = table["J"]
        if isinstance(found, float) and not math.isfinite(found):
            return fail("not finite", f"J is {found:g}")
        outcome = outcome_of(cast("object", found))
        missing = self._wanted() - outcome.sums.keys()
        if missing and not outcome.failed:
            return fail("broken output", f"the JSON has no {', '.join(sorted(missing))}")
        return outcome

    def _wanted(self) -> set[str]:
        reduce = next(iter(self.objectives.values())).reduce
        return reduce.names if isinstance(reduce, Formula) else set()

    def _read_tum(self, path: Path, truth: Any) -> Outcome:
        if not isinstance(truth, DriveTruth):
            return fail("lost", "the scene has no poses")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)
                estimated = io.read_trajectory(path)
        except HedgerowError as error:
            finite = "not finite" if re.search(r"\b(nan|inf)\b", str(error), re.IGNORECASE) else "broken output"
            return fail(finite, str(error).replace(str(path), "{out}"))
        return trajectory_sums(truth.poses, estimated)


def open_command(path: str | Path) -> CommandApp:
    """Read an app.toml.

    Raises:
        FileError: missing, no TOML, or something in it is wrong; names the field.
    """
    path = Path(path)
    settings = CommandFile.parse_from(read_toml(path, "app file"), path)
    try:
        return CommandApp(settings, path.parent.resolve(), settings.name or path.stem)
    except ParameterError as error:
        raise FileError(f"{path}: parameters.{error}") from None
    except InputError as error:
        raise FileError(f"{path}: {error}") from None


def run_command(words: list[str], folder: Path, timeout_s: float) -> Outcome | None:
    """Run a command to its end, without a shell; return why it failed, or None if it did not.

    It runs in a process group of its own, which is ended as a whole: on time-out, and whenever this call ends early.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        except OSError as error:
            return fail("crash", f"{words[0]} cannot be started ({error.strerror or error})")
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return fail("time-out", f"after {timeout_s:g} s")
        finally:
            _end_group(process)
        if code == 0:
            return None
        said.seek(max(said.seek(0, os.SEEK_END) - _LAST_WORDS, 0))
        last = said.read().decode("utf-8", "replace").strip().splitlines()
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return fail("crash", f"{ended}; {last[-1]}" if last else ended)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started, if any of it is still there."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # the group outlives its leader, if others are in it
    elif process.poll() is None:
        process.kill()
    process.wait()


def _text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
