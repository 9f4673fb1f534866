# SPDX-License-Identifier: Apache-2.0
"""Makes the messages that a bag is written from, for ROS 1 or ROS 2."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.ros.point_cloud2 import fields_of, point_rows
from hedgerow.log import Log

Transform = tuple[int, str, str, NDArray[np.float64], NDArray[np.float64]]
"""Stamp [ns], parent, child, position, quaternion x y z w."""


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
    """Builds messages with the types of one version of ROS."""

    def __init__(self, types: Any, is_ros1: bool) -> None:
        """Take the types from a typestore of rosbags."""
        self._types, self._is_ros1 = types, is_ros1
        self._sequence = 0

    def bytes_of(self, message: Any, kind: str) -> bytes:
        """Serialise a message."""
        encode = self._types.serialize_ros1 if self._is_ros1 else self._types.serialize_cdr
        return bytes(encode(message, kind))

    def text(self, text: str) -> Any:
        """Make a std_msgs/String."""
        return self._make("std_msgs/msg/String", data=text)

    def cloud(self, stamp_ns: int, frame: str, rows: NDArray[np.void]) -> Any:
        """Make a PointCloud2 of a structured array."""
        described = [
            self._make("sensor_msgs/msg/PointField", name=name, offset=offset, datatype=number, count=count)
            for name, offset, number, count in fields_of(rows.dtype)
        ]
        return self._make(
            "sensor_msgs/msg/PointCloud2",
            header=self._header(stamp_ns, frame),
            height=1,
            width=len(rows),
            fields=described,
            is_bigendian=False,
            point_step=rows.dtype.itemsize,
            row_step=rows.nbytes,
            data=np.frombuffer(rows.tobytes(), np.uint8),
            is_dense=True,
        )

    def transforms(self, transforms: Sequence[Transform]) -> Any:
        """Make a TFMessage."""
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
        return self._make("tf2_msgs/msg/TFMessage", transforms=made)

    def _header(self, stamp_ns: int, frame: str) -> Any:
        stamp = self._make("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
        more: dict[str, Any] = {"seq": self._sequence} if self._is_ros1 else {}
        self._sequence = (self._sequence + 1) % 2**32
        return self._make("std_msgs/msg/Header", stamp=stamp, frame_id=frame, **more)

    def _make(self, kind: str, **values: Any) -> Any:
        return self._types.types[kind](**values)
