# SPDX-License-Identifier: Apache-2.0
"""Folders with one file per sweep in the frame of the sensor: what their readers and writers share.

A sweep is written deskewed, as a cloud in the sensor frame of the middle of the sweep. Beside the files of the format
lie `hedgerow.json` (`Sidecar`), with what the format cannot say, and `motion.tum`, with the poses within the sweeps, so
that the folder reads back whole. The sidecar also marks the folder as ours: an old folder is replaced only if it has
one, so that a mistyped path never costs anybody a data set.
"""

import json
from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

import hedgerow
from hedgerow.base import rotation
from hedgerow.base.atomic import atomic_folder
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.beams.clouds import CloudReading, find_sensor
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import LogSink, Settings, read_text, require_same_settings
from hedgerow.io.trajectory import read_tum, write_tum
from hedgerow.log import Log

_SIDECAR = "hedgerow.json"
_MOTION = "motion.tum"
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
            f"spans {trajectory.start_ns} to {trajectory.end_ns} ns, but sweep {log.beams.sweep[0]} is at "
            f"{middle} ns; give one that covers the log",
        )
    else:
        pose = trajectory.pose_at(middle)
    points = pose.inverse().transform(log.points()).astype(np.float32)
    pulse = np.nonzero(log.returns.hit)[0]
    upward = rotation.rotate(pose.quaternion_xyzw, np.array([0.0, 0.0, 1.0]))
    return DeskewedSweep(pose, middle, (first, last), points, log.beams.direction[pulse] @ upward, pulse)


class FolderWriter(LogSink):
    """Appends sweeps to a folder that appears when the `with` block ends well; files are numbered from 0."""

    holds_misses = False

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
        self.like: Log | None = None
        """The first log, without its beams."""
        self.poses: list[Pose] = []
        self.times_ns: list[int] = []
        self._motion_ns: list[int] = []

    @abstractmethod
    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: DeskewedSweep) -> None:
        """Write one sweep."""

    @abstractmethod
    def finish(self, folder: Path) -> None:
        """Write what comes last."""

    def _append(self, log: Log) -> None:
        """Write one or more whole sweeps.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, or its times are not later.
        """
        if self._folder is None:
            raise InputError(f"{self.path}", "the writer is not open; use it in a with block")
        if self.like is None or self._sidecar is None:
            self.like, self._sidecar = log[:0], Sidecar.of(log, self.kind)
        require_same_settings(self.like, log)
        for name in ("intensity", "label"):
            if (getattr(self.like.returns, name) is None) != (getattr(log.returns, name) is None):
                raise InputError(name, "some sweeps have it and some have not; expected all or none")
        for _, sweep in log.iter_sweeps():
            cloud = deskew(sweep, self._trajectory)
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
            write_tum(Trajectory(time_ns, *self._trajectory.at(time_ns)), folder / _MOTION)

    @contextmanager
    def _writing(self) -> Generator[None]:
        _require_ours(self.path)
        with atomic_folder(self.path, replaces=[*self.names, _SIDECAR, _MOTION]) as self._folder:
            try:
                yield
                if self._sidecar is None or not self.times_ns:
                    raise InputError(f"{self.path}", "nothing was appended; append at least one sweep")
                self.finish(self._folder)
                self._write_motion(self._folder)
                self._sidecar.write(self._folder)
            finally:
                self._folder = None


def _require_ours(path: Path) -> None:
    """Raise FileError if there is a folder that Hedgerow has not written."""
    if path.is_dir() and any(path.iterdir()) and not (path / _SIDECAR).exists():
        raise FileError(
            f"{path}: the folder is there and Hedgerow did not write it (no {_SIDECAR}); choose another name"
        )


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What a folder of clouds says beyond its format: the settings of a log, and how its sweeps turn."""

    kind: str
    """Name of the format."""
    sensor: str
    min_range_m: float
    max_range_m: float | None
    """None if there is no limit."""
    map_origin_m: tuple[float, float, float]
    start_azimuth_deg: float = 180.0
    """Where a sweep starts."""
    clockwise: bool = True
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    spans_ns: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """First and last time of each sweep, by its number."""

    @classmethod
    def of(cls, log: Log, kind: str) -> "Sidecar":
        """Take over the settings of a log; how it turns comes from its metadata, else from the catalogue."""
        x, y, z = log.map_origin_m.tolist()
        limit = log.max_range_m if np.isfinite(log.max_range_m) else None
        start_deg, clockwise = _turn_of(log)
        return cls(kind, log.sensor, log.min_range_m, limit, (x, y, z), start_deg, clockwise, dict(log.metadata))

    def settings(self, arrays: list[str]) -> Settings:
        """Return what all sweeps have in common."""
        limit = float("inf") if self.max_range_m is None else self.max_range_m
        origin_m = np.array(self.map_origin_m)
        return Settings(self.sensor, self.min_range_m, limit, origin_m, dict(self.metadata), 1, arrays)

    def write(self, folder: Path) -> None:
        """Write it into a folder.

        Raises:
            InputError: the metadata do not fit into JSON.
        """
        content = {"hedgerow": hedgerow.__version__} | asdict(self)
        try:
            text = json.dumps(content, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError("metadata", f"does not fit into JSON ({error}); use text, finite numbers, lists") from None
        (folder / _SIDECAR).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Sidecar | None":
        """Read it from a folder; None if there is none.

        Raises:
            FileError: it is damaged.
        """
        path = folder / _SIDECAR
        if not path.exists():
            return None
        try:
            content: dict[str, Any] = json.loads(read_text(path))
            content.pop("hedgerow")
            x, y, z = map(float, content.pop("map_origin_m"))
            spans = {key: (int(first), int(last)) for key, (first, last) in content.pop("spans_ns").items()}
            return cls(map_origin_m=(x, y, z), spans_ns=spans, **content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path}: is damaged ({type(error).__name__}: {str(error)[:100]})") from error


def _turn_of(log: Log) -> tuple[float, bool]:
    """Return the azimuth at which sweeps start [degrees], and whether they turn clockwise."""
    noted = cast("dict[str, Any]", log.metadata.get("turn", {}))  # by beams/clouds.py
    if set(noted) == {"start_deg", "clockwise"}:
        return float(noted["start_deg"]), bool(noted["clockwise"])
    sensor = find_sensor(log.sensor)
    if sensor is None:
        return 180.0, True
    pattern = sensor.config.pattern
    return float(getattr(pattern, "start_azimuth_deg", 180.0)), pattern.turns == "clockwise"


def read_motion(folder: Path) -> Trajectory | None:
    """Read the poses within the sweeps, T_map_sensor; None if there are none.

    Raises:
        FileError: they are damaged.
    """
    path = folder / _MOTION
    return read_tum(path) if path.exists() else None


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
