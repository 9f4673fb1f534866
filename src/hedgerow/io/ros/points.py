# SPDX-License-Identifier: Apache-2.0
"""The fields of PointCloud2 messages, in the ways that drivers name them.

Times come in five ways: Velodyne's `time` in seconds after the stamp, Ouster's `t` in nanoseconds after it, Hesai's
and RoboSense's `timestamp` in seconds since 1970, Livox' `timestamp` in nanoseconds since 1970 and `offset_time` in
nanoseconds after the stamp. The type of the number and its size tell them apart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8", 9: "i8", 10: "u8"}
_INTENSITY = ("intensity", "reflectivity", "intensities", "i")
_RING = ("ring", "channel", "laser_id", "laser", "line")
_TIME = ("time", "t", "timestamp", "time_stamp", "timestamps", "offset_time", "time_offset_ns", "stamp")
_LABEL = ("label", "semantic", "class")
_MAX_POINTS = 50_000_000
_ANOTHER_CLOCK_NS = 10_000_000_000
_SINCE_1970_NS = 1e17  # a float above it counts nanoseconds since 1970, above the next one seconds
_SINCE_1970_S = 1e8


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The points of one message; shape (height, width)."""

    xyz: NDArray[np.float64]
    """(H, W, 3) frame of the cloud [m]; NaN or zero is no return."""
    intensity: NDArray[np.float32] | None
    ring: NDArray[np.int64] | None
    time_ns: NDArray[np.int64] | None
    label: NDArray[np.uint16] | None

    @property
    def hit(self) -> NDArray[np.bool_]:
        """(H, W) whether there is a point."""
        return np.isfinite(self.xyz).all(axis=-1) & (np.abs(self.xyz).max(axis=-1, initial=0) > 1e-3)


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
            _times(rows, stamp_ns),
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


def _first(rows: NDArray[np.void], names: tuple[str, ...], dtype: Any) -> Any:
    """Return the first of these fields that there is, or None."""
    there = [name for name in names if name in (rows.dtype.names or ())]
    return rows[there[0]].astype(dtype) if there else None


def _times(rows: NDArray[np.void], stamp_ns: int) -> NDArray[np.int64] | None:
    """Return when each point was measured [ns], or None if the cloud does not tell."""
    there = [name for name in _TIME if name in (rows.dtype.names or ())]
    if not there or not rows.size:
        return None
    values = rows[there[0]]
    if values.dtype.kind in "iu":
        # As large as time since 1970 in ns, it is that; else ns after the stamp.
        absolute = float(values.max()) > _SINCE_1970_NS
        return _on_stamps_clock(values.astype(np.int64), stamp_ns) if absolute else stamp_ns + values.astype(np.int64)
    values = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    largest = float(values.max(initial=0))
    if largest > _SINCE_1970_S:
        per_s = 1 if largest > _SINCE_1970_NS else 10**9
        whole = np.floor(values).astype(np.int64)
        time_ns = whole * per_s + np.rint((values - whole) * per_s).astype(np.int64)
        return _on_stamps_clock(time_ns, stamp_ns)
    return stamp_ns + np.rint(np.clip(values, -1e6, 1e6) * 1e9).astype(np.int64)


def _on_stamps_clock(time_ns: NDArray[np.int64], stamp_ns: int) -> NDArray[np.int64]:
    """Shift times that are of another clock than the stamps (and the poses) so that the first is at the stamp."""
    there = time_ns[time_ns > 0]
    if not len(there):
        return np.full_like(time_ns, stamp_ns)
    first = int(there.min())
    return time_ns if abs(first - stamp_ns) < _ANOTHER_CLOCK_NS else time_ns - first + stamp_ns
