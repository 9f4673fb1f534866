# SPDX-License-Identifier: Apache-2.0
"""The header of a LAS or LAZ file, read and checked against the file before any library sees it.

laspy and lazrs trust what a header says: a count of a billion records keeps laspy busy for hours, and sizes in a
damaged LAZ file make lazrs ask for so much memory that the process ends. Everything here that counts or measures
something has to fit into the file. What is in compressed points themselves is checked in `laz_chunks`.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hedgerow.errors import FileError

SMALLEST = {0: 227, 1: 227, 2: 227, 3: 235, 4: 375, 5: 393}
"""Bytes of a header, by minor version."""
POINT_BYTES = (20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67)
"""Bytes of a point without extra dimensions, by point format."""
MOST_RECORD_BYTES = 65535
MOST_POINTS_PER_BYTE = 200
"""Of LAZ: identical points pack well."""
_MOST_EXTENDED_BYTES = 2**26  # of a record that is read
_VLR, _EVLR = struct.Struct("<2x16sHH32x"), struct.Struct("<2x16sHQ32x")


@dataclass(frozen=True, slots=True)
class Record:
    """A variable length record."""

    user_id: str
    record_id: int
    at: int
    """Where its content begins."""
    n_bytes: int
    """Of its content."""


@dataclass(frozen=True, slots=True)
class LasHeader:
    """What the header of a LAS file promises, and the file can hold."""

    path: Path
    n_bytes: int
    """Of the file."""
    point_format: int
    is_compressed: bool
    point_bytes: int
    """Of one point, unpacked."""
    points_at: int
    n_points: int
    records: list[Record]
    """Before the points and after them."""

    def content(self, user_id: str, record_id: int) -> bytes | None:
        """Return the content of the first record of that name, None if there is none."""
        for each in self.records:
            if (each.user_id, each.record_id) == (user_id, record_id) and each.n_bytes <= _MOST_EXTENDED_BYTES:
                with self.path.open("rb") as file:
                    file.seek(each.at)
                    return file.read(each.n_bytes)
        return None


def read_header(path: Path) -> LasHeader:
    """Read and check the header of a LAS or LAZ file.

    Raises:
        FileError: it is no such file, or something in its header does not fit into the file.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error


def _read(file: BinaryIO, path: Path) -> LasHeader:
    n_bytes = file.seek(0, 2)
    file.seek(0)
    start = file.read(max(SMALLEST.values()))
    if start[:4] != b"LASF":
        raise FileError(f"{path}: not a LAS or LAZ file; it does not begin with LASF")
    minor = start[25] if len(start) > 25 else 0
    if len(start) < SMALLEST[0] or (start[24] == 1 and len(start) < SMALLEST.get(minor, 0)):
        raise FileError(f"{path}: ends in its header after {n_bytes:,} bytes; is it cut off?")
    if start[24] != 1 or minor not in SMALLEST:
        raise FileError(f"{path}: is LAS {start[24]}.{minor}; 1.0 to 1.5 are read")
    header_bytes, points_at, n_records, format_byte, point_bytes, n_points = struct.unpack_from("<HIIBHI", start, 94)
    if not SMALLEST[minor] <= header_bytes <= points_at <= n_bytes:
        raise _misfit(path, f"points at byte {points_at:,} after a header of {header_bytes:,} bytes", n_bytes)
    if format_byte & 0x40:
        raise FileError(f"{path}: has points of format {format_byte}; 0 to {len(POINT_BYTES) - 1} are read")
    _require_places(path, struct.unpack_from("<6d", start, 131))
    records = _records(file, path, _VLR, header_bytes, points_at, n_records)
    if minor >= 4:
        extended_at, n_extended, n_points = struct.unpack_from("<QIQ", start, 235)
        if n_extended:
            records += _records(file, path, _EVLR, extended_at, n_bytes, n_extended)
    header = LasHeader(path, n_bytes, format_byte & 0x3F, format_byte > 0x3F, point_bytes, points_at, n_points, records)
    _require_points(header)
    return header


def _records(file: BinaryIO, path: Path, head: struct.Struct, at: int, end: int, n: int) -> list[Record]:
    """Walk over the records between two places of the file."""
    if at + n * head.size > end:
        raise _misfit(path, f"{n:,} records from byte {at:,} on", end)
    records: list[Record] = []
    for _ in range(n):
        file.seek(at)
        start = file.read(head.size)
        if len(start) < head.size:
            raise _misfit(path, f"{n:,} records, of which {len(records):,} are there", end)
        name, record_id, n_bytes = head.unpack(start)
        at += head.size
        if at + n_bytes > end:
            raise _misfit(path, f"a record of {n_bytes:,} bytes at byte {at:,}", end)
        records.append(Record(name.split(b"\0")[0].decode("latin-1"), record_id, at, n_bytes))
        at += n_bytes
    return records


def _require_places(path: Path, numbers: tuple[float, ...]) -> None:
    """Refuse scales and offsets that make no coordinates."""
    if not all(map(math.isfinite, numbers)) or not all(numbers[:3]):
        scales, offsets = ([f"{each:g}" for each in part] for part in (numbers[:3], numbers[3:]))
        raise FileError(
            f"{path}: its header gives coordinates the scales {', '.join(scales)} and the offsets "
            f"{', '.join(offsets)}; is it damaged?"
        )


def _require_points(header: LasHeader) -> None:
    path, n_points = header.path, header.n_points
    if header.point_format >= len(POINT_BYTES):
        raise FileError(f"{path}: has points of format {header.point_format}; 0 to {len(POINT_BYTES) - 1} are read")
    if header.point_bytes < POINT_BYTES[header.point_format]:
        least = POINT_BYTES[header.point_format]
        raise FileError(
            f"{path}: has points of {header.point_bytes} bytes; those of format {header.point_format} need {least}"
        )
    if n_points == 0:
        raise FileError(f"{path}: holds no points")
    n_bytes = header.n_bytes - header.points_at
    most = n_bytes * MOST_POINTS_PER_BYTE if header.is_compressed else n_bytes // header.point_bytes
    if n_points > most:
        raise FileError(
            f"{path}: its header says {n_points:,} points, which {header.n_bytes:,} bytes cannot hold; is it cut off?"
        )


def _misfit(path: Path, what: str, end: int) -> FileError:
    return FileError(f"{path}: its header promises {what}, but there is room up to byte {end:,} only; is it cut off?")
