# SPDX-License-Identifier: Apache-2.0
"""PointCloud2, the ROS message for clouds, to bytes and back.

Written clouds have the fields x y z intensity ring time in the layout of the Velodyne driver, 22 bytes a point. Any
little-endian cloud can be read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.live.cdr import Reader, Writer

POINT = np.dtype(
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")]
)  # fmt: skip
"""One point: sensor frame [m], as the sensor reports it, laser, after the stamp [s]."""

_FIELDS: dict[str, tuple[np.dtype[Any], int]] = {name: each[:2] for name, each in dict(POINT.fields or {}).items()}
_TYPES = ("|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8")  # numbered from 1
_KIND = "PointCloud2"


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """A cloud as it came in."""

    stamp_ns: int
    """Start of the sweep [ns]."""
    frame_id: str
    """Frame that the points are in."""
    points: NDArray[Any]
    """(M,) with named fields; those of `POINT` if Hedgerow sent it."""

    def xyz(self) -> NDArray[np.float32]:
        """Return the (M, 3) places, NaN where a pulse came back with nothing [m]."""
        return np.stack([self.points[name] for name in "xyz"], axis=-1)


def encode(points: NDArray[Any], stamp_ns: int, frame_id: str, *, dense: bool = True) -> bytes:
    """Write a cloud as a CDR message.

    Args:
        points: (M,) of type `POINT`.
        stamp_ns: start of the sweep [ns].
        frame_id: frame that the points are in.
        dense: whether no place is NaN.

    Raises:
        InputError: the stamp does not fit into the message.
    """
    message = Writer()
    message.stamp(stamp_ns)
    message.text(frame_id)
    message.numbers("I", 1, len(points), len(_FIELDS))
    for name, (dtype, offset) in _FIELDS.items():
        message.text(name)
        message.numbers("I", offset)
        message.numbers("B", _TYPES.index(dtype.str) + 1)
        message.numbers("I", 1)
    message.numbers("B", 0)  # little-endian
    message.numbers("I", POINT.itemsize, POINT.itemsize * len(points), POINT.itemsize * len(points))
    return b"".join([message.bytes(), np.ascontiguousarray(points).data, bytes([dense])])


def decode(data: bytes) -> Cloud:
    """Read a cloud from a CDR message; its points look into `data` and are read-only.

    Raises:
        InputError: cut off, big-endian, or fields that lie outside the points.
    """
    message = Reader(data, _KIND)
    stamp_ns, frame_id = message.stamp(), message.text()
    height, width = message.whole("I"), message.whole("I")
    fields = [_field(message) for _ in range(message.whole("I"))]
    if message.whole("B"):
        raise InputError(f"{_KIND}: is_bigendian is set; expected little-endian points")
    step, row_step, length = message.whole("I"), message.whole("I"), message.whole("I")
    if row_step != step * width or length != row_step * height:
        raise InputError(f"{_KIND}: {height} rows of {width} points of {step} bytes do not make {length} bytes")
    layout: Any = {key: [field[key] for field in fields] for key in ("names", "formats", "offsets")}
    try:
        dtype = np.dtype(layout | {"itemsize": step})
    except ValueError as error:
        raise InputError(f"{_KIND}: its fields do not fit into points of {step} bytes ({error})") from None
    points = np.frombuffer(message.raw(length), dtype) if length else np.empty(0, dtype)
    return Cloud(stamp_ns, frame_id, points)


def _field(message: Reader) -> dict[str, Any]:
    name, offset, number, count = message.text(), message.whole("I"), message.whole("B"), message.whole("I")
    if not 1 <= number <= len(_TYPES) or count < 1:
        raise InputError(f"{_KIND}: field {name!r} has type {number} and count {count}; expected a type of 1 to 8")
    kind = _TYPES[number - 1]
    return {"names": name, "formats": kind if count == 1 else (kind, (count,)), "offsets": offset}
