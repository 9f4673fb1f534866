# SPDX-License-Identifier: Apache-2.0
"""A reader of LAS 1.4 files by the specification alone: points of format 6 and their extra dimensions."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POINT = [
    *[("X", "<i4"), ("Y", "<i4"), ("Z", "<i4"), ("intensity", "<u2"), ("returns", "u1"), ("flags", "u1")],
    *[("classification", "u1"), ("user", "u1"), ("scan_angle", "<i2"), ("source", "<u2"), ("gps_time", "<f8")],
]
_EXTRA_TYPES = {1: "u1", 3: "<u2", 4: "<i2", 5: "<u4", 6: "<i4", 9: "<f4", 10: "<f8"}


@dataclass
class Las:
    """What a file holds."""

    encoding: int
    date: tuple[int, int]
    n_points: int
    by_return: tuple[int, ...]
    records: dict[tuple[str, int], bytes]
    points: dict[str, NDArray[Any]]
    """By name; x, y and z are scaled."""

    @property
    def xyz(self) -> NDArray[np.float64]:
        return np.stack([self.points[axis] for axis in "xyz"], axis=1)

    @property
    def return_number(self) -> NDArray[Any]:
        return self.points["returns"] & 15

    @property
    def number_of_returns(self) -> NDArray[Any]:
        return self.points["returns"] >> 4


def parse_las(path: Path) -> Las:
    data = path.read_bytes()
    signature, encoding, major, minor = struct.unpack_from("<4s2xH16xBB", data)
    assert (signature, major, minor) == (b"LASF", 1, 4)
    date = struct.unpack_from("<HH", data, 90)
    header_bytes, points_at, n_records, kind, point_bytes = struct.unpack_from("<HIIBH", data, 94)
    assert (header_bytes, kind) == (375, 6)
    scale, offset = np.frombuffer(data, "<f8", 6, 131).reshape(2, 3)
    n_points, *by_return = struct.unpack_from("<16Q", data, 247)
    records: dict[tuple[str, int], bytes] = {}
    at = header_bytes
    for _ in range(n_records):
        user, number, n_bytes = struct.unpack_from("<2x16sHH32x", data, at)
        records[user.rstrip(b"\0").decode(), number] = data[at + 54 : at + 54 + n_bytes]
        at += 54 + n_bytes
    assert at == points_at
    extra = records["LASF_Spec", 4]
    fields = [struct.unpack_from("<2xBB32s", extra, start) for start in range(0, len(extra), 192)]
    dtype = np.dtype([*_POINT, *((name.rstrip(b"\0").decode(), _EXTRA_TYPES[kind]) for kind, _, name in fields)])
    assert dtype.itemsize == point_bytes and len(data) == points_at + n_points * point_bytes
    raw = np.frombuffer(data, dtype, n_points, points_at)
    points = {name: raw[name] for name in dtype.names or ()}
    points |= {axis.lower(): raw[axis] * scale[k] + offset[k] for k, axis in enumerate("XYZ")}
    return Las(encoding, date, n_points, tuple(by_return), records, points)
