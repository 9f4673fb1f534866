# SPDX-License-Identifier: Apache-2.0
"""Parquet files that may be damaged or hostile: what is checked before pyarrow decodes them, and what it is not asked.

pyarrow's readers turn every fault of a file into an exception, but its accessors of the footer do not: a column chunk
whose statistics are cut, or of another type than the schema says, ends the process as soon as `statistics` is looked
at. So statistics are never used. Of the footer only plain numbers are taken, and all are held against the size of the
file and against each other, so that no reader is asked to reserve memory for rows that cannot be there.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.errors import FileError, HedgerowError

_ENDING_BYTES = 8  # length of the footer, and PAR1
_ROWS_PER_BYTE = 1000  # a log has 18 bytes to the row; runs of equal values can be far shorter
_ROWS_ANYWAY = 100_000
_LONGEST_QUOTE = 60


def quoted(value: object) -> str:
    """Return what a file said as a sentence can hold it: in quotes, printable, and not long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 4]}...{text[-1]}"


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
        reason = " ".join(str(error).split())[:120]
        printable = "".join(each if each.isprintable() else "?" for each in reason)
        raise FileError(f"{path}: not a Parquet file, or damaged ({printable})") from error


def open_parquet(path: Path, content: bytes | None = None, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a file so that a footer cannot ask for more memory than its own length accounts for.

    Args:
        path: of the file.
        content: its bytes, if they have been read.
        footer: if it has been read.

    Raises:
        FileError: missing, empty, damaged, or no Parquet file.
    """
    with reading(path):
        limit = _footer_bytes(path, content)
        return pq.ParquetFile(
            path if content is None else pa.BufferReader(content),
            metadata=footer,
            thrift_string_size_limit=limit,  # nothing in a footer is longer than the footer
            thrift_container_size_limit=limit,
            page_checksum_verification=True,
            pre_buffer=False,
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
            raise FileError(f"{path}: column '{name}' is missing (has {_listed(schema.names)})")
        if n_found > 1:
            raise FileError(f"{path}: column '{name}' is there {n_found} times; expected once")
        found = str(schema.field(name).type)
        if found != kind or leaves.count(name) != 1:
            raise FileError(f"{path}: column '{name}' is {_cut(found)}, expected {kind}")


def group_rows_of(path: Path, footer: pq.FileMetaData, columns: Sequence[str], n_bytes: int) -> list[int]:
    """Return how many rows each row group has, after the footer's numbers were held against each other.

    Args:
        path: of the file.
        footer: its footer, in which these columns are known to be there once and flat.
        columns: names of those that will be read.
        n_bytes: size of the file.

    Raises:
        FileError: the footer contradicts itself, or the size of the file.
    """
    with reading(path):
        place = {footer.schema.column(k).path: k for k in range(footer.num_columns)}
        chosen = [(name, place[name], footer.schema.column(place[name]).physical_type) for name in columns]
        data_end = n_bytes - footer.serialized_size - _ENDING_BYTES
        n_rows: list[int] = []
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            if group.num_columns != footer.num_columns or group.num_rows < 0:
                raise FileError(f"{path}: damaged: row group {index} does not have the columns of the file")
            for name, k, kind in chosen if group.num_rows else ():
                _require_chunk(f"{path}: damaged: column '{name}' of row group {index}", group, k, kind, data_end)
            n_rows.append(group.num_rows)
    total = sum(n_rows)
    if total != footer.num_rows:
        raise FileError(f"{path}: damaged: says {footer.num_rows:,} rows, but its row groups have {total:,}")
    if total > _ROWS_ANYWAY + _ROWS_PER_BYTE * n_bytes:
        raise FileError(f"{path}: damaged: says {total:,} rows, more than {n_bytes:,} bytes can hold")
    return n_rows


def _require_chunk(where: str, group: pq.RowGroupMetaData, k: int, kind: str, data_end: int) -> None:
    chunk = group.column(k)
    if chunk.physical_type != kind:
        raise FileError(f"{where} is {chunk.physical_type}, but the schema says {kind}")
    if chunk.num_values != group.num_rows:
        raise FileError(f"{where} has {chunk.num_values:,} values for {group.num_rows:,} rows")
    start, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    size = chunk.total_compressed_size
    if not (start >= 4 and size >= 0 and start + size <= data_end):
        raise FileError(f"{where} lies outside of the file")


def _footer_bytes(path: Path, content: bytes | None) -> int:
    if content is None:
        with path.open("rb") as file:
            n_bytes = file.seek(0, 2)
            file.seek(max(n_bytes - _ENDING_BYTES, 0))
            ending = file.read()
    else:
        n_bytes, ending = len(content), content[-_ENDING_BYTES:]
    if n_bytes == 0:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    # A length beyond the file is pyarrow's to refuse.
    return max(min(int.from_bytes(ending[:4], "little"), n_bytes), 1)


def _listed(names: Sequence[str]) -> str:
    return _cut(", ".join(names), 160)


def _cut(text: str, longest: int = _LONGEST_QUOTE) -> str:
    printable = "".join(each if each.isprintable() else "?" for each in text[: longest + 1])
    return printable if len(text) <= longest else f"{printable[: longest - 3]}..."
