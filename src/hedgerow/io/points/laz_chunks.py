# SPDX-License-Identifier: Apache-2.0
"""How the points of a LAZ file are packed, checked against the file before lazrs unpacks them.

A LAZ file has a record that says how points are packed (items and points per chunk), the chunks, and a table of their
sizes. Points of format 6 and later are packed in layers, whose sizes stand at the start of each chunk. lazrs asks for
memory by all of these numbers, and a process that asks for more than there is ends.
"""

import struct
from collections.abc import Iterable
from typing import Any, BinaryIO

from hedgerow.errors import FileError
from hedgerow.io.points.las_header import POINT_BYTES, LasHeader

_USER_ID, _RECORD_ID = "laszip encoded", 22204
_POINT_WISE, _CHUNKED, _LAYERED = 1, 2, 3
_VARIABLE = 0xFFFFFFFF
_USUAL_CHUNK_BYTES = 2**26  # unpacked; writers have chunks of 50,000 points, also for files of less
_MOST_CHUNK_BYTES = 2**30
_EXTRA, _EXTRA_14 = 0, 14
_ITEM_BYTES = {6: 20, 7: 8, 8: 6, 9: 29, 10: 30, 11: 6, 12: 8, 13: 29}
_ITEMS = ((6,), (6, 7), (6, 8), (6, 7, 8), (6, 7, 9), (6, 7, 8, 9), (10,), (10, 11), (10, 12), (10, 13), (10, 12, 13))
"""What points are packed as, by point format: point, time, colour, waveform."""
_ITEM_LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}


def require_sound_chunks(header: LasHeader, lazrs: Any) -> None:
    """Refuse a LAZ file whose sizes do not fit together.

    Args:
        header: of the file.
        lazrs: the package, which reads the table of chunks once its length is known to be right.

    Raises:
        FileError: something does not fit.
    """
    packing = header.content(_USER_ID, _RECORD_ID)
    if packing is None or len(packing) < 34:
        raise _damaged(header, "nothing says how its points are packed")
    compressor, coder, chunk_points, n_items = struct.unpack_from("<HH8xI16xH", packing)
    if len(packing) < 34 + 6 * n_items:
        raise _damaged(header, f"{n_items} packed items in {len(packing)} bytes")
    items = list(struct.iter_unpack("<HHH", packing[34 : 34 + 6 * n_items]))
    _require_items(header, items)
    is_layered = header.point_format >= 6
    if coder or compressor not in ((_LAYERED,) if is_layered else (_POINT_WISE, _CHUNKED)):
        raise _damaged(header, f"points of format {header.point_format} cannot be packed by method {compressor}")
    if compressor == _POINT_WISE:  # one stream without chunks, from before 2010
        return
    if chunk_points == 0 or (chunk_points != _VARIABLE and not _is_sound(header, chunk_points)):
        raise _damaged(header, f"chunks of {chunk_points:,} points")
    with header.path.open("rb") as file:
        sizes = _chunk_sizes(file, header, chunk_points, packing, lazrs)
        if is_layered:
            _require_layers(file, header, sizes, sum(_layers(*item) for item in items))


def _require_items(header: LasHeader, items: list[tuple[int, ...]]) -> None:
    """Refuse items that do not make up a point of this format."""
    kinds, n_extra = _ITEMS[header.point_format], header.point_bytes - POINT_BYTES[header.point_format]
    wanted = [(kind, _ITEM_BYTES[kind]) for kind in kinds]
    if n_extra:
        wanted.append((_EXTRA_14 if header.point_format >= 6 else _EXTRA, n_extra))
    if [(kind, n_bytes) for kind, n_bytes, _ in items] != wanted:
        raise _damaged(header, f"its packed items do not make up points of {header.point_bytes} bytes")


def _is_sound(header: LasHeader, chunk_points: int) -> bool:
    """Tell whether so many points may be one chunk: lazrs asks for the memory of all, whether they are there or not."""
    n_bytes = chunk_points * header.point_bytes
    return n_bytes <= _USUAL_CHUNK_BYTES or (chunk_points <= header.n_points and n_bytes <= _MOST_CHUNK_BYTES)


def _layers(kind: int, n_bytes: int, version: int) -> int:
    return _ITEM_LAYERS.get(kind, n_bytes)  # each extra byte has its own


def _chunk_sizes(file: BinaryIO, header: LasHeader, chunk_points: int, packing: bytes, lazrs: Any) -> list[int]:
    """Read how many bytes each chunk has."""
    begin = header.points_at + 8
    table_at = _table_place(file, header)
    file.seek(table_at)
    _, n_chunks = struct.unpack("<II", file.read(8))
    room = table_at - begin
    fixed = chunk_points != _VARIABLE
    fewest = -(-header.n_points // chunk_points) if fixed else 1
    if not fewest <= n_chunks <= room // header.point_bytes:  # each begins with a point that is not packed
        raise _damaged(header, f"{n_chunks:,} chunks in {room:,} bytes for {header.n_points:,} points")
    file.seek(header.points_at)
    table: list[tuple[int, int]] = lazrs.read_chunk_table(file, lazrs.LazVlr(packing))
    points, sizes = [each[0] for each in table], [each[1] for each in table]
    if min(sizes) < header.point_bytes or max(sizes) > room or sum(sizes) > room:
        raise _damaged(header, f"its chunks have {min(sizes):,} to {max(sizes):,} bytes, all have {room:,}")
    if not fixed and (sum(points) < header.n_points or not _is_sound(header, max(points))):
        raise _damaged(header, f"its chunks have up to {max(points):,} of {header.n_points:,} points")
    return sizes


def _table_place(file: BinaryIO, header: LasHeader) -> int:
    """Return where the table of chunks is; writers that could not go back say it in the last eight bytes."""
    begin = header.points_at + 8
    if begin + 8 > header.n_bytes:
        raise _damaged(header, "it ends before its points")
    for at in (header.points_at, header.n_bytes - 8):
        file.seek(at)
        (table_at,) = struct.unpack("<q", file.read(8))
        if table_at > header.points_at:
            if not begin <= table_at <= header.n_bytes - 8:
                raise _damaged(header, f"its table of chunks would be at byte {table_at:,} of {header.n_bytes:,}")
            return table_at
    raise _damaged(header, "it has no table of chunks")


def _require_layers(file: BinaryIO, header: LasHeader, sizes: Iterable[int], n_layers: int) -> None:
    """Refuse layers that are larger than their chunk."""
    at = header.points_at + 8
    for size in sizes:
        file.seek(at + header.point_bytes)
        start = file.read(4 * (1 + n_layers))
        if len(start) < 4 * (1 + n_layers):
            raise _damaged(header, "a chunk ends before its layers")
        layers = struct.unpack(f"<{1 + n_layers}I", start)[1:]
        if header.point_bytes + len(start) + sum(layers) > size:
            raise _damaged(header, f"layers of {sum(layers):,} bytes in a chunk of {size:,}")
        at += size


def _damaged(header: LasHeader, what: str) -> FileError:
    return FileError(f"{header.path}: not a LAZ file, or damaged ({what}); was its copying interrupted?")
