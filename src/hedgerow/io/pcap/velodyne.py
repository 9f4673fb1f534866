# SPDX-License-Identifier: Apache-2.0
"""Sweeps of a Velodyne lidar from its packets: 12 blocks of 32 distances, each with the azimuth of the rotor.

Distance 0 is no return, so every firing is known. After the manuals of the VLP-16, HDL-32E, VLP-32C, VLS-128 (Alpha
Prime) and HDL-64E S2. A lidar of 64 or 128 lasers fills two or four blocks with one firing of all of them.

Angles and times of the lasers are those of the catalogue, whose lists have the order of the packets; every HDL-64E has
its own (hdl_64e.py). Sweeps are cut where the rotor passes straight ahead. Packets come from a capture or from a ROS
topic; either gives a position from which it can go on reading.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.beams.firings import Firings
from hedgerow.io.pcap.capture import Clock
from hedgerow.io.recovery.lasers import Lasers
from hedgerow.sensor import Sensor
from hedgerow.sensor.scan.spinning import ring_numbers

HDL_64E = "hdl-64e-s2"
STEP_M = {"hdl-32e": 0.002, "vlp-16": 0.002, "vlp-32c": 0.004, "vls-128": 0.004, HDL_64E: 0.002}
"""The lidars whose packets are read, and the unit of their distances."""

_FAR_M = 25.04
_NEAR_AHEAD_M, _NEAR_ASIDE_M = 1.93, 2.4
PACKET_BYTES = 1206
N_BLOCKS = 12
_POINT = np.dtype([("distance", "<u2"), ("intensity", "u1")])
_BLOCK = np.dtype([("flag", "<u2"), ("azimuth", "<u2"), ("point", _POINT, 32)])
PACKET = np.dtype([("block", _BLOCK, N_BLOCKS), ("time_us", "<u4"), ("mode", "u1"), ("model", "u1")])
_MODELS = {0x21: "hdl-32e", 0x22: "vlp-16", 0x28: "vlp-32c", 0xA1: "vls-128"}
_OTHERS = {0x23: "VLP-32A or B", 0x24: "Puck Hi-Res", 0x31: "Velarray"}
_BANKS = (0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF)  # flags of blocks with lasers 0 to 31, 32 to 63, and so on
_DUAL = 0x39
_TURN = 36_000  # azimuths are hundredths of a degree
_USUAL_PER_US = 0.36  # ten turns a second, where nothing tells
_HOUR_NS = 3_600_000_000_000
_LONGEST_NS = 500_000_000  # the slowest rotor needs 200 ms; one that stands still must not fill the memory
_MOST = 10_000  # packets of a turn, where not even the clock goes on; a VLS-128 sends 2,500
_HALF_TURN = 18_000
_CYCLES_US = (40.0, 70.0)  # that an HDL-64E may have: 48, or 57.6 where it tells two returns
_PACKETS_TO_TIME = 1_000


class NoPackets(FileError):
    """A recording holds no data packets of a Velodyne."""


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """What an HDL-64E's calibration adds to the measured distances, (K,) each [m]."""

    far_m: NDArray[np.float64]
    """At 25.04 m and beyond."""
    near_ahead_m: NDArray[np.float64]
    """At 1.93 m ahead or behind."""
    near_aside_m: NDArray[np.float64]
    """At 2.4 m to the side."""

    def of(
        self, distance_m: NDArray[np.float64], laser: NDArray[np.int64], direction: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what to add to (P, R) distances of (P,) lasers with (P, 3) directions.

        The manual corrects the coordinates ahead and aside each by its own line between the near and the far value. A
        beam has one direction, so what counts of that here is its part along the beam.
        """
        far = self.far_m[laser][:, None]
        is_near = distance_m < _FAR_M
        distance_m = distance_m + far
        ahead, aside, up = (direction[:, k, None] for k in range(3))
        still_ahead = (np.abs(ahead) * distance_m - _NEAR_AHEAD_M) / (_FAR_M - _NEAR_AHEAD_M)
        still_aside = (np.abs(aside) * distance_m - _NEAR_ASIDE_M) / (_FAR_M - _NEAR_ASIDE_M)
        more_ahead = (self.near_ahead_m[laser][:, None] - far) * (1 - still_ahead)
        more_aside = (self.near_aside_m[laser][:, None] - far) * (1 - still_aside)
        more = more_ahead * (ahead**2 + up**2 / 2) + more_aside * (aside**2 + up**2 / 2)
        return far + np.where(is_near, more, 0)


@dataclass(frozen=True, slots=True, eq=False)
class VelodyneModel:
    """One of Velodyne's lidars."""

    name: str
    lasers: Lasers
    """In the order of the packets."""
    ring: NDArray[np.int64]
    late_us: NDArray[np.float64]
    """(K,) when each fires after the first."""
    slot_us: float
    """From one firing of all lasers to the next."""
    step_m: float
    corrections: Corrections | None = None

    def ranges(
        self, steps: NDArray[np.uint16], laser: NDArray[np.int64], direction: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the (P, R) ranges that (P, R) numbers in packets mean; inf is no return [m]."""
        range_m: NDArray[np.float64] = steps.astype(np.float64) * self.step_m
        if self.corrections is not None:
            range_m = np.maximum(range_m + self.corrections.of(range_m, laser, direction), 0)
        return np.where(steps > 0, range_m, np.inf)

    @classmethod
    @cache
    def named(cls, name: str) -> "VelodyneModel":
        """Take a lidar of STEP_M, other than the HDL-64E, from the catalogue."""
        config = Sensor.named(name).config.pattern
        assert config.kind == "spinning"  # those of STEP_M are
        group = config.group[0]
        n = len(group.elevation_deg)
        lasers = Lasers.of_group(group, float(np.deg2rad(0.01)))
        late_us = np.asarray(group.time_us or [0.0] * n)
        return cls(name, lasers, ring_numbers(config)[0], late_us, config.slot_us or 0.0, STEP_M[name])


@dataclass(frozen=True, slots=True)
class Layout:
    """How the blocks of a packet belong together."""

    name: str
    """Of the lidar in the catalogue."""
    n_banks: int
    """Blocks that one firing of all lasers fills; 1 also if it fills half a block."""
    dual: bool
    """Whether there are two returns of each firing."""

    @property
    def n_columns(self) -> int:
        """Groups of blocks with an azimuth of their own; a VLS-128 that tells two returns leaves four blocks empty."""
        return N_BLOCKS // (self.n_banks * (1 + self.dual))

    @property
    def n_used(self) -> int:
        """Blocks that are not empty."""
        return self.n_columns * self.n_banks * (1 + self.dual)

    def azimuths(self, payload: bytes) -> tuple[int, int]:
        """Return the azimuths of the first and the last block [0.01 degrees]."""
        last = 100 * (self.n_used - 1) + 2
        return int.from_bytes(payload[2:4], "little"), int.from_bytes(payload[last : last + 2], "little")

    def is_dual(self, payload: bytes) -> bool:
        """Tell whether a packet of this lidar holds two returns of each firing."""
        # An HDL-64E has something else where others tell the mode, but repeats the azimuth.
        return payload[2:4] == payload[202:204] if self.name == HDL_64E else payload[-2] == _DUAL


def is_packet(payload: bytes) -> bool:
    """Tell whether this is a data packet of a Velodyne."""
    return len(payload) == PACKET_BYTES and payload[:2] in (b"\xff\xee", b"\xff\xdd")


def layout_of(payload: bytes, wanted: str | None, where: str) -> Layout:
    """Return how the packets of a lidar are laid out, as the first of them shows.

    Args:
        payload: of the packet.
        wanted: name in the catalogue, to say rather than ask the packet.
        where: for the error.

    Raises:
        FileError: a lidar that Hedgerow does not read.
    """
    flags = [int.from_bytes(payload[100 * k : 100 * k + 2], "little") for k in range(4)]
    code = payload[-1]
    known = ", ".join(STEP_M)
    if wanted in STEP_M:
        name = wanted
    elif flags == [*_BANKS[:2], *_BANKS[:2]]:
        name = HDL_64E
    elif flags[1] == _BANKS[1] and code not in _MODELS:
        raise FileError(
            f"{where}: the packets are of an HDL-64E of the first series, whose blocks do not come in pairs; Hedgerow "
            f"reads those of {known} (sensor= says which)"
        )
    elif code in _MODELS:
        name = _MODELS[code]
    else:
        other = _OTHERS.get(code, f"Velodyne of unknown kind (code 0x{code:02x})")
        raise FileError(f"{where}: the packets are of a {other}; Hedgerow reads those of {known} (sensor= says which)")
    layout = Layout(name, {"vls-128": 4, HDL_64E: 2}.get(name, 1), False)
    return Layout(name, layout.n_banks, layout.is_dual(payload))


def packet_ns(payload: bytes) -> int:
    """Return the time since the full hour at which a packet began [ns]."""
    return int.from_bytes(payload[-6:-2], "little") * 1_000


def decode(
    model: VelodyneModel, layout: Layout, payloads: list[bytes], start_ns: NDArray[np.int64], where: str
) -> tuple[Firings, NDArray[np.float64]]:
    """Return the firings in a row of packets, and the (P,) azimuth of the column of each [0.01 degrees].

    Args:
        model: of the lidar.
        layout: of its packets.
        payloads: P of them, in order.
        start_ns: (P,) when the first firing of each packet was.
        where: for the error.

    Raises:
        FileError: a packet of another layout.
    """
    points, azimuth = _columns(layout, np.frombuffer(b"".join(payloads), PACKET)["block"], where)
    n_packets, n_columns, n_returns, _ = points.shape
    n_lasers = len(model.lasers)
    per_column = 32 * layout.n_banks // n_lasers  # firings of all lasers at one azimuth: two of a VLP-16
    column_us = model.slot_us * per_column
    # (packets, columns, firings, lasers): when each pulse was fired after its column began
    late_us = np.arange(per_column)[:, None] * model.slot_us + model.late_us
    per_us = _speed(azimuth, column_us)
    turned = azimuth[:, :, None, None] + per_us[:, :, None, None] * late_us
    column: NDArray[np.int64] = np.arange(n_columns, dtype=np.int64)
    since_us = column[:, None, None] * column_us + late_us
    time_ns = start_ns[:, None, None, None] + np.rint(since_us * 1e3).astype(np.int64)
    points = np.moveaxis(points.reshape(n_packets, n_columns, n_returns, per_column, n_lasers), 2, -1)
    points = points.reshape(-1, n_returns)
    laser = np.broadcast_to(np.arange(n_lasers), turned.shape).ravel()
    rotor_rad = np.deg2rad(-turned.ravel() / 100)
    origin_m, direction = model.lasers.beams(rotor_rad, laser)
    range_m = model.ranges(points["distance"], laser, direction)
    firings = Firings(origin_m, direction, range_m, model.ring[laser], time_ns.ravel(), points["intensity"])
    return firings, np.broadcast_to(azimuth[:, :, None, None], turned.shape).ravel()


def _columns(layout: Layout, blocks: NDArray[np.void], where: str) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """Return (packets, columns, returns, lasers of a column) points and the (packets, columns) azimuths."""
    n_returns, n_banks = 1 + layout.dual, layout.n_banks
    blocks = blocks[:, : layout.n_used].reshape(len(blocks), layout.n_columns, n_returns * n_banks)
    if layout.name == HDL_64E:
        blocks = blocks.reshape(*blocks.shape[:2], n_returns, n_banks)
    else:  # others tell both returns of a bank before they come to the next
        blocks = blocks.reshape(*blocks.shape[:2], n_banks, n_returns).swapaxes(2, 3)
    if n_banks > 1 and np.any(blocks["flag"] != np.array(_BANKS[:n_banks])):
        raise FileError(f"{where}: a packet is damaged or of another lidar; its blocks are not those of {layout.name}")
    points = blocks["point"].reshape(*blocks.shape[:3], n_banks * 32)
    return points, blocks["azimuth"][:, :, 0, 0].astype(np.float64)


def _speed(azimuth: NDArray[np.float64], column_us: float) -> NDArray[np.float64]:
    """Return how fast the rotor turns in each of (packets, columns) [0.01 degrees per us]."""
    step = np.diff(azimuth.ravel()) % _TURN
    usual = float(np.median(step)) if step.size else 0.0
    usual = usual if 0 < usual < 0.05 * _TURN else _USUAL_PER_US * column_us
    step = np.where(np.abs(step - usual) < 0.5 * usual, step, usual)  # a jump, or a lost packet, is not the rotor's
    last = step[-1:] if len(step) else np.array([usual])
    return np.concatenate([step, last]).reshape(azimuth.shape) / column_us


class Packet(Protocol):
    """A packet with the time of its arrival; a Datagram is one."""

    @property
    def position(self) -> Any:
        """From where reading can go on."""
        ...

    @property
    def time_ns(self) -> int:
        """When it arrived."""
        ...

    @property
    def payload(self) -> bytes:
        """What it holds."""
        ...


@dataclass(frozen=True, slots=True)
class _Turn:
    position: Any
    """Of the packet that it begins in."""
    within: bool
    """Whether that packet begins with the end of the turn before."""
    n_packets: int = 0


class VelodyneSweeps:
    """The turns of a Velodyne lidar."""

    def __init__(
        self,
        name: str,
        packets: Callable[[Any], Iterator[Packet]],
        sensor: str | None,
        calibration: str | Path | None = None,
    ) -> None:
        """Look through the packets for the beginnings of turns.

        Args:
            name: of the recording, for errors.
            packets: gives the packets from a position on, or all for None; others than Velodyne's are passed over.
            sensor: name of the lidar in the catalogue, if the packets do not say it right.
            calibration: file of an HDL-64E's, if the packets do not tell it.

        Raises:
            NoPackets: the recording holds no such packets.
            FileError: it is damaged, or the packets are those of a lidar that is not read.
        """
        self._name = name
        self._packets = packets
        self._turns: list[_Turn] = []
        self.start_ns = self.end_ns = 0
        layout: Layout | None = None
        last_azimuth, turn_ns = 0, 0
        for packet in self._data(None):
            if layout is None:
                layout = layout_of(packet.payload, sensor, name)
                self.clock = Clock.at(packet_ns(packet.payload), packet.time_ns, _HOUR_NS)
                self.start_ns = self._begin_ns(packet)
            begin_ns = self._begin_ns(packet)
            start, end = layout.azimuths(packet.payload)
            wraps_before, wraps_within = last_azimuth - start > _HALF_TURN, start - end > _HALF_TURN
            is_long = abs(begin_ns - turn_ns) > _LONGEST_NS
            if not self._turns or wraps_before or wraps_within or is_long or self._turns[-1].n_packets >= _MOST:
                self._turns.append(_Turn(packet.position, bool(self._turns) and wraps_within and not wraps_before))
                turn_ns = begin_ns
            self._turns[-1] = replace(self._turns[-1], n_packets=self._turns[-1].n_packets + 1)
            last_azimuth, self.end_ns = end, begin_ns
        if layout is None:
            raise NoPackets(f"{name}: holds no data packets of a Velodyne ({PACKET_BYTES} bytes)")
        self._layout = layout
        self.model = self._hdl_64e(calibration) if layout.name == HDL_64E else VelodyneModel.named(layout.name)

    @property
    def dual(self) -> bool:
        """Whether there are two returns of each firing."""
        return self._layout.dual

    @property
    def count(self) -> int:
        """How many turns there are; the first and the last may be a part of one."""
        return len(self._turns)

    def load(self, number: int) -> Firings:
        """Decode one turn.

        Raises:
            FileError: the recording is damaged, or changes between one and two returns.
        """
        turn = self._turns[number]
        following = self._turns[number + 1] if number + 1 < len(self._turns) else None
        n_wanted = turn.n_packets + int(following is not None and following.within)
        packets: list[Packet] = []
        for packet in self._data(turn.position):
            packets.append(packet)
            if len(packets) == n_wanted:
                break
        payloads = [packet.payload for packet in packets]
        if any(self._layout.is_dual(payload) != self.dual for payload in payloads):
            raise FileError(f"{self._name}, sweep {number}: changes between one and two returns; cut it there")
        start_ns = np.array([self._begin_ns(packet) for packet in packets], np.int64)
        where = f"{self._name}, sweep {number}"
        firings, azimuth = decode(self.model, self._layout, payloads, start_ns, where)
        return self._cut(firings, azimuth, turn, following, len(packets))

    def _cut(
        self, firings: Firings, azimuth: NDArray[np.float64], turn: _Turn, following: _Turn | None, n_packets: int
    ) -> Firings:
        """Leave out what belongs to the turns before and after."""
        n = len(azimuth) // max(n_packets, 1)
        keep = np.ones(len(azimuth), np.bool_)
        if turn.within:
            keep[:n] = azimuth[:n] < _HALF_TURN
        if following is not None and following.within:
            keep[-n:] = azimuth[-n:] >= _HALF_TURN
        columns = ("origin_m", "direction", "range_m", "ring", "time_ns", "intensity")
        return replace(firings, **{name: getattr(firings, name)[keep] for name in columns})

    def _hdl_64e(self, path: str | Path | None) -> VelodyneModel:
        """Return the model of this unit."""
        from hedgerow.io.pcap.hdl_64e import N_BYTES, Calibration

        payloads = (packet.payload for packet in self._data(None))
        found = Calibration.told(payloads) if path is None else Calibration.read(Path(path))
        if found is None:
            raise FileError(
                f"{self._name}: the packets are of an HDL-64E and mean nothing without the calibration of the unit, "
                f"which they do not tell whole (it takes {16 * N_BYTES // 7:,} packets of an S2 or S3); give its "
                "YAML file as metadata="
            )
        begins = [self._begin_ns(packet) for packet in islice(self._data(None), _PACKETS_TO_TIME)]
        cycle_us = float(np.median(np.diff(begins))) * 1e-3 / self._layout.n_columns if len(begins) > 1 else 0.0
        return found.model(cycle_us if _CYCLES_US[0] < cycle_us < _CYCLES_US[1] else None)

    def _data(self, position: Any) -> Iterator[Packet]:
        return (packet for packet in self._packets(position) if is_packet(packet.payload))

    def _begin_ns(self, packet: Packet) -> int:
        sensor_ns = packet_ns(packet.payload)
        return sensor_ns + self.clock.offset_ns(sensor_ns, packet.time_ns)
