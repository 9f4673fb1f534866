# SPDX-License-Identifier: Apache-2.0
"""FolderWriter: the base of what is written as one file per sweep in the frame of the sensor."""

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np

from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io import tum
from hedgerow.io.atomic import atomic_folder
from hedgerow.io.sidecar import MOTION, NAME, Sidecar, require_ours
from hedgerow.io.source import LogSink
from hedgerow.io.sweep_frame import FramedSweep, framed
from hedgerow.log import Log
from hedgerow.table import require_agreement

_POSES_PER_SWEEP = 5


class FolderWriter(LogSink):
    """Appends sweeps to a folder that appears when the `with` block ends well; files are numbered from 0."""

    kind: ClassVar[str]
    """Name of the format."""
    names: ClassVar[tuple[str, ...]]
    """Patterns of what an old folder of this kind holds."""

    def __init__(self, path: str | Path, trajectory: Trajectory | None = None) -> None:
        """Prepare to write.

        Args:
            path: the folder to make; an old one that Hedgerow wrote is replaced.
            trajectory: T_map_sensor; see `sweep_frame.framed`.
        """
        self._path = Path(path)
        self._trajectory = trajectory
        self._folder: Path | None = None
        self._sidecar: Sidecar | None = None
        self.like: Log | None = None
        """The first log, without its beams."""
        self.poses: list[Pose] = []
        self.times_ns: list[int] = []
        self._motion_ns: list[int] = []

    @abstractmethod
    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: FramedSweep) -> None:
        """Write one sweep."""

    @abstractmethod
    def finish(self, folder: Path) -> None:
        """Write what comes last."""

    def append(self, log: Log) -> None:
        """Write one or more whole sweeps.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, or its times are not later.
        """
        if self._folder is None:
            raise InputError(f"{self._path}", "the writer is not open; use it in a with block")
        if self.like is None or self._sidecar is None:
            self.like, self._sidecar = log[:0], Sidecar.of(log, self.kind)
        require_agreement([self.like, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])
        for name in ("intensity", "label"):
            if (getattr(self.like.returns, name) is None) != (getattr(log.returns, name) is None):
                raise InputError(name, "some sweeps have it and some have not; expected all or none")
        for _, sweep in log.iter_sweeps():
            cloud = framed(sweep, self._trajectory)
            if self.times_ns and cloud.stamp_ns <= self.times_ns[-1]:
                number = sweep.beams.sweep[0]
                raise InputError("time_ns", f"sweep {number} is not later than the one before; sort the sweeps")
            self.write_sweep(self._folder, len(self.times_ns), sweep, cloud)
            self._sidecar.spans_ns[str(len(self.times_ns))] = cloud.span_ns
            self._note_motion(cloud.span_ns)
            self.poses.append(cloud.pose)
            self.times_ns.append(cloud.stamp_ns)

    def _note_motion(self, span_ns: tuple[int, int]) -> None:
        """Keep the poses within a sweep: those of two sweeps do not tell how the sensor moved between them."""
        if self._trajectory is None:
            return
        first = max(span_ns[0], self._trajectory.start_ns, self._motion_ns[-1] + 1 if self._motion_ns else span_ns[0])
        last = min(span_ns[1], self._trajectory.end_ns)
        if first < last:
            self._motion_ns += np.unique(np.linspace(first, last, _POSES_PER_SWEEP).round().astype(np.int64)).tolist()

    def _write_motion(self, folder: Path) -> None:
        if self._trajectory is not None and self._motion_ns:
            time_ns = np.array(self._motion_ns, np.int64)
            tum.write_trajectory(Trajectory(time_ns, *self._trajectory.at(time_ns)), folder / MOTION)

    @contextmanager
    def _writing(self) -> Generator[None]:
        require_ours(self._path)
        with atomic_folder(self._path, replaces=[*self.names, NAME, MOTION]) as self._folder:
            try:
                yield
                if self._sidecar is None or not self.times_ns:
                    raise InputError(f"{self._path}", "nothing was appended; append at least one sweep")
                self.finish(self._folder)
                self._write_motion(self._folder)
                self._sidecar.write(self._folder)
            finally:
                self._folder = None
