# SPDX-License-Identifier: Apache-2.0
"""KITTI raw drives: a folder `2011_09_26_drive_0005_sync` with velodyne_points and oxts, calibration beside it.

As downloaded from the KITTI site (Geiger et al., IJRR 2013). The clouds are as measured, not motion-compensated; the
HDL-64E turns clockwise and a sweep starts at the back, at `timestamps_start.txt`. Poses come from the OXTS packets as
in KITTI's devkit, Mercator true to scale at the first pose, x east, y north; the map's origin is at the first pose.
The clouds hold neither rings nor missing returns: see recovery/. Nothing beyond 80 m is in them. The intrinsic
calibration that made them is known to look 0.205 degrees too low (Deschaud, "IMLS-SLAM", 2018); that is added.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.clouds import Cloud, CloudSource, Frame
from hedgerow.io.kitti_bin import numbered_files, read_bin
from hedgerow.io.kitti_plan import kitti_plan, kitti_settings
from hedgerow.io.kitti_text import mercator_pose, read_calibration, read_oxts, read_stamps, require_rising
from hedgerow.io.options import ReadOptions
from hedgerow.io.placing import stretched

_MARGIN_NS = 150_000_000  # a sweep and a half: the sweep starts before the first packet and ends after the last


def open_log(path: str | Path, options: ReadOptions) -> CloudSource:
    """Open a drive; see `options.ReadOptions`.

    Raises:
        FileError: a file is missing or damaged.
    """
    path = Path(path)
    files = numbered_files(path / "velodyne_points" / "data", ".bin")
    frames = _frames(path, list(files))
    trajectory = options.sensor_trajectory()
    origin_m = np.array(options.map_origin_m or [0.0, 0.0, 0.0], np.float64)
    if trajectory is None:
        trajectory, first_m = _oxts_trajectory(path)
        origin_m = np.round(first_m) if options.map_origin_m is None else origin_m
        trajectory = Trajectory(trajectory.time_ns, trajectory.position_m - origin_m, trajectory.quaternion_xyzw)

    def load(number: int) -> Cloud:
        values = read_bin(files[number])
        return Cloud(values[:, :3].astype(np.float64), values[:, 3])

    settings = kitti_settings(options, origin_m, ["intensity"])
    plan = kitti_plan(options, "kitti-raw", compensated=False)
    return CloudSource(path, settings, stretched(trajectory, _MARGIN_NS), frames, load, plan)


def _frames(path: Path, numbers: list[int]) -> list[Frame]:
    folder = path / "velodyne_points"
    stamps = {
        name: read_stamps(folder / f"{name}.txt") for name in ("timestamps_start", "timestamps", "timestamps_end")
    }
    for name, each in stamps.items():
        if numbers[-1] >= len(each):
            raise FileError(f"{folder / name}.txt: has {len(each)} lines but there is a sweep {numbers[-1]}")
        require_rising(folder / f"{name}.txt", numbers, each[numbers])
    frames: list[Frame] = []
    for number in numbers:
        start, middle, end = (int(each[number]) for each in stamps.values())
        if not start < end:
            raise FileError(f"{folder}/timestamps_end.txt, line {number + 1}: the sweep ends before it starts")
        frames.append(Frame(number, start, end, middle))
    return frames


def _oxts_trajectory(path: Path) -> tuple[Trajectory, NDArray[np.float64]]:
    """Return T_mercator_velodyne and the first position."""
    folder = path / "oxts"
    packets = numbered_files(folder / "data", ".txt")
    stamps = read_stamps(folder / "timestamps.txt")
    numbers = list(packets)
    if numbers[-1] >= len(stamps):
        raise FileError(f"{folder / 'timestamps.txt'}: has {len(stamps)} lines but there is a packet {numbers[-1]}")
    require_rising(folder / "timestamps.txt", numbers, stamps[numbers])
    values = [read_oxts(packet) for packet in packets.values()]
    poses = [mercator_pose(each, float(values[0][0])) for each in values]
    t_imu_velo = read_calibration(_calibration(path), "R", "T").inverse()
    trajectory = Trajectory.from_poses(stamps[numbers], poses) @ t_imu_velo
    return trajectory, trajectory.position_m[0]


def _calibration(path: Path) -> Path:
    name = "calib_imu_to_velo.txt"
    places = [path.resolve().parent / name, path / name]
    for place in places:
        if place.exists():
            return place
    raise FileError(
        f"{places[0]}: no such file; KITTI's calibration (2011_09_26_calib.zip) belongs beside the drive's folder"
    )
