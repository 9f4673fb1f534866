# SPDX-License-Identifier: Apache-2.0
"""Capture: the UDP datagrams in a pcap or pcapng file, one at a time, from any position that was met before.

Understands both byte orders, micro- and nanoseconds, Ethernet (also with VLAN tags), Linux "cooked" and raw captures,
IPv4 and IPv6, and puts IP fragments together again: a packet of an Ouster lidar takes six of them. What is no UDP over
IP is passed over without a word: a capture holds ARP, DNS and whatever else was on the wire.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from hedgerow.errors import FileError

MAX_RECORD = 1 << 20  # no capture has larger packets; a larger length is damage
_PCAP_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_SECTION = b"\x0a\x0d\x0d\x0a"
_INTERFACE, _SIMPLE, _ENHANCED = 1, 3, 6
_UDP = 17
_MAX_OPEN = 64  # datagrams that wait for more fragments; older ones lost one and will never be whole
_ETHERTYPE_AT = {1: 12, 113: 14}  # Ethernet; Linux cooked capture
_VLAN = (0x8100, 0x88A8)
_NULL, _RAW, _COOKED_2 = 0, (12, 101, 228, 229), 276
_SYNCHRONOUS_NS = 1_000_000_000
_LATEST_NS = 4_102_444_800 * 1_000_000_000  # the year 2100; sums of later times would not fit
_LONGEST_DATAGRAM = 65_535

Mark = tuple[int, int]
"""Position and time of the packet that a datagram began with."""


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
    described: int = -1
    """Where the last of these is told in the file; reading again tells it again."""


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
        if seconds * 1_000_000_000 > _LATEST_NS:
            raise FileError(f"{self.path}: is damaged at byte {at}; a packet captured after 2100")
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
            if not self._sections or self._sections[-1].start < at:
                self._sections.append(_Section(at, order))
        elif not self._sections:
            raise FileError(f"{self.path}: is damaged at byte {at}; expected the header of a section")
        section = self._sections[bisect_right(self._sections, at, key=lambda each: each.start) - 1]
        kind, length = struct.unpack(section.order + "2I", head[:8])
        if not 12 <= length <= MAX_RECORD or length % 4:
            raise FileError(f"{self.path}: is damaged at byte {at}; a block of {length} bytes is not possible")
        body = head[8:] + self._data(file, length - 12, at)
        return self._content(section, kind, body[: length - 12], at)

    def _content(self, section: _Section, kind: int, body: bytes, at: int) -> _Record | bool:
        try:
            if kind == _INTERFACE and at > section.described:
                section.interfaces.append(_interface(section.order, body))
                section.described = at
            if kind == _ENHANCED:
                numbers: tuple[int, ...] = struct.unpack_from(section.order + "5I", body)
                number, high, low, length, whole = numbers
                link, over, under = section.interfaces[number]
                time_ns = ((high << 32) + low) * over // under
                if time_ns > _LATEST_NS:
                    raise FileError(f"{self.path}: is damaged at byte {at}; a packet captured after 2100")
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


@dataclass(slots=True)
class _Partial:
    """A datagram of which fragments are missing."""

    mark: Mark
    parts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    n_bytes: int = 0
    length: int | None = None

    def joined(self) -> bytes | None:
        """Return the payload if no fragment is missing."""
        if self.n_bytes != self.length:
            return None
        at = 0
        for start in sorted(self.parts):
            if start != at:
                return None
            at += len(self.parts[start])
        return b"".join(self.parts[start] for start in sorted(self.parts)) if at == self.length else None


@dataclass(slots=True)
class Fragments:
    """Puts datagrams together from the frames of a capture, in order."""

    waiting: dict[bytes, _Partial] = field(default_factory=dict[bytes, _Partial])

    def add(self, link: int, frame: bytes, mark: Mark) -> tuple[Mark, int, bytes] | None:
        """Take one frame; return the mark, port and payload of a datagram that it completes, or None."""
        try:
            packet = _ip_packet(link, frame)
            if not packet:
                return None
            version = packet[0] >> 4
            if version == 4:
                return self._version_4(packet, mark)
            if version == 6 and packet[6] == _UDP:
                return _udp(packet[40 : 40 + int.from_bytes(packet[4:6], "big")], mark)
        except (struct.error, IndexError):
            pass  # a stray frame that is too short for its kind
        return None

    def _version_4(self, packet: bytes, mark: Mark) -> tuple[Mark, int, bytes] | None:
        if packet[9] != _UDP:
            return None
        total, identity, flags = struct.unpack_from(">HHH", packet, 2)
        body = packet[(packet[0] & 15) * 4 : total or None]  # 0 where the network card cut large packets up
        offset, more = (flags & 0x1FFF) * 8, bool(flags & 0x2000)
        if not offset and not more:
            return _udp(body, mark)
        key = packet[12:20] + identity.to_bytes(2, "big")
        if key not in self.waiting or offset in self.waiting[key].parts:  # the number is used anew
            self.waiting.pop(key, None)
            if len(self.waiting) >= _MAX_OPEN:
                self.waiting.pop(next(iter(self.waiting)))
            self.waiting[key] = _Partial(mark)
        partial = self.waiting[key]
        partial.parts[offset] = body
        partial.n_bytes += len(body)
        if partial.n_bytes > _LONGEST_DATAGRAM:
            del self.waiting[key]
            return None
        if not more:
            partial.length = offset + len(body)
        whole = partial.joined()
        if whole is None:
            return None
        del self.waiting[key]
        return _udp(whole, partial.mark)


def _ip_packet(link: int, frame: bytes) -> bytes:
    """Return the IP packet in a frame, empty if there is none."""
    if link in _RAW:
        return frame
    if link == _NULL:
        return frame[4:]
    if link == _COOKED_2:
        return frame[20:] if frame[:2] in (b"\x08\x00", b"\x86\xdd") else b""
    at = _ETHERTYPE_AT.get(link)
    if at is None:
        return b""
    (kind,) = struct.unpack_from(">H", frame, at)
    while kind in _VLAN:
        at += 4
        (kind,) = struct.unpack_from(">H", frame, at)
    return frame[at + 2 :] if kind in (0x0800, 0x86DD) else b""


def _udp(body: bytes, mark: Mark) -> tuple[Mark, int, bytes] | None:
    port, length = struct.unpack_from(">HH", body, 2)
    if length > len(body):
        return None
    return mark, port, body[8 : length or None]


@dataclass(frozen=True, slots=True)
class Clock:
    """How a sensor's time becomes that of the computer that recorded it.

    The sensor's clock says exactly how far pulses are apart, but often counts from when it was switched on, or within
    the hour. The computer's says when, but packets arrive late and in bursts. So times are the sensor's, shifted once,
    by what the first packet shows; unless the sensor was set by GPS or PTP and agrees with the computer anyway.
    """

    shift_ns: int
    """Sensor time less the computer's, at the first packet."""
    period_ns: int | None = None
    """After which the sensor counts from 0 again; None if it does not."""

    @classmethod
    def at(cls, sensor_ns: int, host_ns: int, period_ns: int | None = None) -> "Clock":
        """Compare both clocks at one packet."""
        shift = sensor_ns - host_ns
        if period_ns is not None:
            shift = (shift + period_ns // 2) % period_ns - period_ns // 2
        return cls(shift, period_ns)

    @property
    def synchronous(self) -> bool:
        """Whether the sensor's clock is set to the computer's, give or take a second of leaps and delays."""
        return abs(self.shift_ns) < _SYNCHRONOUS_NS

    def offset_ns(self, sensor_ns: int, host_ns: int) -> int:
        """Return what to add to the sensor's times in a packet, given its time and that of its arrival."""
        offset = 0 if self.synchronous else -self.shift_ns
        if self.period_ns is None:
            return offset
        turns = round((host_ns + self.shift_ns - sensor_ns) / self.period_ns)
        return offset + turns * self.period_ns

    def notes(self) -> dict[str, Any]:
        """Say in the metadata which clock the times are of."""
        return {"clock": "sensor" if self.synchronous else f"sensor, shifted by {-self.shift_ns / 1e9:.6f} s"}
