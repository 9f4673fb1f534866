# SPDX-License-Identifier: Apache-2.0
"""Scan matching with small_gicp: the motion from each sweep to the next, each pair on its own (Tallavajhula 2018
§4.4.2).

Both sweeps are thinned to one point per voxel and registered by small_gicp (Koide 2024): ICP to points or planes, GICP
(Segal et al. 2009), or its variant with a voxel map (Koide et al. 2021). Every pair starts from rest, so that one bad
match does not spoil the next. Position error and angle error are objectives of their own, as in Table 4.4.

The parameters of Tallavajhula 2018 are those of a wrapper around another library: most iterations, correspondence
distance, RANSAC iterations and threshold, least change of the pose, least change of the objective, voxel size.
small_gicp has neither RANSAC nor the least change of the objective, so it is called one iteration at a time, and the
change of its error is looked at between the calls. RANSAC stands around that: each try matches half of the points, at
most 4,000, and the pose that brings most of all points near the other sweep wins; the points that it brings near are
matched once more. The paper says no more about it than that it is an outer loop. small_gicp parts the least change of
the pose into translation and rotation.

small_gicp runs on one thread: on two its answers differ from run to run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, ratio
from hedgerow.apps.drive import DriveTruth
from hedgerow.apps.odometry import LostError, sweep_clouds
from hedgerow.apps.space import Setting, Space, choice, log_number, whole
from hedgerow.apps.trajectory_error import Motion, motion_errors, motions
from hedgerow.base import arrays, rotation
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.log import Log

KINDS = ("ICP", "PLANE_ICP", "GICP", "VGICP")
"""As small_gicp calls them."""
FEWEST_POINTS = 20
"""A sweep with fewer points after thinning cannot be matched; neither can one with fewer pairs of points."""
_NEIGHBOURS = 10  # of a point, for its normal and covariance; small_gicp's own number
_SAMPLE_SHARE, _SAMPLE_MOST = 0.5, 4000  # of the points, in a try of RANSAC; that many tell a motion
_THREADS = 1  # two give other answers from run to run
_STEP_RAD, _STEP_M = 0.0, 0.0  # of small_gicp itself: whether it has converged is for us to say

Points = NDArray[np.float64]


def _space() -> Space:
    return Space.of(
        iterations=whole(1, 50, 30, "most iterations of a match"),
        distance_m=log_number(0.5, 5.0, 2.0, "pairs of points farther apart are left out"),
        ransac_iterations=whole(0, 4, 0, "tries of RANSAC, each a match of some of the points; 0 is none"),
        ransac_m=log_number(0.05, 1.0, 0.3, "a point that a try brings nearer than this agrees with it"),
        step_m=log_number(1e-4, 0.3, 1e-3, "least translation of an iteration; smaller ends the match"),
        step_rad=log_number(1e-5, 0.03, 1e-3, "least rotation of an iteration; smaller ends the match"),
        change=log_number(1e-7, 0.1, 1e-6, "least share by which an iteration changes the error; less ends the match"),
        voxel_m=log_number(0.15, 3.0, 0.4, "side of the voxels that sweeps are thinned with"),
        kind=choice(*KINDS, default="GICP", meaning="kind of registration"),
        resolution_m=log_number(0.3, 3.0, 1.0, "side of the voxels of VGICP's map; the other kinds have none"),
    )


@dataclass(frozen=True)
class ScanMatching:
    """Scan matching of consecutive sweeps with small_gicp."""

    needs_ground: ClassVar[bool] = False
    name: str = "scan-matching"
    space: Space = field(default_factory=_space)
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {
            "position": ratio("position", "pairs", "m", "mean position error of the motion between two sweeps"),
            "angle": ratio("angle", "pairs", "rad", "mean angle error of the motion between two sweeps"),
        }
    )

    def __post_init__(self) -> None:
        """Refuse to begin without small_gicp: it would be missed in every run."""
        _package()

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Match each sweep with the one before; sums of the errors of the motions."""
        if not isinstance(truth, DriveTruth):
            return fail("lost", "the scene has no poses")
        if len(truth.poses) < 2:
            return fail("lost", "the scene has fewer than two sweeps, so that there is no pair to match")
        try:
            found = estimate(log, truth.poses, parameters)
        except LostError as error:
            return fail("lost", str(error))
        true = motions(truth.poses.position_m, truth.poses.quaternion_xyzw)
        off_m, off_rad = motion_errors(true, Motion(found[:, :3, 3], rotation.from_matrix(found[:, :3, :3])))
        return Outcome({"position": float(off_m.sum()), "angle": float(off_rad.sum()), "pairs": float(len(found))})


def estimate(log: Log, poses: Trajectory, parameters: Setting) -> Points:
    """Return the (K, 4, 4) motions between the K + 1 sweeps of a log, each in the frame of the earlier sweep.

    Args:
        log: the sweeps, deskewed, in the map.
        poses: T_map_sensor of each; they give the frames of the sweeps, and no match starts from them.
        parameters: a setting of the program.

    Raises:
        LostError: two sweeps could not be matched.
    """
    clouds = (Cloud.of(each, float(parameters["voxel_m"])) for each in sweep_clouds(log, poses))
    matches = (match(earlier, later, parameters, seed=row) for row, (earlier, later) in enumerate(pairwise(clouds)))
    return np.array([each.transform for each in matches])


@dataclass(frozen=True, eq=False)
class Cloud:
    """A thinned sweep, as small_gicp has it: with normals, covariances, and a tree to look up neighbours in."""

    points_m: Points
    """(N, 3)."""
    cloud: Any
    tree: Any

    @classmethod
    def of(cls, points_m: Points, voxel_m: float | None = None) -> "Cloud":
        """Thin (N, 3) points to one per voxel, or take them as they are.

        Raises:
            InputError: points of another shape, or not finite; small_gicp answers these with no motion at all.
            LostError: too few points are left.
        """
        points_m = arrays.require("points_m", points_m, np.float64, ("N", 3))
        arrays.require_finite("points_m", points_m)
        if len(points_m) < FEWEST_POINTS:
            raise LostError(f"{len(points_m)} points of a sweep")
        gicp = _package()
        cloud = gicp.PointCloud(points_m)
        if voxel_m is not None:
            cloud = gicp.voxelgrid_sampling(cloud, voxel_m, num_threads=_THREADS)
        if len(cloud) < FEWEST_POINTS:
            raise LostError(f"{len(cloud)} points left of a sweep")
        tree = gicp.KdTree(cloud, num_threads=_THREADS)
        gicp.estimate_normals_covariances(cloud, tree, _NEIGHBOURS, num_threads=_THREADS)
        return cls(np.ascontiguousarray(cloud.points()[:, :3]), cloud, tree)

    def nearest_m(self, points_m: Points) -> Points:
        """Return the (M,) distances of (M, 3) points to the nearest of this cloud [m]."""
        _, squared = self.tree.batch_nearest_neighbor_search(points_m, num_threads=_THREADS)
        return np.sqrt(np.asarray(squared, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Match:
    """How one sweep lies in the frame of another."""

    transform: Points
    """(4, 4) from the later sweep to the earlier."""
    iterations: int
    """How many it took."""
    error: float
    """small_gicp's error for each pair of points: m² for ICP and plane ICP, without unit for the others."""


def match(earlier: Cloud, later: Cloud, parameters: Setting, *, seed: int = 0) -> Match:
    """Find the motion between two sweeps, from rest.

    Args:
        earlier: the sweep that gives the frame.
        later: the sweep that is moved.
        parameters: a setting of the program.
        seed: of the samples of RANSAC.

    Raises:
        LostError: too few pairs of points, or they determine no motion.
    """
    target = _Target(earlier, parameters)
    start, moved = np.eye(4), later
    tries = int(parameters["ransac_iterations"])
    if tries:
        start, near = _most_agreed(target, later, tries, float(parameters["ransac_m"]), seed)
        moved = Cloud.of(later.points_m[near]) if near.sum() >= FEWEST_POINTS else later
    return target.match(moved, start)


class _Target:
    """The sweep that is matched to, prepared once for all matches to it."""

    def __init__(self, earlier: Cloud, parameters: Setting) -> None:
        gicp = _package()
        self.earlier = earlier
        self._align = gicp.align
        self._parameters = parameters
        kind = str(parameters["kind"])
        settings = {"max_correspondence_distance": float(parameters["distance_m"]), "num_threads": _THREADS}
        settings |= {"max_iterations": 1, "rotation_epsilon": _STEP_RAD, "translation_epsilon": _STEP_M}
        self._map: Any = None
        if kind == "VGICP":
            self._map = gicp.GaussianVoxelMap(float(parameters["resolution_m"]))
            self._map.insert(earlier.cloud)
        else:
            settings |= {"target_tree": earlier.tree, "registration_type": kind}
        self._settings: dict[str, Any] = settings

    def match(self, later: Cloud, start: Points) -> Match:
        """Iterate until a step is small, the error hardly changes, or there were enough."""
        allowed, most = self._parameters, int(self._parameters["iterations"])
        now = Match(start, 0, np.nan)  # NaN: nothing to compare the first error with
        while now.iterations < most:
            before, now = now, self._iterate(later, now)
            step = np.linalg.solve(before.transform, now.transform)
            turn_rad = float(np.arccos(np.clip((np.trace(step[:3, :3]) - 1) / 2, -1, 1)))
            is_small = np.linalg.norm(step[:3, 3]) < allowed["step_m"] and turn_rad < allowed["step_rad"]
            if is_small or abs(before.error - now.error) <= allowed["change"] * before.error:
                break
        return now

    def _iterate(self, later: Cloud, before: Match) -> Match:
        target = self.earlier.cloud if self._map is None else self._map
        found = self._align(target, later.cloud, init_T_target_source=before.transform, **self._settings)
        transform = np.asarray(found.T_target_source, dtype=np.float64)
        if found.num_inliers < FEWEST_POINTS or not np.isfinite(transform).all():
            raise LostError(f"{found.num_inliers} pairs of points")
        return Match(transform, before.iterations + 1, float(found.error) / int(found.num_inliers))


def _most_agreed(
    target: _Target, later: Cloud, tries: int, near_m: float, seed: int
) -> tuple[Points, NDArray[np.bool_]]:
    """Match samples of the points; return the pose that brings most of all points near, and which it does."""
    best, near = np.eye(4), target.earlier.nearest_m(later.points_m) < near_m
    size = min(max(FEWEST_POINTS, int(_SAMPLE_SHARE * len(later.points_m))), _SAMPLE_MOST)
    for each in range(tries):
        rows = np.sort(np.random.default_rng([seed, each]).permutation(len(later.points_m))[:size])
        try:
            pose = target.match(Cloud.of(later.points_m[rows]), np.eye(4)).transform
        except LostError:
            continue
        agrees = target.earlier.nearest_m(later.points_m @ pose[:3, :3].T + pose[:3, 3]) < near_m
        if agrees.sum() > near.sum():
            best, near = pose, agrees
    return best, near


def _package() -> Any:
    try:
        return import_module("small_gicp")
    except ModuleNotFoundError:
        raise InputError(
            "scan-matching",
            "needs the package small_gicp, which is not installed; install it with: pip install 'hedgerow[matching]'",
        ) from None
