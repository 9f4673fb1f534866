# SPDX-License-Identifier: Apache-2.0
"""What the packets of Velodyne's lidars hold: 12 blocks of 32 distances, each with the azimuth of the rotor.

Distance 0 is no return, so every firing is known. After the manuals of the VLP-16, HDL-32E and VLP-32C; angles and
firing times are those of the catalogue, whose lists have the order of the packets. The HDL-64E is not among them: its
packets mean nothing without the calibration of the unit.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.firings import Firings
from hedgerow.io.recovery.lasers import Lasers
from hedgerow.sensor import Sensor
from hedgerow.sensor.spinning import ring_numbers

SIZE = 1206
N_BLOCKS = 12
_POINT = np.dtype([("distance", "<u2"), ("intensity", "u1")])
_BLOCK = np.dtype([("flag", "<u2"), ("azimuth", "<u2"), ("point", _POINT, 32)])
PACKET = np.dtype([("block", _BLOCK, N_BLOCKS), ("time_us", "<u4"), ("mode", "u1"), ("model", "u1")])
_MODELS = {0x21: "hdl-32e", 0x22: "vlp-16", 0x28: "vlp-32c"}
_OTHERS = {0x24: "Puck Hi-Res", 0x31: "Velarray", 0xA1: "VLS-128", 0x63: "VLS-128"}
_STEP_M = {"hdl-32e": 0.002, "vlp-16": 0.002, "vlp-32c": 0.004}
_UPPER = 0xEEFF
_DUAL = 0x39
_TURN = 36_000  # azimuths are hundredths of a degree
_USUAL_PER_US = 0.36  # ten turns a second, where nothing tells


@dataclass(frozen=True, slots=True, eq=False)
class Model:
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

    @property
    def per_block(self) -> int:
        """Firings of all lasers in a block."""
        return 32 // len(self.lasers)

    @classmethod
    @cache
    def named(cls, name: str) -> "Model":
        """Take a lidar from the catalogue."""
        config = Sensor.named(name).config.pattern
        if config.kind != "spinning" or name not in _STEP_M:
            raise FileError(f"sensor: {name} sends no packets that Hedgerow reads; it reads {', '.join(_STEP_M)}")
        group = config.group[0]
        n = len(group.elevation_deg)
        azimuth = np.deg2rad(group.azimuth_deg or [0.0] * n)
        lasers = Lasers(
            elevation_rad=np.deg2rad(group.elevation_deg),
            up_m=np.asarray(group.up_mm or [0.0] * n) * 1e-3,
            left_m=np.asarray(group.left_mm or [0.0] * n) * 1e-3 * np.cos(azimuth),
            azimuth_rad=azimuth,
            step_rad=np.deg2rad(0.01),
        )
        late_us = np.asarray(group.time_us or [0.0] * n)
        return cls(name, lasers, ring_numbers(config)[0], late_us, config.slot_us or 0.0, _STEP_M[name])


def is_packet(payload: bytes) -> bool:
    """Tell whether this is a data packet of a Velodyne."""
    return len(payload) == SIZE and payload[:2] in (b"\xff\xee", b"\xff\xdd")


def model_of(payload: bytes, wanted: str | None, where: str) -> Model:
    """Return the lidar that sent a packet.

    Args:
        payload: of the packet.
        wanted: name in the catalogue, to say rather than ask the packet.
        where: for the error.

    Raises:
        FileError: one that Hedgerow does not read.
    """
    if wanted in _STEP_M:
        return Model.named(wanted)
    code = payload[-1]
    lower = any(payload[100 * k : 100 * k + 2] == b"\xff\xdd" for k in range(N_BLOCKS))
    if lower or code not in _MODELS:
        name = "an HDL-64E" if lower else f"a {_OTHERS.get(code, f'Velodyne of unknown kind (code 0x{code:02x})')}"
        known = ", ".join(_STEP_M)
        raise FileError(f"{where}: the packets are of {name}; Hedgerow reads those of {known} (sensor= says which)")
    return Model.named(_MODELS[code])


def is_dual(payload: bytes) -> bool:
    """Tell whether a packet holds two returns of each firing."""
    return payload[-2] == _DUAL


def sensor_ns(payload: bytes) -> int:
    """Return the time since the full hour at which a packet began [ns]."""
    return int.from_bytes(payload[-6:-2], "little") * 1_000


def azimuths(payload: bytes) -> tuple[int, int]:
    """Return the azimuths of the first and the last block."""
    return int.from_bytes(payload[2:4], "little"), int.from_bytes(payload[1102:1104], "little")


def decode(
    model: Model, payloads: list[bytes], start_ns: NDArray[np.int64], dual: bool
) -> tuple[Firings, NDArray[np.float64]]:
    """Return the firings in a row of packets, and the (P,) azimuth of the block of each [0.01 degrees].

    Args:
        model: of the lidar.
        payloads: P of them, in order.
        start_ns: (P,) when the first firing of each packet was.
        dual: whether blocks come in pairs, the last and the strongest return of the same firings.
    """
    packets = np.frombuffer(b"".join(payloads), PACKET)
    pair = 2 if dual else 1
    blocks = packets["block"].reshape(len(packets), N_BLOCKS // pair, pair)
    azimuth = blocks["azimuth"][:, :, 0].astype(np.float64)
    n_packets, n_blocks = azimuth.shape
    n_lasers, per_block = len(model.lasers), model.per_block
    block_us = model.slot_us * per_block
    # (packets, blocks, firings of a block, lasers): when each pulse was fired after its block began
    late_us = np.arange(per_block)[:, None] * model.slot_us + model.late_us
    per_us = _speed(azimuth, block_us)
    turned = azimuth[:, :, None, None] + per_us[:, :, None, None] * late_us
    block: NDArray[np.int64] = np.arange(n_blocks, dtype=np.int64)
    since_us = block[:, None, None] * block_us + late_us
    time_ns = start_ns[:, None, None, None] + np.rint(since_us * 1e3).astype(np.int64)
    points = blocks["point"].reshape(n_packets, n_blocks, pair, per_block, n_lasers)
    steps = np.moveaxis(points["distance"], 2, -1).reshape(-1, pair)
    intensity = np.moveaxis(points["intensity"], 2, -1).reshape(-1, pair)
    laser = np.broadcast_to(np.arange(n_lasers), turned.shape).ravel()
    origin_m, direction = model.lasers.beams(np.deg2rad(-turned.ravel() / 100), laser)
    range_m = np.where(steps > 0, steps * model.step_m, np.inf)
    firings = Firings(origin_m, direction, range_m, model.ring[laser], time_ns.ravel(), intensity)
    return firings, np.broadcast_to(azimuth[:, :, None, None], turned.shape).ravel()


def _speed(azimuth: NDArray[np.float64], block_us: float) -> NDArray[np.float64]:
    """Return how fast the rotor turns in each of (packets, blocks) [0.01 degrees per us]."""
    step = np.diff(azimuth, axis=1) % _TURN
    usual = float(np.median(step)) if step.size else 0.0
    usual = usual if 0 < usual < 0.05 * _TURN else _USUAL_PER_US * block_us
    step = np.where(np.abs(step - usual) < 0.5 * usual, step, usual)  # a jump is not the rotor's
    return np.concatenate([step, step[:, -1:]], axis=1) / block_us
