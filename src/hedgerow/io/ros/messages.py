# SPDX-License-Identifier: Apache-2.0
"""Messages of ROS 1 and ROS 2 as bytes: made for bags and for live output, and read as they come in live."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.io.ros.point_cloud2 import fields_of, point_rows, rows_of
from hedgerow.log import Log

POINT_CLOUD2 = "sensor_msgs/msg/PointCloud2"
TF_MESSAGE = "tf2_msgs/msg/TFMessage"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
STRING = "std_msgs/msg/String"

_NS_PER_S = 1_000_000_000
_NO_POINTS = np.zeros(0, np.uint8)
_PLAIN_CDR = b"\x00\x00", b"\x00\x01"  # what such a message starts with, big-endian or little-endian

Transform = tuple[int, str, str, NDArray[np.float64], NDArray[np.float64]]
"""Stamp [ns], parent, child, position, quaternion x y z w."""


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """A cloud as it came in."""

    stamp_ns: int
    """Start of the sweep [ns]."""
    frame_id: str
    """Frame that the points are in."""
    points: NDArray[Any]
    """(M,) with named fields; those of `POINT` if Hedgerow sent it. Read-only."""

    def xyz(self) -> NDArray[np.float32]:
        """Return the (M, 3) points, NaN where a pulse came back with nothing [m]."""
        return np.stack([self.points[name] for name in "xyz"], axis=-1)


def cloud_rows(
    sweep: Log, xyz: NDArray[np.float64], pulse: NDArray[np.intp], returned: NDArray[np.bool_] | None, start_ns: int
) -> NDArray[np.void]:
    """Return the points of a cloud in the layout of velodyne_pointcloud (x y z intensity ring time), and a label.

    Args:
        sweep: the log.
        xyz: (M, 3) points or directions.
        pulse: (M,) the pulse of each.
        returned: mask of the returns that they are, or None for pulses without any.
        start_ns: time that the field `time` counts from.
    """
    time_s = (sweep.beams.time_ns[pulse] - start_ns) * 1e-9
    intensity, label = sweep.returns.intensity, sweep.returns.label
    return point_rows(
        xyz,
        sweep.beams.ring[pulse],
        time_s,
        0 if returned is None or intensity is None else intensity[returned],
        None if returned is None or label is None else label[returned],
    )


class Messages:
    """Turns content into the bytes of messages, and back, with the types of one version of ROS."""

    def __init__(self, types: Any, is_ros1: bool) -> None:
        """Take the types from a typestore of rosbags."""
        self._types, self._is_ros1 = types, is_ros1
        self._sequence = 0

    def text(self, text: str) -> bytes:
        """Make a std_msgs/String."""
        return self._bytes(self._make(STRING, data=text), STRING)

    def cloud(self, stamp_ns: int, frame: str, rows: NDArray[Any], *, dense: bool = True) -> bytes:
        """Make a PointCloud2 of a structured array.

        Args:
            stamp_ns: start of the sweep [ns].
            frame: frame that the points are in.
            rows: (M,) points.
            dense: whether no point is NaN.

        Raises:
            InputError: the stamp does not fit into the message.
        """
        described = [
            self._make("sensor_msgs/msg/PointField", name=name, offset=offset, datatype=number, count=count)
            for name, offset, number, count in fields_of(rows.dtype)
        ]
        message = self._make(
            POINT_CLOUD2,
            header=self._header(stamp_ns, frame),
            height=1,
            width=len(rows),
            fields=described,
            is_bigendian=False,
            point_step=rows.dtype.itemsize,
            row_step=rows.nbytes,
            data=_NO_POINTS,
            is_dense=dense,
        )
        # The points are put in here: rosbags would copy them twice, which takes 8 to 16 ms for 130,000 of them. The
        # message ends with their length, four bytes that are zero now, the points, and a byte for is_dense.
        empty = self._bytes(message, POINT_CLOUD2)
        return b"".join([empty[:-5], struct.pack("<I", rows.nbytes), np.ascontiguousarray(rows).data, empty[-1:]])

    def transforms(self, transforms: Sequence[Transform]) -> bytes:
        """Make a TFMessage.

        Raises:
            InputError: a stamp does not fit into the message.
        """
        made: list[Any] = []
        for stamp_ns, parent, child, position, turn in transforms:
            x, y, z = position.tolist()
            translation = self._make("geometry_msgs/msg/Vector3", x=x, y=y, z=z)
            qx, qy, qz, qw = turn.tolist()
            rotation = self._make("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw)
            transform = self._make("geometry_msgs/msg/Transform", translation=translation, rotation=rotation)
            header = self._header(stamp_ns, parent)
            made.append(
                self._make(
                    "geometry_msgs/msg/TransformStamped", header=header, child_frame_id=child, transform=transform
                )
            )
        return self._bytes(self._make(TF_MESSAGE, transforms=made), TF_MESSAGE)

    def definition(self, kind: str) -> str:
        """Return what a message of ROS 2 consists of, in the text form (ros2msg) that clients are told."""
        return str(self._types.generate_msgdef(kind, ros_version=2)[0])

    def read_cloud(self, data: bytes) -> Cloud:
        """Read a PointCloud2 with any fields from CDR; its points look into `data`.

        Raises:
            InputError: cut off, or it does not hold the points that it says.
        """
        message = self._read(data, POINT_CLOUD2)
        fields = [(field.name, field.offset, field.datatype, field.count) for field in message.fields]
        shape, steps = (message.height, message.width), (message.point_step, message.row_step)
        try:
            points = rows_of(fields, message.data, shape, steps, message.is_bigendian).ravel()
        except InputError as error:
            raise InputError("PointCloud2", f"{error}") from None
        return Cloud(_stamp_ns(message.header), message.header.frame_id, points)

    def read_pose(self, data: bytes) -> tuple[list[float], list[float], int]:
        """Read a PoseStamped from CDR.

        Returns:
            Position (3,) [m], quaternion (4,) x y z w, both as they came, not checked; stamp [ns].

        Raises:
            InputError: cut off, or no CDR.
        """
        message = self._read(data, POSE_STAMPED)
        at, turn = message.pose.position, message.pose.orientation
        return [at.x, at.y, at.z], [turn.x, turn.y, turn.z, turn.w], _stamp_ns(message.header)

    def _read(self, data: bytes, kind: str) -> Any:
        name = kind.rpartition("/")[2]
        if data[:2] not in _PLAIN_CDR or len(data) < 4:  # rosbags looks at the second byte alone
            raise InputError(name, f"does not start like a CDR message, found {data[:4].hex(' ') or 'nothing'}")
        from rosbags.serde import SerdeError

        try:
            return self._types.deserialize_cdr(data, kind)
        except (SerdeError, AssertionError, LookupError, ValueError, struct.error) as error:
            raise InputError(name, f"its {len(data)} bytes are cut off or damaged; send it whole") from error

    def _header(self, stamp_ns: int, frame: str) -> Any:
        seconds, nanoseconds = divmod(stamp_ns, _NS_PER_S)
        first = 0 if self._is_ros1 else -(1 << 31)
        if not first <= seconds < first + (1 << 32):
            raise InputError("stamp_ns", f"{stamp_ns} ns does not fit into the 32 bits of seconds of a ROS message")
        stamp = self._make("builtin_interfaces/msg/Time", sec=seconds, nanosec=nanoseconds)
        more: dict[str, Any] = {"seq": self._sequence} if self._is_ros1 else {}
        self._sequence = (self._sequence + 1) % 2**32
        return self._make("std_msgs/msg/Header", stamp=stamp, frame_id=frame, **more)

    def _bytes(self, message: Any, kind: str) -> bytes:
        encode = self._types.serialize_ros1 if self._is_ros1 else self._types.serialize_cdr
        return bytes(encode(message, kind))

    def _make(self, kind: str, **values: Any) -> Any:
        return self._types.types[kind](**values)


def _stamp_ns(header: Any) -> int:
    return int(header.stamp.sec) * _NS_PER_S + int(header.stamp.nanosec)
