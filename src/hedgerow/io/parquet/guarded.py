# SPDX-License-Identifier: Apache-2.0
"""Parquet files that may be damaged or hostile: what is checked before pyarrow decodes them, and what it is not asked.

pyarrow's readers turn every fault of a file into an exception, but its accessors of the footer do not: to look at a
column chunk (`row_group(i).column(k)`) whose statistics are cut, or do not fit to the schema, ends the process. So
nothing is asked about column chunks, and statistics are never used. What remains, the numbers of rows, is held against
the size of the file, so that no reader reserves memory for rows that cannot be there.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.base.places import Address
from hedgerow.errors import FileError, HedgerowError, one_line

_ENDING_BYTES = 8  # length of the footer, and PAR1
_ROWS_PER_BYTE = 1000  # a log has 18 bytes to the row; runs of equal values can be far shorter
_ROWS_ANYWAY = 100_000


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn whatever pyarrow and the system say about a file into FileError."""
    try:
        yield
    except HedgerowError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except MemoryError:  # pyarrow's is one too
        raise FileError(f"{path}: there is not enough memory to decode it; is it damaged?") from None
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        if isinstance(path, Address) and (told := path.fault(error)) is not None:
            raise told from None
        raise FileError(f"{path}: not a Parquet file, or damaged ({one_line(str(error), 120)})") from error


def open_parquet(path: Path, content: pa.Buffer | None = None, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a file so that a footer cannot ask for more memory than its own length accounts for.

    Args:
        path: of the file.
        content: its bytes, if they have been read; in Arrow's own memory (world/store/encoded.py says why).
        footer: if it has been read.

    Raises:
        FileError: missing, empty, damaged, or no Parquet file.
    """
    with reading(path):
        far = isinstance(path, Address) and content is None
        source: Any = path.open("rb") if far else path if content is None else pa.BufferReader(content)
        if far and footer is not None:  # saves two requests
            limit = max(footer.serialized_size, 1)
        else:
            limit = _footer_bytes(path, content, source if far else None)
        return pq.ParquetFile(
            source,
            metadata=footer,
            thrift_string_size_limit=limit,  # nothing in a footer is longer than the footer
            thrift_container_size_limit=limit,
            page_checksum_verification=True,
            # Columns that lie side by side are then one request. Arrow itself asks for their places; no damaged file of
            # 7,600 ended the process by that.
            pre_buffer=far,
        )


def require_columns(path: Path, footer: pq.FileMetaData, types: dict[str, str]) -> None:
    """Check that all of these columns are there once, flat, and of the type that pyarrow gives this name.

    Raises:
        FileError: one is missing, twice there, or of another type; names it.
    """
    with reading(path):
        schema = footer.schema.to_arrow_schema()
        leaves = [footer.schema.column(k).path for k in range(footer.num_columns)]
    for name, kind in types.items():
        n_found = schema.names.count(name)
        if n_found == 0:
            raise FileError(f"{path}: column '{name}' is missing (has {one_line(', '.join(schema.names), 160)})")
        if n_found > 1:
            raise FileError(f"{path}: column '{name}' is there {n_found} times; expected once")
        found = str(schema.field(name).type)
        if found != kind or leaves.count(name) != 1:
            raise FileError(f"{path}: column '{name}' is {one_line(found, 60)}, expected {kind}")


def group_rows_of(path: Path, footer: pq.FileMetaData, n_bytes: int) -> list[int]:
    """Return how many rows each row group has, after these numbers were held against the size of the file.

    Raises:
        FileError: the footer contradicts itself, or the size of the file.
    """
    with reading(path):
        n_rows = [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
    total = sum(n_rows)
    if min(n_rows, default=0) < 0:
        raise FileError(f"{path}: damaged: says that a row group has {min(n_rows):,} rows")
    if total != footer.num_rows:
        raise FileError(f"{path}: damaged: says {footer.num_rows:,} rows, but its row groups have {total:,}")
    if total > _ROWS_ANYWAY + _ROWS_PER_BYTE * n_bytes:
        raise FileError(f"{path}: damaged: says {total:,} rows, more than {n_bytes:,} bytes can hold")
    return n_rows


def _footer_bytes(path: Path, content: pa.Buffer | None, opened: pa.NativeFile | None = None) -> int:
    if opened is not None:
        n_bytes = opened.size()
        opened.seek(max(n_bytes - _ENDING_BYTES, 0))
        ending = opened.read(_ENDING_BYTES)
    elif content is None:
        with path.open("rb") as file:
            n_bytes = file.seek(0, 2)
            file.seek(max(n_bytes - _ENDING_BYTES, 0))
            ending = file.read()
    else:
        n_bytes, ending = content.size, content.slice(max(content.size - _ENDING_BYTES, 0)).to_pybytes()
    if n_bytes == 0:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    # A length beyond the file is pyarrow's to refuse.
    return max(min(int.from_bytes(ending[:4], "little"), n_bytes), 1)
