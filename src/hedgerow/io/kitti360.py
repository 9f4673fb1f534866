# SPDX-License-Identifier: Apache-2.0
"""KITTI-360 (Liao, Xie and Geiger, 2022): raw sweeps of its HDL-64E, read.

    KITTI-360/
      calibration/calib_cam_to_pose.txt, calib_cam_to_velo.txt
      data_3d_raw/2013_05_28_drive_0000_sync/velodyne_points/data/0000000000.bin ..., timestamps.txt
      data_poses/2013_05_28_drive_0000_sync/poses.txt        # frame and 3 x 4 matrix, T_world_imu

A drive is opened by its folder under data_3d_raw. Sweeps are as measured: the sensor turns clockwise from the back, and
looks ahead at the time stamp of its frame. Frames without a pose of their own, as many have, lie between two others;
those before the first pose and after the last are left out. The map's origin is at the first pose.

`Kitti360Drive` has the clouds and poses frame by frame, for `hedgerow reproduce kitti360-nvs`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, warn
from hedgerow.frames import Pose, Trajectory, poses_from_matrices
from hedgerow.io.beams.clouds import CloudReading, CloudSource, SensorCloud, SweepTimes
from hedgerow.io.beams.motion import extend_trajectory
from hedgerow.io.kitti import numbered_files, read_bin, read_calibration, read_dates, require_rising
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import Settings
from hedgerow.io.trajectory import read_rows
from hedgerow.sensor import Sensor

_SENSOR = "hdl-64e-s2"
_MAX_RANGE_M = 80.0
_RATE_HZ = 10.0  # where a single sweep does not tell


@dataclass(frozen=True, eq=False)
class Kitti360Drive:
    """One drive: where its clouds are, and the pose of the lidar at each frame that has one."""

    folder: Path
    """Of its clouds, under data_3d_raw."""
    files: dict[int, Path]
    """By frame, ascending."""
    poses: dict[int, Pose]
    """T_world_velodyne by frame, ascending; far from the origin of the world."""

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a drive by its folder under data_3d_raw.

        Raises:
            FileError: a file is missing or damaged.
        """
        folder = Path(folder)
        root = folder.resolve().parent.parent
        files = numbered_files(folder / "velodyne_points" / "data", ".bin")
        t_imu_cam = read_calibration(root / "calibration" / "calib_cam_to_pose.txt", "image_00")
        t_imu_velo = t_imu_cam @ _read_cam_to_velo(root / "calibration" / "calib_cam_to_velo.txt").inverse()
        poses = _read_poses(root / "data_poses" / folder.resolve().name / "poses.txt")
        return cls(folder, files, {frame: pose @ t_imu_velo for frame, pose in poses.items()})

    def cloud(self, frame: int) -> NDArray[np.float32]:
        """Read the cloud of a frame, (N, 4) float32: x, y, z [m] in the sensor frame, reflectance from 0 to 1.

        Raises:
            FileError: there is none, or it is damaged.
        """
        if frame not in self.files:
            raise FileError(f"{self.folder / 'velodyne_points' / 'data'}: holds no {frame:010d}.bin")
        return read_bin(self.files[frame])

    def last_pose(self, frame: int) -> Pose:
        """Return the pose of a frame, or of the last one before it that has a pose.

        Raises:
            FileError: there is none.
        """
        known = [each for each in self.poses if each <= frame]
        if not known:
            raise FileError(f"{self.folder}: frame {frame} has no pose, nor has one before it")
        return self.poses[known[-1]]


def open_log(path: str | Path, options: ReadOptions) -> CloudSource:
    """Open a drive as a log; see `options.ReadOptions`.

    Raises:
        FileError: a file is missing or damaged.
    """
    drive = Kitti360Drive.open(path)
    path = Path(path)
    stamps = _stamps(path, drive)
    trajectory = options.sensor_trajectory()
    origin_m: NDArray[np.float64] = np.array(options.map_origin_m or [0.0, 0.0, 0.0], np.float64)
    if trajectory is None:
        trajectory = _trajectory(path, drive, stamps)
        if options.map_origin_m is None:
            origin_m = np.rint(trajectory.position_m[0])
        trajectory = Trajectory(trajectory.time_ns, trajectory.position_m - origin_m, trajectory.quaternion_xyzw)
    sweeps = _sweeps(path, drive, stamps, trajectory, options)

    def load(number: int) -> SensorCloud:
        values = drive.cloud(number)
        return SensorCloud(values[:, :3].astype(np.float64), values[:, 3])

    settings = Settings(sensor=_SENSOR, max_range_m=_MAX_RANGE_M, map_origin_m=origin_m, arrays=["intensity"])
    longest_ns = max(each.end_ns - each.start_ns for each in sweeps)
    return CloudSource(
        path,
        options.apply_to(settings),
        extend_trajectory(trajectory, longest_ns),
        sweeps,
        load,
        replace(_reading(options), poses_ns=(trajectory.start_ns, trajectory.end_ns)),
    )


def _reading(options: ReadOptions) -> CloudReading:
    return CloudReading(
        sensor=Sensor.named(options.sensor or _SENSOR),
        start_rad=np.pi,
        clockwise=True,
        deskewed=bool(options.deskewed),
        elevation_bias_rad=float(np.deg2rad(options.elevation_bias_deg or 0.0)),
        recover=options.recover,
        metadata={"read_from": "kitti-360"},
    )


def _stamps(path: Path, drive: Kitti360Drive) -> NDArray[np.int64]:
    """Return the time of each frame [ns], those without a cloud or a pose too."""
    file = path / "velodyne_points" / "timestamps.txt"
    stamps = read_dates(file)
    last = max(*drive.files, *drive.poses)
    if last >= len(stamps):
        raise FileError(f"{file}: has {len(stamps)} lines but there is a frame {last}")
    for numbers in (list(drive.files), list(drive.poses)):
        require_rising(file, numbers, stamps[numbers])
    return stamps


def _trajectory(path: Path, drive: Kitti360Drive, stamps: NDArray[np.int64]) -> Trajectory:
    if not drive.poses:
        raise FileError(f"{path}: none of its frames has a pose")
    return Trajectory.from_poses(stamps[list(drive.poses)], list(drive.poses.values()))


def _sweeps(
    path: Path, drive: Kitti360Drive, stamps: NDArray[np.int64], trajectory: Trajectory, options: ReadOptions
) -> list[SweepTimes]:
    usual_ns = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 1e9 / _RATE_HZ
    half_ns = max(int((1e9 / options.rate_hz if options.rate_hz else usual_ns) / 2), 1)
    every = [
        SweepTimes(number, stamp - half_ns, stamp + half_ns, stamp)
        for number, stamp in ((number, int(stamps[number])) for number in drive.files)
    ]
    placed = [each for each in every if trajectory.start_ns <= each.reference_ns <= trajectory.end_ns]
    if not placed:
        raise FileError(f"{path}: none of its {len(every)} sweeps lies between two poses")
    if len(placed) < len(every):
        warn(f"{path}: {len(every) - len(placed)} sweeps before the first pose or after the last are left out")
    return placed


@np.errstate(over="ignore", invalid="ignore")  # huge numbers are no rotation, and that is said
def _read_cam_to_velo(path: Path) -> Pose:
    """Read T_velodyne_camera: 12 numbers in a line, without a name.

    Raises:
        FileError: missing, or no transform.
    """
    rows = read_rows(path, 12, "a 3 x 4 matrix, row by row")
    with rows.naming_lines():
        return Pose.from_matrix(rows.numbers(0, 12)[0].reshape(3, 4))


@np.errstate(over="ignore", invalid="ignore")  # huge numbers are no rotation, and that is said
def _read_poses(path: Path) -> dict[int, Pose]:
    """Read T_world_imu by frame.

    Raises:
        FileError: missing, a line that is no pose, or frames that do not rise; names the line.
    """
    rows = read_rows(path, 13, "a frame and a 3 x 4 matrix, row by row")
    values = rows.numbers(0, 13)
    frames = values[:, 0]
    wrong = ~((frames >= 0) & (frames < 2**31) & (frames == np.floor(frames)))
    wrong[1:] |= ~(np.diff(frames) > 0)
    if wrong.any():
        line = rows.lines[int(np.flatnonzero(wrong)[0])]
        raise FileError(f"{path}, line {line}: expected a frame, a whole number larger than the one before")
    with rows.naming_lines():
        position_m, quaternion = poses_from_matrices("matrix", values[:, 1:].reshape(-1, 3, 4))
    placed = zip(frames.astype(int).tolist(), position_m, quaternion, strict=True)
    return {frame: Pose(position, turn) for frame, position, turn in placed}
