# SPDX-License-Identifier: Apache-2.0
"""The fields of PointCloud2 messages, in the ways that drivers name them.

What their times count is told by point_times.py.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.organised import Points
from hedgerow.io.point_times import times_of

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8", 9: "i8", 10: "u8"}
_INTENSITY = ("intensity", "reflectivity", "intensities", "i")
_RING = ("ring", "channel", "laser_id", "laser", "line")
_TIME = ("time", "t", "timestamp", "time_stamp", "timestamps", "offset_time", "time_offset_ns", "stamp")
_LABEL = ("label", "semantic", "class")
_MAX_POINTS = 50_000_000


def points_of(message: Any, stamp_ns: int, where: str) -> Points:
    """Take the fields out of a PointCloud2 message.

    Args:
        message: decoded.
        stamp_ns: of its header.
        where: for the error.

    Raises:
        FileError: it has no x, y, z, or does not hold what it says.
    """
    rows = _rows(message, where)
    names = rows.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise FileError(f"{where}: the cloud has no fields x, y, z (has {', '.join(names) or 'none'})")
    with np.errstate(all="ignore"):
        xyz = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=-1)
        return Points(
            xyz,
            _first(rows, _INTENSITY, np.float32),
            _first(rows, _RING, np.int64),
            times_of(_first(rows, _TIME), stamp_ns),
            _first(rows, _LABEL, np.uint16),
        )


def _rows(message: Any, where: str) -> NDArray[np.void]:
    """Return the content as a structured array, (height, width)."""
    height, width, step, row_step = (
        int(getattr(message, key)) for key in ("height", "width", "point_step", "row_step")
    )
    order = ">" if message.is_bigendian else "<"
    names: list[str] = []
    formats: list[str] = []
    offsets: list[int] = []
    for each in message.fields:
        kind = _TYPES.get(int(each.datatype))
        if each.count in (0, 1) and kind and each.name not in names:
            names.append(each.name)
            formats.append(order + kind)
            offsets.append(int(each.offset))
    data = np.asarray(message.data, np.uint8)
    row_step = row_step or width * step
    fits = step > 0 and all(at + np.dtype(kind).itemsize <= step for at, kind in zip(offsets, formats, strict=True))
    if not fits or row_step < width * step or len(data) < height * row_step or height * width > _MAX_POINTS:
        raise FileError(
            f"{where}: the cloud says it has {height} x {width} points of {step} bytes, but holds {len(data)} bytes or "
            "has fields outside of its points"
        )
    kind = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": step})
    rows = data[: height * row_step].reshape(height, row_step)[:, : width * step]
    return np.ascontiguousarray(rows).view(kind).reshape(height, width) if width else np.zeros((height, 0), kind)


def _first(rows: NDArray[np.void], names: tuple[str, ...], dtype: Any = None) -> Any:
    """Return the first of these fields that there is, as it is or as another type, or None."""
    there = [name for name in names if name in (rows.dtype.names or ())]
    if not there:
        return None
    return rows[there[0]] if dtype is None else rows[there[0]].astype(dtype)
