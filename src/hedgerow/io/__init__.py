# SPDX-License-Identifier: Apache-2.0
"""Files in and out: the suffix of a path picks the module that knows the format.

A new format is one module with `read_log` and `write_log` (or `read_trajectory` and `write_trajectory`) and one row in
a table below. Modules are imported when they are first needed.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from hedgerow.arrays import Numbers
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.io.parquet import LogFile

LOG_FORMATS = {
    ".parquet": "hedgerow.io.parquet",
    ".log": "hedgerow.io.parquet",  # a folder of Parquet parts
    "": "hedgerow.io.parquet",  # likewise
}
TRAJECTORY_FORMATS = {
    ".tum": "hedgerow.io.tum",
    ".kitti": "hedgerow.io.kitti_poses",
    ".txt": "hedgerow.io.plain_poses",  # whichever of the two it is; TUM when written
}


def read_log(path: str | Path, sweeps: Numbers | None = None) -> Log:
    """Read a log from a file or folder.

    Args:
        path: for example `drive.parquet`, or the folder `drive.log`.
        sweeps: a number, a range or a list of sweep numbers; default all.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
    """
    return _module(path, LOG_FORMATS, reading=True).read_log(path, sweeps)


def write_log(log: Log, path: str | Path) -> None:
    """Write a log to a file or folder, completely or not at all; an old one is replaced.

    Raises:
        FileError: unknown kind, or the system refuses to write.
    """
    _module(path, LOG_FORMATS).write_log(log, path)


def open_log(path: str | Path) -> "LogFile":
    """Open a Parquet log to look at it, or to read it sweep by sweep.

    Raises:
        FileError: missing, damaged, or of another kind.
    """
    module = _module(path, LOG_FORMATS, reading=True)
    if not hasattr(module, "open_log"):
        raise FileError(f"{path}: only Parquet logs can be read sweep by sweep; use read_log, or convert it first")
    return module.open_log(path)


def read_trajectory(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory from a text file.

    Args:
        path: `*.tum`, `*.kitti`, or `*.txt` in one of these formats.
        times: only for KITTI, which has none: a times.txt, or (K,) times.
        rate_hz: only for KITTI: poses per second, instead of `times`.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
        InputError: KITTI poses without times, or TUM poses with.
    """
    module = _module(path, TRAJECTORY_FORMATS, reading=True)
    return module.read_trajectory(path, times=times, rate_hz=rate_hz)


def write_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory to a text file: TUM to `*.tum` and `*.txt`, KITTI to `*.kitti`; an old one is replaced.

    Raises:
        FileError: unknown kind, or the system refuses to write.
    """
    _module(path, TRAJECTORY_FORMATS).write_trajectory(trajectory, path)


def _module(path: str | Path, formats: dict[str, str], *, reading: bool = False) -> Any:
    """Return the module for a path; a folder that exists is one of Parquet parts, whatever its name."""
    path = Path(path)
    if reading and not path.exists():
        raise FileError(f"{path}: no such file or folder")
    suffix = "" if reading and path.is_dir() else path.suffix.lower()
    if suffix not in formats:
        known = ", ".join(name or "(none: a folder)" for name in formats)
        raise FileError(f"{path}: unknown kind of file, suffix {suffix or '(none)'}; known are {known}")
    return import_module(formats[suffix])
