# SPDX-License-Identifier: Apache-2.0
"""Pattern: all pulses of a sensor until its scan repeats, in the sensor's own frame.

A pattern is built once per sensor and rate and then repeated along the trajectory (sensor/drive.py). Frame: REP 103,
x straight ahead, y left, z up; azimuth counter-clockwise from x.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hedgerow.sensor.config import SensorConfig


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """P pulses in the order in which they are fired; arrays are read-only."""

    origin_m: NDArray[np.float32]
    """(P, 3) where the range is counted from, sensor frame [m]."""
    direction: NDArray[np.float32]
    """(P, 3) unit vectors, sensor frame."""
    time_ns: NDArray[np.int64]
    """(P,) after the start of the pattern, never going down [ns]."""
    ring: NDArray[np.uint16]
    """(P,) laser, numbered as the sensor's driver does."""
    rotor_rad: NDArray[np.float64]
    """(P,) azimuth of the rotor, which is what the encoder measures [rad]."""
    period_ns: float
    """Time until the pattern repeats [ns]."""
    n_sweeps: int
    """Sweeps in the pattern, of equal length: 1 unless the scan does not repeat from turn to turn."""

    def __post_init__(self) -> None:
        """Make the arrays read-only: they are shared by everything that uses the sensor."""
        for array in (self.origin_m, self.direction, self.time_ns, self.ring, self.rotor_rad):
            array.flags.writeable = False

    def __len__(self) -> int:
        """Count the pulses."""
        return len(self.time_ns)

    @property
    def pulses_per_sweep(self) -> int:
        """Pulses in one sweep."""
        return len(self) // self.n_sweeps

    def start_ns(self, sweep: int) -> int:
        """Return when a sweep of the drive starts, after the start of sweep 0 [ns]."""
        repeat, part = divmod(sweep, self.n_sweeps)
        return round(repeat * self.period_ns) + round(part * self.period_ns / self.n_sweeps)

    def rows(self, sweep: int) -> slice:
        """Return the rows of a sweep of the drive, which may be many patterns long."""
        start = (sweep % self.n_sweeps) * self.pulses_per_sweep
        return slice(start, start + self.pulses_per_sweep)


def build(config: "SensorConfig", rate_hz: float) -> Pattern:
    """Compute the pattern of a sensor.

    Args:
        config: the sensor.
        rate_hz: turns per second, one that the sensor allows.
    """
    from hedgerow.sensor import config as kinds
    from hedgerow.sensor.scan import planar, rosette, spinning

    match config.pattern:
        case kinds.Spinning():
            return spinning.build(config.pattern, rate_hz)
        case kinds.Planar():
            return planar.build(config.pattern, rate_hz)
        case kinds.Rosette():
            return rosette.build(config.pattern, rate_hz)


def directions(azimuth_rad: NDArray[np.float64], elevation_rad: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return (P, 3) unit vectors of azimuths, counter-clockwise from x, and elevations, up from the horizon."""
    flat = np.cos(elevation_rad)
    unit = np.stack([flat * np.cos(azimuth_rad), flat * np.sin(azimuth_rad), np.sin(elevation_rad)], axis=-1)
    return unit.astype(np.float32)


def sense(turns: str) -> float:
    """Return +1 if the azimuth grows with time, seen from above, else -1."""
    return 1.0 if turns == "counter-clockwise" else -1.0
