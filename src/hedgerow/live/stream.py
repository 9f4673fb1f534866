# SPDX-License-Identifier: Apache-2.0
"""A drive through a world, sent at the pace of the sensor and, if asked for, recorded on the way."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from hedgerow.errors import InputError
from hedgerow.io import open_sink
from hedgerow.live.pace import Pace, Pacer
from hedgerow.live.publisher import Address, Publisher, encode_cloud, encode_transform
from hedgerow.live.sweeps import points_of
from hedgerow.log import Log
from hedgerow.simulate import Simulation
from hedgerow.stop import Stop

_SAY_EVERY_S = 5.0


def stream_drive(
    simulation: Simulation,
    *,
    address: Address | None = None,
    output: Path | None = None,
    loop: bool = False,
    n_sweeps: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> tuple[Log, Pace]:
    """Fire sweep after sweep and send each when the sensor would have finished it.

    Args:
        simulation: what to fire; the rate of its sensor sets the pace. Its trajectory is T_map_sensor.
        address: where to listen. Default: this machine alone, port 8765.
        output: also write the sweeps to this log, of any format that can be written.
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
        publisher = stack.enter_context(Publisher(address or Address(), f"hedgerow: {sensor.name}"))
        sink = None
        if output is not None:
            # The times of a second round lie past the trajectory; there the beams have to do.
            sink = stack.enter_context(open_sink(output, trajectory=None if loop else simulation.trajectory))
        stop = stack.enter_context(Stop())
        say(f"streaming at {publisher.url}; Ctrl-C ends it")
        log: Log | None = None
        pacer = Pacer(sensor.sweep_s, sleep=stop.wait)
        for number in numbers:
            log = simulation.sweep(number)
            _send(publisher, simulation, log, simulation.delay_ns(number), pacer)
            if sink is not None:
                sink.append(log)
            if pace := pacer.held_lately(_SAY_EVERY_S):
                say(pace.text())
            if stop.asked:
                break
        assert log is not None  # there is at least one sweep
        held = pacer.held()
    say(f"sent {held.n_sweeps} sweeps of {sensor.name} in {held.took_s:.1f} s: {held.text()}")
    if output is not None:
        say(f"wrote {output}")
    if stop.asked:
        raise KeyboardInterrupt
    return log, held


def _send(publisher: Publisher, simulation: Simulation, log: Log, delay_ns: int, pacer: Pacer) -> None:
    """Send a sweep; of a later round, its stamps are `delay_ns` after the times of the trajectory."""
    stamp_ns = int(log.beams.time_ns[0])
    cloud = encode_cloud(points_of(simulation.sensor, log, stamp_ns), stamp_ns)
    transform = encode_transform(simulation.trajectory.pose_at(stamp_ns - delay_ns), stamp_ns)
    pacer.wait()
    publisher.send_sweep(cloud, transform, log_time_ns=time.time_ns(), sensor_time_ns=stamp_ns)
    pacer.sent()
