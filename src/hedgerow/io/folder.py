# SPDX-License-Identifier: Apache-2.0
"""Folders with one file per sweep in the frame of the sensor: what their readers and writers share.

A sweep is written deskewed, as a cloud in the sensor frame of the middle of the sweep: plain files that anybody reads.
Beside them lies what the format cannot say, so that the folder reads back whole: `hedgerow.json` (`notes.Sidecar`)
with the settings of the log, `motion.tum` with the poses within the sweeps, and `hedgerow.parquet` with every beam as
it was, missing and second returns included (beams/kept.py). The sidecar also marks the folder as ours: an old folder is
replaced only if it has one, so that a mistyped path never costs anybody a data set.
"""

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.base.atomic import atomic_folder
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.beams.clouds import CloudReading, find_sensor
from hedgerow.io.beams.kept import KEPT, MOTION, mark_of
from hedgerow.io.notes import SIDECAR, Sidecar
from hedgerow.io.options import ReadOptions
from hedgerow.io.parquet.writer import LogWriter
from hedgerow.io.source import LogSink, require_same_settings
from hedgerow.io.trajectory import write_tum
from hedgerow.log import MEASURED, Log

_POSES_PER_SWEEP = 5


@dataclass(frozen=True, slots=True, eq=False)
class DeskewedSweep:
    """One sweep as a deskewed cloud: all points in the sensor frame of one instant."""

    pose: Pose
    """T_map_sensor of that instant."""
    stamp_ns: int
    """The instant: the middle of the sweep."""
    span_ns: tuple[int, int]
    """When the first and the last pulse were fired [ns]."""
    points: NDArray[np.float32]
    """(M, 3) sensor frame [m]."""
    height: NDArray[np.float64]
    """(M,) z of the unit direction of each beam, sensor frame."""
    pulse: NDArray[np.intp]
    """(M,) which pulse made each point."""


def deskew(log: Log, trajectory: Trajectory | None) -> DeskewedSweep:
    """Take the points of one sweep to the frame that the sensor had in the middle of it.

    Args:
        log: one sweep, map frame.
        trajectory: T_map_sensor. Default: axes of the map, at the origin of the pulse nearest to the middle.

    Raises:
        InputError: the sweep is empty, or the trajectory does not reach its middle.
    """
    if not len(log):
        raise InputError("log", "a sweep without any beam has no place; leave it out")
    time_ns = log.beams.time_ns
    first, last = int(time_ns.min()), int(time_ns.max())
    middle = first + (last - first) // 2
    if trajectory is None:
        pose = Pose(log.beams.origin_m[np.argmin(np.abs(time_ns - middle))])
    elif not trajectory.start_ns <= middle <= trajectory.end_ns:
        raise InputError(
            "trajectory",
            f"spans {trajectory.start_ns / 1e9:.3f} to {trajectory.end_ns / 1e9:.3f} s, but sweep "
            f"{log.beams.sweep[0]} is at {middle / 1e9:.3f} s; give one that covers the log",
        )
    else:
        pose = trajectory.pose_at(middle)
    points = pose.inverse().transform(log.points()).astype(np.float32)
    pulse = np.nonzero(log.returns.hit)[0]
    upward = rotation.rotate(pose.quaternion_xyzw, np.array([0.0, 0.0, 1.0]))
    return DeskewedSweep(pose, middle, (first, last), points, log.beams.direction[pulse] @ upward, pulse)


class FolderWriter(LogSink):
    """Appends sweeps to a folder that appears when the `with` block ends well; files are numbered from 0."""

    holds_misses = True

    kind: ClassVar[str]
    """Name of the format."""
    names: ClassVar[tuple[str, ...]]
    """Patterns of what an old folder of this kind holds."""

    def __init__(self, path: str | Path, trajectory: Trajectory | None = None) -> None:
        """Prepare to write.

        Args:
            path: the folder to make; an old one that Hedgerow wrote is replaced.
            trajectory: T_map_sensor; see `deskew`.
        """
        super().__init__(path)
        self._trajectory = trajectory
        self._folder: Path | None = None
        self._sidecar: Sidecar | None = None
        self._kept: LogWriter | None = None
        self.like: Log | None = None
        """The first log, without its beams."""
        self.poses: list[Pose] = []
        self.times_ns: list[int] = []
        self._motion_ns: list[int] = []

    @abstractmethod
    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: DeskewedSweep) -> list[Path]:
        """Write one sweep; return its files."""

    @abstractmethod
    def finish(self, folder: Path) -> None:
        """Write what comes last."""

    def _append(self, log: Log) -> None:
        """Write one or more whole sweeps.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, or its times are not later.
        """
        if self._folder is None or self._kept is None:
            raise InputError(f"{self.path}", "the writer is not open; use it in a with block")
        if self.like is None or self._sidecar is None:
            self.like, self._sidecar = log[:0], Sidecar.of(log, self.kind)
        require_same_settings(self.like, log)
        for name in MEASURED:
            if (getattr(self.like.returns, name) is None) != (getattr(log.returns, name) is None):
                raise InputError(name, "some sweeps have it and some have not; expected all or none")
        for _, sweep in log.iter_sweeps():
            cloud = deskew(sweep, self._trajectory)
            if self.times_ns and cloud.stamp_ns <= self.times_ns[-1]:
                number = sweep.beams.sweep[0]
                raise InputError("time_ns", f"sweep {number} is not later than the one before; sort the sweeps")
            files = self.write_sweep(self._folder, len(self.times_ns), sweep, cloud)
            self._keep(sweep, files)
            self._sidecar.spans_ns[str(len(self.times_ns))] = list(cloud.span_ns)
            self._note_motion(cloud.span_ns)
            self.poses.append(cloud.pose)
            self.times_ns.append(cloud.stamp_ns)

    def _keep(self, sweep: Log, files: list[Path]) -> None:
        """Write every beam of a sweep beside its cloud, and a mark of the cloud that they belong to."""
        if self._sidecar is None or self._kept is None:
            return
        number = int(sweep.beams.sweep[0])
        if any(mark.sweep == number for mark in self._sidecar.clouds.values()):
            raise InputError("sweep", f"sweep {number} comes again; give every sweep a number of its own")
        self._kept.append(sweep)
        self._sidecar.clouds[files[0].stem] = mark_of(sweep, files)

    def _note_motion(self, span_ns: tuple[int, int]) -> None:
        """Keep the poses within a sweep: those of two sweeps do not tell how the sensor moved between them."""
        if self._trajectory is None:
            return
        first = max(span_ns[0], self._trajectory.start_ns, self._motion_ns[-1] + 1 if self._motion_ns else span_ns[0])
        last = min(span_ns[1], self._trajectory.end_ns)
        if first < last:
            # From 0, since float64 cannot tell nanoseconds of Unix times apart.
            after_ns = np.linspace(0, last - first, _POSES_PER_SWEEP).round().astype(np.int64)
            self._motion_ns += (first + np.unique(after_ns)).tolist()

    def _write_motion(self, folder: Path) -> None:
        if self._trajectory is not None and self._motion_ns:
            time_ns = np.array(self._motion_ns, np.int64)
            write_tum(Trajectory(time_ns, *self._trajectory.at(time_ns)), folder / MOTION)

    @contextmanager
    def _writing(self) -> Generator[None]:
        _require_ours(self.path)
        with atomic_folder(self.path, replaces=[*self.names, SIDECAR, MOTION, KEPT]) as self._folder:
            try:
                with LogWriter(self._folder / KEPT) as self._kept:
                    yield
                    if self._sidecar is None or not self.times_ns:
                        raise InputError(f"{self.path}", "nothing was appended; append at least one sweep")
                self.finish(self._folder)
                self._write_motion(self._folder)
                self._sidecar.write(self._folder)
            finally:
                self._folder = self._kept = None


def _require_ours(path: Path) -> None:
    """Raise FileError if there is a folder that Hedgerow has not written."""
    if path.is_dir() and any(path.iterdir()) and not (path / SIDECAR).exists():
        raise FileError(
            f"{path}: the folder is there and Hedgerow did not write it (no {SIDECAR}); choose another name"
        )


def folder_reading(options: ReadOptions, sidecar: Sidecar, name: str) -> CloudReading:
    """Return how the clouds of a folder with a sidecar become sweeps again."""
    return CloudReading(
        sensor=find_sensor(options.sensor or sidecar.sensor),
        start_rad=float(np.deg2rad(sidecar.start_azimuth_deg)),
        clockwise=sidecar.clockwise,
        deskewed=True if options.deskewed is None else options.deskewed,
        times_by_laser=True,
        elevation_bias_rad=float(np.deg2rad(options.elevation_bias_deg or 0.0)),
        recover=options.recover,
        metadata={"read_from": name},
    )
