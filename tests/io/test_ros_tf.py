# SPDX-License-Identifier: Apache-2.0
"""Chains of transforms against products of matrices; orders, repetitions and trees that are none."""

from types import SimpleNamespace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import FileError
from hedgerow.io.ros.poses import Transforms


def message(stamp_ns, parent, child, pose):
    x, y, z = pose.position_m
    turn = dict(zip("xyzw", pose.quaternion_xyzw, strict=True))
    header = SimpleNamespace(stamp=SimpleNamespace(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9), frame_id=parent)
    transform = SimpleNamespace(translation=SimpleNamespace(x=x, y=y, z=z), rotation=SimpleNamespace(**turn))
    return SimpleNamespace(transforms=[SimpleNamespace(header=header, child_frame_id=child, transform=transform)])


def random_pose(rng):
    return hr.Pose.from_xyz_rpy(rng.uniform(-5, 5, 3), rng.uniform(-0.5, 0.5, 3))


def test_a_chain_of_two_moving_and_two_fixed_links_is_the_product_of_their_matrices():
    rng = np.random.default_rng(1)
    tree = Transforms("bag")
    slow = {k * 1000: random_pose(rng) for k in range(5)}
    fast = {500 + k * 250: random_pose(rng) for k in range(15)}
    base, lidar = random_pose(rng), random_pose(rng)
    for stamp in rng.permutation(list(slow)).tolist():  # in no order
        tree.add(message(stamp, "map", "odom", slow[stamp]), is_static=False)
    for stamp, pose in fast.items():
        tree.add(message(stamp, "/odom", "/base", random_pose(rng)), is_static=False)  # replaced by the next
        tree.add(message(stamp, "odom", "base", pose), is_static=False)
    tree.add(message(9, "base", "mast", random_pose(rng)), is_static=True)
    tree.add(message(3, "base", "mast", base), is_static=True)  # the last one counts
    tree.add(message(7, "mast", "lidar", lidar), is_static=False)  # told once
    assert tree.root("lidar", None) == "map"
    found = tree.path("map", "lidar")
    assert isinstance(found, hr.Trajectory)
    assert (found.start_ns, found.end_ns) == (500, 4000)  # what both cover
    for stamp in found.time_ns.tolist():
        outer = hr.Trajectory.from_poses(list(slow), list(slow.values())).pose_at(stamp)
        inner = hr.Trajectory.from_poses(list(fast), list(fast.values())).pose_at(stamp)
        expected = outer.matrix() @ inner.matrix() @ base.matrix() @ lidar.matrix()
        np.testing.assert_allclose(found.pose_at(stamp).matrix(), expected, atol=1e-12)


def test_nothing_that_moves_is_a_pose_and_no_map():
    rng = np.random.default_rng(2)
    tree, first, second = Transforms("bag"), random_pose(rng), random_pose(rng)
    tree.add(message(0, "base", "mast", first), is_static=True)
    tree.add(message(0, "mast", "lidar", second), is_static=True)
    still = tree.path("base", "lidar")
    assert isinstance(still, hr.Pose)
    np.testing.assert_allclose(still.matrix(), first.matrix() @ second.matrix(), atol=1e-12)
    assert tree.root("lidar", None) is None
    assert tree.root("lidar", "base") == "base"
    tree.add(message(0, "world", "base", first), is_static=True)
    assert tree.root("lidar", None) == "world"


def test_two_parents_and_links_that_share_no_time_are_refused():
    rng = np.random.default_rng(3)
    tree = Transforms("bag")
    for stamp in (0, 10):
        tree.add(message(stamp, "map", "odom", random_pose(rng)), is_static=False)
        tree.add(message(stamp + 50, "odom", "lidar", random_pose(rng)), is_static=False)
    with pytest.raises(FileError, match="the transforms of TF between the map and the sensor share no time"):
        tree.path("map", "lidar")
    tree.add(message(0, "world", "odom", random_pose(rng)), is_static=False)
    with pytest.raises(FileError, match="TF says that 'odom' hangs on 'map' and on 'world'; give a trajectory"):
        tree.root("lidar", None)
