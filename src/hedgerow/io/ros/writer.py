# SPDX-License-Identifier: Apache-2.0
"""Write a log as an MCAP file for ROS 2 or as a ROS 1 bag, as a lidar's driver would have recorded it.

/points             PointCloud2 x y z intensity ring time, one message per sweep, stamped at its first pulse;
                    points lie in the frame of the sensor at their own instants, as drivers publish them.
                    return_type, return_number where pulses can have several returns; label and rgb if there are any
/points2, ...       of organised clouds the second returns and so on, in the same grid, as Ouster's driver has them
/points/no_return   the same fields for pulses without a return; x y z is the direction of the pulse
/tf, /tf_static     map -> base_link at the first and last pulse of every sweep and at the poses between;
                    base_link -> lidar, which is nothing
/hedgerow/log       sensor, limits and metadata as JSON, so that it reads back whole
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.options import WriteOptions
from hedgerow.io.points.columns import header_text
from hedgerow.io.ros.bag import typestore
from hedgerow.io.ros.grid import grid_of, organised_rows, require_grid
from hedgerow.io.ros.messages import POINT_CLOUD2, STRING, TF_MESSAGE, Messages, cloud_rows
from hedgerow.io.ros.topic import NO_RETURN
from hedgerow.io.source import LogSink, require_same_settings
from hedgerow.log import Log

POINTS = "/points"
ABOUT = "/hedgerow/log"
MAP, BASE, LIDAR = "map", "base_link", "lidar"
_KNOTS = 50  # poses in a sweep that are taken from the origins of its pulses
_LATEST_NS = 2**31 * 1_000_000_000  # ROS 2 counts seconds in 31 bits


def open_sink(path: str | Path, trajectory: Trajectory | None, options: WriteOptions) -> "BagWriter":
    """Prepare to write a bag; the suffix .bag makes one of ROS 1."""
    return BagWriter(path, trajectory, organised=options.organised)


def plane_topics(topic: str, n_returns: int) -> list[str]:
    """Return the topics of organised clouds: the nearest returns, the second ones, and so on."""
    return [topic, *(f"{topic}{number}" for number in range(2, n_returns + 1))]


class BagWriter(LogSink):
    """Appends sweeps to a bag that appears when the `with` block ends well."""

    holds_misses = True

    def __init__(self, path: str | Path, trajectory: Trajectory | None = None, *, organised: bool = False) -> None:
        """Prepare to write.

        Args:
            path: the file to make; an old one is replaced.
            trajectory: T_map_sensor. Default: the sensor has the axes of the map and is where its pulses begin.
            organised: whether clouds are grids with a cell for every pulse.
        """
        super().__init__(path)
        self._organised = organised
        self._is_grid = False  # once the first sweep showed it
        self._is_ros1 = self.path.suffix.lower() == ".bag"
        self._trajectory = trajectory
        self._writer: Any = None
        self._messages = Messages(typestore(self._is_ros1), self._is_ros1)
        self._connections: dict[str, Any] = {}
        self._like: Log | None = None
        self._last_ns = -1

    def _append(self, log: Log) -> None:
        """Write one or more whole sweeps.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, its times are not later or none that
                ROS can have, the trajectory does not cover it, or it is to be organised and is no grid.
        """
        if self._writer is None:
            raise InputError(f"{self.path}", "the writer is not open; use it in a with block")
        if len(log) and self._like is None:
            self._like = log[:0]
            self._begin(log)
        if self._like is not None:
            require_same_settings(self._like, log)
        for _, sweep in log.iter_sweeps():
            self._sweep(sweep)

    def _begin(self, log: Log) -> None:
        """Write what comes before the first sweep."""
        start_ns = self._checked_times(log)[0]
        clouds = plane_topics(POINTS, log.returns.n_per_pulse if self._organised else 1)
        for topic, kind in (
            *((cloud, POINT_CLOUD2) for cloud in clouds),
            (POINTS + NO_RETURN, POINT_CLOUD2),
            ("/tf", TF_MESSAGE),
            ("/tf_static", TF_MESSAGE),
            (ABOUT, STRING),
        ):
            self._connections[topic] = self._writer.add_connection(topic, kind, typestore=typestore(self._is_ros1))
        self._put(ABOUT, start_ns, self._messages.text(header_text(log, organised=self._organised)))
        identity = np.array([0.0, 0.0, 0.0, 1.0])
        still = self._messages.transforms([(start_ns, BASE, LIDAR, np.zeros(3), identity)])
        self._put("/tf_static", start_ns, still)

    def _sweep(self, sweep: Log) -> None:
        start_ns, end_ns = self._checked_times(sweep)
        time_ns, position_m, turn = self._poses(sweep, start_ns, end_ns)
        path = Trajectory(time_ns, position_m, turn)
        for stamp, position, quaternion in zip(time_ns.tolist(), position_m, turn, strict=True):
            if stamp > self._last_ns:
                message = self._messages.transforms([(stamp, MAP, BASE, position, quaternion)])
                self._put("/tf", stamp, message)
        self._last_ns = end_ns
        at_m, axes = path.at(sweep.beams.time_ns)
        back = rotation.conjugate(axes)
        hit = sweep.returns.hit
        pulse = np.nonzero(hit)[0]
        points = rotation.rotate(back[pulse], sweep.points() - at_m[pulse])
        direction = rotation.rotate(back, sweep.beams.direction.astype(np.float64))
        missed = np.flatnonzero(np.isinf(sweep.returns.first_m))
        missing = cloud_rows(sweep, direction[missed], missed, None, start_ns)
        clouds = [cloud_rows(sweep, points, pulse, hit, start_ns)]
        if self._organised:
            grid = grid_of(sweep)
            if not self._is_grid:
                require_grid(sweep, grid, direction)
                self._is_grid = True
            clouds = organised_rows(sweep, points, grid, start_ns)
        self._put(POINTS + NO_RETURN, end_ns, self._messages.cloud(start_ns, LIDAR, missing))
        for topic, rows in zip(plane_topics(POINTS, len(clouds)), clouds, strict=True):
            self._put(topic, end_ns, self._messages.cloud(start_ns, LIDAR, rows, dense=not self._organised))

    def _poses(
        self, sweep: Log, start_ns: int, end_ns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return times, positions and quaternions of the sensor from the first pulse of a sweep to the last."""
        ends = np.array([start_ns, max(end_ns, start_ns + 1)], np.int64)
        if self._trajectory is None:
            return _from_origins(sweep, ends)
        path = self._trajectory
        if start_ns < path.start_ns or end_ns > path.end_ns:
            raise InputError(
                "trajectory",
                f"spans {path.start_ns} to {path.end_ns} ns, but sweep {sweep.beams.sweep[0]} is from "
                f"{start_ns} to {end_ns} ns; give one that covers the log",
            )
        ends[1] = min(int(ends[1]), path.end_ns)
        between = path.time_ns[(path.time_ns > start_ns) & (path.time_ns < end_ns)]
        time_ns = np.unique(np.concatenate([ends, between]))
        return time_ns, *path.at(time_ns)

    def _checked_times(self, sweep: Log) -> tuple[int, int]:
        start_ns, end_ns = int(sweep.beams.time_ns.min()), int(sweep.beams.time_ns.max())
        if start_ns < 0 or end_ns >= _LATEST_NS:
            raise InputError(
                "time_ns", f"{start_ns} to {end_ns} is outside of what ROS can tell, 1970 to 2038; shift the log"
            )
        if start_ns <= self._last_ns:
            raise InputError(
                "time_ns", f"sweep {sweep.beams.sweep[0]} begins before the one before it ends; sort the sweeps"
            )
        return start_ns, end_ns

    def _put(self, topic: str, stamp_ns: int, message: bytes) -> None:
        self._writer.write(self._connections[topic], stamp_ns, message)

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self.path) as part:
            try:
                if self._is_ros1:
                    yield from self._ros1(part)
                else:
                    yield from self._mcap(part)
            finally:
                self._writer = None

    def _ros1(self, part: Path) -> Generator[None]:
        from rosbags.rosbag1 import Writer

        with Writer(part) as self._writer:
            yield
            self._require_some()

    def _mcap(self, part: Path) -> Generator[None]:
        """Write into a folder, as rosbags does, and keep the file alone: it holds everything itself.

        The name of that folder gets into the file, so it is always the same: same input, same bytes.
        """
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

        outer = part.with_name(part.name + ".bag2")
        folder = outer / "recording"
        writer = Writer(folder, version=8, storage_plugin=StoragePlugin.MCAP)
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        try:
            with writer as self._writer:
                yield
                self._require_some()
            (folder / f"{folder.name}.mcap").replace(part)
        finally:
            shutil.rmtree(outer, ignore_errors=True)

    def _require_some(self) -> None:
        if self._like is None:
            raise FileError(f"{self.path}: nothing was appended; append at least one sweep")


def _from_origins(
    sweep: Log, ends_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return times, positions and quaternions of a sensor that is known by the origins of its pulses alone."""
    time_ns, first = np.unique(sweep.beams.time_ns, return_index=True)
    chosen = np.unique(np.linspace(0, len(time_ns) - 1, _KNOTS).round().astype(int))
    time_ns, position_m = time_ns[chosen], sweep.beams.origin_m[first[chosen]]
    if len(time_ns) == 1:
        time_ns, position_m = ends_ns, np.repeat(position_m, 2, axis=0)
    return time_ns, position_m, np.tile([0.0, 0.0, 0.0, 1.0], (len(time_ns), 1))
