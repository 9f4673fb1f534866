# SPDX-License-Identifier: Apache-2.0
"""Copy a log from one format to another, sweep by sweep, in bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.base.arrays import Numbers
from hedgerow.base.progress import counted, one
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io import open_sink
from hedgerow.io.source import LogSource, SweepSource, Written


@dataclass(frozen=True, slots=True)
class Converted:
    """What was copied."""

    n_sweeps: int
    written: Written
    """Beams, returns and misses that were read, and what the format of the target could not hold."""
    metadata: dict[str, Any]
    """That of the log read, for example how its missing returns were recovered."""
    n_left_out: int
    """Points that had no finite place."""


def convert(
    source: LogSource,
    path: str | Path,
    *,
    format: str | None = None,
    sweeps: Numbers | None = None,
    trajectory: Trajectory | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Converted:
    """Write a log that was opened with `open_log` to another file, completely or not at all.

    Args:
        source: what to read.
        path: what to write; an old one is replaced.
        format: name of the format to write. Default: by the suffix of `path`.
        sweeps: a number, a range or a list of sweep numbers; default all.
        trajectory: T_map_sensor, for formats that store sweeps in the frame of the sensor. Default: the source's own.
        progress: called with the number of sweeps done.
        options: how to write it; see `options.WriteOptions`.

    Raises:
        InputError: an option that the format does not take.
        FileError: the source is damaged, has none of the sweeps, or the target cannot be written.
    """
    if Path(path).resolve() == source.path.resolve():
        raise FileError(f"{path}: is what is being read; write to another name")
    n_sweeps = 0
    with open_sink(path, format=format, trajectory=trajectory or source.trajectory, **options) as sink:
        for _, log in counted(source.iter_sweeps(sweeps), progress, one):
            sink.append(log)
            n_sweeps += 1
        if n_sweeps == 0:
            raise FileError(f"{source.path}: holds none of the sweeps asked for; nothing was written")
    left_out = source.n_left_out if isinstance(source, SweepSource) else 0
    return Converted(n_sweeps, sink.written, source.metadata, left_out)
