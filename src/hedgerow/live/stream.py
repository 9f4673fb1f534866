# SPDX-License-Identifier: Apache-2.0
"""Streaming: a drive through a world, sent at the pace of the sensor and, if asked for, recorded to a log as well."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from hedgerow.base.interrupt import InterruptGuard
from hedgerow.errors import InputError
from hedgerow.io import open_sink
from hedgerow.live.points import make_points
from hedgerow.live.publisher import Address, Publisher, encode_cloud, encode_transform
from hedgerow.log import Log
from hedgerow.simulate import Simulation

_REPORT_EVERY_S = 5.0
_LATENESS_SWEEPS = 10_000  # lateness of this many sweeps, the newest, stands for all of them


@dataclass(frozen=True, slots=True)
class PaceReport:
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
        self._late_s = deque[float](maxlen=_LATENESS_SWEEPS)
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

    def report(self) -> PaceReport:
        """Return the pace since the start."""
        return self._report_since(0, self._start_s)

    def report_latest(self, at_least_s: float) -> PaceReport | None:
        """Return the pace since this last gave one, or None if that is not yet so long ago."""
        n_sent, since_s = self._marked
        if self._clock() - since_s < at_least_s or self._n_sent == n_sent:
            return None
        pace = self._report_since(n_sent, since_s)
        self._marked = self._n_sent, self._clock()
        return pace

    def _due_s(self) -> float:
        return self._start_s + (self._n_sent + 1) * self._period_s

    def _report_since(self, n_before: int, since_s: float) -> PaceReport:
        n = self._n_sent - n_before
        late_s = list(self._late_s)[-n:] if n else [0.0]
        median_s, most_s = (float(value) for value in np.quantile(late_s, [0.5, 0.95]))
        return PaceReport(n, self._clock() - since_s, n * self._period_s, median_s, most_s)


def stream_drive(
    simulation: Simulation,
    *,
    address: Address | None = None,
    output: Path | None = None,
    write_as: str | None = None,
    loop: bool = False,
    n_sweeps: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> tuple[Log, PaceReport]:
    """Fire sweep after sweep and send each when the sensor would have finished it.

    Args:
        simulation: what to fire; the rate of its sensor sets the pace. Its trajectory is T_map_sensor.
        address: where to listen. Default: this machine alone, port 8765.
        output: also write the sweeps to this log, of any format that can be written.
        write_as: name of the log's format, if the suffix does not tell.
        loop: begin again at the end of the trajectory; time, sweeps and pulses count on.
        n_sweeps: of a loop, how many. Default: until Ctrl-C.
        say: takes a line now and then. Default: nobody.

    Returns:
        The last sweep, and the pace held over all of them.

    Raises:
        KeyboardInterrupt: ended with Ctrl-C; whole sweeps recorded until then have been published.
        MissingPackage, SocketError: it cannot listen.
        InputError, FileError: as for firing and writing.
    """
    if n_sweeps is not None and (n_sweeps < 1 or not loop):
        raise InputError("n_sweeps", f"expected 1 or more, of a loop, found {n_sweeps}")
    sensor = simulation.sensor
    numbers = range(len(simulation)) if not loop else count() if n_sweeps is None else range(n_sweeps)
    with ExitStack() as stack:
        publisher = stack.enter_context(Publisher(address or Address(), f"hedgerow: {sensor.name}", say=say))
        # Before the sink, so that it holds until the record is closed.
        stop = stack.enter_context(InterruptGuard())
        sink = None
        if output is not None:
            # The times of a second round lie past the trajectory; there the beams have to do.
            sink = stack.enter_context(
                open_sink(output, format=write_as, trajectory=None if loop else simulation.reported)
            )
        say(f"streaming at {publisher.url}; Ctrl-C ends it")
        log: Log | None = None
        pacer = Pacer(sensor.sweep_s, sleep=stop.wait)
        for number in numbers:
            log = simulation.sweep(number)
            _send(publisher, simulation, log, simulation.delay_ns(number), pacer)
            if sink is not None:
                sink.append(log)
            if latest := pacer.report_latest(_REPORT_EVERY_S):
                say(latest.text())
            if stop.asked:
                break
        assert log is not None  # there is at least one sweep
        pace = pacer.report()
    say(f"sent {pace.n_sweeps} sweeps of {sensor.name} in {pace.took_s:.1f} s: {pace.text()}")
    if output is not None:
        say(f"wrote {output}")
    if stop.asked:
        stop.interrupt()
    return log, pace


def _send(publisher: Publisher, simulation: Simulation, log: Log, delay_ns: int, pacer: Pacer) -> None:
    """Send a sweep; of a later round, its stamps are `delay_ns` after the times of the trajectory."""
    stamp_ns = int(log.beams.time_ns[0])
    cloud = encode_cloud(make_points(simulation.sensor, log, stamp_ns), stamp_ns)
    transform = encode_transform(simulation.reported.pose_at(stamp_ns - delay_ns), stamp_ns)
    pacer.wait()
    publisher.send_sweep(cloud, transform, log_time_ns=time.time_ns(), sensor_time_ns=stamp_ns)
    pacer.sent()
