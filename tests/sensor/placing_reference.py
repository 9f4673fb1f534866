# SPDX-License-Identifier: Apache-2.0
"""What hedgerow._core.place_pattern does, in NumPy: the reference for its tests."""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.frames import Trajectory


def place_numpy(
    pattern_origin_m: NDArray[np.float32],
    pattern_direction: NDArray[np.float32],
    pattern_time_ns: NDArray[np.int64],
    n_repeats: int,
    period_ns: float,
    start_ns: int,
    knot_time_ns: NDArray[np.int64],
    knot_position_m: NDArray[np.float64],
    knot_quaternion_xyzw: NDArray[np.float64],
    mount_position_m: NDArray[np.float64],
    mount_quaternion_xyzw: NDArray[np.float64],
    first_repeat: int,
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64]]:
    """Do the same as the native kernel, slowly; `threads` is for the signature only."""
    trajectory = Trajectory(knot_time_ns, knot_position_m, knot_quaternion_xyzw)
    starts = start_ns + np.rint(np.arange(first_repeat, first_repeat + n_repeats) * period_ns).astype(np.int64)
    time_ns = (starts[:, None] + pattern_time_ns).ravel()
    mounted_m = mount_position_m + rotation.rotate(mount_quaternion_xyzw, pattern_origin_m.astype(np.float64))
    mounted = rotation.rotate(mount_quaternion_xyzw, pattern_direction.astype(np.float64))
    source = np.arange(len(time_ns)) % len(pattern_time_ns)
    position_m, turn = trajectory.at(time_ns)
    direction = rotation.rotate(turn, mounted[source])
    return position_m + rotation.rotate(turn, mounted_m[source]), direction.astype(np.float32), time_ns
