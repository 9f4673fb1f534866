# SPDX-License-Identifier: Apache-2.0
"""From captured frames to UDP datagrams: link layers, IP headers, fragments.

What is no UDP over IP is passed over without a word: a capture holds ARP, DNS and whatever else was on the wire.
"""

import struct
from dataclasses import dataclass, field

_UDP = 17
_MAX_OPEN = 64  # datagrams in pieces at a time; older ones lost a piece and will never be whole
_ETHERTYPE_AT = {1: 12, 113: 14}  # Ethernet; Linux cooked capture
_VLAN = (0x8100, 0x88A8)
_NULL, _RAW, _COOKED_2 = 0, (12, 101, 228, 229), 276

Mark = tuple[int, int]
"""Position and time of the packet that a datagram began with."""


@dataclass(slots=True)
class _Pieces:
    mark: Mark
    parts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    length: int | None = None

    def joined(self) -> bytes | None:
        """Return the payload if no piece is missing."""
        at = 0
        for start in sorted(self.parts):
            if start != at:
                return None
            at += len(self.parts[start])
        return b"".join(self.parts[start] for start in sorted(self.parts)) if at == self.length else None


@dataclass(slots=True)
class Fragments:
    """Puts datagrams together from the frames of a capture, in order."""

    waiting: dict[bytes, _Pieces] = field(default_factory=dict[bytes, _Pieces])

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
            self.waiting[key] = _Pieces(mark)
        pieces = self.waiting[key]
        pieces.parts[offset] = body
        if not more:
            pieces.length = offset + len(body)
        whole = pieces.joined()
        if whole is None:
            return None
        del self.waiting[key]
        return _udp(whole, pieces.mark)


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
