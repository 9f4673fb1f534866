# SPDX-License-Identifier: Apache-2.0
"""Where the numbers of binary formats stand, so that they can be changed one by one, and checksums that still hold.

A layout lists fields as (offset, width in bytes, byte order). Good files of a format are parsed; a damaged one gives
as many fields as can be found before it makes no sense.
"""

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random

from fuzzing.plain import Change, change_bytes, change_json, number_bytes, place_in

Field = tuple[int, int, str]
Layout = Callable[[bytes], Iterator[Field]]

_WORDS_SHOWN = 60
"""So many words of a payload count as fields."""


def change_fields(layout: Layout, mend: Callable[[bytearray], None] | None = None) -> Change:
    """Return a change of one to three fields, after which checksums are mended nine times of ten."""
    known = lru_cache(maxsize=64)(lambda data: _fields_of(layout, data))

    def change(data: bytes, rng: Random) -> bytes:
        fields = known(data)
        if not fields:
            return change_bytes(data, rng)
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at, width, order = fields[rng.randrange(len(fields))]
            old = int.from_bytes(changed[at : at + width], "little" if order == "<" else "big")
            if rng.random() < 0.1:  # a number from elsewhere in the file
                other = place_in(max(len(data) - width, 1), rng)
                changed[at : at + width] = data[other : other + width]
            else:
                changed[at : at + width] = number_bytes(width, old, len(data), rng, order)
        if mend is not None and rng.random() < 0.9:
            mend(changed)
        return bytes(changed)

    return change


def _fields_of(layout: Layout, data: bytes) -> list[Field]:
    found: list[Field] = []
    with contextlib.suppress(struct.error, IndexError, ValueError):  # what is damaged may end anywhere
        found.extend(each for each in layout(data) if each[0] + each[1] <= len(data))
    return found


def fields(at: int, letters: str, order: str = "<") -> Iterator[Field]:
    """Give fields that follow each other: B, H, I, Q as in `struct`; d is a double, x skips a byte."""
    for letter in letters:
        width = {"B": 1, "x": 1, "H": 2, "I": 4, "Q": 8, "d": 8}[letter]
        if letter != "x":
            yield at, width, order
        at += width


def words(at: int, size: int, order: str = "<") -> Iterator[Field]:
    """Give the first four-byte words of a payload."""
    yield from ((at + 4 * k, 4, order) for k in range(min(size // 4, _WORDS_SHOWN)))


# ---- LAS and LAZ


def las(data: bytes) -> Iterator[Field]:
    """Header, variable-length records, LAZ's own record, the start of the chunk table, the first points."""
    yield from fields(4, "HH")
    yield from fields(24, "BB")
    yield from list(fields(90, "HHHIIBHI" + "I" * 5 + "d" * 12)) * 2  # what most depends on
    header_size, points_at, n_records = struct.unpack_from("<HII", data, 94)
    if header_size >= 375:
        yield from fields(227, "QQIQ" + "Q" * 15)
    at = header_size
    for _ in range(min(n_records, 20)):
        (length,) = struct.unpack_from("<H", data, at + 20)
        yield from fields(at, "H" + "x" * 16 + "HH")
        if data[at + 2 : at + 9] == b"laszip ":
            yield from list(fields(at + 54, "HHBBHIIQQH" + "HHH" * 4)) * 3
        else:
            yield from words(at + 54, length)
        at += 54 + length
    yield from fields(points_at, "Q")
    (table_at,) = struct.unpack_from("<q", data, points_at)
    if 0 < table_at < len(data):
        yield from list(fields(table_at, "IIIII")) * 3
    yield from words(points_at + 8, len(data) - points_at - 8)


# ---- captures of packets


def pcap(data: bytes) -> Iterator[Field]:
    """File header, packet headers, IP and UDP headers, the start and the end of the payload."""
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        yield from pcapng(data)
        return
    yield from fields(0, "IHHIIII")
    at = 24
    while at + 16 < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield from fields(at, "IIII")
        yield from _frame(at + 16, length)
        at += 16 + length


def pcapng(data: bytes) -> Iterator[Field]:
    """Blocks with their lengths, and the frames in them."""
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield from fields(at, "III")
        if length < 12:
            return
        yield at + length - 4, 4, "<"
        yield from words(at + 8, min(length - 12, 20))
        if kind == 6:
            yield from _frame(at + 28, length - 32)
        at += length


def _frame(at: int, size: int) -> Iterator[Field]:
    yield from fields(at + 12, "HBBHHHBBH", ">")
    yield from fields(at + 34, "HHH", ">")
    yield from fields(at + 42, "HHHBHB")
    yield from words(at + 42, size - 42)
    yield from fields(at + size - 6, "IBB")


# ---- MCAP

_MCAP = {
    0x01: "SS", 0x02: "QQI", 0x03: "HSSS", 0x04: "HHSSM", 0x05: "HIQQ*", 0x06: "QQQISR", 0x07: "HM",
    0x08: "QQQQMQSQQ", 0x0A: "QSQQS", 0x0B: "QHIIIIQQM", 0x0C: "SM", 0x0D: "QQS", 0x0E: "BQQ", 0x0F: "I",
}  # fmt: skip


def mcap(data: bytes) -> Iterator[Field]:
    """Every record with its length and its numbers, those within chunks too."""
    yield from _mcap_records(data, 8, len(data) - 8)


def _mcap_records(data: bytes, at: int, end: int) -> Iterator[Field]:
    while at + 9 <= end:
        code, length = struct.unpack_from("<BQ", data, at)
        yield from fields(at, "BQ")
        yield from _mcap_record(data, at + 9, at + 9 + length, _MCAP.get(code, ""))
        at += 9 + length


def _mcap_record(data: bytes, at: int, end: int, layout: str) -> Iterator[Field]:
    for letter in layout:
        if letter in "SM":
            yield at, 4, "<"
            yield from fields(at + 4, "BB")
            at += 4 + struct.unpack_from("<I", data, at)[0]
        elif letter == "*":
            yield from words(at + 4, end - at - 4)
        elif letter == "R":
            yield at, 8, "<"
            yield from _mcap_records(data, at + 8, end)
        else:
            yield from fields(at, letter)
            at += {"B": 1, "H": 2, "I": 4, "Q": 8}[letter]


def mend_mcap(data: bytearray) -> None:
    """Make the checksums of chunks, the data section and the summary right again, where they were not left out."""
    at = 8
    while at + 9 <= len(data) - 8:
        code, length = struct.unpack_from("<BQ", data, at)
        body = at + 9
        if body + length > len(data):
            return
        if code == 0x06 and length > 40:
            (name,) = struct.unpack_from("<I", data, body + 28)
            first = body + 32 + name + 8
            if name == 0 and data[body + 24 : body + 28] != bytes(4) and first <= body + length:
                struct.pack_into("<I", data, body + 24, zlib.crc32(data[first : body + length]))
        elif code == 0x0F and data[body : body + 4] != bytes(4):
            struct.pack_into("<I", data, body, zlib.crc32(data[:at]))
        elif code == 0x02 and data[body + 16 : body + 20] != bytes(4):
            start = struct.unpack_from("<Q", data, body)[0]
            struct.pack_into("<I", data, body + 16, zlib.crc32(data[start : body + 16]))
        at = body + length


# ---- ROS 1 bags


def ros1(data: bytes) -> Iterator[Field]:
    """Every record: lengths of header, fields and data, the values of the fields, and those within chunks."""
    yield from _ros1_records(data, data.index(b"\n") + 1, len(data))


def _ros1_records(data: bytes, at: int, end: int) -> Iterator[Field]:
    while at + 8 <= end:
        yield at, 4, "<"
        (head,) = struct.unpack_from("<I", data, at)
        code = -1
        first, stop = at + 4, at + 4 + head
        while first + 4 <= stop:
            (length,) = struct.unpack_from("<I", data, first)
            name, _, value = data[first + 4 : first + 4 + length].partition(b"=")
            yield first, 4, "<"
            yield first + 4, 1, "<"
            value_at = first + 5 + len(name)
            yield from fields(value_at, {1: "B", 4: "I", 8: "Q"}.get(len(value), "BBB"))
            code = value[0] if name == b"op" else code
            first += 4 + length
        (size,) = struct.unpack_from("<I", data, stop)
        yield stop, 4, "<"
        if code == 5:
            yield from _ros1_records(data, stop + 4, stop + 4 + size)
        else:
            yield from words(stop + 4, size)
        at = stop + 4 + size


# ---- SQLite


def sqlite(data: bytes) -> Iterator[Field]:
    """Header, page headers, pointers to cells, and how the cells begin."""
    yield from list(fields(16, "HBBBBBBIIIIIIIIIIII", ">"))
    (page,) = struct.unpack_from(">H", data, 16)
    for number in range(len(data) // max(page, 512)):
        start = number * page
        at = start + (100 if number == 0 else 0)
        (n_cells,) = struct.unpack_from(">H", data, at + 3)
        yield from fields(at, "BHHHBI", ">")
        first = at + (8 if data[at] in (10, 13) else 12)
        for k in range(min(n_cells, 20)):
            (cell,) = struct.unpack_from(">H", data, first + 2 * k)
            yield first + 2 * k, 2, ">"
            yield from fields(start + cell, "BBBBBBBBHI", ">")


# ---- pictures and meshes


def png(data: bytes) -> Iterator[Field]:
    """Chunk lengths and the picture's header."""
    at = 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield at, 4, ">"
        if data[at + 4 : at + 8] == b"IHDR":
            yield from list(fields(at + 8, "IIBBBBB", ">")) * 3
        else:
            yield from fields(at + 4, "BBBB" + "B" * min(length, 30), ">")
        at += 12 + length


def mend_png(data: bytearray) -> None:
    """Make the checksums of the chunks right again."""
    at = 8
    while at + 12 <= len(data):
        length = struct.unpack_from(">I", data, at)[0]
        if at + 12 + length > len(data):
            return
        struct.pack_into(">I", data, at + 8 + length, zlib.crc32(data[at + 4 : at + 8 + length]))
        at += 12 + length


def tiff(data: bytes) -> Iterator[Field]:
    """The directory: tag, type, count and value of each entry, and what the values point at."""
    yield from fields(0, "HHI")
    (at,) = struct.unpack_from("<I", data, 4)
    (n,) = struct.unpack_from("<H", data, at)
    yield at, 2, "<"
    for k in range(min(n, 40)):
        yield from fields(at + 2 + 12 * k, "HHII")
        (value,) = struct.unpack_from("<I", data, at + 10 + 12 * k)
        if value > 8:
            yield from fields(value, "dd")


def stl(data: bytes) -> Iterator[Field]:
    """The count, and the first numbers."""
    yield from fields(80, "IIII")
    yield from words(84, len(data) - 84)


def change_glb(data: bytes, rng: Random) -> bytes:
    """Change the JSON of a GLB file, its buffer, or its lengths."""
    if len(data) < 20 or rng.random() < 0.2:
        return change_bytes(data, rng)
    (length,) = struct.unpack_from("<I", data, 12)
    text, rest = data[20 : 20 + length], data[20 + length :]
    if rng.random() < 0.7:
        text = change_json(text, rng)
        text += b" " * (-len(text) % 4)
    else:
        rest = change_bytes(rest, rng)
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest
