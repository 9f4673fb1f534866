# SPDX-License-Identifier: Apache-2.0
"""Messages of ROS 1 and ROS 2 as bytes: made for bags and for live output, and read as they come in live.

Written clouds have the fields x y z intensity ring time in the layout of velodyne_pointcloud, 22 bytes a point; after
them return_type and return_number if pulses can have several returns, a label if there is one, and rgb (PCL's) if there
are colours. Clouds that are read
may have any fields.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base.rgb import as_float_bits
from hedgerow.errors import InputError
from hedgerow.log import Log, Returns

POINT_CLOUD2 = "sensor_msgs/msg/PointCloud2"
TF_MESSAGE = "tf2_msgs/msg/TFMessage"
ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
STRING = "std_msgs/msg/String"

_NS_PER_S = 1_000_000_000
_NO_POINTS = np.zeros(0, np.uint8)
_PLAIN_CDR = b"\x00\x00", b"\x00\x01"  # what such a message starts with, big-endian or little-endian

Transform = tuple[int, str, str, NDArray[np.float64], NDArray[np.float64]]
"""Stamp [ns], parent, child, position, quaternion x y z w."""
POINT = np.dtype(
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")]
)  # fmt: skip
"""One point in the layout of velodyne_pointcloud: place in the sensor frame [m], intensity as the sensor reports it,
laser, time after the stamp [s]."""
_RETURN = [("return_type", "u1"), ("return_number", "u1")]
_LABEL = [("label", "<u2")]
_RGB = [("rgb", "<f4")]
ONLY, STRONGEST_FIRST, STRONGEST_LAST, WEAK_FIRST, WEAK_LAST = 7, 3, 4, 5, 6
"""What `return_type` says of a pulse that can have several returns, in the numbers of Autoware's point types, which
Ouster's driver has too: the only return it got, or the nearest or farthest of several, and whether that is the
strongest of them. 0 is any other, for which there is no word, or no return."""

Field = tuple[str, int, int, int]
"""A PointField: name, offset, number of its type, count."""
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8", 9: "i8", 10: "u8"}
_NUMBERS = {np.dtype(kind): number for number, kind in _TYPES.items()}
_MAX_POINTS = 50_000_000
_MOST_FIELDS = 100


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedCloud:
    """A cloud as it came in live."""

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
    intensity, label, kinds = sweep.returns.intensity, sweep.returns.label, return_kinds(sweep.returns)
    colour = sweep.returns.colour
    return point_rows(
        xyz,
        sweep.beams.ring[pulse],
        time_s,
        0 if returned is None or intensity is None else intensity[returned],
        None if returned is None or label is None else label[returned],
        None if kinds is None else (0, 0) if returned is None else (kinds[0][returned], kinds[1][returned]),
        None if returned is None or colour is None else colour[returned],
    )


def return_kinds(returns: Returns) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """Say which of its pulse's returns each one is; None if pulses have one return at most.

    Returns:
        `return_type` and `return_number`, in the shape of the ranges. The number is 1 for the nearest return of a
        pulse, 2 for the next; 0 where there is none. Where intensities are not known the nearest counts as strongest.
    """
    if returns.n_per_pulse == 1:
        return None
    hit = returns.hit
    slot: NDArray[np.int64] = np.arange(hit.shape[1], dtype=np.int64)
    count: NDArray[np.int64] = np.count_nonzero(hit, axis=1)[:, None]
    strength = np.zeros(hit.shape) if returns.intensity is None else np.nan_to_num(returns.intensity, nan=-np.inf)
    strongest = slot == np.argmax(np.where(hit, strength, -np.inf), axis=1)[:, None]
    kind = np.zeros(hit.shape, np.uint8)
    kind[:, 0] = np.where(strongest[:, 0], STRONGEST_FIRST, WEAK_FIRST)
    last = (slot > 0) & (slot == count - 1)
    kind[last] = np.where(strongest[last], STRONGEST_LAST, WEAK_LAST)
    kind[count[:, 0] == 1, 0] = ONLY
    return np.where(hit, kind, 0).astype(np.uint8), np.where(hit, slot + 1, 0).astype(np.uint8)


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
            rows: (M,) points, or (height, width) of an organised cloud.
            dense: whether no point is NaN.

        Raises:
            InputError: the stamp does not fit into the message.
        """
        described = [
            self._make("sensor_msgs/msg/PointField", name=name, offset=offset, datatype=number, count=count)
            for name, offset, number, count in fields_of(rows.dtype)
        ]
        height, width = (1, *rows.shape)[-2:]
        message = self._make(
            POINT_CLOUD2,
            header=self._header(stamp_ns, frame),
            height=height,
            width=width,
            fields=described,
            is_bigendian=False,
            point_step=rows.dtype.itemsize,
            row_step=width * rows.dtype.itemsize,
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

    def read_cloud(self, data: bytes) -> ReceivedCloud:
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
        return ReceivedCloud(stamp_ns(message.header.stamp), message.header.frame_id, points)

    def read_pose(self, data: bytes) -> tuple[list[float], list[float], int]:
        """Read a PoseStamped from CDR.

        Returns:
            Position (3,) [m], quaternion (4,) x y z w, both as they came, not checked; stamp [ns].

        Raises:
            InputError: cut off, or no CDR.
        """
        message = self._read(data, POSE_STAMPED)
        at, turn = message.pose.position, message.pose.orientation
        return [at.x, at.y, at.z], [turn.x, turn.y, turn.z, turn.w], stamp_ns(message.header.stamp)

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


def stamp_ns(stamp: Any) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(stamp.sec) * _NS_PER_S + int(stamp.nanosec)


def point_rows(
    xyz: NDArray[Any],
    ring: NDArray[Any],
    time_s: NDArray[Any],
    intensity: ArrayLike,
    label: ArrayLike | None = None,
    kinds: tuple[ArrayLike, ArrayLike] | None = None,
    colour: NDArray[np.uint32] | None = None,
) -> NDArray[np.void]:
    """Return the points of a cloud, (M,) of type `POINT`, with more fields behind these if there is more.

    Args:
        xyz: (M, 3) places or directions.
        ring: (M,) laser.
        time_s: (M,) after the stamp [s].
        intensity: (M,), or one for all.
        label: (M,) semantic class.
        kinds: `return_type` and `return_number`, (M,) each or one for all.
        colour: (M,) 0xRRGGBB.
    """
    more = ([] if kinds is None else _RETURN) + ([] if label is None else _LABEL) + ([] if colour is None else _RGB)
    rows = np.empty(len(xyz), np.dtype([*POINT.descr, *more]))
    for axis, name in enumerate("xyz"):
        rows[name] = xyz[:, axis]
    rows["ring"], rows["time"], rows["intensity"] = ring, time_s, intensity
    if kinds is not None:
        rows["return_type"], rows["return_number"] = kinds
    if label is not None:
        rows["label"] = label
    if colour is not None:
        rows["rgb"] = as_float_bits(colour)
    return rows


def fields_of(dtype: np.dtype[Any]) -> list[Field]:
    """Describe the fields of a structured type."""
    fields = dict(dtype.fields or {})
    return [(name, int(each[1]), _NUMBERS[each[0].newbyteorder("=")], 1) for name, each in fields.items()]


def rows_of(
    fields: Iterable[Field], data: NDArray[np.uint8], shape: tuple[int, int], steps: tuple[int, int], big_endian: bool
) -> NDArray[np.void]:
    """Return the content of a cloud as a structured array, (height, width).

    Args:
        fields: of a point; those that are lists, or of an unknown type, are left out.
        data: bytes of the points.
        shape: height, width.
        steps: bytes from point to point, and from row to row; 0 for the latter is what the points need.
        big_endian: whether numbers have their highest byte first.

    Raises:
        InputError: there are fewer bytes than points, or fields outside of the points.
    """
    (height, width), (step, row_step) = shape, steps
    order = ">" if big_endian else "<"
    chosen: dict[str, tuple[str, int]] = {}
    for name, offset, number, count in fields:
        if count in (0, 1) and number in _TYPES and name and name not in chosen and len(chosen) < _MOST_FIELDS:
            chosen[name] = order + _TYPES[number], offset
    row_step = row_step or width * step
    fits = step > 0 and all(at + np.dtype(kind).itemsize <= step for kind, at in chosen.values())
    if not fits or row_step < width * step or len(data) < height * row_step or height * width > _MAX_POINTS:
        raise InputError(
            "cloud",
            f"says it has {height} x {width} points of {step} bytes, but holds {len(data)} bytes or has "
            "fields outside of its points",
        )
    formats, offsets = [each[0] for each in chosen.values()], [each[1] for each in chosen.values()]
    if not height * width:
        return np.zeros((1, 0), np.dtype({"names": list(chosen), "formats": formats}))
    kind = np.dtype({"names": list(chosen), "formats": formats, "offsets": offsets, "itemsize": step})
    rows = data[: height * row_step].reshape(height, row_step)[:, : width * step]
    return np.ascontiguousarray(rows).view(kind).reshape(height, width)
