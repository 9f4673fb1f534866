# SPDX-License-Identifier: Apache-2.0
"""A scan that does not repeat from sweep to sweep: the Livox Mid-360.

Livox publishes the aiming angles of the Mid-360 as a table (livox_laser_simulation, scan_mode/mid360.csv: row,
azimuth, zenith; four rows per firing). The table shows a row of four lasers that fire together over a mirror which
turns about 182 times a second, while its tilt swings once per 0.1 s. As the mirror turns, the image of the row turns
with it: twice a turn the lasers stand above each other and cross, so four wavy lines weave around the sensor. This
is our reading of the table, in closed form:

    mean elevation   e(t) = middle + half swing * asin(s cos(2 pi f t)) / asin(s)      f sweeps per second
    mirror azimuth   a(t) = start -+ 2 pi (mirror turns per second) t
    laser k of n     u = k - (n - 1) / 2,   p = a - start
                     elevation = e - u * row_up(e) * cos p
                     azimuth   = a + u * row_along * sin p / cos e

with row_up going linearly from its value at the highest to that at the lowest elevation. The real mirror's speed
varies by 4 percent within a swing, ours is constant, and the real swing is not quite symmetric: where we compared it
with the table (rows 1 to 1,976, 7,977 to 8,766 and 49,413 to 50,157) the mean elevation is off by up to 2 degrees.
Coverage over time is what the model is for, not the single pulse.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.sensor.scan.pattern import Pattern, directions, sense

if TYPE_CHECKING:
    from hedgerow.sensor.config import Rosette


def build(config: "Rosette", rate_hz: float) -> Pattern:
    """Compute the whole cycle at `rate_hz` sweeps per second."""
    n_firings = config.firings_per_sweep * config.sweeps_per_cycle
    swings = np.arange(n_firings) / config.firings_per_sweep
    mean = mean_elevation_rad(config, swings)
    start = np.deg2rad(config.start_azimuth_deg)
    turns = swings * config.mirror_turns_per_cycle / config.sweeps_per_cycle
    mirror = start + sense(config.turns) * 2 * np.pi * turns
    u = np.arange(config.n_lasers) - (config.n_lasers - 1) / 2
    elevation = mean[:, None] - u * (_row_up_rad(config, mean) * np.cos(mirror - start))[:, None]
    along = np.deg2rad(config.row_along_deg) * np.sin(mirror - start) / np.cos(mean)
    azimuth = mirror[:, None] + u * along[:, None]
    n_pulses = n_firings * config.n_lasers
    return Pattern(
        origin_m=np.zeros((n_pulses, 3), dtype=np.float32),
        direction=directions(azimuth.ravel(), elevation.ravel()),
        time_ns=np.repeat(np.rint(swings / rate_hz * 1e9).astype(np.int64), config.n_lasers),
        ring=np.tile(np.arange(config.n_lasers, dtype=np.uint16), n_firings),
        rotor_rad=np.repeat(mirror, config.n_lasers),
        period_ns=config.sweeps_per_cycle * 1e9 / rate_hz,
        n_sweeps=config.sweeps_per_cycle,
    )


def mean_elevation_rad(config: "Rosette", swings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean elevation of the row after a number of swings of the mirror's tilt, (F,) [rad]."""
    high, low = np.deg2rad(config.highest_elevation_deg), np.deg2rad(config.lowest_elevation_deg)
    shape = config.swing_shape
    swing = np.arcsin(shape * np.cos(2 * np.pi * swings)) / np.arcsin(shape)
    return (high + low) / 2 + (high - low) / 2 * swing


def _row_up_rad(config: "Rosette", mean: NDArray[np.float64]) -> NDArray[np.float64]:
    high, low = np.deg2rad(config.highest_elevation_deg), np.deg2rad(config.lowest_elevation_deg)
    at_high, at_low = np.deg2rad(config.row_up_deg)
    return at_high + (at_low - at_high) * (mean - high) / (low - high)
