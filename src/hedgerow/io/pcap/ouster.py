# SPDX-License-Identifier: Apache-2.0
"""Sweeps of an Ouster lidar, from its metadata and its UDP packets.

The metadata are the sensor's configuration as JSON, flat before firmware 2.3 of its tools and in sections since. They
say how the beams point and what the packets look like. Geometry after the Ouster software manual, "lidar range to XYZ":
angles turn clockwise, ranges count from the axis along the bent path.

A packet holds a few columns, a column one pixel per beam. Range 0 is no return; a column that is not marked valid was
not measured, or not sent, and says nothing. Layouts after the same manual, "lidar data packet format".
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from hedgerow.base.parameters import Parameters
from hedgerow.errors import FileError, InputError
from hedgerow.io.beams.firings import Firings
from hedgerow.io.pcap.capture import Capture, Clock, Datagram
from hedgerow.io.source import read_text

Angle = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Offset = Annotated[float, Field(ge=-10_000, le=10_000, allow_inf_nan=False)]
"""Of a lidar's own parts [mm]."""

_MODES = (512, 1024, 2048, 4096)
_OLD_OFFSET_MM = 12.163  # first generation
_MM = 1e-3
_LOOKED_AT = 16  # packets that show whether there are checksums
_SKEW = 1e-3  # a turn rounded to four digits
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
_POLYNOMIAL = 0xC96C5795D7870F42
_BYTE, _EIGHT = np.uint64(0xFF), np.uint64(8)


class _Format(Parameters):
    """The table data_format or lidar_data_format."""

    model_config = ConfigDict(extra="ignore")

    columns_per_frame: int = Field(ge=1, le=8192)
    """Columns of one turn."""
    columns_per_packet: int = Field(ge=1, le=1024)
    """Columns that are sent together."""
    pixels_per_column: int = Field(ge=1, le=512)
    """Beams of the lidar."""
    column_window: list[int] | None = None
    """First and last column that are sent, if not all are."""
    udp_profile_lidar: str = Field(default="LEGACY", max_length=60)
    """Name of the layout of a packet."""


class _Metadata(Parameters):
    """The fields that matter here, taken out of their sections."""

    model_config = ConfigDict(extra="ignore")

    data_format: _Format
    beam_altitude_angles: list[Angle]
    """Elevation of each beam, from the top row down [degrees]."""
    beam_azimuth_angles: list[Angle]
    """Azimuth of each beam to the rotor, clockwise [degrees]."""
    lidar_origin_to_beam_origin_mm: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = _OLD_OFFSET_MM
    """Distance from the axis at which beams leave the rotor."""
    beam_to_lidar_transform: list[Offset] | None = Field(default=None, min_length=16, max_length=16)
    """The same as a 4 x 4 matrix, row by row [mm], from newer firmware; it also has a height."""
    lidar_to_sensor_transform: list[Offset] = Field(min_length=16, max_length=16)
    """4 x 4 matrix, row by row [mm], from the rotor's frame to that of the housing."""
    prod_line: str = Field(max_length=60)
    """Name of the product: OS-1-128."""
    udp_port_lidar: int | None = None
    """Port that the packets are sent to."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        n = self.data_format.pixels_per_column
        for name in ("beam_altitude_angles", "beam_azimuth_angles"):
            if len(getattr(self, name)) != n:
                raise InputError(name, f"has {len(getattr(self, name))} numbers, expected {n}, one per pixel")
        turn = np.reshape(self.lidar_to_sensor_transform, (4, 4))[:3, :3]
        if np.abs(turn @ turn.T - np.eye(3)).max() > _SKEW:
            raise InputError("lidar_to_sensor_transform", "does not turn, but stretch or shear; is the file damaged?")
        if n > 1 and len(set(self.beam_altitude_angles)) == 1:
            raise InputError("beam_altitude_angles", "are all the same; the file was written without a sensor")
        return self


@dataclass(frozen=True, slots=True, eq=False)
class OusterMetadata:
    """An Ouster lidar."""

    name: str
    """As the catalogue would call it: os1-128."""
    profile: str
    columns_per_frame: int
    columns_per_packet: int
    altitude_rad: NDArray[np.float64]
    """(K,) of the beams, from row 0, above the horizon."""
    azimuth_rad: NDArray[np.float64]
    """(K,) of the beams, clockwise from the rotor."""
    emission_m: NDArray[np.float64]
    """(2,) where beams part from the rotor: forward of the axis, up."""
    range_zero_m: float
    """Path inside the sensor that ranges include."""
    t_sensor_lidar: NDArray[np.float64]
    """(4, 4) from the lidar's frame to the sensor's [m]."""

    @property
    def n_pixels(self) -> int:
        """Beams in a column."""
        return len(self.altitude_rad)

    def beams(self, column: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return origins and unit directions, (C, K, 3) each in the sensor frame, of (C,) columns by number."""
        rotor = 2 * np.pi * (1 - np.asarray(column, np.float64) / self.columns_per_frame)[:, None]
        azimuth, flat = rotor - self.azimuth_rad, np.cos(self.altitude_rad)
        up = np.broadcast_to(np.sin(self.altitude_rad), azimuth.shape)
        direction = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), up], axis=-1)
        forward, height = self.emission_m
        emission = np.stack([forward * np.cos(rotor), forward * np.sin(rotor), np.full_like(rotor, height)], axis=-1)
        turn, shift = self.t_sensor_lidar[:3, :3], self.t_sensor_lidar[:3, 3]
        origin = emission - self.range_zero_m * direction
        return origin @ turn.T + shift, direction @ turn.T

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read the metadata of a sensor.

        Raises:
            FileError: it cannot be read, is no JSON, or lacks something; names the field.
        """
        try:
            content: object = json.loads(read_text(Path(path)))
        except (ValueError, RecursionError) as error:
            why = str(error)[:100] or type(error).__name__
            raise FileError(f"{path}: is no JSON ({why}); expected the metadata of an Ouster lidar") from None
        if not isinstance(content, dict):
            raise FileError(f"{path}: holds no table; expected the metadata of an Ouster lidar")
        return cls._of(_Metadata.parse_from(_flat(cast("dict[str, Any]", content)), path))

    @classmethod
    def _of(cls, found: _Metadata) -> Self:
        offset_m = found.lidar_origin_to_beam_origin_mm * 1e-3
        bent = np.eye(4) if found.beam_to_lidar_transform is None else np.reshape(found.beam_to_lidar_transform, (4, 4))
        emission_m = np.array([offset_m, 0.0])
        if found.beam_to_lidar_transform is not None:
            emission_m = bent[[0, 2], 3] * 1e-3
        to_sensor = np.reshape(np.array(found.lidar_to_sensor_transform, np.float64), (4, 4)).copy()
        to_sensor[:3, 3] *= 1e-3
        return cls(
            name=catalogue_name(found.prod_line),
            profile=found.data_format.udp_profile_lidar,
            columns_per_frame=found.data_format.columns_per_frame,
            columns_per_packet=found.data_format.columns_per_packet,
            altitude_rad=np.deg2rad(found.beam_altitude_angles),
            azimuth_rad=np.deg2rad(found.beam_azimuth_angles),
            emission_m=emission_m,
            range_zero_m=float(np.hypot(*emission_m)),
            t_sensor_lidar=to_sensor,
        )


def catalogue_name(product: str) -> str:
    """Return what the catalogue calls a product: os1-128 for OS-1-128-U1."""
    words = product.lower().split("-")
    return f"{words[0]}{words[1]}-{words[2]}" if len(words) > 2 else product.lower()


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Take the fields out of the sections that newer metadata have."""
    flat = dict(content)
    for section in ("beam_intrinsics", "lidar_intrinsics", "sensor_info", "config_params"):
        inner = content.get(section)
        if isinstance(inner, dict):
            flat = cast("dict[str, Any]", inner) | flat
    flat.setdefault("data_format", content.get("lidar_data_format"))
    mode = flat.get("lidar_mode")
    if flat["data_format"] is None and isinstance(mode, str):  # before firmware 2.0 the mode said it all
        flat["data_format"] = _from_mode(mode, flat.get("beam_altitude_angles"))
    return {key: value for key, value in flat.items() if value is not None}


def _from_mode(mode: str, angles: Any) -> dict[str, int] | None:
    columns = mode.split("x")[0]
    if columns not in map(str, _MODES) or not isinstance(angles, list):
        return None
    # Firmware 1 sends 64 pixels in a column whatever the sensor has.
    return {"columns_per_frame": int(columns), "columns_per_packet": 16, "pixels_per_column": 64}


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
        steps = np.stack(ranges, axis=-1).reshape(n * k, len(ranges))
        time_ns = (columns["time_ns"] & (2**62 - 1)).astype(np.int64) + self.clock.offset_ns(0, 0)
        return Firings(
            origin_m.reshape(-1, 3),
            direction.reshape(-1, 3),
            np.where(steps > 0, steps * self.layout.range_step_m, np.inf),
            np.tile(np.arange(k, dtype=np.int64), n),
            np.repeat(time_ns, k),
            np.stack(reflectivity, axis=-1).reshape(n * k, len(ranges)),
        )

    def _field(self, pixels: NDArray[np.void], name: str) -> NDArray[np.integer]:
        mask = self.layout.masks.get(name)
        values: NDArray[np.integer] = pixels[name]
        return values if mask is None else values & mask


def _intact(payloads: list[bytes]) -> NDArray[np.bool_]:
    """Tell of packets of one size whether each ends with the checksum of what comes before."""
    rows = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    return crc64(rows[:, :-8]) == np.ascontiguousarray(rows[:, -8:]).view("<u8")[:, 0]


@cache
def _crc64_tables() -> NDArray[np.uint64]:
    """Return (8, 256): table n takes a byte that has n more bytes behind it."""
    first = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        odd = first & np.uint64(1) != 0
        first = np.where(odd, (first >> np.uint64(1)) ^ np.uint64(_POLYNOMIAL), first >> np.uint64(1))
    tables = [first]
    for _ in range(7):
        tables.append(first[tables[-1] & _BYTE] ^ (tables[-1] >> _EIGHT))
    return np.stack(tables)


def crc64(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the (N,) checksums CRC-64/XZ of (N, L) bytes, as in Ouster's packets since firmware 3.1.

    Eight bytes at a time from eight tables, all rows side by side, so that a sweep takes milliseconds in NumPy.
    """
    tables = _crc64_tables()
    checksum = np.full(len(rows), 2**64 - 1, np.uint64)
    odd = rows.shape[1] % 8
    for k in range(odd):
        checksum = tables[0][(checksum ^ rows[:, k]) & _BYTE] ^ (checksum >> _EIGHT)
    words = np.ascontiguousarray(rows[:, odd:]).view("<u8").astype(np.uint64)
    for k in range(words.shape[1]):
        split = (checksum ^ words[:, k])[:, None] >> np.arange(0, 64, 8, dtype=np.uint64) & _BYTE
        checksum = np.bitwise_xor.reduce(tables[np.arange(7, -1, -1), split], axis=1)
    return ~checksum


def _cut_text(capture: Capture) -> str:
    return f"; {capture.n_cut} packets were cut short when they were captured" if capture.n_cut else ""
