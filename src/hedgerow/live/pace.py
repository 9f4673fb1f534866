# SPDX-License-Identifier: Apache-2.0
"""Pacer: sends each sweep when the sensor would have finished it, and tells how well that went."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_MOST_KEPT = 10_000  # lateness of this many sweeps, the newest, stands for all of them


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate held over some sweeps."""

    n_sweeps: int
    """How many were sent."""
    took_s: float
    """In this time [s]."""
    sensor_s: float
    """The sensor needs this much for as many [s]."""
    latency_s: float
    """From the moment when a sweep's last pulse is due until it is sent, median [s]."""
    latency_95_s: float
    """Likewise, 95 % of the sweeps are better [s]."""

    @property
    def share(self) -> float:
        """Share of real time: 1 is the sensor's own pace."""
        return self.sensor_s / self.took_s if self.took_s > 0 else 1.0

    def text(self) -> str:
        """Say it in half a line."""
        rate_hz = self.n_sweeps / self.took_s if self.took_s > 0 else 0.0
        return (
            f"{rate_hz:.2f} sweeps/s, {self.share:.1%} of real time, "
            f"latency {1e3 * self.latency_s:.1f} ms (95 %: {1e3 * self.latency_95_s:.1f} ms)"
        )


class Pacer:
    """Sweep k, from 0 on, is due (k + 1) periods after the start. None is left out: after a delay it catches up."""

    def __init__(
        self,
        period_s: float,
        *,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Start now.

        Args:
            period_s: from sweep to sweep [s].
            clock: tells the time [s].
            sleep: waits for a time [s].
        """
        self._period_s, self._clock, self._sleep = period_s, clock, sleep
        self._start_s = clock()
        self._n_sent = 0
        self._late_s = deque[float](maxlen=_MOST_KEPT)
        self._marked = 0, self._start_s

    def wait(self) -> None:
        """Wait until the next sweep is due; not at all when it is late already."""
        left_s = self._due_s() - self._clock()
        if left_s > 0:
            self._sleep(left_s)

    def sent(self) -> None:
        """Note that the next sweep has been sent."""
        self._late_s.append(max(0.0, self._clock() - self._due_s()))
        self._n_sent += 1

    def held(self) -> Pace:
        """Return the pace since the start."""
        return self._pace(0, self._start_s)

    def held_lately(self, at_least_s: float) -> Pace | None:
        """Return the pace since this last gave one, or None if that is not yet so long ago."""
        n_sent, since_s = self._marked
        if self._clock() - since_s < at_least_s or self._n_sent == n_sent:
            return None
        pace = self._pace(n_sent, since_s)
        self._marked = self._n_sent, self._clock()
        return pace

    def _due_s(self) -> float:
        return self._start_s + (self._n_sent + 1) * self._period_s

    def _pace(self, n_before: int, since_s: float) -> Pace:
        n = self._n_sent - n_before
        late_s = list(self._late_s)[-n:] if n else [0.0]
        median_s, most_s = (float(value) for value in np.quantile(late_s, [0.5, 0.95]))
        return Pace(n, self._clock() - since_s, n * self._period_s, median_s, most_s)
