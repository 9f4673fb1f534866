# SPDX-License-Identifier: Apache-2.0
"""What the ROS 2 messages consist of, in the text form (ros2msg) that the socket hands to its clients.

From ros2/common_interfaces and ros2/geometry2 without the comments.
"""

_STAMP = "builtin_interfaces/Time", "int32 sec\nuint32 nanosec"
_HEADER = "std_msgs/Header", "builtin_interfaces/Time stamp\nstring frame_id"
_POINT = "geometry_msgs/Point", "float64 x\nfloat64 y\nfloat64 z"
_VECTOR = "geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z"
_QUATERNION = "geometry_msgs/Quaternion", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w"
_POSE = "geometry_msgs/Pose", "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation"
_TRANSFORM = "geometry_msgs/Transform", "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation"
_PLACED = (
    "geometry_msgs/TransformStamped",
    "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform",
)
_FIELD = (
    "sensor_msgs/PointField",
    "uint8 INT8=1\nuint8 UINT8=2\nuint8 INT16=3\nuint8 UINT16=4\nuint8 INT32=5\nuint8 UINT32=6\nuint8 FLOAT32=7\n"
    "uint8 FLOAT64=8\nstring name\nuint32 offset\nuint8 datatype\nuint32 count",
)


def _definition(fields: str, *parts: tuple[str, str]) -> str:
    ruler = "=" * 80
    return "\n".join([fields, *(f"{ruler}\nMSG: {name}\n{text}" for name, text in parts)]) + "\n"


POINT_CLOUD2 = "sensor_msgs/msg/PointCloud2"
TF_MESSAGE = "tf2_msgs/msg/TFMessage"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"

DEFINITIONS = {
    POINT_CLOUD2: _definition(
        "std_msgs/Header header\nuint32 height\nuint32 width\nsensor_msgs/PointField[] fields\nbool is_bigendian\n"
        "uint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense",
        _HEADER,
        _STAMP,
        _FIELD,
    ),
    TF_MESSAGE: _definition(
        "geometry_msgs/TransformStamped[] transforms", _PLACED, _HEADER, _STAMP, _TRANSFORM, _VECTOR, _QUATERNION
    ),
    POSE_STAMPED: _definition(
        "std_msgs/Header header\ngeometry_msgs/Pose pose", _HEADER, _STAMP, _POSE, _POINT, _QUATERNION
    ),
}
"""Text of each message by name."""
