# SPDX-License-Identifier: Apache-2.0
"""Capture: the UDP datagrams in a pcap or pcapng file, one at a time, from any position that was met before.

Understands both byte orders, micro- and nanoseconds, Ethernet (also with VLAN tags), Linux "cooked" and raw captures,
IPv4 and IPv6, and puts IP fragments together again: a packet of an Ouster lidar takes six of them.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hedgerow.errors import FileError
from hedgerow.io.pcap.frames import Fragments

MAX_RECORD = 1 << 20  # no capture has larger packets; a larger length is damage
_PCAP_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_SECTION = b"\x0a\x0d\x0d\x0a"
_INTERFACE, _SIMPLE, _ENHANCED = 1, 3, 6


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP datagram."""

    position: int
    """Where in the file the packet begins; `Capture.datagrams` can go on from there."""
    time_ns: int
    """When it was captured."""
    port: int
    """Where it was sent to."""
    payload: bytes


@dataclass(slots=True)
class _Section:
    """A part of a file: its byte order and what its packets come from."""

    start: int
    order: str
    interfaces: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Link type, and ticks per second as (numerator, denominator) in nanoseconds, of each interface."""


@dataclass(frozen=True, slots=True)
class _Record:
    position: int
    time_ns: int
    link: int
    data: bytes
    cut: bool


class Capture:
    """A pcap or pcapng file."""

    def __init__(self, path: str | Path) -> None:
        """Look at the header.

        Raises:
            FileError: it cannot be read, is empty, or is no capture.
        """
        self.path = Path(path)
        self.n_cut = 0
        """Packets that were captured only in part, of those read so far."""
        with self._open() as file:
            head = file.read(24)
        if not head:
            raise FileError(f"{path}: is empty; expected a pcap or pcapng capture")
        self._sections: list[_Section] = []
        self._is_ng = head[:4] == _SECTION
        self._first = 0 if self._is_ng else 24
        if not self._is_ng:
            if head[:4] not in _PCAP_MAGIC:
                raise FileError(f"{path}: is no pcap or pcapng capture (begins with {head[:4].hex()})")
            if len(head) < 24:
                raise FileError(f"{path}: ends within its header, after {len(head)} bytes; it was cut off")
            order, ns = _PCAP_MAGIC[head[:4]]
            link = struct.unpack(order + "I", head[20:24])[0] & 0x0FFFFFFF
            self._sections.append(_Section(0, order, [(link, ns, 1)]))

    def datagrams(self, position: int | None = None) -> Iterator[Datagram]:
        """Give the datagrams in the order of the file.

        Args:
            position: of the datagram to begin with; default the first one.

        Raises:
            FileError: the file is damaged or ends within a packet.
        """
        fragments = Fragments()
        for record in self._records(self._first if position is None else position):
            if record.cut:
                self.n_cut += 1
                continue
            found = fragments.add(record.link, record.data, (record.position, record.time_ns))
            if found is not None:
                (start, time_ns), port, payload = found
                yield Datagram(start, time_ns, port, payload)

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise FileError(f"{self.path}: cannot read ({error.strerror or error})") from error

    def _records(self, position: int) -> Iterator[_Record]:
        with self._open() as file:
            try:
                file.seek(position)
                while True:
                    at = file.tell()
                    found = self._block(file, at) if self._is_ng else self._plain(file, at)
                    if found is None:
                        return
                    if isinstance(found, _Record):
                        yield found
            except OSError as error:
                raise FileError(f"{self.path}: cannot read ({error.strerror or error})") from error

    def _plain(self, file: BinaryIO, at: int) -> _Record | None:
        """Read one record of a pcap file; None at its end."""
        head = file.read(16)
        if not head:
            return None
        section = self._sections[0]
        link, ns, _ = section.interfaces[0]
        seconds, fraction, length, whole = struct.unpack(section.order + "4I", self._whole(head, 16, at))
        data = self._data(file, length, at)
        return _Record(at, seconds * 1_000_000_000 + fraction * ns, link, data, length < whole)

    def _block(self, file: BinaryIO, at: int) -> _Record | bool | None:
        """Read one block of a pcapng file: a record, True for blocks of another kind, None at the end."""
        head = file.read(12)
        if not head:
            return None
        self._whole(head, 12, at)
        if head[:4] == _SECTION:
            order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
            if not any(section.start == at for section in self._sections):
                self._sections.append(_Section(at, order))
        elif not self._sections:
            raise FileError(f"{self.path}: is damaged at byte {at}; expected the header of a section")
        section = self._sections[bisect_right([each.start for each in self._sections], at) - 1]
        kind, length = struct.unpack(section.order + "2I", head[:8])
        if not 12 <= length <= MAX_RECORD or length % 4:
            raise FileError(f"{self.path}: is damaged at byte {at}; a block of {length} bytes is not possible")
        body = head[8:] + self._data(file, length - 12, at)
        return self._content(section, kind, body[: length - 12], at)

    def _content(self, section: _Section, kind: int, body: bytes, at: int) -> _Record | bool:
        try:
            if kind == _INTERFACE:
                section.interfaces.append(_interface(section.order, body))
            if kind == _ENHANCED:
                numbers: tuple[int, ...] = struct.unpack_from(section.order + "5I", body)
                number, high, low, length, whole = numbers
                link, over, under = section.interfaces[number]
                time_ns = ((high << 32) + low) * over // under
                return _Record(at, time_ns, link, body[20 : 20 + length], length < whole)
            if kind == _SIMPLE and section.interfaces:
                (whole,) = struct.unpack_from(section.order + "I", body)
                return _Record(at, 0, section.interfaces[0][0], body[4 : 4 + whole], len(body) - 4 < whole)
        except (struct.error, IndexError):
            raise FileError(f"{self.path}: is damaged at byte {at}; a block does not hold what it must") from None
        return True

    def _data(self, file: BinaryIO, length: int, at: int) -> bytes:
        if length > MAX_RECORD:
            raise FileError(f"{self.path}: is damaged at byte {at}; a packet of {length} bytes is not possible")
        return self._whole(file.read(length), length, at)

    def _whole(self, data: bytes, length: int, at: int) -> bytes:
        if len(data) < length:
            raise FileError(
                f"{self.path}: ends within the packet at byte {at}; it was cut off, copy it again or repair it with "
                "editcap"
            )
        return data


def _interface(order: str, body: bytes) -> tuple[int, int, int]:
    """Return link type and the length of a tick in ns as a fraction, from an interface description."""
    (link,) = struct.unpack_from(order + "H", body)
    over, under, at = 1_000, 1, 8  # microseconds unless told otherwise
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "2H", body, at)
        if code == 9 and length == 1:  # if_tsresol
            value = body[at + 4]
            per_s = 2 ** (value & 0x7F) if value & 0x80 else 10**value
            over, under = 1_000_000_000, per_s
        at += 4 + (length + 3) // 4 * 4
    return link, over, under
