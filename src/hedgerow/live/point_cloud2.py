# SPDX-License-Identifier: Apache-2.0
"""PointCloud2, the ROS message for clouds, to the bytes of CDR and back; any cloud can be read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.io.ros.point_cloud2 import POINT, Field, fields_of, rows_of
from hedgerow.live.cdr import Reader, Writer

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
    fields = fields_of(POINT)
    message.numbers("I", 1, len(points), len(fields))
    for name, offset, number, count in fields:
        message.text(name)
        message.numbers("I", offset)
        message.numbers("B", number)
        message.numbers("I", count)
    message.numbers("B", 0)  # little-endian
    message.numbers("I", POINT.itemsize, POINT.itemsize * len(points), POINT.itemsize * len(points))
    return b"".join([message.bytes(), np.ascontiguousarray(points).data, bytes([dense])])


def decode(data: bytes) -> Cloud:
    """Read a cloud from a CDR message; its points look into `data` and are read-only.

    Raises:
        InputError: cut off, or it does not hold the points that it says.
    """
    message = Reader(data, _KIND)
    stamp_ns, frame_id = message.stamp(), message.text()
    shape = message.whole("I"), message.whole("I")
    fields = [_field(message) for _ in range(message.whole("I"))]
    big_endian = bool(message.whole("B"))
    steps = message.whole("I"), message.whole("I")
    content = np.frombuffer(message.raw(message.whole("I")), np.uint8)
    try:
        return Cloud(stamp_ns, frame_id, rows_of(fields, content, shape, steps, big_endian).ravel())
    except InputError as error:
        raise InputError(f"{_KIND}: {error}") from None


def _field(message: Reader) -> Field:
    return message.text(), message.whole("I"), message.whole("B"), message.whole("I")
