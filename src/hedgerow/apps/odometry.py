# SPDX-License-Identifier: Apache-2.0
"""Odometry by scan matching: the motion from each sweep to the next, by ICP; J as in Tallavajhula 2018 §4.4.2.

Iterative closest points (Besl and McKay 1992; to planes: Chen and Medioni 1992), in plain NumPy and SciPy: thin both
sweeps to one point per voxel, find for each point of the later sweep the nearest of the earlier, leave out pairs that
are too far apart, move, and repeat until a step is small or there were enough. Normals are those of the ten nearest
points. A match with too few pairs is lost, and fails the run.

Sweeps come deskewed, as points in the frame of the sensor in the middle of the sweep (drive.py says which frame that is
where the log has none).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail
from hedgerow.apps.drive import DriveTruth
from hedgerow.apps.space import Setting, Space, choice, log_number, whole
from hedgerow.apps.trajectory_error import OBJECTIVES, trajectory_sums
from hedgerow.base import rotation
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log

FAR_M = 50.0
"""Points farther from the sensor are left out."""
FEWEST_PAIRS = 20
"""A match with fewer pairs of points is lost."""
_NEIGHBOURS = 10


class LostError(Exception):
    """A sweep could not be matched."""


@dataclass(frozen=True)
class Odometry:
    """Scan matching odometry."""

    needs_ground: ClassVar[bool] = False
    name: str = "odometry"
    space: Space = field(
        default_factory=lambda: Space.of(
            voxel_m=log_number(0.3, 4.0, 0.7, "side of the voxels that sweeps are thinned with"),
            distance_m=log_number(0.5, 10.0, 3.0, "pairs of points farther apart are left out"),
            iterations=whole(1, 40, 20, "most steps of a match"),
            step_m=log_number(0.0005, 0.5, 0.005, "a match ends with a step shorter than this"),
            pairs=choice("point", "plane", default="plane", meaning="what distances are measured to"),
            start=choice("rest", "last motion", default="last motion", meaning="what a match starts from"),
        )
    )
    objectives: Mapping[str, Objective] = field(default_factory=lambda: OBJECTIVES)

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Match each sweep with the one before; sums of relative and absolute errors."""
        if not isinstance(truth, DriveTruth):
            return fail("lost", "the scene has no poses")
        try:
            estimated = estimate(sweep_clouds(log, truth.poses), truth.poses.time_ns, parameters)
        except LostError as error:
            return fail("lost", str(error))
        return trajectory_sums(truth.poses, estimated)


def sweep_clouds(log: Log, poses: Trajectory) -> list[NDArray[np.float64]]:
    """Return the (M, 3) points of each sweep up to FAR_M, each in its own frame [m]."""
    clouds: list[NDArray[np.float64]] = []
    for row, (_, sweep) in enumerate(log.iter_sweeps()):
        pose = Pose(poses.position_m[row], poses.quaternion_xyzw[row])
        points_m = pose.inverse().transform(sweep.points())
        clouds.append(points_m[np.einsum("ij,ij->i", points_m, points_m) <= FAR_M**2])
    return clouds


def estimate(clouds: list[NDArray[np.float64]], time_ns: NDArray[np.int64], parameters: Setting) -> Trajectory:
    """Return the trajectory that matching gives, from the identity on.

    Raises:
        LostError: a sweep could not be matched.
    """
    thin = [thin_points(cloud, float(parameters["voxel_m"])) for cloud in clouds]
    poses = [np.eye(4)]
    motion = np.eye(4)
    for earlier, later in pairwise(thin):
        start = motion if parameters["start"] == "last motion" else np.eye(4)
        motion = match(
            earlier,
            later,
            start,
            distance_m=float(parameters["distance_m"]),
            iterations=int(parameters["iterations"]),
            step_m=float(parameters["step_m"]),
            to_planes=parameters["pairs"] == "plane",
        )
        poses.append(poses[-1] @ motion)
    matrices = np.array(poses)
    return Trajectory(time_ns, matrices[:, :3, 3], rotation.from_matrix(matrices[:, :3, :3]))


def thin_points(points_m: NDArray[np.float64], voxel_m: float) -> NDArray[np.float64]:
    """Return the mean point of each voxel."""
    if len(points_m) == 0:
        return points_m
    index = np.floor(points_m / voxel_m).astype(np.int64)
    index -= index.min(axis=0)
    shape = index.max(axis=0) + 1
    key = (index[:, 0] * shape[1] + index[:, 1]) * shape[2] + index[:, 2]
    _, voxel, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.stack([np.bincount(voxel, axis) for axis in points_m.T], axis=1) / count[:, None]


def match(
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    start: NDArray[np.float64],
    *,
    distance_m: float,
    iterations: int,
    step_m: float,
    to_planes: bool,
) -> NDArray[np.float64]:
    """Return the (4, 4) transform of the later points to the earlier; arguments as the program's parameters.

    Raises:
        LostError: too few pairs of points, or they do not determine a motion.
    """
    from scipy.spatial import cKDTree

    if min(len(earlier), len(later)) < max(FEWEST_PAIRS, _NEIGHBOURS):
        raise LostError(f"{min(len(earlier), len(later))} points left of a sweep")
    tree = cKDTree(earlier)
    normals = find_normals(earlier, tree) if to_planes else None
    transform = start.copy()
    for _ in range(iterations):
        moved = later @ transform[:3, :3].T + transform[:3, 3]
        away_m, near = (np.asarray(each) for each in tree.query(moved, distance_upper_bound=distance_m))
        paired = np.isfinite(away_m)
        if paired.sum() < FEWEST_PAIRS:
            raise LostError(f"{int(paired.sum())} pairs of points")
        nearest = near[paired]
        step = _step(moved[paired], earlier[nearest], None if normals is None else normals[nearest])
        transform = step @ transform
        if np.linalg.norm(step[:3, 3]) < step_m and _angle_rad(step) * FAR_M / 5 < step_m:
            break
    return transform


def find_normals(points_m: NDArray[np.float64], tree: Any) -> NDArray[np.float64]:
    """Return the (N, 3) normals of points, each from its nearest neighbours."""
    _, near = tree.query(points_m, k=_NEIGHBOURS)
    apart = points_m[near] - points_m[near].mean(axis=1, keepdims=True)
    _, vectors = np.linalg.eigh(np.einsum("nki,nkj->nij", apart, apart))
    return vectors[:, :, 0]


def _step(
    moved: NDArray[np.float64], target: NDArray[np.float64], normal: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the (4, 4) motion that brings points nearest to their targets, or to planes through them."""
    step = np.eye(4)
    if normal is None:
        middle, aim = moved.mean(axis=0), target.mean(axis=0)
        left, _, right = np.linalg.svd((target - aim).T @ (moved - middle))
        turn = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0]) @ right
        step[:3, :3], step[:3, 3] = turn, aim - turn @ middle
        return step
    rows = np.concatenate([np.cross(moved, normal), normal], axis=1)
    off_m = np.einsum("ij,ij->i", target - moved, normal)
    try:
        found = np.asarray(np.linalg.solve(rows.T @ rows, rows.T @ off_m), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise LostError("the surfaces in view do not determine the motion") from None
    angle_rad = float(np.linalg.norm(found[:3]))
    axis = found[:3] / angle_rad if angle_rad > 0 else np.array([0.0, 0.0, 1.0])
    quaternion = np.append(np.sin(angle_rad / 2) * axis, np.cos(angle_rad / 2))
    step[:3, :3], step[:3, 3] = rotation.to_matrix(quaternion), found[3:]
    return step


def _angle_rad(step: NDArray[np.float64]) -> float:
    return float(np.arccos(np.clip((np.trace(step[:3, :3]) - 1) / 2, -1, 1)))
