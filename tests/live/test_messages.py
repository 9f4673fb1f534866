# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes: mcap-ros2-support, an independent reader and writer of ROS 2 messages, agrees with ours."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap_ros2._dynamic import generate_dynamic, serialize_dynamic
from rosbags.typesys import Stores, get_typestore

from hedgerow import InputError, Pose
from hedgerow.io.ros.messages import POINT, POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE
from hedgerow.live.publisher import encode_cloud, encode_transform, ros2_messages

ROS = ros2_messages()
KINDS = POINT_CLOUD2, TF_MESSAGE, POSE_STAMPED
POSE = Pose.from_xyz_rpy((1.5, -2, 1e6), (0.1, -0.2, 3))
# Another's reader and writer know of a message only what our definition, as it is sent to clients, says.
READ = {kind: generate_dynamic(kind, ROS.definition(kind))[kind] for kind in KINDS}
WRITE = {kind: serialize_dynamic(kind, ROS.definition(kind))[kind] for kind in KINDS}
# From ros2/common_interfaces, rcl_interfaces and geometry2, without the comments.
OF_ROS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseStamped": "std_msgs/Header header\ngeometry_msgs/Pose pose",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": "std_msgs/Header header\nstring child_frame_id\n"
    "geometry_msgs/Transform transform",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "sensor_msgs/PointField": "uint8 INT8=1\nuint8 UINT8=2\nuint8 INT16=3\nuint8 UINT16=4\nuint8 INT32=5\n"
    "uint8 UINT32=6\nuint8 FLOAT32=7\nuint8 FLOAT64=8\nstring name\nuint32 offset\nuint8 datatype\nuint32 count",
    "sensor_msgs/PointCloud2": "std_msgs/Header header\nuint32 height\nuint32 width\n"
    "sensor_msgs/PointField[] fields\nbool is_bigendian\nuint32 point_step\nuint32 row_step\nuint8[] data\n"
    "bool is_dense",
}


def some_points(n, seed=0):
    rng = np.random.default_rng(seed)
    points = np.empty(n, POINT)
    for name in ("x", "y", "z", "intensity", "time"):
        points[name] = rng.normal(size=n)
    points["ring"] = rng.integers(0, 1 << 16, n)
    return points


@given(st.integers(0, 40), st.integers(0, (1 << 31) * 10**9 - 1), st.text(max_size=9).filter(lambda t: "\0" not in t))
def test_another_reads_the_cloud_that_we_write(n, stamp_ns, frame_id):
    points = some_points(n)
    cloud = READ[POINT_CLOUD2](ROS.cloud(stamp_ns, frame_id, points))
    assert cloud.header.stamp.sec * 10**9 + cloud.header.stamp.nanosec == stamp_ns
    assert cloud.header.frame_id == frame_id
    assert (cloud.height, cloud.width, cloud.point_step, cloud.row_step) == (1, n, 22, 22 * n)
    assert [field.name for field in cloud.fields] == ["x", "y", "z", "intensity", "ring", "time"]
    assert [field.offset for field in cloud.fields] == [0, 4, 8, 12, 16, 18]
    assert [field.datatype for field in cloud.fields] == [7, 7, 7, 7, 4, 7]  # FLOAT32, UINT16 of PointField
    assert [field.count for field in cloud.fields] == [1] * 6
    assert (cloud.is_bigendian, cloud.is_dense) == (False, True)
    assert bytes(cloud.data) == points.tobytes()


@pytest.mark.parametrize("dense", [True, False])
def test_another_writes_the_same_bytes_as_we(dense):
    data = encode_cloud(some_points(5), 12_345_678_901, dense=dense)
    cloud = READ[POINT_CLOUD2](data)
    assert cloud.is_dense is dense
    assert WRITE[POINT_CLOUD2](cloud) == data


def test_rosbags_alone_writes_the_same_bytes_as_we_who_put_the_points_in_ourselves():
    data, alone = encode_cloud(some_points(5), 12_345_678_901), get_typestore(Stores.ROS2_HUMBLE)
    assert bytes(alone.serialize_cdr(alone.deserialize_cdr(data, POINT_CLOUD2), POINT_CLOUD2)) == data


def test_points_that_are_not_side_by_side_in_memory_are_written_as_if_they_were():
    points = some_points(10)
    assert encode_cloud(points[::2], 7) == encode_cloud(points[::2].copy(), 7)


@given(st.integers(0, 40))
def test_a_cloud_comes_back_as_it_was(n):
    points = some_points(n)
    cloud = ROS.read_cloud(encode_cloud(points, 7))
    assert (cloud.stamp_ns, cloud.frame_id) == (7, "lidar")
    assert cloud.points.dtype == POINT and np.array_equal(cloud.points, points)
    assert np.array_equal(cloud.xyz(), np.stack([points["x"], points["y"], points["z"]], axis=1))


def test_a_foreign_cloud_is_read_whatever_its_fields():
    message = READ[POINT_CLOUD2](encode_cloud(some_points(6), 7))
    kept = [message.fields[i] for i in (2, 4)]  # z and ring, in rows of three
    message.fields, message.height, message.width, message.row_step = kept, 2, 3, 66
    cloud = ROS.read_cloud(WRITE[POINT_CLOUD2](message))
    assert cloud.points.dtype.names == ("z", "ring")
    assert np.array_equal(cloud.points["ring"], some_points(6)["ring"])


def test_a_cloud_cut_anywhere_is_refused():
    data = encode_cloud(some_points(3), 7)
    for length in range(len(data) - 1):  # the last byte is is_dense, which nobody needs
        with pytest.raises(InputError, match="PointCloud2"):
            ROS.read_cloud(data[:length])


@given(st.binary(max_size=60), st.integers(0, 200))
def test_bytes_that_are_no_cloud_are_refused_or_read_but_never_crash(noise, at):
    data = bytearray(encode_cloud(some_points(3), 7))
    data[at : at + len(noise)] = noise
    try:
        ROS.read_cloud(bytes(data))
    except InputError as error:
        assert "PointCloud2" in str(error)


def test_another_reads_the_transform_that_we_write():
    data = encode_transform(POSE, 3_000_000_004)
    [placed] = READ[TF_MESSAGE](data).transforms
    assert (placed.header.frame_id, placed.child_frame_id) == ("map", "lidar")
    assert (placed.header.stamp.sec, placed.header.stamp.nanosec) == (3, 4)
    move, turn = placed.transform.translation, placed.transform.rotation
    assert [move.x, move.y, move.z] == POSE.position_m.tolist()
    assert [turn.x, turn.y, turn.z, turn.w] == POSE.quaternion_xyzw.tolist()
    assert WRITE[TF_MESSAGE](SimpleNamespace(transforms=[placed])) == data


def test_a_pose_of_another_is_read():
    x, y, z = POSE.position_m.tolist()
    qx, qy, qz, qw = POSE.quaternion_xyzw.tolist()
    header = {"stamp": {"sec": 3, "nanosec": 4}, "frame_id": "map"}
    pose = {"position": {"x": x, "y": y, "z": z}, "orientation": {"x": qx, "y": qy, "z": qz, "w": qw}}
    found = ROS.read_pose(WRITE[POSE_STAMPED]({"header": header, "pose": pose}))
    assert found == ([x, y, z], [qx, qy, qz, qw], 3_000_000_004)


@pytest.mark.parametrize(("start", "order"), [(b"\0\1\0\0", "<"), (b"\0\0\0\0", ">")])
def test_a_pose_in_either_order_of_bytes_is_read(start, order):
    numbers = [*POSE.position_m.tolist(), *POSE.quaternion_xyzw.tolist()]
    data = start + struct.pack(f"{order}iII4s7d", 3, 4, 4, b"map\0", *numbers)  # doubles at 16: no gap is needed
    assert ROS.read_pose(data) == (numbers[:3], numbers[3:], 3_000_000_004)


def test_a_pose_cut_anywhere_or_of_another_encoding_is_refused():
    data = b"\0\1\0\0" + struct.pack("<iII4s7d", 3, 4, 4, b"map\0", *range(7))
    for length in range(len(data)):
        with pytest.raises(InputError, match="PoseStamped"):
            ROS.read_pose(data[:length])
    with pytest.raises(InputError, match="PoseStamped: does not start like a CDR message, found 00 03 00 00"):
        ROS.read_pose(b"\0\3" + data[2:])  # a list of parameters


@pytest.mark.parametrize("name", KINDS)
def test_definitions_are_those_of_ros(name):
    first, *parts = ROS.definition(name).rstrip().split("\n" + "=" * 80 + "\nMSG: ")
    found = dict(part.split("\n", 1) for part in parts) | {name.replace("/msg/", "/"): first}
    assert set(found) <= set(OF_ROS)
    for part, text in found.items():
        assert text == OF_ROS[part], part
        for line in text.splitlines():
            kind = line.split()[0].removesuffix("[]")
            assert "/" not in kind or kind in found, line  # whatever it refers to is there


@pytest.mark.parametrize("stamp_ns", [1 << 62, (1 << 31) * 10**9])
def test_a_stamp_beyond_32_bits_of_seconds_is_refused(stamp_ns):
    with pytest.raises(InputError, match=r"stamp_ns: .* does not fit"):
        encode_cloud(some_points(1), stamp_ns)
    with pytest.raises(InputError, match=r"stamp_ns: .* does not fit"):
        encode_transform(POSE, stamp_ns)
