# SPDX-License-Identifier: Apache-2.0
"""TUM trajectories: text lines `timestamp tx ty tz qx qy qz qw` in seconds and metres, `#` for comments.

The format of the TUM RGB-D benchmark (Sturm et al., 2012), read by evo and most SLAM tools. Stamps are kept to the
nanosecond, numbers to the last bit.
"""

from pathlib import Path

from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.io.atomic import atomic_file
from hedgerow.io.pose_text import read_rows, stamp_text

_COLUMNS = "timestamp tx ty tz qx qy qz qw"


def read_trajectory(path: str | Path, *, times: object = None, rate_hz: object = None) -> Trajectory:
    """Read a trajectory.

    Raises:
        FileError: not readable, or a line that is no pose; names the line.
        InputError: times or a rate are given, which the file has itself.
    """
    if times is not None or rate_hz is not None:
        raise InputError(f"{path}", "TUM poses have their own times; leave out times= and rate_hz=")
    rows = read_rows(path, 8, _COLUMNS)
    time_ns = rows.stamps_ns()
    numbers = rows.numbers(1, 8)
    with rows.naming_lines():
        return Trajectory(time_ns, numbers[:, :3], numbers[:, 3:])


def write_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory, replacing an old file.

    Raises:
        FileError: cannot be written.
    """
    lines = [f"# {_COLUMNS}"]
    poses = zip(trajectory.position_m.tolist(), trajectory.quaternion_xyzw.tolist(), strict=True)
    for time_ns, (position_m, quaternion) in zip(trajectory.time_ns.tolist(), poses, strict=True):
        lines.append(" ".join([stamp_text(time_ns), *map(repr, position_m + quaternion)]))
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
