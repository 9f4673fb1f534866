# SPDX-License-Identifier: Apache-2.0
"""What the packets of Velodyne's lidars hold: 12 blocks of 32 distances, each with the azimuth of the rotor.

Distance 0 is no return, so every firing is known. After the manuals of the VLP-16, HDL-32E, VLP-32C, VLS-128 (Alpha
Prime) and HDL-64E S2. A lidar of 64 or 128 lasers fills two or four blocks with one firing of all of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.firings import Firings
from hedgerow.io.pcap.velodyne_model import HDL_64E, STEP_M, Model

SIZE = 1206
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
    return len(payload) == SIZE and payload[:2] in (b"\xff\xee", b"\xff\xdd")


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


def sensor_ns(payload: bytes) -> int:
    """Return the time since the full hour at which a packet began [ns]."""
    return int.from_bytes(payload[-6:-2], "little") * 1_000


def decode(
    model: Model, layout: Layout, payloads: list[bytes], start_ns: NDArray[np.int64], where: str
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
