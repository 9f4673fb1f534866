# SPDX-License-Identifier: Apache-2.0
"""What the metadata of an Ouster lidar say: how its beams point and what its packets look like.

The sensor's configuration as JSON, flat before firmware 2.3 of its tools and in sections since. Geometry after the
Ouster software manual, "lidar range to XYZ": angles turn clockwise, ranges count from the axis along the bent path.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from hedgerow.base.parameters import Finite, Parameters
from hedgerow.errors import FileError, InputError
from hedgerow.io.whole_file import read_text

Angle = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]

_MODES = (512, 1024, 2048, 4096)
_OLD_OFFSET_MM = 12.163  # first generation


class _Format(Parameters):
    """The table data_format or lidar_data_format."""

    model_config = ConfigDict(extra="ignore")

    columns_per_frame: int = Field(ge=1, le=8192)
    columns_per_packet: int = Field(ge=1, le=1024)
    pixels_per_column: int = Field(ge=1, le=512)
    column_window: list[int] | None = None
    udp_profile_lidar: str = "LEGACY"


class _Metadata(Parameters):
    """The fields that matter here, taken out of their sections."""

    model_config = ConfigDict(extra="ignore")

    data_format: _Format
    beam_altitude_angles: list[Angle]
    beam_azimuth_angles: list[Angle]
    lidar_origin_to_beam_origin_mm: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = _OLD_OFFSET_MM
    beam_to_lidar_transform: list[Finite] | None = Field(default=None, min_length=16, max_length=16)
    lidar_to_sensor_transform: list[Finite] = Field(min_length=16, max_length=16)
    prod_line: str
    udp_port_lidar: int | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        n = self.data_format.pixels_per_column
        for name in ("beam_altitude_angles", "beam_azimuth_angles"):
            if len(getattr(self, name)) != n:
                raise InputError(name, f"has {len(getattr(self, name))} numbers, expected {n}, one per pixel")
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
            raise FileError(f"{path}: is no JSON ({error}); expected the metadata of an Ouster lidar") from None
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
    if not columns.isdigit() or int(columns) not in _MODES or not isinstance(angles, list):
        return None
    # Firmware 1 sends 64 pixels in a column whatever the sensor has.
    return {"columns_per_frame": int(columns), "columns_per_packet": 16, "pixels_per_column": 64}
