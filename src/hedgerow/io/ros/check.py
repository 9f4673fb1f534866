# SPDX-License-Identifier: Apache-2.0
"""Look at the index of a bag before rosbags follows it: one that leads to the same bytes over and over is refused.

Only what would take too much memory or time is refused here. What else is wrong with a bag, rosbags says itself.
"""

import re
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from hedgerow.errors import FileError
from hedgerow.io.ros.limits import MOST_CHUNK_BYTES
from hedgerow.io.yaml_text import require_plain_yaml

_MOST_OPEN_BYTES = 1 << 31  # chunks of overlapping times are in memory together
_FOOTER = b"\x02" + struct.pack("<Q", 20)
_CHUNK_INDEX, _SUMMARY_OFFSET = 0x08, 0x0E
_TABLES = ("schema", "metadata", "topics", "message_definitions", "messages")


def require_sound(path: Path) -> None:
    """Refuse a bag that would take far more memory or time than its size lets expect.

    Raises:
        FileError: its index, tables or metadata are none that a recorder writes.
    """
    try:
        if path.is_dir():
            require_plain_yaml(path / "metadata.yaml")
            for each in sorted(path.iterdir()):
                if each.suffix.lower() in (".mcap", ".db3") and each.is_file():
                    require_sound(each)
        elif path.suffix.lower() == ".mcap":
            _mcap(path)
        elif path.suffix.lower() == ".bag":
            _ros1(path)
        elif path.suffix.lower() == ".db3":
            _sqlite(path)
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error


def _mcap(path: Path) -> None:
    with path.open("rb") as file:
        try:
            chunks = _mcap_chunks(file, path.stat().st_size)
        except (struct.error, IndexError):
            return
    chunks.sort()
    end, ends = 0, list[tuple[int, int]]()
    for start, length, size, first_ns, last_ns in chunks:
        if start < end:
            raise FileError(f"{path}: is damaged; its index tells of two chunks at byte {start}")
        if size > MOST_CHUNK_BYTES:
            raise FileError(f"{path}: is damaged; the chunk at byte {start} claims to hold {size:,} bytes")
        end = start + length
        ends += [(first_ns, size), (last_ns + 1, -size)]
    n_open = 0
    for _, change in sorted(ends):
        n_open += change
        if n_open > _MOST_OPEN_BYTES:
            raise FileError(f"{path}: more than {_MOST_OPEN_BYTES / 1e9:.0f} GB of chunks overlap in time; sort it")


def _mcap_chunks(file: BinaryIO, n_bytes: int) -> list[tuple[int, int, int, int, int]]:
    """Return start, length, decompressed size, first and last time of the chunks in an MCAP file's index."""
    file.seek(max(n_bytes - 37, 0))
    tail = file.read(37)
    (start,) = struct.unpack_from("<Q", tail, 9)
    if tail[:9] != _FOOTER or not 0 < start <= n_bytes - 37:
        return []
    file.seek(start)
    summary, at = file.read(n_bytes - 37 - start), 0
    found: list[tuple[int, int, int, int, int]] = []
    while at + 9 <= len(summary) and summary[at] != _SUMMARY_OFFSET:
        (length,) = struct.unpack_from("<Q", summary, at + 1)
        if summary[at] == _CHUNK_INDEX:
            first_ns, last_ns, chunk, chunk_length, offsets = struct.unpack_from("<4QI", summary, at + 9)
            (name,) = struct.unpack_from("<I", summary, at + 9 + 36 + offsets + 8)
            (size,) = struct.unpack_from("<Q", summary, at + 9 + 36 + offsets + 8 + 4 + name + 8)
            found.append((chunk, chunk_length, size, first_ns, last_ns))
        at += 9 + length
    return found


def _ros1(path: Path) -> None:
    """Refuse an index with a chunk twice: its messages would be listed again and again."""
    with path.open("rb") as file:
        try:
            file.seek(13)
            header = _ros1_header(file)
            (position,) = struct.unpack("<Q", header[b"index_pos"])
            n_connections, n_chunks = (struct.unpack("<I", header[key])[0] for key in (b"conn_count", b"chunk_count"))
            if position > path.stat().st_size:
                return
            file.seek(position)
            for _ in range(n_connections):
                _ros1_header(file)
                file.seek(struct.unpack("<I", file.read(4))[0], 1)
            seen: set[bytes] = set()
            for _ in range(n_chunks):
                chunk = _ros1_header(file)[b"chunk_pos"]
                file.seek(struct.unpack("<I", file.read(4))[0], 1)
                if chunk in seen:
                    at = int.from_bytes(chunk, "little")
                    raise FileError(f"{path}: is damaged; its index tells of two chunks at byte {at}")
                seen.add(chunk)
        except (struct.error, KeyError):
            return


def _ros1_header(file: BinaryIO) -> dict[bytes, bytes]:
    """Read the header of a record; its content comes next."""
    (length,) = struct.unpack("<I", file.read(4))
    if length > 1 << 16:
        raise KeyError(length)
    data, fields, at = file.read(length), dict[bytes, bytes](), 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        name, _, value = data[at + 4 : at + 4 + size].partition(b"=")
        fields[name] = value
        at += 4 + size
    return fields


def _sqlite(path: Path) -> None:
    """Refuse tables that are none: a view or a computed column can make rows out of nothing."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as opened:
            opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
            marks = ",".join("?" * len(_TABLES))
            query = f"SELECT lower(name), sql FROM sqlite_master WHERE lower(name) IN ({marks}) LIMIT 20"
            found: list[tuple[object, object]] = opened.execute(query, _TABLES).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return
    for name, text in found:
        if not isinstance(text, str) or not re.match(r"create\s+table\s", text, re.I) or _is_computed(text):
            raise FileError(f"{path}: is no recording; {name} is not a plain table")


def _is_computed(text: str) -> bool:
    return re.search(r"\bas\b|\bgenerated\b", text, re.I) is not None
