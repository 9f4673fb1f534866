# SPDX-License-Identifier: Apache-2.0
"""Sweeps of a Velodyne lidar: a row of packets, cut where the rotor passes straight ahead.

Packets come from a capture or from a ROS topic; either gives a position from which it can go on reading.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.firings import Firings
from hedgerow.io.pcap import velodyne
from hedgerow.io.pcap.clock import Clock
from hedgerow.io.pcap.velodyne_model import HDL_64E, Model

_HOUR_NS = 3_600_000_000_000
_LONGEST_NS = 500_000_000  # the slowest rotor needs 200 ms; one that stands still must not fill the memory
_HALF_TURN = 18_000
_CYCLES_US = (40.0, 70.0)  # that an HDL-64E may have: 48, or 57.6 where it tells two returns
_PACKETS_TO_TIME = 1_000


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
            FileError: the recording is damaged, holds no such packets, or those of a lidar that is not read.
        """
        self._name = name
        self._packets = packets
        self._turns: list[_Turn] = []
        self.start_ns = self.end_ns = 0
        layout: velodyne.Layout | None = None
        last_azimuth, turn_ns = 0, 0
        for packet in self._data(None):
            if layout is None:
                layout = velodyne.layout_of(packet.payload, sensor, name)
                self.clock = Clock.at(velodyne.sensor_ns(packet.payload), packet.time_ns, _HOUR_NS)
                self.start_ns = self._begin_ns(packet)
            begin_ns = self._begin_ns(packet)
            start, end = layout.azimuths(packet.payload)
            wraps_before, wraps_within = last_azimuth - start > _HALF_TURN, start - end > _HALF_TURN
            if not self._turns or wraps_before or wraps_within or abs(begin_ns - turn_ns) > _LONGEST_NS:
                self._turns.append(_Turn(packet.position, bool(self._turns) and wraps_within and not wraps_before))
                turn_ns = begin_ns
            self._turns[-1] = replace(self._turns[-1], n_packets=self._turns[-1].n_packets + 1)
            last_azimuth, self.end_ns = end, begin_ns
        if layout is None:
            raise FileError(f"{name}: holds no data packets of a Velodyne ({velodyne.SIZE} bytes)")
        self._layout = layout
        self.model = self._hdl_64e(calibration) if layout.name == HDL_64E else Model.named(layout.name)

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
        firings, azimuth = velodyne.decode(self.model, self._layout, payloads, start_ns, where)
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

    def _hdl_64e(self, path: str | Path | None) -> Model:
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
        return (packet for packet in self._packets(position) if velodyne.is_packet(packet.payload))

    def _begin_ns(self, packet: Packet) -> int:
        sensor_ns = velodyne.sensor_ns(packet.payload)
        return sensor_ns + self.clock.offset_ns(sensor_ns, packet.time_ns)
