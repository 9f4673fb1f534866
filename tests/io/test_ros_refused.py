# SPDX-License-Identifier: Apache-2.0
"""Bags that cannot be read, or leave a choice: each is refused in one sentence that says what to do."""

import sys

import numpy as np
import pytest
from bag_maker import START_NS, Maker, drive, points_at

import hedgerow as hr
from hedgerow.errors import FileError, MissingPackage


def test_several_topics_of_clouds_are_refused_by_name_and_one_is_chosen(tmp_path):
    maker = drive("mcap")
    maker.cloud(points_at(0), START_NS, topic="/rear/points")
    path = maker.write(tmp_path)
    with pytest.raises(FileError, match="several topics of clouds; choose topic= /rear/points, /velodyne_points"):
        hr.open_log(path)
    assert len(hr.open_log(path, topic="/velodyne_points").sweeps) == 3
    with pytest.raises(FileError, match="/front is no topic of clouds or packets; there are: /rear/points"):
        hr.open_log(path, topic="/front")


def test_several_topics_of_poses_are_refused_by_name_and_one_is_chosen(tmp_path):
    maker = drive("mcap", tf=False)
    for k in range(-2, 9):
        for topic in ("/a/odom", "/b/odom"):
            maker.odometry(START_NS + k * 50_000_000, (0, 0, ord(topic[1])), topic=topic)
    path = maker.write(tmp_path)
    with pytest.raises(FileError, match="several topics of poses; choose pose_topic= /a/odom, /b/odom"):
        hr.open_log(path)
    assert hr.read_log(path, 0, pose_topic="/b/odom").beams.origin_m[0, 2] == ord("b")
    with pytest.raises(FileError, match="/c is no topic of odometry or poses"):
        hr.open_log(path, pose_topic="/c")


def test_a_bag_without_clouds_or_poses_says_what_is_missing(tmp_path):
    maker = Maker("mcap")
    maker.odometry(START_NS, (0, 0, 0))
    with pytest.raises(
        FileError, match=r"no PointCloud2 or VelodyneScan messages; it has /odom \(nav_msgs/msg/Odometry\)"
    ):
        hr.open_log(maker.write(tmp_path))
    with pytest.raises(FileError, match="no way in TF from 'velodyne' to a map, and no odometry or poses"):
        hr.open_log(drive("bag", tf=False).write(tmp_path / "2"))


def test_tf_that_ends_early_leaves_the_sweeps_before(tmp_path):
    maker = drive("mcap", 10)
    cut = START_NS + 450_000_000
    maker.messages = [each for each in maker.messages if each[0] != "/tf" or each[2] <= cut]
    maker.tf(cut, "map", "odom", (5, 0, 0))
    source = hr.open_log(maker.write(tmp_path))
    assert len(source.read([0, 1, 2, 3])) == 200
    with pytest.raises(FileError, match=r"sweep 9: the poses end 0\.\d+ s before this sweep does; choose sweeps that"):
        source.read(9)


def test_stamps_that_go_back_are_refused(tmp_path):
    maker = drive("mcap")
    maker.cloud(points_at(0), START_NS + 150_000_000, bag_ns=START_NS + 400_000_000)
    with pytest.raises(FileError, match=r"/velodyne_points, cloud 3: its stamp is not later.*0\.050 s earlier"):
        hr.open_log(maker.write(tmp_path))
    maker = drive("mcap", tf=False)
    for k in range(5):
        maker.odometry(START_NS - k * 10**7, (0, 0, 0), bag_ns=START_NS + k)
    with pytest.raises(FileError, match=r"the stamps of /odom go back by 0\.010 s"):
        hr.open_log(maker.write(tmp_path / "2"))


def test_frames_that_form_a_loop_or_change_are_refused(tmp_path):
    maker = drive("mcap", tf=False)
    maker.tf(START_NS, "a", "velodyne", (0, 0, 0))
    maker.tf(START_NS, "velodyne", "a", (0, 0, 0))
    with pytest.raises(FileError, match="the frames of TF form a loop at 'velodyne'"):
        hr.open_log(maker.write(tmp_path))
    maker = drive("mcap")
    maker.cloud(points_at(0), START_NS + 10**9, frame="other")
    with pytest.raises(FileError, match="cloud 3: is in the frame 'other', not 'velodyne'"):
        hr.open_log(maker.write(tmp_path / "2"))


def test_a_transform_that_is_none_is_refused(tmp_path):
    maker = drive("mcap")
    maker.tf(START_NS + 1, "odom", "base_link", (np.nan, 0, 0))
    with pytest.raises(FileError, match="TF of base_link: position_m"):
        hr.open_log(maker.write(tmp_path))


def test_a_cloud_that_holds_less_than_it_says_is_refused(tmp_path):
    maker = drive("mcap")
    message = maker.messages[0][3]
    message.width = 10**6
    with pytest.raises(FileError, match="cloud 0: cloud: says it has 1 x 1000000 points of 22 bytes, but holds 1100"):
        hr.open_log(maker.write(tmp_path))
    maker = Maker("mcap")
    maker.cloud(np.zeros(3, [("range", "<f4")]), START_NS)
    with pytest.raises(FileError, match=r"the cloud has no fields x, y, z \(has range\)"):
        hr.open_log(maker.write(tmp_path / "2"), static=True)


def test_bags_without_rosbags_say_what_to_install(tmp_path, monkeypatch):
    path = drive("mcap").write(tmp_path)
    monkeypatch.setitem(sys.modules, "rosbags", None)
    with pytest.raises(MissingPackage, match=r"mcap: needs the package rosbags.*pip install 'hedgerow\[ros\]'"):
        hr.open_log(path)
