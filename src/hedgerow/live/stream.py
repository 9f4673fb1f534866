# SPDX-License-Identifier: Apache-2.0
"""A drive through a world, sent at the pace of the sensor and, if asked for, recorded on the way."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.live.pace import Pace, Pacer
from hedgerow.live.publisher import Address, Publisher, encode_cloud, encode_transform
from hedgerow.live.sweeps import beams_at, fired, points_of, start_in_scan_ns
from hedgerow.log import Beams, Log
from hedgerow.sensor import Sensor
from hedgerow.sensor.driving import extent
from hedgerow.stop import Stop
from hedgerow.world import World

_SAY_EVERY_S = 5.0


def stream_drive(
    world: World,
    sensor: Sensor,
    trajectory: Trajectory,
    *,
    address: Address | None = None,
    output: Path | None = None,
    start_s: float = 0.0,
    n_sweeps: int | None = None,
    loop: bool = False,
    seed: int = 0,
    noise: bool | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> tuple[Log, Pace]:
    """Fire sweep after sweep and send each when the sensor would have finished it.

    Args:
        world: what to fire at.
        sensor: what fires; its rate sets the pace.
        trajectory: T_map_sensor.
        address: where to listen. Default: this machine alone, port 8765.
        output: also write the sweeps to this log.
        start_s: when to start, after the trajectory's first pose [s].
        n_sweeps: how many. Default: to the end of the trajectory, or for ever.
        loop: begin again at the end of the trajectory; time, sweeps and pulses count on.
        seed: same seed, same sweeps.
        noise: whether to add the sensor's own noise. Default: not to a learned world, which has it.
        say: takes a line now and then. Default: nobody.

    Returns:
        The last sweep, and the pace held over all of them.

    Raises:
        KeyboardInterrupt: ended with Ctrl-C; whole sweeps recorded until then have been published.
        MissingPackage, SocketError: it cannot listen.
        InputError, FileError: as for firing and writing.
    """
    from hedgerow.io.parquet_writer import LogWriter

    with ExitStack() as stack:
        sweeps = _sweeps(sensor, trajectory, start_s, n_sweeps, loop)
        publisher = stack.enter_context(Publisher(address or Address(), f"hedgerow: {sensor.name}"))
        writer = None if output is None else stack.enter_context(LogWriter(output))
        stop = stack.enter_context(Stop())
        say(f"streaming at {publisher.url}; Ctrl-C ends it")
        log: Log | None = None
        pacer = Pacer(sensor.sweep_s, sleep=stop.wait)
        for beams, shift_ns in sweeps:
            log = _fired(world, sensor, beams, shift_ns, seed, noise)
            _send(publisher, sensor, trajectory, log, shift_ns, pacer)
            if writer is not None:
                writer.append(log)
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


def _sweeps(
    sensor: Sensor, trajectory: Trajectory, start_s: float, n_sweeps: int | None, loop: bool
) -> Iterator[tuple[Beams, int]]:
    """Give the beams of each sweep, at the times of the trajectory, and what to add to them [ns]."""
    if n_sweeps is not None and n_sweeps < 1:
        raise InputError(f"n_sweeps: expected at least 1, found {n_sweeps}")
    start_ns, per_round = extent(sensor.pattern, trajectory, start_s, None, None if loop else n_sweeps)
    total = n_sweeps if loop else per_round

    def aimed() -> Iterator[tuple[Beams, int]]:
        for number in count() if total is None else range(total):
            within_ns = start_in_scan_ns(sensor.pattern, number % per_round)
            shift_ns = start_in_scan_ns(sensor.pattern, number) - within_ns
            yield beams_at(sensor, trajectory, number, start_ns + within_ns), shift_ns

    return aimed()


def _fired(world: World, sensor: Sensor, beams: Beams, shift_ns: int, seed: int, noise: bool | None) -> Log:
    log = fired(world, sensor, beams, seed, noise)
    if shift_ns:
        log = replace(log, beams=Beams.trusted(beams.columns() | {"time_ns": beams.time_ns + shift_ns}))
    return log


def _send(publisher: Publisher, sensor: Sensor, trajectory: Trajectory, log: Log, shift_ns: int, pacer: Pacer) -> None:
    stamp_ns = int(log.beams.time_ns[0])
    cloud = encode_cloud(points_of(sensor, log, stamp_ns), stamp_ns)
    pose = trajectory.pose_at(stamp_ns - shift_ns)
    transform = encode_transform(pose, stamp_ns)
    pacer.wait()
    publisher.send_sweep(cloud, transform, log_time_ns=time.time_ns(), sensor_time_ns=stamp_ns)
    pacer.sent()
