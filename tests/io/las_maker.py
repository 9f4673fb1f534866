# SPDX-License-Identifier: Apache-2.0
"""Makes LAS and LAZ files of others: any point format, and LAZ with chunks as small as wanted."""

import io
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import laspy
import numpy as np

lazrs: Any = import_module("lazrs")  # without types

VARIABLE = 0xFFFFFFFF


def foreign_las(point_format: int, n_points: int, *, extra: bool = False, seed: int = 5) -> bytes:
    """Return a LAS file that Hedgerow did not write."""
    rng = np.random.default_rng(seed)
    las = laspy.create(point_format=point_format, file_version="1.2" if point_format < 4 else "1.4")
    las.header.scales = np.full(3, 0.001)
    if extra:
        las.add_extra_dim(laspy.ExtraBytesParams(name="ring", type="u2"))
        las["ring"] = rng.integers(0, 64, n_points)
    las.x, las.y, las.z = rng.normal(0, 10, (3, n_points))
    las.intensity, las.classification = rng.integers(0, 256, n_points), rng.integers(0, 12, n_points)
    las.return_number = las.number_of_returns = np.ones(n_points, np.uint8)
    if "gps_time" in las.point_format.dimension_names:
        las.gps_time = np.sort(rng.random(n_points))
    for colour in {"red", "green", "blue", "nir"} & set(las.point_format.dimension_names):
        las[colour] = rng.integers(0, 65536, n_points)
    target = io.BytesIO()
    las.write(target)
    return target.getvalue()


def to_laz(las: bytes, chunk_points: int) -> bytes:
    """Compress a LAS file; chunks have this many points, or sizes that differ (VARIABLE)."""
    points_at, n_records, point_format, point_bytes = struct.unpack_from("<IIBH", las, 96)
    (n_points,) = struct.unpack_from("<I" if las[25] < 4 else "<Q", las, 107 if las[25] < 4 else 247)
    n_extra = point_bytes - laspy.PointFormat(point_format).size
    packing = bytearray(lazrs.LazVlr.new_for_compression(point_format, n_extra, chunk_points == VARIABLE).record_data())
    struct.pack_into("<I", packing, 12, chunk_points)
    record = struct.pack("<2x16sHH32x", b"laszip encoded", 22204, len(packing)) + packing
    head = bytearray(las[:points_at] + record)
    struct.pack_into("<IIB", head, 96, len(head), n_records + 1, point_format | 0x80)
    target = io.BytesIO(bytes(head))
    target.seek(0, 2)
    compressor = lazrs.LasZipCompressor(target, lazrs.LazVlr(bytes(packing)))
    points = np.frombuffer(las, np.uint8, n_points * point_bytes, points_at)
    for start in range(0, n_points, 40 if chunk_points == VARIABLE else n_points):
        compressor.compress_many(
            points[start * point_bytes : (start + 40 if chunk_points == VARIABLE else n_points) * point_bytes]
        )
        if chunk_points == VARIABLE and start + 40 < n_points:
            compressor.finish_current_chunk()
    compressor.done()
    return target.getvalue()


def write_laz(path: Path, point_format: int, n_points: int, chunk_points: int, *, extra: bool = False) -> Path:
    """Write a LAZ file of others."""
    path.write_bytes(to_laz(foreign_las(point_format, n_points, extra=extra), chunk_points))
    return path
