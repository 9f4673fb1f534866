# SPDX-License-Identifier: Apache-2.0
"""Any sweep of a sensor's scan at any time, and its returns as a driver would send them.

Points are raw, as a lidar's driver sends them: each in the sensor's frame of its own instant, with its time beside it,
so what listens has to undo the motion of the vehicle as it has to with a real sensor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose, Trajectory
from hedgerow.io.ros.point_cloud2 import point_rows
from hedgerow.log import Beams, Log
from hedgerow.physics.vegetation import VegetationResponse
from hedgerow.sensor import Sensor
from hedgerow.sensor.aim import Aim
from hedgerow.sensor.driving import Drive
from hedgerow.sensor.pattern import Pattern
from hedgerow.world import World
from hedgerow.world.learned import ElementWorld


def start_in_scan_ns(pattern: Pattern, number: int) -> int:
    """Return when a sweep starts, after the start of sweep 0 [ns]."""
    repeat, part = divmod(number, pattern.n_sweeps)
    return round(repeat * pattern.period_ns) + round(part * pattern.period_ns / pattern.n_sweeps)


def beams_at(sensor: Sensor, trajectory: Trajectory, number: int, start_ns: int) -> Beams:
    """Aim one sweep, every pulse from the pose of its own instant.

    Args:
        sensor: what fires.
        trajectory: T_map_sensor, over the whole sweep.
        number: which sweep of the scan; pulse ids, and with them random numbers, follow from it.
        start_ns: when on the trajectory it starts [ns].

    Returns:
        One sweep of beams, map frame.
    """
    begin_ns = start_ns - start_in_scan_ns(sensor.pattern, number)
    aim = Aim("exact", False, 0)
    return Drive(sensor.config, sensor.pattern, trajectory, Pose(), begin_ns, number + 1, aim, threads=0).sweep(number)


def fired(world: World, sensor: Sensor, beams: Beams, seed: int, noise: bool | None = None) -> Log:
    """Fire beams through a world, with the noise of the sensor.

    Args:
        world: what to fire at.
        sensor: what fires.
        beams: map frame.
        seed: same seed, same answer.
        noise: whether to add the sensor's range noise, range steps and drop-outs. Default: not to a learned world,
            which has them from the log that it was learned from.
    """
    log = world.fire(beams, seed, sensor=sensor)
    inner = world.world if isinstance(world, VegetationResponse) else world
    wanted = not isinstance(inner, ElementWorld) if noise is None else noise
    return sensor.degrade(log, seed) if wanted else log


def points_of(sensor: Sensor, log: Log, start_ns: int, *, misses: bool = False) -> NDArray[Any]:
    """Return the points of one sweep, made by `beams_at` or an exact drive, in the sensor's own frame.

    Args:
        sensor: what fired.
        log: one sweep.
        start_ns: when it started [ns].
        misses: give pulses that came back with nothing a point as well, at NaN.

    Returns:
        (M,) of type `POINT`, in firing order, nearest return first; intensity NaN where it is not known.
    """
    rows = sensor.pattern.rows(int(log.beams.sweep[0]))
    shape = (len(log), log.returns.n_per_pulse)
    range_m = log.returns.range_m.reshape(shape)
    wanted = np.isfinite(range_m)
    if misses:
        wanted[:, 0] = True
    pulse = np.nonzero(wanted)[0]
    along_m = range_m[wanted]
    along_m = np.where(np.isinf(along_m), np.float32(np.nan), along_m)
    places = sensor.pattern.origin_m[rows][pulse] + along_m[:, None] * sensor.pattern.direction[rows][pulse]
    intensity = log.returns.intensity
    return point_rows(
        places,
        log.beams.ring[pulse],
        (log.beams.time_ns[pulse] - start_ns) * 1e-9,
        np.nan if intensity is None else intensity.reshape(shape)[wanted],
    )
