# SPDX-License-Identifier: Apache-2.0
"""Files in and out: one way to open any log, one way to write any, one table of formats.

    source = hr.open_log("2011_09_26_drive_0005_sync")       # LogSource (source.py): sensor, limits, sweeps, ...
    for number, log in source.iter_sweeps(): ...             # one sweep in memory at a time
    log = hr.read_log("drive.pcap", trajectory="poses.tum")  # everything at once; options in options.py
    hr.write_log(log, "drive.laz")                           # or, sweep by sweep:
    with hr.io.open_sink("drive.laz") as sink: sink.append(log)

The suffix of a file, or the content of a folder, picks the format (formats.py). A new format is

1. a row in `formats.FORMATS`: name, one line about it, module, suffixes, folder markers (globs), first bytes, the
   fields of `options.ReadOptions` that it takes, the optional packages it imports (also in pyproject's extras);
2. a module with `open_log(path, options) -> LogSource` to read it: derive from `source.SweepSource`, hand its
   `Settings` to it, and implement `sweeps` and `iter_sweeps(sweeps)`. Sweeps are logs in the map frame, ids from
   `source.pulse_ids`; `beams/motion.py` turns sensor-frame points, times and a trajectory into beams, `recovery/` works
   out missing returns. What is wrong with a file raises FileError, one sentence;
3. `log_sink(path, trajectory) -> LogSink` in the same or another module to write it: `append` one sweep at a time,
   everything under `base/atomic.py`. `trajectory` is T_map_sensor or None;
4. a row in tests/io/test_fuzz.py, and a round trip through an independent reader.

Modules are imported when they are first needed.
"""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from hedgerow.base.arrays import Numbers
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.formats import format_of, module_of
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.io.source import LogSink, LogSource

TRAJECTORY_FORMATS = {
    ".tum": "tum",
    ".kitti": "kitti",
    ".txt": "plain",  # whichever of the two it is; TUM when written
}


def open_log(path: str | Path, *, format: str | None = None, **options: Any) -> "LogSource":
    """Open a log of any format to look at it, or to read it sweep by sweep.

    Args:
        path: for example `drive.parquet`, or a KITTI drive folder.
        format: name of the format (`hedgerow convert --formats`). Default: told by suffix or content.
        options: what the files do not say themselves; see `options.ReadOptions`. Each format takes some of them.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
        InputError: an option that this format does not take, or a wrong value.
        MissingPackage: the format needs a package that is not installed.
    """
    found = format_of(path, format, reading=True)
    module = module_of(found)
    from hedgerow.io.options import read_options

    return getattr(module, found.opener)(path, read_options(options, found.options, found.name))


def read_log(path: str | Path, sweeps: Numbers | None = None, *, format: str | None = None, **options: Any) -> Log:
    """Read a log from a file or folder into memory.

    Args:
        path: for example `drive.parquet`, or the folder `drive.log`.
        sweeps: a number, a range or a list of sweep numbers; default all.
        format, options: as in `open_log`.

    Raises:
        As `open_log`.
    """
    return open_log(path, format=format, **options).read(sweeps)


def open_sink(path: str | Path, *, format: str | None = None, trajectory: Trajectory | None = None) -> "LogSink":
    """Prepare to write a log sweep by sweep; it appears when the with block ends well, and only then.

    Args:
        path: the file or folder to make; an old one is replaced.
        format: name of the format. Default: by the suffix.
        trajectory: T_map_sensor, for formats that store sweeps in the frame of the sensor. Default: the frame of each
            sweep has the axes of the map and lies where the sweep began.

    Raises:
        FileError: unknown kind.
        MissingPackage: the format needs a package that is not installed.
    """
    return module_of(format_of(path, format, reading=False)).log_sink(path, trajectory)


def write_log(log: Log, path: str | Path, *, format: str | None = None, trajectory: Trajectory | None = None) -> None:
    """Write a log to a file or folder, completely or not at all; an old one is replaced.

    Args:
        log: what to write.
        path, format, trajectory: as in `open_sink`.

    Raises:
        FileError: unknown kind, or the system refuses to write.
    """
    with open_sink(path, format=format, trajectory=trajectory) as sink:
        sink.append(log)


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
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    found: Trajectory = _trajectory_function("read", path)(path, times=times, rate_hz=rate_hz)
    return replace(found, source=str(path))


def write_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory to a text file: TUM to `*.tum` and `*.txt`, KITTI to `*.kitti`; an old one is replaced.

    Raises:
        FileError: unknown kind, or the system refuses to write.
    """
    _trajectory_function("write", Path(path))(trajectory, path)


def _trajectory_function(verb: str, path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix not in TRAJECTORY_FORMATS:
        known = ", ".join(TRAJECTORY_FORMATS)
        raise FileError(f"{path}: unknown kind of file, suffix {suffix or '(none)'}; known are {known}")
    return getattr(import_module("hedgerow.io.trajectory"), f"{verb}_{TRAJECTORY_FORMATS[suffix]}")
