# SPDX-License-Identifier: Apache-2.0
"""Write a log as a folder of PCD files, one per sweep in the frame of the sensor, with poses.tum and hedgerow.json."""

from pathlib import Path

import numpy as np

from hedgerow.frames import Trajectory
from hedgerow.io import tum
from hedgerow.io.columns import TYPES, Columns, to_rows
from hedgerow.io.folder_writer import FolderWriter
from hedgerow.io.pcd import pcd_header
from hedgerow.io.sweep_frame import FramedSweep
from hedgerow.log import Log


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "PcdFolderWriter":
    """Prepare to write a folder of PCD files."""
    return PcdFolderWriter(path, trajectory)


class PcdFolderWriter(FolderWriter):
    """Appends sweeps to a folder of PCD files."""

    kind = "pcd-folder"
    names = ("*.pcd", "poses.tum")

    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: FramedSweep) -> None:
        """Write one sweep."""
        hit = sweep.returns.hit
        columns: Columns = {axis: cloud.points[:, k] for k, axis in enumerate("xyz")}
        for name in ("intensity", "label"):
            if getattr(sweep.returns, name) is not None:
                columns[name] = getattr(sweep.returns, name)[hit].astype(TYPES[name])
        columns["ring"] = sweep.beams.ring[cloud.pulse]
        columns["time"] = sweep.beams.time_ns[cloud.pulse] / 1e9
        rows = to_rows(columns)
        (folder / f"{number:06d}.pcd").write_bytes(pcd_header(rows, len(rows)) + rows.tobytes())

    def finish(self, folder: Path) -> None:
        """Write the poses."""
        trajectory = Trajectory.from_poses(np.array(self.times_ns, np.int64), self.poses)
        tum.write_trajectory(trajectory, folder / "poses.tum")
