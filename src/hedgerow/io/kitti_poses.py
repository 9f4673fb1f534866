# SPDX-License-Identifier: Apache-2.0
"""KITTI odometry poses: text lines of 12 numbers, the upper 3 x 4 part of each pose matrix, row by row.

The files hold no times: they come from a `times.txt` (one stamp in seconds per line) or from a fixed rate. Poses are
taken as they are. Those of the KITTI benchmark itself are of the left camera (z forward), not of the lidar: bring
them to REP 103 axes with the calibration before use.
"""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays, rotation
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory, poses_from_matrices
from hedgerow.io.atomic import atomic_file
from hedgerow.io.pose_text import read_rows, stamp_text


def read_trajectory(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory.

    Args:
        path: the poses.
        times: a `times.txt`, or (K,) times (floats are seconds, integers nanoseconds).
        rate_hz: poses per second, the first at time 0; instead of `times`.

    Raises:
        FileError: not readable, or a line that is no pose; names the line.
        InputError: not exactly one of `times` and `rate_hz`, or as many times as there are poses.
    """
    if (times is None) == (rate_hz is None):
        raise InputError(f"{path}", "KITTI poses hold no times; give either times= (times.txt or array) or rate_hz=")
    rows = read_rows(path, 12, "a 3 x 4 matrix, row by row")
    matrices = rows.numbers(0, 12).reshape(-1, 3, 4)
    time_ns = _times_ns(times, rate_hz, len(matrices))
    if len(time_ns) != len(matrices):
        raise InputError(f"{path}", f"{len(matrices)} poses but {len(time_ns)} times")
    with rows.naming_lines():
        position_m, quaternion = poses_from_matrices("matrix", matrices)
        return Trajectory(time_ns, position_m, quaternion)


def write_trajectory(trajectory: Trajectory, path: str | Path, *, times: str | Path | None = None) -> None:
    """Write the poses, and the stamps to a second file `times` if that is given; old files are replaced.

    Raises:
        FileError: cannot be written.
    """
    turn = rotation.to_matrix(trajectory.quaternion_xyzw)
    matrices = np.concatenate([turn, trajectory.position_m[:, :, None]], axis=2).reshape(-1, 12)
    with atomic_file(path) as temporary:
        temporary.write_text("".join(" ".join(map(repr, row)) + "\n" for row in matrices.tolist()), encoding="utf-8")
    if times is not None:
        with atomic_file(times) as temporary:
            stamps = map(stamp_text, trajectory.time_ns.tolist())
            temporary.write_text("".join(stamp + "\n" for stamp in stamps), encoding="utf-8")


def _times_ns(times: str | Path | ArrayLike | None, rate_hz: float | None, n_poses: int) -> NDArray[np.int64]:
    if rate_hz is not None:
        if not 0 < rate_hz < np.inf:
            raise InputError("rate_hz", f"expected a finite number above 0, found {rate_hz}")
        return arrays.as_time_ns("rate_hz", np.arange(n_poses) / rate_hz, n_poses)
    if isinstance(times, str | Path):
        rows = read_rows(times, 1, "a time stamp in seconds")
        stamps = rows.stamps_ns()
        stuck = np.flatnonzero(stamps[1:] <= stamps[:-1])
        if len(stuck):
            raise FileError(
                f"{times}, line {rows.lines[stuck[0] + 1]}: the time stamp is not later than the one before"
            )
        return stamps
    given = np.asarray(times)
    return arrays.as_time_ns("times", given, given.size)
