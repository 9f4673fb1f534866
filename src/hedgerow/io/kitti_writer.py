# SPDX-License-Identifier: Apache-2.0
"""Write a log as a SemanticKITTI sequence: velodyne/*.bin, labels/*.label, poses.txt, times.txt, calib.txt.

Each sweep becomes a motion-compensated cloud, points in KITTI's order. The format has no missing returns and no beam
origins: what is lost is recovered when it is read back, if the sensor is one that shows its firings.
"""

from pathlib import Path

import numpy as np

from hedgerow.frames import Pose, Trajectory
from hedgerow.io.folder_writer import FolderWriter
from hedgerow.io.pose_text import stamp_text
from hedgerow.io.sweep_frame import FramedSweep, by_laser
from hedgerow.log import Log

# The camera's axes (x right, y down, z forward) seen from the lidar's (x forward, y left, z up).
_T_CAM_VELO = Pose.from_matrix([[0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0]])


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "KittiWriter":
    """Prepare to write a sequence folder."""
    return KittiWriter(path, trajectory)


class KittiWriter(FolderWriter):
    """Appends sweeps to a sequence folder."""

    kind = "kitti"
    names = ("velodyne", "labels", "poses.txt", "times.txt", "calib.txt")

    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: FramedSweep) -> None:
        """Write one sweep."""
        order = by_laser(cloud.points, sweep.beams.ring[cloud.pulse], cloud.height)
        hit = sweep.returns.hit
        intensity = np.zeros(len(order), "<f4") if sweep.returns.intensity is None else sweep.returns.intensity[hit]
        values = np.column_stack([cloud.points, np.nan_to_num(intensity)])[order].astype("<f4")
        _write(folder / "velodyne" / f"{number:06d}.bin", values.tobytes())
        if sweep.returns.label is not None:
            label = sweep.returns.label[hit][order].astype("<u4")
            _write(folder / "labels" / f"{number:06d}.label", label.tobytes())

    def finish(self, folder: Path) -> None:
        """Write poses, times and calibration."""
        inverse = _T_CAM_VELO.inverse()
        poses = "".join(_line(_T_CAM_VELO @ pose @ inverse) for pose in self.poses)
        (folder / "poses.txt").write_text(poses, encoding="utf-8")
        (folder / "times.txt").write_text("".join(f"{stamp_text(each)}\n" for each in self.times_ns), encoding="utf-8")
        (folder / "calib.txt").write_text("Tr: " + _line(_T_CAM_VELO), encoding="utf-8")


def _line(pose: Pose) -> str:
    return " ".join(map(repr, pose.matrix()[:3].ravel().tolist())) + "\n"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
