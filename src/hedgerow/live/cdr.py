# SPDX-License-Identifier: Apache-2.0
"""CDR, the way in which ROS 2 writes messages to bytes; as much of it as the messages here need.

Plain CDR (XCDR version 1) as in the OMG's DDS Interoperability Wire Protocol: four bytes of encapsulation, then the
fields in turn, numbers aligned to their own size, counted from after the encapsulation. A string is its length with
the closing zero byte, then the bytes; a sequence is its length, then the elements.
"""

import struct

from hedgerow.errors import InputError

_LITTLE_ENDIAN = b"\x00\x01\x00\x00"
_BIG_ENDIAN = b"\x00\x00"
_NS_PER_S = 1_000_000_000
_SIZE = {"B": 1, "i": 4, "I": 4, "d": 8}


class Writer:
    """Builds a little-endian message field by field."""

    def __init__(self) -> None:
        """Begin with the encapsulation."""
        self._bytes = bytearray(_LITTLE_ENDIAN)

    def numbers(self, code: str, *values: float) -> None:
        """Add numbers of one kind: B uint8, i int32, I uint32, d float64."""
        size = _SIZE[code]
        self._bytes += bytes(-(len(self._bytes) - 4) % size)
        self._bytes += struct.pack(f"<{len(values)}{code}", *values)

    def text(self, text: str) -> None:
        """Add a string."""
        encoded = text.encode() + b"\0"
        self.numbers("I", len(encoded))
        self._bytes += encoded

    def stamp(self, time_ns: int) -> None:
        """Add a builtin_interfaces/Time.

        Raises:
            InputError: the seconds do not fit into 32 bits.
        """
        seconds, nanoseconds = divmod(time_ns, _NS_PER_S)
        if not -(1 << 31) <= seconds < 1 << 31:
            raise InputError(f"stamp_ns: {time_ns} ns does not fit into the 32 bits of seconds of a ROS message")
        self.numbers("i", seconds)
        self.numbers("I", nanoseconds)

    def bytes(self) -> bytes:
        """Return what was written."""
        return bytes(self._bytes)


class Reader:
    """Takes a message apart field by field; raises InputError where it ends too early."""

    def __init__(self, data: bytes, what: str) -> None:
        """Look at the encapsulation.

        Args:
            data: the message.
            what: its kind, for errors.

        Raises:
            InputError: not plain CDR.
        """
        if len(data) < 4 or data[:2] not in (_LITTLE_ENDIAN[:2], _BIG_ENDIAN):
            raise InputError(f"{what}: does not start like a CDR message, found {data[:4].hex(' ') or 'nothing'}")
        self._data, self._what, self._at = data, what, 4
        self._order = "<" if data[:2] == _LITTLE_ENDIAN[:2] else ">"

    def numbers(self, code: str, count: int) -> tuple[float, ...]:
        """Read numbers of one kind, as in `Writer.numbers`."""
        size = _SIZE[code]
        self._at += -(self._at - 4) % size
        return struct.unpack(f"{self._order}{count}{code}", self.raw(size * count))

    def whole(self, code: str) -> int:
        """Read one whole number."""
        return int(self.numbers(code, 1)[0])

    def text(self) -> str:
        """Read a string."""
        length = self.whole("I")
        return self.raw(length).rstrip(b"\0").decode(errors="replace")

    def stamp(self) -> int:
        """Read a builtin_interfaces/Time [ns]."""
        return self.whole("i") * _NS_PER_S + self.whole("I")

    def raw(self, length: int) -> bytes:
        """Read bytes as they are."""
        end = self._at + length
        if end > len(self._data):
            raise InputError(f"{self._what}: ends after {len(self._data)} bytes, expected at least {end}")
        part = self._data[self._at : end]
        self._at = end
        return part
