# SPDX-License-Identifier: Apache-2.0
"""Points: the returns of a sweep as a driver would send them.

Points are raw, as a lidar's driver sends them: each in the sensor's frame of its own instant, with its time beside it,
so what listens has to undo the motion of the vehicle as it has to with a real sensor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.ros.messages import point_rows, return_kinds
from hedgerow.log import Log
from hedgerow.sensor import Sensor


def make_points(sensor: Sensor, log: Log, start_ns: int, *, misses: bool = False) -> NDArray[Any]:
    """Return the points of one sweep, made by `simulate` with a trajectory of the sensor, in the sensor's own frame.

    Args:
        sensor: what fired.
        log: one sweep.
        start_ns: when it started [ns].
        misses: give pulses that came back with nothing a point as well, at NaN.

    Returns:
        (M,) of type `POINT`, in firing order, nearest return first; intensity NaN where it is not known. Where pulses
        can have several returns, return_type and return_number say which each is.
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
    points_m = sensor.pattern.origin_m[rows][pulse] + along_m[:, None] * sensor.pattern.direction[rows][pulse]
    intensity, kinds = log.returns.intensity, return_kinds(log.returns)
    return point_rows(
        points_m,
        log.beams.ring[pulse],
        (log.beams.time_ns[pulse] - start_ns) * 1e-9,
        np.nan if intensity is None else intensity.reshape(shape)[wanted],
        kinds=None if kinds is None else (kinds[0][wanted], kinds[1][wanted]),
    )
