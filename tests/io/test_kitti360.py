# SPDX-License-Identifier: Apache-2.0
"""KITTI-360: the chain of transforms in closed form, poses that are missing, and damage."""

import shutil

import numpy as np
import pytest
from kitti360_maker import NAME, WORLD_M, write_drive
from kitti_maker import points
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import FileError, HedgerowWarning
from hedgerow.io import open_log, read_log
from hedgerow.io.formats import format_of
from hedgerow.io.kitti360 import Kitti360Drive

FRAMES = range(3, 8)


def pose_of(frame: int) -> hr.Pose:
    """2 m and 0.1 rad a frame."""
    return hr.Pose.from_xyz_rpy((2.0 * frame, 1.0, 2.0), (0.01, -0.02, 0.1 * frame))


def make(folder, without_pose=()):
    return write_drive(
        folder, {k: points(k) for k in FRAMES}, {k: pose_of(k) for k in FRAMES}, without_pose=without_pose
    )


def test_points_and_poses_are_those_of_the_lidar(tmp_path):
    drive = Kitti360Drive.open(make(tmp_path))
    assert list(drive.files) == list(drive.poses) == list(FRAMES)
    assert_allclose(drive.cloud(4), points(4))
    for frame in FRAMES:
        assert_allclose(drive.poses[frame].matrix(), (hr.Pose(WORLD_M) @ pose_of(frame)).matrix(), atol=1e-9)


def test_a_frame_without_a_pose_takes_the_last_one(tmp_path):
    drive = Kitti360Drive.open(make(tmp_path, without_pose=(3, 5, 6)))
    assert drive.last_pose(5) is drive.last_pose(6) is drive.poses[4]
    with pytest.raises(FileError, match="frame 3 has no pose"):
        drive.last_pose(3)
    with pytest.raises(FileError, match=r"holds no 0000000009\.bin"):
        drive.cloud(9)


def test_a_drive_is_a_log_with_the_pose_of_each_instant(tmp_path):
    folder = make(tmp_path)
    assert format_of(folder, reading=True).name == "kitti-360"
    log = read_log(folder, 5, recover="no")
    assert (log.sensor, log.max_range_m, log.metadata["motion"]) == ("hdl-64e-s2", 80.0, "raw")
    cloud = points(5)
    assert len(log) == len(cloud)
    # The sensor looks ahead at the time stamp and turns clockwise: 2 m a sweep, from a metre before to one behind.
    share = ((np.pi - np.arctan2(cloud[:, 1], cloud[:, 0])) % (2 * np.pi)) / (2 * np.pi) - 0.5
    expected_m = pose_of(5).position_m + WORLD_M - log.map_origin_m + share[:, None] * [2.0, 0, 0]
    assert_allclose(log.beams.origin_m, expected_m, atol=1e-5)  # float32 azimuths
    assert_allclose(log.returns.range_m, np.linalg.norm(cloud[:, :3], axis=1), rtol=1e-6)
    assert np.abs(log.map_origin_m - WORLD_M).max() < 10


def test_sweeps_without_poses_lie_between_others_or_are_left_out(tmp_path):
    folder = make(tmp_path, without_pose=(3, 5))
    with pytest.warns(HedgerowWarning, match="1 sweeps before the first pose"):
        source = open_log(folder, recover="no")
    assert source.sweeps.tolist() == [4, 5, 6, 7]
    whole = read_log(make(tmp_path / "whole"), 5, recover="no")
    between = source.read([5])
    assert_allclose(
        between.points() + between.map_origin_m, whole.points() + whole.map_origin_m, atol=0.02
    )  # 2 m at an even speed; the turn bends nothing but orientations, SLERP of 0.1 rad each


@pytest.mark.parametrize(
    ("place", "text", "match"),
    [
        (
            f"data_poses/{NAME}/poses.txt",
            2 * "3 1 0 0 0 0 1 0 0 0 0 1 0\n",
            "line 2: expected a",
        ),
        (f"data_poses/{NAME}/poses.txt", "3.5 1 0 0 0 0 1 0 0 0 0 1 0\n", "line 1: expected a frame"),
        (f"data_poses/{NAME}/poses.txt", "3 9 0 0 0 0 1 0 0 0 0 1 0\n", "poses.txt, line 1"),
        (f"data_poses/{NAME}/poses.txt", "3 1 0 0\n", "expected 13 numbers"),
        ("calibration/calib_cam_to_velo.txt", "1 0 0 0\n", "expected 12 numbers"),
        ("calibration/calib_cam_to_velo.txt", "7 0 0 0 0 1 0 0 0 0 1 0\n", "calib_cam_to_velo.txt"),
        ("calibration/calib_cam_to_pose.txt", "image_01: 1 0 0 0\n", "no line 'image_00:'"),
        (
            f"data_3d_raw/{NAME}/velodyne_points/timestamps.txt",
            "2013-05-28 08:46:00\n",
            "has 1 lines but there is a fr",
        ),
        (f"data_3d_raw/{NAME}/velodyne_points/timestamps.txt", "yesterday\n", "is not a date"),
    ],
)
def test_damaged_files_are_refused_with_their_place(tmp_path, place, text, match):
    folder = make(tmp_path)
    (tmp_path / place).write_text(text)
    with pytest.raises(FileError, match=match) as caught:
        open_log(folder, recover="no", format="kitti-360")
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(tmp_path):
    folder = make(tmp_path)
    shutil.rmtree(tmp_path / "data_poses")
    with pytest.raises(FileError, match=r"poses\.txt"):
        open_log(folder)
