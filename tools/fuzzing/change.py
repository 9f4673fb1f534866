# SPDX-License-Identifier: Apache-2.0
"""Damage to one input as a whole: which of its files, in which way, and what must be mended elsewhere.

An input is a good one (`Seed`) with some files changed (`Changes`), so that little has to be written for each.
"""

import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing import binary
from fuzzing.binary import change_fields
from fuzzing.plain import Change, change_bytes, change_json, change_text, change_toml
from fuzzing.tables import change_columns, change_footer, change_header, change_rows

Changes = dict[str, bytes | None]
"""New content by file; None: the file is gone."""


@dataclass(frozen=True)
class Seed:
    """A good input: its files by path in a folder of its own, and which path is opened."""

    files: Mapping[str, bytes]
    opened: str

    @property
    def is_file(self) -> bool:
        """Whether what is opened is a file, not a folder."""
        return self.opened in self.files


_LAS = change_fields(binary.las)
_PCAP = change_fields(binary.pcap)
_BY_SUFFIX: dict[str, tuple[Change, ...]] = {
    ".parquet": (change_footer, change_header, change_columns, change_columns, change_bytes),
    ".las": (_LAS, _LAS, _LAS, change_bytes),
    ".laz": (_LAS, _LAS, _LAS, change_bytes),
    ".pcap": (_PCAP, _PCAP, change_bytes),
    ".pcapng": (_PCAP, _PCAP, change_bytes),
    ".mcap": (change_fields(binary.mcap, binary.mend_mcap),) * 3 + (change_bytes,),
    ".bag": (change_fields(binary.ros1),) * 3 + (change_bytes,),
    ".db3": (change_rows, change_rows, change_fields(binary.sqlite), change_bytes),
    ".toml": (change_toml, change_toml, change_toml, change_text, change_bytes),
    ".json": (change_json, change_json, change_json, change_text, change_bytes),
    ".png": (change_fields(binary.png, binary.mend_png), change_bytes),
    ".tif": (change_fields(binary.tiff), change_bytes),
    ".glb": (binary.change_glb,),
    ".stl": (change_fields(binary.stl), change_bytes),
    ".pcd": (change_text, change_bytes),
    ".ply": (change_text, change_bytes),
    ".bin": (change_bytes,),
    ".label": (change_bytes,),
}
_TEXT: tuple[Change, ...] = (change_text, change_text, change_bytes)
_HEADER_ENDS = {".pcd": b"\nDATA ", ".ply": b"end_header"}


def change_file(name: str, data: bytes, rng: Random) -> bytes:
    """Change the content of a file in a way that suits its suffix."""
    suffix = PurePosixPath(name).suffix
    change = rng.choice(_BY_SUFFIX.get(suffix, _TEXT))
    ends = _HEADER_ENDS.get(suffix)
    if change is change_text and ends is not None:  # a text followed by bytes
        end = data.find(b"\n", data.find(ends) + 1) + 1
        return change(data[:end], rng) + data[end:]
    try:
        return change(data, rng)
    except Exception:  # of any parser: what was changed before may be past parsing
        return change_bytes(data, rng)


def change_input(seed: Seed, rng: Random) -> Changes:
    """Change one or two files of an input; seldom is one lost, empty or exchanged for another."""
    names = sorted(seed.files)
    changes: Changes = {}
    for _ in range(1 if len(names) == 1 or rng.random() < 0.9 else 2):
        name = rng.choice(names)
        old = changes.get(name) or seed.files[name]
        chance = rng.random()
        if chance < 0.01 and len(names) > 1:
            changes[name] = None
        elif chance < 0.015:
            changes[name] = b""
        elif chance < 0.025 and len(names) > 1:
            changes[name] = seed.files[rng.choice(names)]
        else:
            changes[name] = change_file(name, old, rng)
    if rng.random() < 0.9:
        mend_world(seed, changes)
    return changes


def mend_world(seed: Seed, changes: Changes) -> None:
    """Make the checksums of a world right again, if there is one: of tiles in their list, of that in world.toml."""
    said = next((name for name in seed.files if name.endswith("world.toml")), None)
    if said is None:
        return
    listed = said.replace("world.toml", "tiles.parquet")
    tiles = {name: data for name, data in changes.items() if data and name.endswith(".parquet") and name != listed}
    try:
        if tiles and changes.get(listed, b"") is not None:
            content = changes.get(listed) or seed.files[listed]
            changes[listed] = _with_checksums(content, {seed.files[name]: data for name, data in tiles.items()})
        if changes.get(listed) and changes.get(said, b"") is not None:
            text = changes.get(said) or seed.files[said]
            right = f"tiles_crc32 = {zlib.crc32(changes[listed] or b'')}".encode()
            changes[said] = re.sub(rb"tiles_crc32 = \d+", right, text)
    except (pa.ArrowException, KeyError, OSError, ValueError, struct.error):
        return  # the list itself is past mending


def _with_checksums(listed: bytes, changed: Mapping[bytes, bytes]) -> bytes:
    new = {zlib.crc32(old): zlib.crc32(data) for old, data in changed.items()}
    table = pq.read_table(pa.BufferReader(listed), use_threads=False)
    values = [new.get(int(value or 0), value) for value in table.column("crc32").to_pylist()]
    at = table.column_names.index("crc32")
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(values, pa.int64())), sink)
    return sink.getvalue().to_pybytes()
