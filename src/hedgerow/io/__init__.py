# SPDX-License-Identifier: Apache-2.0
"""Files in and out: one way to open any log, one way to write any, one table of formats.

    source = hr.open_log("2011_09_26_drive_0005_sync")       # LogSource (source.py): sensor, limits, sweeps, ...
    for number, log in source.iter_sweeps(): ...             # one sweep in memory at a time
    log = hr.read_log("drive.pcap", trajectory="poses.tum")  # everything at once; options in options.py
    hr.write_log(log, "drive.laz")                           # or, sweep by sweep:
    with hedgerow.io.open_sink("drive.laz") as sink: sink.append(log)

The suffix of a file, or the content of a folder, picks the format (formats.py). A new format is

1. a row in `formats.FORMATS`: name, one line about it, where its reader and its writer are, suffixes, folder markers
   (globs), first bytes, the fields of `options.ReadOptions` and `options.WriteOptions` that it takes, the optional
   packages that it imports (also in pyproject's extras);
2. a module with `open_log(path, options) -> LogSource` to read it: derive from `source.SweepSource`, hand its
   `Settings` to it, and implement `sweeps` and `iter_sweeps(sweeps)`. Sweeps are logs in the map frame, ids from
   `source.pulse_ids`; `beams/motion.py` turns sensor-frame points, times and a trajectory into beams, `recovery/` works
   out missing returns. What is wrong with a file raises FileError, one sentence;
3. `open_sink(path, trajectory) -> LogSink` in the same module to write it: `append` one sweep at a time, everything
   under `base/atomic.py`. `trajectory` is T_map_sensor or None. If its row names any, WriteOptions come third;
4. a row in tools/fuzzing/kinds.py, and a round trip through an independent reader.

Modules of formats are imported when they are first needed. Trajectories in text files: trajectory.py.
"""

from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from hedgerow.base.arguments import require_kind
from hedgerow.base.arrays import Numbers
from hedgerow.base.places import Address, as_place
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.formats import BY_NAME, Format, format_of, load_reader, load_writer
from hedgerow.io.trajectory import TRAJECTORY_FORMATS, read_trajectory, write_trajectory
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.io.source import LogSink, LogSource

__all__ = [
    "TRAJECTORY_FORMATS",
    "open_log",
    "open_sink",
    "read_log",
    "read_trajectory",
    "write_log",
    "write_trajectory",
]


def open_log(path: str | Path, *, format: str | None = None, **options: Any) -> "LogSource":
    """Open a log of any format to look at it, or to read it sweep by sweep.

    Args:
        path: for example `drive.parquet`, or a KITTI drive folder; or the address of a Parquet log
            (`s3://bucket/drive.parquet`).
        format: name of the format (`hedgerow convert --formats`). Default: told by suffix or content.
        options: what the files do not say themselves; see `options.ReadOptions`. Each format takes some of them.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
        InputError: an option that this format does not take, or a wrong value.
        MissingPackage: the format needs a package that is not installed.
    """
    path, found = _place_and_format(path, format, reading=True)
    read = load_reader(found)
    from hedgerow.io.options import read_options  # pydantic takes its time

    return read(path, read_options(options, found.options, found.name))


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


def open_sink(
    path: str | Path, *, format: str | None = None, trajectory: Trajectory | None = None, **options: Any
) -> "LogSink":
    """Prepare to write a log sweep by sweep; it appears when the with block ends well, and only then.

    Args:
        path: the file or folder to make; an old one is replaced. Or an address, for Parquet.
        format: name of the format. Default: by the suffix.
        trajectory: T_map_sensor, for formats that store sweeps in the frame of the sensor. Default: the frame of each
            sweep has the axes of the map and lies where the sweep began.
        options: see `options.WriteOptions`. Each format takes some of them, most none.

    Raises:
        FileError: unknown kind.
        InputError: an option that this format does not take, or a wrong value.
        MissingPackage: the format needs a package that is not installed.
    """
    require_kind("trajectory", trajectory, (Trajectory, NoneType), "a Trajectory; hr.read_trajectory reads one")
    path, found = _place_and_format(path, format, reading=False)
    write = load_writer(found)
    from hedgerow.io.options import write_options  # pydantic takes its time

    checked = write_options(options, found.write_options, found.name)
    return write(path, trajectory, checked) if found.write_options else write(path, trajectory)


def write_log(
    log: Log, path: str | Path, *, format: str | None = None, trajectory: Trajectory | None = None, **options: Any
) -> None:
    """Write a log to a file or folder, completely or not at all; an old one is replaced.

    Args:
        log: what to write.
        path, format, trajectory, options: as in `open_sink`.

    Raises:
        FileError: unknown kind, or the system refuses to write.
        InputError: an option that this format does not take, or a log that it cannot hold.
    """
    require_kind("log", log, Log, "a Log")
    with open_sink(path, format=format, trajectory=trajectory, **options) as sink:
        sink.append(log)


def _place_and_format(path: str | Path, format: str | None, *, reading: bool) -> tuple[str | Path, Format]:
    """Return where a log is and its format; at an address it must be Parquet, the others are read by path."""
    place = as_place(path)
    if not isinstance(place, Address):
        return path, format_of(path, format, reading=reading)
    parquet = BY_NAME["parquet"]
    if format not in (None, parquet.name) or place.suffix.lower() not in parquet.suffixes:
        done = "read from" if reading else "written to"
        raise FileError(f"{place}: only Parquet logs are {done} an address; copy it, or use hedgerow convert")
    if reading and not place.exists():
        raise FileError(f"{place}: no such file or folder")
    return place, parquet
