# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes: rosbags, an independent reader and writer of ROS 2 messages, agrees with ours."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from hedgerow import InputError, Pose
from hedgerow.io.ros.point_cloud2 import POINT
from hedgerow.live.definitions import DEFINITIONS, POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE
from hedgerow.live.point_cloud2 import decode, encode
from hedgerow.live.transforms import decode_pose, encode_pose, encode_transform

ROS = get_typestore(Stores.ROS2_HUMBLE)
POSE = Pose.from_xyz_rpy((1.5, -2, 1e6), (0.1, -0.2, 3))


def some_points(n, seed=0):
    rng = np.random.default_rng(seed)
    points = np.empty(n, POINT)
    for name in ("x", "y", "z", "intensity", "time"):
        points[name] = rng.normal(size=n)
    points["ring"] = rng.integers(0, 1 << 16, n)
    return points


@given(st.integers(0, 40), st.integers(0, (1 << 31) * 10**9 - 1), st.text(max_size=9).filter(lambda t: "\0" not in t))
def test_rosbags_reads_the_cloud_that_we_write(n, stamp_ns, frame_id):
    points = some_points(n)
    cloud: Any = ROS.deserialize_cdr(encode(points, stamp_ns, frame_id), POINT_CLOUD2)
    assert cloud.header.stamp.sec * 10**9 + cloud.header.stamp.nanosec == stamp_ns
    assert cloud.header.frame_id == frame_id
    assert (cloud.height, cloud.width, cloud.point_step, cloud.row_step) == (1, n, 22, 22 * n)
    assert [field.name for field in cloud.fields] == ["x", "y", "z", "intensity", "ring", "time"]
    assert [field.offset for field in cloud.fields] == [0, 4, 8, 12, 16, 18]
    assert [field.datatype for field in cloud.fields] == [7, 7, 7, 7, 4, 7]  # FLOAT32, UINT16 of PointField
    assert [field.count for field in cloud.fields] == [1] * 6
    assert (cloud.is_bigendian, cloud.is_dense) == (False, True)
    assert cloud.data.tobytes() == points.tobytes()


def test_rosbags_writes_the_same_bytes_as_we():
    data = encode(some_points(5), 12_345_678_901, "lidar", dense=False)
    assert bytes(ROS.serialize_cdr(ROS.deserialize_cdr(data, POINT_CLOUD2), POINT_CLOUD2)) == data


@given(st.integers(0, 40))
def test_a_cloud_comes_back_as_it_was(n):
    points = some_points(n)
    cloud = decode(encode(points, 7, "lidar"))
    assert (cloud.stamp_ns, cloud.frame_id) == (7, "lidar")
    assert cloud.points.dtype == POINT and np.array_equal(cloud.points, points)
    assert np.array_equal(cloud.xyz(), np.stack([points["x"], points["y"], points["z"]], axis=1))


def test_a_foreign_cloud_is_read_whatever_its_fields():
    message: Any = ROS.deserialize_cdr(encode(some_points(6), 7, "lidar"), POINT_CLOUD2)
    kept = [message.fields[i] for i in (2, 4)]  # z and ring, in rows of three
    message.fields, message.height, message.width, message.row_step = kept, 2, 3, 66
    cloud = decode(bytes(ROS.serialize_cdr(message, POINT_CLOUD2)))
    assert cloud.points.dtype.names == ("z", "ring")
    assert np.array_equal(cloud.points["ring"], some_points(6)["ring"])


def test_a_cloud_cut_anywhere_is_refused():
    data = encode(some_points(3), 7, "lidar")
    for length in range(len(data) - 1):  # the last byte is is_dense, which nobody needs
        with pytest.raises(InputError, match="PointCloud2"):
            decode(data[:length])


@given(st.binary(max_size=60), st.integers(0, 200))
def test_bytes_that_are_no_cloud_are_refused_or_read_but_never_crash(noise, at):
    data = bytearray(encode(some_points(3), 7, "lidar"))
    data[at : at + len(noise)] = noise
    try:
        decode(bytes(data))
    except InputError as error:
        assert "PointCloud2" in str(error)


def test_rosbags_reads_the_transform_that_we_write():
    message: Any = ROS.deserialize_cdr(encode_transform(POSE, 3_000_000_004, "map", "lidar"), TF_MESSAGE)
    [placed] = message.transforms
    assert (placed.header.frame_id, placed.child_frame_id) == ("map", "lidar")
    assert (placed.header.stamp.sec, placed.header.stamp.nanosec) == (3, 4)
    move, turn = placed.transform.translation, placed.transform.rotation
    assert [move.x, move.y, move.z] == POSE.position_m.tolist()
    assert [turn.x, turn.y, turn.z, turn.w] == POSE.quaternion_xyzw.tolist()


@pytest.mark.parametrize("little_endian", [True, False])
def test_a_pose_of_rosbags_is_read(little_endian):
    message: Any = ROS.deserialize_cdr(encode_pose(POSE, 3_000_000_004, "map"), POSE_STAMPED)
    data = bytes(ROS.serialize_cdr(message, POSE_STAMPED, little_endian=little_endian))
    position_m, quaternion, stamp_ns = decode_pose(data)
    assert position_m == POSE.position_m.tolist() and quaternion == POSE.quaternion_xyzw.tolist()
    assert stamp_ns == 3_000_000_004


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definitions_are_those_of_ros(name):
    found = get_types_from_msg(DEFINITIONS[name], name)
    for part, (constants, fields) in found.items():
        assert ROS.fielddefs[part] == (constants, fields), part


def test_a_stamp_beyond_32_bits_of_seconds_is_refused():
    with pytest.raises(InputError, match=r"stamp_ns: .* does not fit"):
        encode(some_points(1), 1 << 62, "lidar")
