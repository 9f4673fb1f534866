# SPDX-License-Identifier: Apache-2.0
"""Sweeps of an Ouster lidar from its UDP packets.

A packet holds a few columns, a column one pixel per beam. Range 0 is no return; a column that is not marked valid was
not measured, or not sent, and says nothing. Layouts after the Ouster software manual, "lidar data packet format".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.firings import Firings
from hedgerow.io.pcap.capture import Capture, Datagram
from hedgerow.io.pcap.clock import Clock
from hedgerow.io.pcap.crc64 import crc64
from hedgerow.io.pcap.ouster_metadata import OusterMetadata

_MM = 1e-3
_LOOKED_AT = 16  # packets that show whether there are checksums
_AHEAD = 4  # packets of a later turn, after which no more of this one are expected
_PIXELS: dict[str, list[tuple[str, int, str, int]]] = {
    # name, offset in the pixel, type, mask; the last entry is the size of a pixel
    "LEGACY": [("range", 0, "<u4", 0xFFFFF), ("reflectivity", 4, "<u2", 0), ("", 12, "", 0)],
    "RNG19_RFL8_SIG16_NIR16": [("range", 0, "<u4", 0x7FFFF), ("reflectivity", 4, "u1", 0), ("", 12, "", 0)],
    "RNG19_RFL8_SIG16_NIR16_DUAL": [
        ("range", 0, "<u4", 0x7FFFF),
        ("reflectivity", 3, "u1", 0),
        ("range2", 4, "<u4", 0x7FFFF),
        ("reflectivity2", 7, "u1", 0),
        ("", 16, "", 0),
    ],
    "RNG15_RFL8_NIR8": [("range", 0, "<u2", 0x7FFF), ("reflectivity", 2, "u1", 0), ("", 4, "", 0)],
    "RNG15_RFL8_NIR8_DUAL": [
        ("range", 0, "<u2", 0x7FFF),
        ("reflectivity", 2, "u1", 0),
        ("range2", 4, "<u2", 0x7FFF),
        ("reflectivity2", 6, "u1", 0),
        ("", 8, "", 0),
    ],
}


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What the packets of a profile look like."""

    packet: np.dtype[np.void]
    masks: dict[str, int]
    range_step_m: float
    n_returns: int
    legacy: bool

    @classmethod
    def of(cls, metadata: OusterMetadata) -> "Layout":
        """Return the layout of a sensor's packets.

        Raises:
            FileError: a profile that is not known.
        """
        if metadata.profile not in _PIXELS:
            raise FileError(
                f"udp_profile_lidar: {metadata.profile} is not one that Hedgerow reads; it reads {', '.join(_PIXELS)}"
            )
        *fields, (_, size, _, _) = _PIXELS[metadata.profile]
        names, offsets, types, _ = zip(*fields, strict=True)
        pixel = np.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": size})
        pixels = ("pixel", pixel, metadata.n_pixels)
        legacy = metadata.profile == "LEGACY"
        if legacy:
            head = [("time_ns", "<u8"), ("number", "<u2"), ("frame", "<u2"), ("encoder", "<u4"), pixels]
            packet = np.dtype([("column", np.dtype([*head, ("status", "<u4")]), metadata.columns_per_packet)])
        else:
            column = np.dtype([("time_ns", "<u8"), ("number", "<u2"), ("status", "<u2"), pixels])
            start = [("kind", "<u2"), ("frame", "<u2"), ("head", "V28")]
            packet = np.dtype([*start, ("column", column, metadata.columns_per_packet), ("foot", "V32")])
        masks = {name: mask for name, _, _, mask in fields if mask}
        step_m = _MM * (8 if metadata.profile.startswith("RNG15") else 1)
        return cls(packet, masks, step_m, 2 if "range2" in names else 1, legacy)

    def frame_of(self, payload: bytes) -> int:
        """Return the number of the turn that a packet belongs to; it counts to 65535 and begins anew."""
        at = 10 if self.legacy else 2
        return int.from_bytes(payload[at : at + 2], "little")


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the packets of one turn begin."""

    position: int
    frame: int


class OusterSweeps:
    """The turns of an Ouster lidar in a capture."""

    def __init__(self, capture: Capture, metadata: OusterMetadata) -> None:
        """Look through the capture for the beginnings of turns.

        Raises:
            FileError: the capture is damaged, or holds no packets of this sensor.
        """
        self.metadata = metadata
        self.layout = Layout.of(metadata)
        self._capture = capture
        self.turns: list[Turn] = []
        self.clock = Clock(0)
        self.start_ns = self.end_ns = 0
        first: list[bytes] = []
        for datagram in self._packets(None):
            self._index(datagram)
            if len(first) < _LOOKED_AT:
                first.append(datagram.payload)
        # Firmware before 3.1 has anything in that place; of packets with checksums not all can be damaged.
        self._has_checksums = bool(first) and not self.layout.legacy and bool(_intact(first).any())
        if not self.turns:
            raise FileError(
                f"{capture.path}: holds no lidar packets of {self.layout.packet.itemsize} bytes, which the metadata "
                f"of this {metadata.name} promise{_cut_text(capture)}"
            )

    def load(self, number: int) -> Firings:
        """Decode one turn.

        Raises:
            FileError: the capture is damaged.
        """
        turn, ahead = self.turns[number], 0
        found: list[bytes] = []
        for datagram in self._packets(turn.position):
            if self.layout.frame_of(datagram.payload) == turn.frame:
                found.append(datagram.payload)
                ahead = 0
            else:
                ahead += 1
            if ahead >= _AHEAD:
                break
        self._require_intact(number, found)
        return self._decoded(found)

    def _require_intact(self, number: int, payloads: list[bytes]) -> None:
        """Raise FileError if a checksum is wrong."""
        n_wrong = int(np.count_nonzero(~_intact(payloads))) if self._has_checksums else 0
        if n_wrong:
            raise FileError(
                f"{self._capture.path}, sweep {number}: {n_wrong} of {len(payloads)} packets are damaged, their "
                "checksums do not match; leave this sweep out"
            )

    def _packets(self, position: int | None) -> Iterator[Datagram]:
        size = self.layout.packet.itemsize
        return (each for each in self._capture.datagrams(position) if len(each.payload) == size)

    def _index(self, datagram: Datagram) -> None:
        frame = self.layout.frame_of(datagram.payload)
        if not self.turns:
            self.clock = Clock.at(self._time_of(datagram.payload), datagram.time_ns)
            self.start_ns = self._ours(datagram)
        # A packet of an earlier turn comes late; it does not begin a turn.
        known = [turn.frame for turn in self.turns[-2:]]
        if frame not in known:
            self.turns.append(Turn(datagram.position, frame))
        self.end_ns = self._ours(datagram)

    def _time_of(self, payload: bytes) -> int:
        at = 0 if self.layout.legacy else 32
        return int.from_bytes(payload[at : at + 8], "little") & (2**62 - 1)

    def _ours(self, datagram: Datagram) -> int:
        sensor_ns = self._time_of(datagram.payload)
        return sensor_ns + self.clock.offset_ns(sensor_ns, datagram.time_ns)

    def _decoded(self, payloads: Iterable[bytes]) -> Firings:
        columns = np.frombuffer(b"".join(payloads), self.layout.packet)["column"].ravel()
        valid = (columns["status"] & 1 == 1) & (columns["number"] < self.metadata.columns_per_frame)
        columns = columns[valid]
        # By number, and of a packet that came twice the second.
        _, last = np.unique(columns["number"][::-1], return_index=True)
        columns = columns[len(columns) - 1 - last]
        pixels: NDArray[np.void] = columns["pixel"]
        n, k = pixels.shape
        origin_m, direction = self.metadata.beams(columns["number"])
        ranges = [self._field(pixels, name) for name in ("range", "range2")[: self.layout.n_returns]]
        reflectivity = [self._field(pixels, name) for name in ("reflectivity", "reflectivity2")[: len(ranges)]]
        steps = np.stack(ranges, axis=-1).reshape(n * k, -1)
        time_ns = (columns["time_ns"] & (2**62 - 1)).astype(np.int64) + self.clock.offset_ns(0, 0)
        return Firings(
            origin_m.reshape(-1, 3),
            direction.reshape(-1, 3),
            np.where(steps > 0, steps * self.layout.range_step_m, np.inf),
            np.tile(np.arange(k, dtype=np.int64), n),
            np.repeat(time_ns, k),
            np.stack(reflectivity, axis=-1).reshape(n * k, -1),
        )

    def _field(self, pixels: NDArray[np.void], name: str) -> NDArray[np.integer]:
        mask = self.layout.masks.get(name)
        values: NDArray[np.integer] = pixels[name]
        return values if mask is None else values & mask


def _intact(payloads: list[bytes]) -> NDArray[np.bool_]:
    """Tell of packets of one size whether each ends with the checksum of what comes before."""
    rows = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    return crc64(rows[:, :-8]) == np.ascontiguousarray(rows[:, -8:]).view("<u8")[:, 0]


def _cut_text(capture: Capture) -> str:
    return f"; {capture.n_cut} packets were cut short when they were captured" if capture.n_cut else ""
