# SPDX-License-Identifier: Apache-2.0
"""Clock: from a sensor's own time to the time of the computer that recorded it.

The sensor's clock says exactly how far pulses are apart, but often counts from when it was switched on, or within the
hour. The computer's says when, but packets arrive late and in bursts. So times are the sensor's, shifted once, by what
the first packet shows; unless the sensor was set by GPS or PTP and agrees with the computer anyway.
"""

from dataclasses import dataclass
from typing import Any

_SYNCHRONOUS_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """How a sensor's time becomes ours."""

    shift_ns: int
    """Sensor time less the computer's, at the first packet."""
    period_ns: int | None = None
    """After which the sensor counts from 0 again; None if it does not."""

    @classmethod
    def at(cls, sensor_ns: int, host_ns: int, period_ns: int | None = None) -> "Clock":
        """Compare both clocks at one packet."""
        shift = sensor_ns - host_ns
        if period_ns is not None:
            shift = (shift + period_ns // 2) % period_ns - period_ns // 2
        return cls(shift, period_ns)

    @property
    def synchronous(self) -> bool:
        """Whether the sensor's clock is set to the computer's, give or take a second of leaps and delays."""
        return abs(self.shift_ns) < _SYNCHRONOUS_NS

    def offset_ns(self, sensor_ns: int, host_ns: int) -> int:
        """Return what to add to the sensor's times in a packet, given its time and that of its arrival."""
        offset = 0 if self.synchronous else -self.shift_ns
        if self.period_ns is None:
            return offset
        turns = round((host_ns + self.shift_ns - sensor_ns) / self.period_ns)
        return offset + turns * self.period_ns

    def notes(self) -> dict[str, Any]:
        """Say in the metadata which clock the times are of."""
        return {"clock": "sensor" if self.synchronous else f"sensor, shifted by {-self.shift_ns / 1e9:.6f} s"}
