# SPDX-License-Identifier: Apache-2.0
"""Poses and trajectories: where the sensor is, and where it is at any instant.

A pose is a rigid transform T_map_sensor: it takes sensor coordinates to map coordinates, and neighbours cancel:
`T_map_lidar = T_map_base @ T_base_lidar`. Axes as in REP 103 (x forward, y left, z up; right-handed), metres,
quaternions in the order x, y, z, w. Between its poses a trajectory moves in a straight line and turns at constant
rate (SLERP), so every pulse of a sweep can have its own pose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays, rotation
from hedgerow.base.arguments import as_positive, as_whole, require_each, require_kind
from hedgerow.base.arrays import RowError
from hedgerow.base.columns import set_fields
from hedgerow.errors import InputError

_MAX_POSES = 100_000_000  # 6 GB
_QUATERNION_TOLERANCE = 1e-3  # what text files with four digits need


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """A rigid transform.

    Raises InputError if a number is not finite, a coordinate is beyond ±1e8 m, or the quaternion is off unit length by
    1e-3.
    """

    position_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) origin of the inner frame in the outer frame [m]."""
    quaternion_xyzw: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))
    """(4,) unit quaternion."""

    def __post_init__(self) -> None:
        """Check every number once."""
        # Copied: a row of a large array would keep all of it in memory.
        position_m = arrays.as_floats("position_m", self.position_m, (3,)).copy()
        quaternion = arrays.as_floats("quaternion_xyzw", self.quaternion_xyzw, (4,)).copy()
        _store_poses(self, position_m[None], quaternion[None])
        set_fields(self, {"position_m": self.position_m[0], "quaternion_xyzw": self.quaternion_xyzw[0]})

    @classmethod
    def from_xyz_rpy(cls, xyz_m: ArrayLike, rpy_rad: ArrayLike = (0.0, 0.0, 0.0)) -> Self:
        """Make a pose from (3,) position [m] and (3,) roll, pitch, yaw [rad] about the fixed x, y, z axes, in turn."""
        roll, pitch, yaw = arrays.as_floats("rpy_rad", rpy_rad, (3,))
        position_m = arrays.as_floats("xyz_m", xyz_m, (3,))
        arrays.require_finite("rpy_rad", np.array([roll, pitch, yaw]))
        return cls(position_m, rotation.from_rpy(roll, pitch, yaw))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Self:
        """Make a pose from a (4, 4) or (3, 4) homogeneous matrix.

        Raises:
            InputError: another shape, or no rotation (rows not orthonormal within 1e-3, or a mirror image).
        """
        m = arrays.as_floats("matrix", matrix, (3, 4), (4, 4))
        if m.shape == (4, 4) and not np.array_equal(m[3], [0, 0, 0, 1]):
            raise InputError("matrix", f"the last row is {m[3].tolist()}; expected [0, 0, 0, 1]")
        position_m, quaternion = poses_from_matrices("matrix", m[None, :3])
        return cls(position_m[0], quaternion[0])

    def matrix(self) -> NDArray[np.float64]:
        """Return the (4, 4) homogeneous matrix."""
        matrix = np.eye(4)
        matrix[:3, :3] = rotation.to_matrix(self.quaternion_xyzw)
        matrix[:3, 3] = self.position_m
        return matrix

    def __matmul__(self, inner: "Pose") -> "Pose":
        """Chain two transforms: T_a_b @ T_b_c is T_a_c."""
        require_kind("right of @", inner, Pose, "a Pose")
        return Pose(self.transform(inner.position_m), rotation.multiply(self.quaternion_xyzw, inner.quaternion_xyzw))

    def inverse(self) -> "Pose":
        """Return the transform the other way."""
        back = rotation.conjugate(self.quaternion_xyzw)
        return Pose(-rotation.rotate(back, self.position_m), back)

    def transform(self, points: ArrayLike) -> NDArray[np.float64]:
        """Take (3,) or (N, 3) points from the inner to the outer frame [m]."""
        inner = arrays.as_floats("points", points, (3,), ("N", 3))
        return self.position_m + rotation.rotate(self.quaternion_xyzw, inner)


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Poses in time, T_map_sensor.

    Takes arrays or lists; float times are seconds, integers nanoseconds. Raises InputError naming the row if there is
    no pose, the times do not increase, a number is not finite, a coordinate is beyond ±1e8 m, or a quaternion is off
    unit length by more than 1e-3.
    """

    time_ns: NDArray[np.int64]
    """(K,) strictly increasing [ns]."""
    position_m: NDArray[np.float64]
    """(K, 3) map frame [m]."""
    quaternion_xyzw: NDArray[np.float64]
    """(K, 4) unit quaternions."""
    source: str = ""
    """Where it comes from, for people: a file, or a named trajectory of a scene; logs that are fired keep it."""

    def __post_init__(self) -> None:
        """Check every number once."""
        n_poses = arrays.n_rows("time_ns", self.time_ns)
        if n_poses == 0:
            raise InputError("time_ns", "the trajectory is empty; give at least one pose")
        time_ns = arrays.as_time_ns("time_ns", self.time_ns, n_poses)
        stuck = time_ns[1:] <= time_ns[:-1]
        if stuck.any():
            row = arrays.first_row(stuck) + 1
            raise RowError("time_ns", row, f"is {time_ns[row]}, not later than the row before ({time_ns[row - 1]})")
        position_m = arrays.as_floats("position_m", self.position_m, (n_poses, 3))
        quaternion = arrays.as_floats("quaternion_xyzw", self.quaternion_xyzw, (n_poses, 4))
        set_fields(self, {"time_ns": arrays.read_only(time_ns)})
        _store_poses(self, position_m, quaternion)

    @classmethod
    def from_poses(cls, times: ArrayLike, poses: Sequence[Pose]) -> Self:
        """Make a trajectory from (K,) times (floats are seconds, integers nanoseconds) and as many poses."""
        require_each("poses", poses, Pose)
        positions = np.array([pose.position_m for pose in poses]).reshape(-1, 3)
        quaternions = np.array([pose.quaternion_xyzw for pose in poses]).reshape(-1, 4)
        n_times = arrays.n_rows("times", times)
        if n_times != len(poses):
            raise InputError("times", f"{n_times} of them, but {len(poses)} poses; expected one for each")
        return cls(arrays.as_time_ns("times", times, n_times), positions, quaternions)

    @classmethod
    def standing(cls, pose: Pose, duration_s: float) -> Self:
        """Stay in one pose from time 0 on."""
        end_s = as_positive("duration_s", duration_s)
        return cls.from_poses([0.0, end_s], [pose, pose])

    @classmethod
    def line(cls, start_m: ArrayLike, end_m: ArrayLike, speed_mps: float) -> Self:
        """Drive from one (3,) point to another from time 0 on, level, x axis towards the end [m, m/s]."""
        as_positive("speed_mps", speed_mps)
        start, end = arrays.as_floats("start_m", start_m, (3,)), arrays.as_floats("end_m", end_m, (3,))
        path = end - start
        as_positive("distance from start_m to end_m", float(np.linalg.norm(path)))
        yaw = float(np.arctan2(path[1], path[0]))
        poses = [Pose.from_xyz_rpy(point, (0, 0, yaw)) for point in (start, end)]
        return cls.from_poses([0.0, float(np.linalg.norm(path)) / speed_mps], poses)

    @classmethod
    def circle(
        cls, centre_m: ArrayLike, radius_m: float, speed_mps: float, turns: float = 1.0, poses_per_turn: int = 360
    ) -> Self:
        """Drive round a (3,) point from time 0 on, level, counter-clockwise, starting east of it [m, m/s]."""
        for name, value in (("radius_m", radius_m), ("speed_mps", speed_mps), ("turns", turns)):
            as_positive(name, value)
        as_whole("poses_per_turn", poses_per_turn, 1, _MAX_POSES)
        n_poses = max(2, as_whole("turns", round(poses_per_turn * turns), 0, _MAX_POSES, "fewer poses") + 1)
        centre = arrays.as_floats("centre_m", centre_m, (3,))
        angle = np.linspace(0, 2 * np.pi * turns, n_poses)
        zero = np.zeros_like(angle)
        position_m = centre + radius_m * np.stack([np.cos(angle), np.sin(angle), zero], axis=1)
        half_yaw = (angle + np.pi / 2) / 2  # along the tangent
        quaternion = np.stack([zero, zero, np.sin(half_yaw), np.cos(half_yaw)], axis=1)
        with np.errstate(over="ignore"):
            seconds = angle * radius_m / speed_mps
        return cls(arrays.as_time_ns("times", seconds, len(angle)), position_m, quaternion)

    def __len__(self) -> int:
        """Count the poses."""
        return len(self.time_ns)

    @property
    def start_ns(self) -> int:
        """Time of the first pose [ns]."""
        return int(self.time_ns[0])

    @property
    def end_ns(self) -> int:
        """Time of the last pose [ns]."""
        return int(self.time_ns[-1])

    @property
    def length_m(self) -> float:
        """Length of the path, along straight lines between the poses [m]."""
        return float(np.linalg.norm(np.diff(self.position_m, axis=0), axis=1).sum())

    @property
    def provenance(self) -> dict[str, Any]:
        """What a log says of the trajectory that it was fired along."""
        return {
            "source": self.source,
            "poses": len(self),
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "first_m": self.position_m[0].tolist(),
            "last_m": self.position_m[-1].tolist(),
        }

    def at(self, time_ns: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return position (N, 3) [m] and quaternion (N, 4) at (N,) times, integers in ns or floats in seconds.

        Raises:
            InputError: a time outside the trajectory; nothing is extrapolated.
        """
        given = arrays.as_numbers("time_ns", time_ns)
        wanted = arrays.as_time_ns("time_ns", given, given.size)
        outside = (wanted < self.time_ns[0]) | (wanted > self.time_ns[-1])
        if outside.any():
            raise InputError(
                "time_ns",
                f"{int(outside.sum())} of {len(wanted)} times lie outside the trajectory, the first is "
                f"{wanted[arrays.first_row(outside)]} ns; it spans {self.start_ns} to {self.end_ns} ns, the times "
                f"{wanted.min()} to {wanted.max()} ns; give a trajectory that covers them",
            )
        if len(self) == 1:
            return np.repeat(self.position_m, len(wanted), axis=0), np.repeat(self.quaternion_xyzw, len(wanted), axis=0)
        segment = np.clip(np.searchsorted(self.time_ns, wanted, side="right") - 1, 0, len(self) - 2)
        start_ns = self.time_ns[segment]
        fraction = (wanted - start_ns) / (self.time_ns[segment + 1] - start_ns)
        start_m, start = self.position_m[segment], self.quaternion_xyzw[segment]
        position_m = start_m + fraction[:, None] * (self.position_m[segment + 1] - start_m)
        # Angles once per segment, and only of those in use: a sweep is short, a drive may have a million poses.
        first, last = (int(segment.min()), int(segment.max())) if len(segment) else (0, 0)
        used = self.quaternion_xyzw[first : last + 2]
        near, angle_rad = rotation.shortest_turn(used[:-1], used[1:])
        return position_m, rotation.slerp(start, near[segment - first], angle_rad[segment - first], fraction)

    def pose_at(self, time: float) -> Pose:
        """Return the pose at one time: an integer in ns or a float in seconds."""
        require_kind("time", time, (int, float, np.integer, np.floating), "one time")
        position_m, quaternion = self.at(np.asarray(time)[None])
        return Pose(position_m[0], quaternion[0])

    def __matmul__(self, mount: Pose) -> "Trajectory":
        """Chain with a fixed mount on the inside: T_map_base @ T_base_sensor is T_map_sensor."""
        require_kind("mount", mount, Pose, "a Pose")
        offset = rotation.rotate(self.quaternion_xyzw, mount.position_m)
        turned = rotation.multiply(self.quaternion_xyzw, np.broadcast_to(mount.quaternion_xyzw, (len(self), 4)))
        return Trajectory(self.time_ns, self.position_m + offset, turned, self.source)

    def equal(self, other: "Trajectory") -> bool:
        """Tell whether both hold the same times and poses."""
        require_kind("other", other, Trajectory, "a Trajectory")
        pairs = [(self.time_ns, other.time_ns), (self.position_m, other.position_m)]
        pairs.append((self.quaternion_xyzw, other.quaternion_xyzw))
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def poses_from_matrices(name: str, matrices: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return positions (N, 3) and quaternions (N, 4) of (N, 3, 4) matrices.

    Raises:
        InputError: a row that is not finite or no rotation.
    """
    arrays.require_finite(name, matrices)
    arrays.require_coordinates(name, matrices[:, :, 3])
    turn = matrices[:, :, :3]
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(turn @ turn.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0)
    # An overflow is no rotation either: NaN fails the first comparison.
    wrong = ~(error <= 2 * _QUATERNION_TOLERANCE) | (np.linalg.det(turn) < 0)
    if wrong.any():
        row = arrays.first_row(wrong)
        found = turn[row].tolist()
        raise RowError(name, row, f"holds no rotation ({found}); expected orthonormal rows, determinant 1")
    return matrices[:, :, 3], rotation.from_matrix(turn)


def _store_poses(owner: object, position_m: NDArray[np.float64], quaternion: NDArray[np.float64]) -> None:
    arrays.require_coordinates("position_m", position_m)
    arrays.require_finite("quaternion_xyzw", quaternion)
    arrays.require_unit("quaternion_xyzw", quaternion, _QUATERNION_TOLERANCE)
    # A quaternion that is already exact keeps its last bit, so that files round-trip.
    inexact = np.abs(np.linalg.norm(quaternion, axis=1, keepdims=True) - 1) > 1e-12
    unit = np.where(inexact, rotation.normalise(quaternion), quaternion)
    set_fields(owner, {"position_m": arrays.read_only(position_m), "quaternion_xyzw": arrays.read_only(unit)})


def span_text(start_ns: int, end_ns: int) -> str:
    """Say from when to when, in seconds."""
    return f"{start_ns / 1e9:.3f} to {end_ns / 1e9:.3f} s"
