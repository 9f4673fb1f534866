# SPDX-License-Identifier: Apache-2.0
"""Arrow tables as the bytes of Parquet files, and back; what is read is checked before it is decoded."""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import os
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.base.places import Address
from hedgerow.errors import FileError
from hedgerow.io.parquet.guarded import group_rows_of, open_parquet, reading

_CHUNK_BYTES = 1 << 20


def encode(table: pa.Table) -> bytes:
    """Write an Arrow table as Parquet; lz4 and split floats as in io/parquet/writer.py, for the reasons told there."""
    floats = {each.name: "BYTE_STREAM_SPLIT" for each in table.schema if pa.types.is_floating(each.type)}
    others = [each.name for each in table.schema if each.name not in floats]
    others += [f"{name}.list.element" for name in others]  # what Parquet calls the numbers of a column of lists
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="lz4",
        use_dictionary=others,  # pyright: ignore[reportArgumentType]  # names of columns, or all
        column_encoding=floats,
    )
    return sink.getvalue().to_pybytes()


def decode(path: Path, crc32: object, columns: list[str], n_rows: int | None = None) -> pa.Table:
    """Read those of these columns that a file has.

    Args:
        path: of the file.
        crc32: its checksum.
        columns: names; others are not read.
        n_rows: how many rows it must have. Default: any number that its bytes can hold.

    Raises:
        FileError: missing, changed, damaged, or it has another number of rows.
    """
    try:
        content = _bytes_of(path)
    except FileNotFoundError:
        raise FileError(f"{path}: missing; the world is incomplete") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    _require_checksum(path, zlib.crc32(content), crc32)
    with open_parquet(path, content) as file, reading(path):
        found = sum(group_rows_of(path, file.metadata, content.size))
        if n_rows is not None and found != n_rows:
            raise FileError(f"{path}: has {found:,} rows, but the list of tiles says {n_rows:,}; was one exchanged?")
        return file.read(columns)


def _bytes_of(path: Path) -> pa.Buffer:
    """Read a file into memory that is Arrow's own.

    Arrow's threads may hold the bytes a little longer than the table is waited for. Were they an object of Python's,
    one of these threads would have to let go of it, and if Python is ending by then, that aborts the process.
    """
    if isinstance(path, Address):
        return path.read_buffer()
    with path.open("rb") as file:
        content = pa.allocate_buffer(os.fstat(file.fileno()).st_size)
        n_read = file.readinto(memoryview(content))
    return content.slice(0, n_read)


def require_whole(path: Path, crc32: object) -> None:
    """Read through a file without keeping it.

    Raises:
        FileError: missing, or not what was written.
    """
    try:
        # From an address, chunk by chunk would be a request for each.
        found = zlib.crc32(path.read_buffer()) if isinstance(path, Address) else _checksum(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    _require_checksum(path, found, crc32)


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found = zlib.crc32(chunk, found)
    return found


def _require_checksum(path: Path, found: int, crc32: object) -> None:
    if found != crc32:
        raise FileError(f"{path}: damaged, or changed since the world was saved (its checksum differs)")
