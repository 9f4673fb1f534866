# SPDX-License-Identifier: Apache-2.0
"""Limits that rosbags does not have: a bag of a few kilobytes must not fill the memory or the disk, nor take forever.

rosbags reads as many bytes as a record claims, decompresses whatever comes, and parses the YAML in which channels tell
their quality of service, which is not needed here. Its parser of YAML takes half a minute for a megabyte of metadata.
`install` puts bounded or faster functions in place of these.
"""

import bz2
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from hedgerow.io.yaml_text import parse_yaml

MOST_CHUNK_BYTES = 1 << 28
"""Of a chunk or message, decompressed: twelve million points. Recorders write chunks of a megabyte."""
_MOST_RATIO = 1_000  # real recordings shrink to a tenth; only what was made to harm shrinks more than this
_STEPS_AT_A_TIME = 100_000
_MOST_STEPS, _STEPS_PER_BYTE = 20_000_000, 20


def decompress(start: Callable[[], Any], data: bytes, most: int) -> bytes:
    """Decompress one frame after another, up to a limit.

    Args:
        start: makes a decompressor with the methods of bz2.BZ2Decompressor.
        data: compressed.
        most: bytes that may come out.

    Raises:
        ValueError: more would come out, or the data is cut off.
    """
    parts: list[bytes] = []
    left = min(most, MOST_CHUNK_BYTES)
    while data:
        frame = start()
        parts.append(frame.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise ValueError(f"compressed data is larger than {min(most, MOST_CHUNK_BYTES):,} bytes")
        if not frame.eof:
            raise ValueError("compressed data is cut off")
        data = frame.unused_data
    return b"".join(parts)


@cache
def install() -> None:
    """Bound what rosbags decompresses and parses, from now on."""
    from rosbags.rosbag1 import reader as reader1
    from rosbags.rosbag2 import storage_mcap, storage_sqlite3

    reader2: Any = import_module("rosbags.rosbag2.reader")
    zstd, lz4 = reader2.zstd, import_module("lz4.frame").LZ4FrameDecompressor
    storage_mcap.DECOMPRESSORS["lz4"] = partial(decompress, lz4)
    storage_mcap.DECOMPRESSORS["zstd"] = partial(decompress, zstd.ZstdDecompressor)
    reader1.decompressors["lz4"] = partial(decompress, lz4, most=MOST_CHUNK_BYTES)
    reader1.decompressors["bz2"] = partial(decompress, bz2.BZ2Decompressor, most=MOST_CHUNK_BYTES)
    reader2.zstd = SimpleNamespace(
        open=partial(_open_bounded, zstd), decompress=partial(decompress, zstd.ZstdDecompressor, most=MOST_CHUNK_BYTES)
    )
    reader2.YAML = _Yaml
    for module in (reader2, storage_mcap, storage_sqlite3):
        setattr(module, "parse_qos", _no_quality)  # noqa: B010


class _Yaml:
    """The one method that is needed of ruamel's class."""

    def __init__(self, typ: str) -> None:
        """Take what ruamel's takes."""

    def load(self, text: str) -> Any:
        """Parse the metadata of a bag."""
        return parse_yaml(text)


def _no_quality(told: object) -> list[Any]:
    return []


@contextmanager
def _open_bounded(zstd: Any, file: Any, mode: str) -> Generator[Any]:
    """Open a compressed file; reading raises ValueError where too much comes out of it."""
    at = file.tell()
    most = max(MOST_CHUNK_BYTES, _MOST_RATIO * file.seek(0, 2))
    file.seek(at)
    with zstd.open(file, mode) as opened:
        yield SimpleNamespace(read=partial(_read_bounded, opened, most))


def _read_bounded(opened: Any, most: int, size: int) -> bytes:
    if opened.tell() > most:
        raise ValueError(f"the compressed file is larger than {most:,} bytes, {_MOST_RATIO} times what it takes up")
    return opened.read(size)


@contextmanager
def bounded_queries(n_bytes: int) -> Generator[None]:
    """Let queries of SQLite that are made in this block end: a damaged table can lead round in circles.

    Args:
        n_bytes: of the file, which says how many steps a query can need.
    """
    try:
        import apsw
    except ImportError:  # an older rosbags, which does without
        yield
        return
    most = max(_MOST_STEPS, _STEPS_PER_BYTE * n_bytes)

    def limit(connection: Any) -> None:
        done = 0

        def stop() -> bool:
            nonlocal done
            done += _STEPS_AT_A_TIME
            return done > most

        connection.set_progress_handler(stop, _STEPS_AT_A_TIME)

    apsw.connection_hooks.append(limit)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(limit)
