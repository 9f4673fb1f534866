# SPDX-License-Identifier: Apache-2.0
"""A sweep back in the frame of its sensor, for formats that store clouds like that."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import rotation
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log


@dataclass(frozen=True, slots=True, eq=False)
class FramedSweep:
    """One sweep as a motion-compensated cloud: all points in the sensor frame of one instant."""

    pose: Pose
    """T_map_sensor of that instant."""
    stamp_ns: int
    """The instant: the middle of the sweep."""
    span_ns: tuple[int, int]
    """When the first and the last pulse were fired [ns]."""
    points: NDArray[np.float32]
    """(M, 3) sensor frame [m]."""
    height: NDArray[np.float64]
    """(M,) z of the unit direction of each beam, sensor frame."""
    pulse: NDArray[np.intp]
    """(M,) which pulse made each point."""


def framed(log: Log, trajectory: Trajectory | None) -> FramedSweep:
    """Take the points of one sweep to the frame that the sensor had in the middle of it.

    Args:
        log: one sweep, map frame.
        trajectory: T_map_sensor. Default: axes of the map, at the origin of the pulse nearest to the middle.

    Raises:
        InputError: the sweep is empty, or the trajectory does not reach its middle.
    """
    if not len(log):
        raise InputError("log", "a sweep without any beam has no place; leave it out")
    time_ns = log.beams.time_ns
    first, last = int(time_ns.min()), int(time_ns.max())
    middle = first + (last - first) // 2
    if trajectory is None:
        pose = Pose(log.beams.origin_m[np.argmin(np.abs(time_ns - middle))])
    elif not trajectory.start_ns <= middle <= trajectory.end_ns:
        raise InputError(
            "trajectory",
            f"spans {trajectory.start_ns} to {trajectory.end_ns} ns, but sweep {log.beams.sweep[0]} is at "
            f"{middle} ns; give one that covers the log",
        )
    else:
        pose = trajectory.pose_at(middle)
    points = pose.inverse().transform(log.points()).astype(np.float32)
    pulse = np.nonzero(log.returns.hit)[0]
    upward = rotation.rotate(pose.quaternion_xyzw, np.array([0.0, 0.0, 1.0]))
    return FramedSweep(pose, middle, (first, last), points, log.beams.direction[pulse] @ upward, pulse)


def by_laser(points: NDArray[np.float32], ring: NDArray[np.uint16], height: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the order in which KITTI stores points: the highest laser first, each by growing azimuth from 0.

    Args:
        points: (M, 3) sensor frame.
        ring: (M,) laser of each.
        height: (M,) z of the unit direction of the beam, sensor frame.
    """
    azimuth = np.arctan2(points[:, 1], points[:, 0]) % np.float32(2 * np.pi)
    numbers, of_point = np.unique(ring, return_inverse=True)
    middle = np.array([np.median(height[of_point == k]) for k in range(len(numbers))])
    return np.lexsort([azimuth, of_point, -middle[of_point] if len(numbers) else azimuth])
