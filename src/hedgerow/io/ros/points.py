# SPDX-License-Identifier: Apache-2.0
"""The fields of PointCloud2 messages, in the ways that drivers name them.

What their times count is told by point_times.py.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, InputError
from hedgerow.io.organised import Points
from hedgerow.io.point_times import times_of
from hedgerow.io.ros.point_cloud2 import rows_of

_INTENSITY = ("intensity", "reflectivity", "intensities", "i")
_RING = ("ring", "channel", "laser_id", "laser", "line")
_TIME = ("time", "t", "timestamp", "time_stamp", "timestamps", "offset_time", "time_offset_ns", "stamp")
_LABEL = ("label", "semantic", "class")


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
    fields = ((each.name, int(each.offset), int(each.datatype), int(each.count)) for each in message.fields)
    shape = int(message.height), int(message.width)
    steps = int(message.point_step), int(message.row_step)
    try:
        return rows_of(fields, np.asarray(message.data, np.uint8), shape, steps, bool(message.is_bigendian))
    except InputError as error:
        raise FileError(f"{where}: {error}") from None


def _first(rows: NDArray[np.void], names: tuple[str, ...], dtype: Any = None) -> Any:
    """Return the first of these fields that there is, as it is or as another type, or None."""
    there = [name for name in names if name in (rows.dtype.names or ())]
    if not there:
        return None
    return rows[there[0]] if dtype is None else rows[there[0]].astype(dtype)
