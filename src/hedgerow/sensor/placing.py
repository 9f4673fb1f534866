# SPDX-License-Identifier: Apache-2.0
"""Carrying a pattern along a trajectory: each pulse gets the pose of its own instant (rolling shutter).

The native kernel does it; tests/sensor has the same in NumPy. Pulse i of repeat k is fired at
start + round((first + k) * period) + time[i].
"""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose, Trajectory

Placed = tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]
"""Origins (N, 3) in the map frame [m], unit directions (N, 3) in the map frame, times (N,) [ns]."""


def place(
    origin_m: NDArray[np.float32],
    direction: NDArray[np.float32],
    time_ns: NDArray[np.int64],
    *,
    trajectory: Trajectory,
    mount: Pose,
    start_ns: int,
    period_ns: float,
    first_repeat: int,
    n_repeats: int = 1,
    threads: int = 0,
) -> Placed:
    """Place a pattern on a trajectory, once or several times in a row.

    Args:
        origin_m: (P, 3) sensor frame [m].
        direction: (P, 3) unit, sensor frame.
        time_ns: (P,) after the start of the pattern [ns].
        trajectory: T_map_base; must cover all pulses.
        mount: T_base_sensor.
        start_ns: when repeat 0 starts [ns].
        period_ns: from one repeat to the next [ns].
        first_repeat: number of the first repeat.
        n_repeats: how many.
        threads: 0 uses all.

    Returns:
        N = n_repeats * P origins, directions and times.
    """
    core: Any = import_module("hedgerow._core")
    return core.place(
        np.ascontiguousarray(origin_m),
        np.ascontiguousarray(direction),
        np.ascontiguousarray(time_ns),
        n_repeats,
        float(period_ns),
        start_ns,
        trajectory.time_ns,
        trajectory.position_m,
        trajectory.quaternion_xyzw,
        mount.position_m,
        mount.quaternion_xyzw,
        first_repeat,
        threads,
    )
