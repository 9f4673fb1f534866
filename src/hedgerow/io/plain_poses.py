# SPDX-License-Identifier: Apache-2.0
"""Trajectories in `*.txt`, a suffix that TUM and KITTI share: 12 numbers in the first line make it KITTI."""

from pathlib import Path

from numpy.typing import ArrayLike

from hedgerow.frames import Trajectory
from hedgerow.io import kitti_poses, tum
from hedgerow.io.pose_text import read_rows


def read_trajectory(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory in the format that the first line has; see `tum` and `kitti_poses`."""
    if is_kitti(path):
        return kitti_poses.read_trajectory(path, times=times, rate_hz=rate_hz)
    return tum.read_trajectory(path, times=times, rate_hz=rate_hz)


def write_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory as TUM, which keeps the times."""
    tum.write_trajectory(trajectory, path)


def is_kitti(path: str | Path) -> bool:
    """Tell whether the first line with poses has 12 numbers."""
    return len(read_rows(path, None, "poses").words[0]) == 12
