# SPDX-License-Identifier: Apache-2.0
"""The calibration of an HDL-64E, without which its packets mean nothing: every unit has its own.

The series S2 and S3 tell it: each packet ends with one byte of a text that takes 4,160 packets (1.2 s) and begins anew.
Shorter captures need the unit's file in the YAML of velodyne_pointcloud. After the manuals of the S2 and S3.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from hedgerow.base.parameters import Parameters
from hedgerow.errors import FileError, ParameterError
from hedgerow.io.pcap.velodyne import HDL_64E, STEP_M, Corrections, VelodyneModel
from hedgerow.io.recovery.lasers import Lasers
from hedgerow.io.yaml_text import read_yaml

N_LASERS = 64
N_BYTES = 1820
"""Of the text: a head of 7, 28 for each laser, a tail of 21."""
_HEAD = b"UNIT#"
_LASER = struct.Struct("<B9hBB")
_STATUS = frozenset(b"HMSDNYGTV")  # bytes of this kind tell time, temperature and the like
_MOST_PACKETS = 4 * 16 * N_BYTES // 7
_CYCLE_US = 48.0
_BURST_US = (0.0, 1.26, 2.46, 3.66)

Angle = Annotated[float, Field(ge=-np.pi / 2, le=np.pi / 2)]
Offset = Annotated[float, Field(ge=-5, le=5)]


class Laser(Parameters):
    """One laser, in the words of velodyne_pointcloud's YAML; angles in radians, lengths in metres."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    laser_id: Annotated[int, Field(ge=0, lt=N_LASERS)]
    """Place of the laser in the packets."""
    vert_correction: Angle
    """Elevation."""
    rot_correction: Angle
    """Azimuth to the rotor."""
    dist_correction: Offset
    """Added to distances, as measured at 25.04 m."""
    dist_correction_x: Offset | None = None
    """Added to near distances to the side, as measured at 2.4 m. Default: dist_correction."""
    dist_correction_y: Offset | None = None
    """Added to near distances ahead, as measured at 1.93 m. Default: dist_correction."""
    vert_offset_correction: Offset
    """Height of emission."""
    horiz_offset_correction: Offset
    """Sideways distance of emission from the axis."""


class Calibration(Parameters):
    """All lasers of a unit."""

    model_config = ConfigDict(extra="ignore")

    lasers: list[Laser] = Field(min_length=N_LASERS, max_length=N_LASERS)
    """One entry for each laser, in any order."""

    @classmethod
    def read(cls, path: Path) -> "Calibration":
        """Read a file in the YAML of velodyne_pointcloud.

        Raises:
            FileError: missing, damaged, or of a lidar with another number of lasers.
        """
        try:
            found = cls.parse(read_yaml(path), "the calibration")
        except ParameterError as error:
            raise FileError(f"{path}: is no calibration of an HDL-64E; {error}") from None
        if sorted(laser.laser_id for laser in found.lasers) != list(range(N_LASERS)):
            raise FileError(f"{path}: laser_id must be 0 to {N_LASERS - 1}, each once")
        return found

    @classmethod
    def told(cls, payloads: Iterable[bytes]) -> "Calibration | None":
        """Put the calibration together from the last bytes of packets; None if they do not tell a whole one."""
        data = bytearray()
        for number, payload in enumerate(payloads):
            if payload[-2] not in _STATUS:
                data.append(payload[-1])
            if number >= _MOST_PACKETS:
                break
        at = data.find(_HEAD)
        while at >= 0 and len(data) >= N_BYTES:
            # What is missing at the end is taken from before: the text repeats itself.
            text = bytes(data[at : at + N_BYTES])
            found = _parsed(text + bytes(data[at - (N_BYTES - len(text)) : at] if len(text) < N_BYTES else b""))
            if found is not None:
                return found
            at = data.find(_HEAD, at + 1)
        return None

    def model(self, slot_us: float | None) -> VelodyneModel:
        """Return the lidar.

        Args:
            slot_us: time between firings of all lasers, as the packets show it; None is 48.
        """
        lasers = sorted(self.lasers, key=lambda laser: laser.laser_id)
        elevation, azimuth, up, left, far = (
            np.array([getattr(laser, name) for laser in lasers])
            for name in (
                "vert_correction",
                "rot_correction",
                "vert_offset_correction",
                "horiz_offset_correction",
                "dist_correction",
            )
        )
        ahead, aside = (
            np.array([other if other is not None else laser.dist_correction for laser, other in pairs])
            for pairs in (
                [(laser, laser.dist_correction_y) for laser in lasers],
                [(laser, laser.dist_correction_x) for laser in lasers],
            )
        )
        ring: NDArray[np.int64] = np.argsort(np.argsort(elevation, kind="stable"), kind="stable").astype(np.int64)
        slot_us = _CYCLE_US if slot_us is None else slot_us
        late_us = np.array([6 * (k // 4) + _BURST_US[k % 4] for k in range(32)] * 2) * (slot_us / _CYCLE_US)
        made = Lasers(elevation, up, left, azimuth, float(np.deg2rad(0.01)))
        return VelodyneModel(HDL_64E, made, ring, late_us, slot_us, STEP_M[HDL_64E], Corrections(far, ahead, aside))


def _parsed(text: bytes) -> Calibration | None:
    """Read the bytes of a calibration; None if they are damaged, as where a packet was lost."""
    rows = [_LASER.unpack_from(text, 7 + 28 * k) for k in range(N_LASERS)]
    if [row[0] for row in rows] != list(range(N_LASERS)):
        return None
    told = int.from_bytes(text[-2:], "little")
    if told not in (N_BYTES, _crc16(b"".join(text[8 + 28 * k : 28 + 28 * k] for k in range(N_LASERS)))):
        return None
    lasers: list[dict[str, Any]] = [
        {
            "laser_id": number,
            "vert_correction": np.deg2rad(row[0] / 100),
            "rot_correction": np.deg2rad(row[1] / 100),
            "dist_correction": row[2] / 1000,
            "dist_correction_x": row[3] / 1000,
            "dist_correction_y": row[4] / 1000,
            "vert_offset_correction": row[5] / 1000,
            "horiz_offset_correction": row[6] / 1000,
        }
        for number, *row in rows
    ]
    try:
        return Calibration.parse({"lasers": lasers}, "the calibration")
    except ParameterError:
        return None


def _crc16(data: bytes) -> int:
    """Return the checksum of the S3: polynomial 0x8005, highest bit first, from 0. An S2 tells the length instead."""
    register = 0
    for byte in data:
        register ^= byte << 8
        for _ in range(8):
            register = (register << 1 ^ (0x8005 if register & 0x8000 else 0)) & 0xFFFF
    return register
