# SPDX-License-Identifier: Apache-2.0
"""What the recordings of KITTI have in common: one HDL-64E, its limits, and the options that change them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.clouds import Plan
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import Settings
from hedgerow.sensor import Sensor

SENSOR = "hdl-64e-s2"
MAX_RANGE_M = 80.0  # KITTI's files hold nothing farther
ELEVATION_BIAS_DEG = 0.205


def kitti_settings(options: ReadOptions, origin_m: NDArray[np.float64], arrays: list[str]) -> Settings:
    """Return sensor, limits and map origin of a KITTI recording."""
    return options.applied(Settings(sensor=SENSOR, max_range_m=MAX_RANGE_M, map_origin_m=origin_m, arrays=arrays))


def kitti_plan(options: ReadOptions, name: str, *, compensated: bool, notes: dict[str, Any] | None = None) -> Plan:
    """Return how KITTI's clouds become sweeps."""
    bias_deg = ELEVATION_BIAS_DEG if options.elevation_bias_deg is None else options.elevation_bias_deg
    return Plan(
        sensor=Sensor.named(options.sensor or SENSOR),
        start_rad=np.pi,
        clockwise=True,
        compensated=compensated if options.compensated is None else options.compensated,
        elevation_bias_rad=float(np.deg2rad(bias_deg)),
        recover=options.recover,
        metadata={"read_from": name} | (notes or {}),
    )
