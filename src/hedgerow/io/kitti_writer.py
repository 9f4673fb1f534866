# SPDX-License-Identifier: Apache-2.0
"""Write a log as a SemanticKITTI sequence: velodyne/*.bin, labels/*.label, poses.txt, times.txt, calib.txt.

Each sweep becomes a motion-compensated cloud, points in KITTI's order. The format has no missing returns and no beam
origins: what is lost is recovered when it is read back, if the sensor is one that shows its firings.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from hedgerow import rotation
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.atomic import atomic_folder
from hedgerow.io.pose_text import stamp_text
from hedgerow.io.sidecar import NAME, Sidecar, require_ours
from hedgerow.io.source import LogSink
from hedgerow.io.sweep_frame import by_laser, framed
from hedgerow.log import Log
from hedgerow.table import require_agreement

# The camera's axes (x right, y down, z forward) seen from the lidar's (x forward, y left, z up).
_T_CAM_VELO = Pose.from_matrix([[0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0]])


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "KittiWriter":
    """Prepare to write a sequence folder."""
    return KittiWriter(path, trajectory)


class KittiWriter(LogSink):
    """Appends sweeps to a sequence folder that appears when the `with` block ends well."""

    def __init__(self, path: str | Path, trajectory: Trajectory | None = None) -> None:
        """Prepare to write.

        Args:
            path: the folder to make; an old one that Hedgerow wrote is replaced.
            trajectory: T_map_sensor; see `sweep_frame.framed`.
        """
        self._path = Path(path)
        self._trajectory = trajectory
        self._context = self._writing()
        self._folder: Path | None = None
        self._sidecar: Sidecar | None = None
        self._like: Log | None = None
        self._poses: list[str] = []
        self._times: list[int] = []

    def __enter__(self) -> Self:
        """Make a temporary folder beside the path. Raises FileError if that is not possible."""
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Publish the folder, or after an error remove every trace of it."""
        return self._context.__exit__(kind, error, trace)

    def append(self, log: Log) -> None:
        """Write one or more whole sweeps; files are numbered from 0 in the order of writing.

        Raises:
            InputError: it differs from the first in sensor, limits or labels, or its times are not later.
        """
        if self._folder is None:
            raise InputError(f"{self._path}: the writer is not open; use it in a with block")
        if self._like is None:
            self._like, self._sidecar = log[:0], Sidecar.of(log, "kitti")
        require_agreement([self._like, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])
        if (self._like.returns.label is None) != (log.returns.label is None):
            raise InputError("label: some sweeps have labels and some have none; expected all or none")
        for _, sweep in log.iter_sweeps():
            self._write(self._folder, sweep)

    def _write(self, folder: Path, sweep: Log) -> None:
        cloud = framed(sweep, self._trajectory)
        if self._times and cloud.stamp_ns <= self._times[-1]:
            raise InputError(f"time_ns: sweep {sweep.beams.sweep[0]} is not later than the one before; sort the sweeps")
        order = by_laser(cloud.points, sweep.beams.ring[cloud.pulse], cloud.height)
        hit, name = sweep.returns.hit, f"{len(self._times):06d}"
        intensity = np.zeros(len(order), "<f4") if sweep.returns.intensity is None else sweep.returns.intensity[hit]
        values = np.column_stack([cloud.points, np.nan_to_num(intensity)])[order].astype("<f4")
        (folder / "velodyne" / f"{name}.bin").write_bytes(values.tobytes())
        if sweep.returns.label is not None:
            label = sweep.returns.label[hit][order].astype("<u4")
            (folder / "labels" / f"{name}.label").write_bytes(label.tobytes())
        pose = _T_CAM_VELO @ cloud.pose @ _T_CAM_VELO.inverse()
        matrix = np.column_stack([rotation.to_matrix(pose.quaternion_xyzw), pose.position_m])
        self._poses.append(" ".join(map(repr, matrix.ravel().tolist())))
        if self._sidecar is not None:
            self._sidecar.spans_ns[str(len(self._times))] = cloud.span_ns
        self._times.append(cloud.stamp_ns)

    @contextmanager
    def _writing(self) -> Generator[None]:
        require_ours(self._path)
        names = ["velodyne", "labels", "poses.txt", "times.txt", "calib.txt", NAME]
        with atomic_folder(self._path, replaces=names) as self._folder:
            try:
                (self._folder / "velodyne").mkdir()
                (self._folder / "labels").mkdir()
                yield
                self._finish(self._folder)
            finally:
                self._folder = None

    def _finish(self, folder: Path) -> None:
        if self._sidecar is None or not self._times:
            raise InputError(f"{self._path}: nothing was appended; append at least one sweep")
        if self._like is not None and self._like.returns.label is None:
            (folder / "labels").rmdir()
        (folder / "poses.txt").write_text("\n".join(self._poses) + "\n", encoding="utf-8")
        (folder / "times.txt").write_text("".join(f"{stamp_text(each)}\n" for each in self._times), encoding="utf-8")
        turn = np.column_stack([rotation.to_matrix(_T_CAM_VELO.quaternion_xyzw), np.zeros(3)])
        (folder / "calib.txt").write_text("Tr: " + " ".join(f"{each:.12e}" for each in turn.ravel()) + "\n")
        self._sidecar.write(folder)
