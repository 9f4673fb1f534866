# SPDX-License-Identifier: Apache-2.0
"""How the bytes of a PointCloud2 are laid out: in bags, and in what is sent live.

Written clouds have the fields x y z intensity ring time in the layout of velodyne_pointcloud, 22 bytes a point, and
after them a label if there is one. What is read may have any fields.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.errors import InputError

POINT = np.dtype(
    [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")]
)  # fmt: skip
"""One point: sensor frame [m], as the sensor reports it, laser, after the stamp [s]."""
LABELLED = np.dtype([*POINT.descr, ("label", "<u2")])

Field = tuple[str, int, int, int]
"""A PointField: name, offset, number of its type, count."""
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8", 9: "i8", 10: "u8"}
_NUMBERS = {np.dtype(kind): number for number, kind in _TYPES.items()}
_MAX_POINTS = 50_000_000


def point_rows(
    xyz: NDArray[Any], ring: NDArray[Any], time_s: NDArray[Any], intensity: ArrayLike, label: ArrayLike | None = None
) -> NDArray[np.void]:
    """Return the points of a cloud, (M,) of type `POINT`, or `LABELLED` if there are labels.

    Args:
        xyz: (M, 3) places or directions.
        ring: (M,) laser.
        time_s: (M,) after the stamp [s].
        intensity: (M,), or one for all.
        label: (M,) semantic class.
    """
    rows = np.empty(len(xyz), POINT if label is None else LABELLED)
    for axis, name in enumerate("xyz"):
        rows[name] = xyz[:, axis]
    rows["ring"], rows["time"], rows["intensity"] = ring, time_s, intensity
    if label is not None:
        rows["label"] = label
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
        if count in (0, 1) and number in _TYPES and name not in chosen:
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
    kind = np.dtype({"names": list(chosen), "formats": formats, "offsets": offsets, "itemsize": step})
    if not height * width:
        return np.zeros((height, width), kind)
    rows = data[: height * row_step].reshape(height, row_step)[:, : width * step]
    return np.ascontiguousarray(rows).view(kind).reshape(height, width)
