# SPDX-License-Identifier: Apache-2.0
"""Small drives in the layout of KITTI-360."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import hedgerow as hr

NAME = "2013_05_28_drive_0000_sync"
# The camera's axes are x right, y down, z forward, the IMU's x forward, y right, z down, the lidar's those of REP 103.
CAM_TO_IMU = hr.Pose.from_matrix([[0, 0, 1, 1.6], [1, 0, 0, 0.1], [0, 1, 0, -0.7]])
CAM_TO_VELO = hr.Pose.from_matrix([[0, 0, 1, 0.8], [-1, 0, 0, 0.3], [0, -1, 0, -0.2]])
WORLD_M = np.array([1300.0, 3600.0, 110.0])
"""Where KITTI-360's coordinates are: far from 0."""


def write_drive(
    root: Path, clouds: Mapping[int, np.ndarray], poses: Mapping[int, hr.Pose], without_pose: tuple[int, ...] = ()
) -> Path:
    """Write clouds, (N, 4) each, and T_map_velodyne by frame; returns the folder of the drive."""
    drive = root / "data_3d_raw" / NAME
    for folder in (drive / "velodyne_points" / "data", root / "data_poses" / NAME, root / "calibration"):
        folder.mkdir(parents=True)
    for frame, cloud in clouds.items():
        cloud.astype("<f4").tofile(drive / "velodyne_points" / "data" / f"{frame:010d}.bin")
    t_velo_imu = CAM_TO_VELO @ CAM_TO_IMU.inverse()
    moved = hr.Pose(WORLD_M)
    lines = [
        f"{frame} {_numbers(moved @ pose @ t_velo_imu)}\n" for frame, pose in poses.items() if frame not in without_pose
    ]
    (root / "data_poses" / NAME / "poses.txt").write_text("".join(lines))
    (root / "calibration" / "calib_cam_to_velo.txt").write_text(_numbers(CAM_TO_VELO) + "\n")
    named = [f"image_0{k}: {_numbers(CAM_TO_IMU)}\n" for k in range(4)]
    (root / "calibration" / "calib_cam_to_pose.txt").write_text("".join(named))
    start = np.datetime64("2013-05-28T08:46:00", "ns")
    stamps = [str(start + np.timedelta64(100_000_000 * k, "ns")).replace("T", " ") for k in range(max(clouds) + 1)]
    (drive / "velodyne_points" / "timestamps.txt").write_text("\n".join(stamps) + "\n")
    return drive


def _numbers(pose: hr.Pose) -> str:
    return " ".join(map(repr, pose.matrix()[:3].ravel().tolist()))


def points_from(log: hr.Log, pose: hr.Pose) -> np.ndarray:
    """Return the returns of a sweep in the frame of a sensor, (N, 4) with their intensities."""
    hit = np.isfinite(log.returns.first_m)
    inner = pose.inverse().transform(log.points())
    intensity = log.returns.first("intensity")
    return np.column_stack([inner, np.zeros(hit.sum()) if intensity is None else np.nan_to_num(intensity[hit])])


ELEVATIONS_DEG = np.concatenate([np.linspace(2, -8, 12), np.linspace(-9.5, -24, 8)])
"""Of the lasers of a small sensor: farther apart below, as those of an HDL-64E are."""


def fire_drive(root: Path, world: hr.World, start: int, n_frames: int, columns: int = 360, seed: int = 3) -> Path:
    """Drive 0.3 m a frame through a world and write what came back; returns the root folder."""
    elevation = np.repeat(np.deg2rad(ELEVATIONS_DEG), columns)
    azimuth = np.tile(np.pi - (np.arange(columns) + 0.5) / columns * 2 * np.pi, len(ELEVATIONS_DEG))
    flat = np.cos(elevation)
    direction = np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    clouds: dict[int, np.ndarray] = {}
    poses: dict[int, hr.Pose] = {}
    for k in range(n_frames):
        pose = hr.Pose.from_xyz_rpy((0.3 * k - 1.5, 0.0, 1.7), (0, 0, 0.01 * k))
        turned = hr.Pose(np.zeros(3), pose.quaternion_xyzw).transform(direction)
        pulse = np.arange(len(turned)) + k * 10**6
        beams = hr.Beams.from_arrays(origins=pose.position_m, directions=turned, pulses=pulse)
        clouds[start + k] = points_from(world.fire(beams, seed=seed, limits_m=(0.5, 80)), pose)
        poses[start + k] = pose
    write_drive(root, clouds, poses)
    return root
