# SPDX-License-Identifier: Apache-2.0
"""Where the lasers of a Velodyne point, when they fire and how ranges follow from the numbers in its packets.

Angles and times are those of the catalogue, whose lists have the order of the packets. The HDL-64E is different: every
unit has its own angles and range corrections (hdl_64e.py).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.recovery.lasers import Lasers
from hedgerow.sensor import Sensor
from hedgerow.sensor.spinning import ring_numbers

HDL_64E = "hdl-64e-s2"
STEP_M = {"hdl-32e": 0.002, "vlp-16": 0.002, "vlp-32c": 0.004, "vls-128": 0.004, HDL_64E: 0.002}
"""The lidars whose packets are read, and the unit of their distances."""

_FAR_M = 25.04
_NEAR_AHEAD_M, _NEAR_ASIDE_M = 1.93, 2.4


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
    def named(cls, name: str) -> "Model":
        """Take a lidar of STEP_M, other than the HDL-64E, from the catalogue."""
        config = Sensor.named(name).config.pattern
        assert config.kind == "spinning"  # those of STEP_M are
        group = config.group[0]
        n = len(group.elevation_deg)
        lasers = Lasers.of_group(group, float(np.deg2rad(0.01)))
        late_us = np.asarray(group.time_us or [0.0] * n)
        return cls(name, lasers, ring_numbers(config)[0], late_us, config.slot_us or 0.0, STEP_M[name])
