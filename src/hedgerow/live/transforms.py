# SPDX-License-Identifier: Apache-2.0
"""Poses as ROS messages: TFMessage out, PoseStamped both ways."""

from hedgerow.frames import Pose
from hedgerow.live.cdr import Reader, Writer


def encode_transform(pose: Pose, stamp_ns: int, frame_id: str, child_frame_id: str) -> bytes:
    """Write a tf2_msgs/TFMessage of one transform, T_frame_child, as CDR.

    Raises:
        InputError: the stamp does not fit into the message.
    """
    message = Writer()
    message.numbers("I", 1)
    message.stamp(stamp_ns)
    message.text(frame_id)
    message.text(child_frame_id)
    message.numbers("d", *pose.position_m, *pose.quaternion_xyzw)
    return message.bytes()


def encode_pose(pose: Pose, stamp_ns: int, frame_id: str) -> bytes:
    """Write a geometry_msgs/PoseStamped, T_frame_sensor, as CDR.

    Raises:
        InputError: the stamp does not fit into the message.
    """
    message = Writer()
    message.stamp(stamp_ns)
    message.text(frame_id)
    message.numbers("d", *pose.position_m, *pose.quaternion_xyzw)
    return message.bytes()


def decode_pose(data: bytes) -> tuple[list[float], list[float], int]:
    """Read a geometry_msgs/PoseStamped from CDR.

    Returns:
        Position (3,) [m], quaternion (4,) x y z w, both as they came, not checked; stamp [ns].

    Raises:
        InputError: cut off, or no CDR.
    """
    message = Reader(data, "PoseStamped")
    stamp_ns = message.stamp()
    message.text()  # the frame: there is only one, the map
    numbers = [float(number) for number in message.numbers("d", 7)]
    return numbers[:3], numbers[3:], stamp_ns
