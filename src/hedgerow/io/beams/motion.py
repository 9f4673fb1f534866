# SPDX-License-Identifier: Apache-2.0
"""Points of a moving sensor: when each was measured, and where in the map its pulse was fired from.

Every pulse gets the pose of its own instant. There are two kinds of clouds. Raw points lie in the frame that the sensor
had when each of them was measured. Deskewed ones were moved into the frame of one instant, as KITTI odometry's are:
their beams began elsewhere, and `reskew` takes them back, so that both kinds have their true origins.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.base.arrays import Array
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory, span_text

_ANOTHER_CLOCK_NS = 10_000_000_000
_SLACK_NS = 25_000_000  # poses of a sweep may be this much off its middle: a quarter of the usual turn
_SINCE_1970_NS = 1e17  # a float above it counts nanoseconds since 1970, above the next one seconds
_SINCE_1970_S = 1e8


def move_to_map(
    trajectory: Trajectory, time_ns: NDArray[np.int64], origin_m: Array, direction: Array
) -> tuple[Array, NDArray[np.float32]]:
    """Take pulses from the sensor frame to the map.

    Args:
        trajectory: T_map_sensor; must span the times.
        time_ns: (N,) when each pulse was fired.
        origin_m, direction: (N, 3) each, sensor frame.

    Returns:
        (N, 3) origins [m] and (N, 3) unit directions, map frame.
    """
    position_m, quaternion = trajectory.at(time_ns)
    turned = rotation.rotate(quaternion, direction)
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    return position_m + rotation.rotate(quaternion, origin_m), turned.astype(np.float32)


def reskew(trajectory: Trajectory, points: Array, time_ns: NDArray[np.int64], reference_ns: int) -> NDArray[np.float64]:
    """Undo deskewing: take (N, 3) points from the sensor frame of one instant to that of their own.

    Args:
        trajectory: T_map_sensor; must span the times.
        points: in the frame of `reference_ns` [m].
        time_ns: (N,) when each point was measured.
        reference_ns: the instant that they were moved to.
    """
    in_map = trajectory.pose_at(reference_ns).transform(points)
    position_m, quaternion = trajectory.at(time_ns)
    return rotation.rotate(rotation.conjugate(quaternion), in_map - position_m)


def extend_trajectory(trajectory: Trajectory, margin_ns: int) -> Trajectory:
    """Lengthen a trajectory at both ends at the speed that it has there.

    Poses come at the middle of sweeps, so that the first half of the first sweep and the last half of the last one
    stick out.
    """
    if len(trajectory) == 1:
        time_ns = trajectory.time_ns + np.array([-margin_ns, 0, margin_ns])
        position_m, quaternion = (
            np.repeat(each, 3, axis=0) for each in (trajectory.position_m, trajectory.quaternion_xyzw)
        )
        return Trajectory(time_ns, position_m, quaternion)
    with np.errstate(over="ignore", invalid="ignore"):  # the trajectory refuses what comes of it
        ends = [_beyond(trajectory, 0, 1, -margin_ns), _beyond(trajectory, -1, -2, margin_ns)]
    time_ns = np.concatenate([[trajectory.start_ns - margin_ns], trajectory.time_ns, [trajectory.end_ns + margin_ns]])
    position_m = np.concatenate([ends[0][0][None], trajectory.position_m, ends[1][0][None]])
    quaternion = np.concatenate([ends[0][1][None], trajectory.quaternion_xyzw, ends[1][1][None]])
    return Trajectory(time_ns, position_m, quaternion)


@np.errstate(over="ignore", invalid="ignore")  # what comes out is no pose then, and refused as such
def _beyond(trajectory: Trajectory, end: int, inner: int, margin_ns: int) -> tuple[Array, Array]:
    """Return position and quaternion after `margin_ns` more, at the speed between two poses."""
    share = margin_ns / float(trajectory.time_ns[end] - trajectory.time_ns[inner])
    step_m = trajectory.position_m[end] - trajectory.position_m[inner]
    start, stop = trajectory.quaternion_xyzw[inner], trajectory.quaternion_xyzw[end]
    near, angle = rotation.shortest_turn(start[None], stop[None])
    # SLERP goes on beyond its end as well: the same turn, at the same rate.
    turn = rotation.slerp(start[None], near, angle, np.array([1 + share]))[0]
    return trajectory.position_m[end] + share * step_m, rotation.normalise(turn)


def require_span(name: str, trajectory: Trajectory, start_ns: int, end_ns: int) -> None:
    """Raise FileError unless a sweep lies within the trajectory."""
    if start_ns < trajectory.start_ns or end_ns > trajectory.end_ns:
        late = end_ns > trajectory.end_ns
        apart_s = (end_ns - trajectory.end_ns if late else trajectory.start_ns - start_ns) / 1e9
        when = "end" if late else "begin"
        raise FileError(
            f"{name}: the poses {when} {apart_s:.3f} s {'before' if late else 'after'} this sweep does; "
            "choose sweeps that have poses, or give a longer trajectory of the same clock (poses "
            f"{span_text(trajectory.start_ns, trajectory.end_ns)}, sweep {span_text(start_ns, end_ns)})"
        )


def require_pose(name: str, poses_ns: tuple[int, int], sweep_ns: tuple[int, int], middle_ns: int) -> None:
    """Raise FileError unless a sweep has a pose, or lies between two; half a sweep may stick out, no more.

    Args:
        name: of the sweep, for the error.
        poses_ns: time of the first and of the last pose that was measured; beyond, a trajectory is a guess.
        sweep_ns: when the sweep began and ended.
        middle_ns: when the scanner looked ahead.
    """
    slack_ns = max((sweep_ns[1] - sweep_ns[0]) // 4, _SLACK_NS)
    late = middle_ns > poses_ns[1]
    apart_ns = middle_ns - poses_ns[1] if late else poses_ns[0] - middle_ns
    if apart_ns > slack_ns:
        when = "end" if late else "begin"
        raise FileError(
            f"{name}: has no pose, they {when} {apart_ns / 1e9:.3f} s {'before' if late else 'after'} its middle; "
            "choose sweeps that have poses, or give a longer trajectory"
        )


def times_of(values: NDArray[Any] | None, stamp_ns: int) -> NDArray[np.int64] | None:
    """Return when each point was measured [ns], or None if the cloud does not tell.

    Every driver counts in its own way: Velodyne's `time` is in seconds after the stamp, Ouster's `t` in nanoseconds
    after it, Hesai's and RoboSense's `timestamp` in seconds since 1970, Livox' `timestamp` in nanoseconds since 1970
    and `offset_time` in nanoseconds after the stamp. The type of the number and its size tell them apart.

    Args:
        values: of the cloud's field of times, if it has one.
        stamp_ns: of the cloud.
    """
    if values is None or not values.size:
        return None
    if values.dtype.kind in "iu":
        # As large as time since 1970 in ns, it is that; else ns after the stamp.
        absolute = float(values.max()) > _SINCE_1970_NS
        return _on_stamps_clock(values.astype(np.int64), stamp_ns) if absolute else stamp_ns + values.astype(np.int64)
    values = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    largest = float(values.max(initial=0))
    if largest > _SINCE_1970_S:
        per_s = 1 if largest > _SINCE_1970_NS else 10**9
        whole = np.floor(values).astype(np.int64)
        time_ns = whole * per_s + np.rint((values - whole) * per_s).astype(np.int64)
        return _on_stamps_clock(time_ns, stamp_ns)
    return stamp_ns + np.rint(np.clip(values, -1e6, 1e6) * 1e9).astype(np.int64)


def _on_stamps_clock(time_ns: NDArray[np.int64], stamp_ns: int) -> NDArray[np.int64]:
    """Shift times that are of another clock than the stamps (and the poses) so that the first is at the stamp."""
    there = time_ns[time_ns > 0]
    if not len(there):
        return np.full_like(time_ns, stamp_ns)
    first = int(there.min())
    return time_ns if abs(first - stamp_ns) < _ANOTHER_CLOCK_NS else time_ns - first + stamp_ns
