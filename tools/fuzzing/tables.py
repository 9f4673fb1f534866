# SPDX-License-Identifier: Apache-2.0
"""Damage to Parquet files and databases: in the footer, in the columns, in the rows, each with all else right.

A Parquet footer is Thrift in its compact protocol, which is parsed and written anew. Columns are changed by pyarrow
itself, so that the file is a good one with another content: only Hedgerow can refuse it.
"""

import io
import sqlite3
import struct
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing.plain import EDGES, FLOATS, LARGE, TEXTS, change_bytes, change_json, nasty

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12

# ---- the footer


class _Reader:
    """Reads Thrift's compact protocol into [id, type, value] lists; lists are [type, values]."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            self.at += 1
            return self.data[self.at - 1]
        if kind in (4, 5, 6):
            value = self.varint()
            return (value >> 1) ^ -(value & 1)
        if kind == _DOUBLE:
            self.at += 8
            return struct.unpack_from("<d", self.data, self.at - 8)[0]
        if kind == _BINARY:
            size = self.varint()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind in (_LIST, _SET):
            head = self.data[self.at]
            self.at += 1
            size = head >> 4 if head >> 4 < 15 else self.varint()
            return [head & 15, [self.value(head & 15) for _ in range(size)]]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"no such type: {kind}")

    def struct(self) -> list[Any]:
        found: list[Any] = []
        number = 0
        while head := self.data[self.at]:
            self.at += 1
            number = number + (head >> 4) if head >> 4 else self.value(4)
            found.append([number, head & 15, self.value(head & 15)])
        self.at += 1
        return found


def _varint(value: int) -> bytes:
    value &= (1 << 70) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _written(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE):
        return b""
    if kind == _BYTE:
        return bytes([value & 255])
    if kind in (4, 5, 6):
        return _varint((value << 1) ^ (value >> 63))
    if kind == _DOUBLE:
        return struct.pack("<d", value)
    if kind == _BINARY:
        return _varint(len(value)) + value
    if kind in (_LIST, _SET):
        inner, values = value
        head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xF0 | inner]) + _varint(len(values))
        return head + b"".join(_written(inner, each) for each in values)
    out, last = b"", 0
    for number, inner, each in value:
        step = number - last
        if inner in (_TRUE, _FALSE):
            inner = _TRUE if each else _FALSE
        out += bytes([step << 4 | inner]) if 0 < step < 16 else bytes([inner]) + _written(4, number)
        out += _written(inner, each)
        last = number
    return out + b"\0"


def change_footer(data: bytes, rng: Random) -> bytes:
    """Change one to three values of a Parquet file's footer, whose length is mended."""
    if len(data) < 12 or data[-4:] != b"PAR1":
        return change_bytes(data, rng)
    (size,) = struct.unpack_from("<I", data, len(data) - 8)
    try:
        tree = _Reader(data[-8 - size : -8]).struct()
    except (IndexError, ValueError, struct.error):
        return change_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change_footer_once(tree, rng)
    footer = _written(_STRUCT, tree)
    return data[: len(data) - 8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _change_footer_once(tree: list[Any], rng: Random) -> None:
    nodes: list[tuple[list[Any], int, int]] = []  # the holder, the place in it, the type
    structs = [tree]
    for each in structs:  # grows while it is walked
        for entry in each:
            _walk(entry, 2, entry[1], nodes, structs)
    if rng.random() < 0.15:
        holder = rng.choice([each for each in structs if each])
        holder.pop(rng.randrange(len(holder)))
        return
    holder, at, kind = rng.choice(nodes)
    old = holder[at]
    if kind in (_TRUE, _FALSE):
        holder[at] = not old
    elif kind in (4, 5, 6):
        holder[at] = rng.choice((*EDGES, *LARGE, old + 1, old - 1, -old, -1, old * 2, old ^ 1))
    elif kind == _DOUBLE:
        holder[at] = rng.choice(FLOATS)
    elif kind == _BYTE:
        holder[at] = rng.randrange(256)
    elif kind == _BINARY:
        holder[at] = change_json(old, rng) if old[:1] == b"{" else rng.choice((change_bytes(old, rng), b"", b"x" * 500))
    elif old[1]:
        values = old[1]
        where = rng.randrange(len(values))
        rng.choice((values.pop, lambda k: values.append(values[k]), lambda k: values.insert(0, values[k])))(where)


def _walk(holder: Any, at: int, kind: int, nodes: list[Any], structs: list[Any]) -> None:
    value = holder[at]
    if kind == _STRUCT:
        structs.append(value)
        return
    nodes.append((holder, at, kind))
    if kind in (_LIST, _SET):
        for k in range(len(value[1])):
            _walk(value[1], k, value[0], nodes, structs)


def change_header(data: bytes, rng: Random) -> bytes:
    """Change the JSON that a log keeps in the footer, with all else right."""
    try:
        (size,) = struct.unpack_from("<I", data, len(data) - 8)
        tree = _Reader(data[-8 - size : -8]).struct()
        pairs = [pair for number, _, value in tree if number == 5 for pair in value[1]]
        pair = rng.choice([pair for pair in pairs if pair[0][2].startswith(b"hedgerow")])
    except (IndexError, ValueError, TypeError, struct.error):
        return change_footer(data, rng)
    pair[1][2] = change_json(pair[1][2], rng)
    footer = _written(_STRUCT, tree)
    return data[: len(data) - 8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"


# ---- the columns


@lru_cache(maxsize=64)
def _table(data: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(data), use_threads=False)


def change_columns(data: bytes, rng: Random) -> bytes:
    """Drop, rename, retype, blank or fill columns of a Parquet file; what comes out is a good Parquet file."""
    try:
        table = _table(data)
        for _ in range(rng.choice((1, 1, 2))):
            table = _change_table(table, rng)
        sink = io.BytesIO()
        statistics, groups = rng.random() < 0.8, rng.choice((None, None, 1, 7))
        pq.write_table(
            table, sink, compression=rng.choice(("lz4", "none", "snappy")), write_statistics=statistics,
            use_dictionary=rng.random() < 0.5, row_group_size=groups,
        )  # fmt: skip
    except (pa.ArrowException, ValueError, OverflowError, KeyError, TypeError, OSError):
        return change_footer(data, rng)
    return sink.getvalue()


def _change_table(table: pa.Table, rng: Random) -> pa.Table:
    if table.num_columns == 0:
        return table
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match rng.randrange(8):
        case 0:
            return table.remove_column(at)
        case 1:
            new = rng.choice(("x", "", name.upper(), rng.choice(table.column_names), rng.choice(TEXTS)))
            return table.rename_columns([*table.column_names[:at], new, *table.column_names[at + 1 :]])
        case 2:
            kind = rng.choice((pa.float64(), pa.float32(), pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.string()))
            return table.set_column(at, name, column.cast(kind, safe=False))
        case 3:
            mask = np.array([rng.random() < 0.3 for _ in range(len(column))], dtype=bool)
            values = pa.array(column.to_pylist(), column.type, mask=mask)
            return table.set_column(at, pa.field(name, column.type, nullable=True), values)
        case 4:
            start = rng.randrange(len(table) + 1)
            return table.slice(start, rng.choice((0, 1, len(table))))
        case 5:
            return pa.concat_tables([table] * rng.choice((2, 3)))
        case _:
            return table.set_column(at, table.schema.field(at), _filled(column, rng))


def _filled(column: pa.ChunkedArray, rng: Random) -> pa.Array:
    """The column with one, some or all values changed to edges of its type."""
    values: list[Any] = column.to_pylist()
    share = rng.choice((0.0, 0.3, 1.0))
    for k in {rng.randrange(max(len(values), 1)), *(k for k in range(len(values)) if rng.random() < share)}:
        if k >= len(values):
            break
        if pa.types.is_floating(column.type):
            values[k] = rng.choice((*FLOATS, float("nan"), -1e9, -values[k]))
        elif pa.types.is_integer(column.type):
            bits = column.type.bit_width
            signed = pa.types.is_signed_integer(column.type)
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            values[k] = min(max(rng.choice((*EDGES, *LARGE, -1, low, high, values[k] + 1)), low), high)
        elif pa.types.is_list(column.type):
            values[k] = rng.choice(([], [0], [1, 1], [65535] * 3))
        else:
            values[k] = rng.choice(TEXTS)
    return pa.array(values, column.type)


# ---- databases


def change_rows(data: bytes, rng: Random) -> bytes:
    """Change a value, a type, a row or a table of an SQLite database; what comes out is a good database."""
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        tables = [name for (name,) in base.execute("select name from sqlite_master where type = 'table'")]
        table = rng.choice(tables)
        columns = [row[1] for row in base.execute(f'pragma table_info("{table}")')]
        column = rng.choice(columns)
        match rng.randrange(6):
            case 0:
                base.execute(f'delete from "{table}" where rowid % 2 = ?', (rng.randrange(2),))
            case 1:
                base.execute(f'alter table "{table}" rename to "other"')
            case 2:
                base.execute(f'alter table "{table}" rename column "{column}" to "other"')
            case _:
                base.execute(
                    f'update "{table}" set "{column}" = ? where rowid = ?', (_cell(base, table, column, rng), 1)
                )
        base.commit()
        return base.serialize()
    except (sqlite3.Error, IndexError, OverflowError):
        return change_bytes(data, rng)
    finally:
        base.close()


def _cell(base: sqlite3.Connection, table: str, column: str, rng: Random) -> Any:
    (old,) = base.execute(f'select "{column}" from "{table}" where rowid = 1').fetchone() or (None,)
    if isinstance(old, bytes) and rng.random() < 0.7:
        return change_bytes(old, rng)
    if isinstance(old, str) and rng.random() < 0.5:
        return change_bytes(old.encode(), rng).decode("utf-8", "replace")
    value = nasty(rng)
    return value if isinstance(value, int | float | str | None) else rng.choice((b"", b"\0" * 4, -1, 2**62))
