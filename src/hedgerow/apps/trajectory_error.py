# SPDX-License-Identifier: Apache-2.0
"""How far an estimated trajectory is from the true one: relative and absolute errors, as sums over a scene.

Relative (Tallavajhula 2018 §4.4.2): between each pose and the next, the true motion is compared with the estimated one.
The difference of two motions has a position error, the distance of the two positions, and an angle error, the angle of
the turn from one orientation to the other. J is the mean of either.

Absolute (Sturm et al. 2012): the estimate is first moved and turned as a whole so that its positions fit the true ones
best (Umeyama 1991, without scale). J is the root mean square of the distances that are left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, ratio, root_ratio
from hedgerow.base import rotation
from hedgerow.frames import Trajectory

LEAST_SHARE = 0.5
"""An estimate that has fewer of the true poses than this is lost."""
OBJECTIVES: dict[str, Objective] = {
    "relative_m": ratio("relative_m", "steps", "m", "mean position error from pose to pose"),
    "relative_rad": ratio("relative_rad", "steps", "rad", "mean angle error from pose to pose"),
    "absolute_m": root_ratio("absolute_m2", "poses", "m", "root mean square distance after the best rigid fit"),
}
"""Objectives of programs that estimate a trajectory."""


class Motion(NamedTuple):
    """Motions from pose to pose, in the frame of the earlier one."""

    position_m: NDArray[np.float64]
    """(K, 3)."""
    quaternion_xyzw: NDArray[np.float64]
    """(K, 4)."""


def motions(position_m: NDArray[np.float64], quaternion: NDArray[np.float64]) -> Motion:
    """Return the K motions between K + 1 poses."""
    back = rotation.conjugate(quaternion[:-1])
    return Motion(rotation.rotate(back, np.diff(position_m, axis=0)), rotation.multiply(back, quaternion[1:]))


def motion_errors(true: Motion, estimated: Motion) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (K,) position errors [m] and (K,) angle errors [rad] of motions."""
    off_m = np.linalg.norm(true.position_m - estimated.position_m, axis=1)
    _, half_rad = rotation.shortest_turn(true.quaternion_xyzw, estimated.quaternion_xyzw)
    return off_m, 2 * half_rad


def absolute_errors_m(true_m: NDArray[np.float64], estimated_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (K,) distances between (K, 3) positions after the best rigid fit of the estimated to the true ones."""
    true_mean_m, mean_m = true_m.mean(axis=0), estimated_m.mean(axis=0)
    left, _, right = np.linalg.svd((true_m - true_mean_m).T @ (estimated_m - mean_m))
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0])
    turn = left @ flip @ right
    return np.linalg.norm((estimated_m - mean_m) @ turn.T + true_mean_m - true_m, axis=1)


def trajectory_sums(true: Trajectory, estimated: Trajectory) -> Outcome:
    """Return the sums of an estimated trajectory; poses are matched by time, to the nearest within half a step.

    A step is the median time from one true pose to the next. Relative errors are taken between poses that follow each
    other in the true trajectory. Both may be in frames of their own.
    """
    if len(true) < 2:
        return fail("lost", "the scene has fewer than two poses, so that there is no motion to compare")
    row, match = _match(true, estimated)
    if len(row) < max(2, LEAST_SHARE * len(true)):
        return fail("lost", f"{len(row)} of {len(true)} poses have an estimate")
    here = motions(true.position_m[row], true.quaternion_xyzw[row])
    there = motions(estimated.position_m[match], estimated.quaternion_xyzw[match])
    off_m, off_rad = motion_errors(here, there)
    follows = np.diff(row) == 1
    absolute_m = absolute_errors_m(true.position_m[row], estimated.position_m[match])
    return Outcome(
        {
            "relative_m": float(off_m[follows].sum()),
            "relative_rad": float(off_rad[follows].sum()),
            "steps": float(follows.sum()),
            "absolute_m2": float((absolute_m**2).sum()),
            "poses": float(len(row)),
        }
    )


def _match(true: Trajectory, estimated: Trajectory) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows of the true poses that have an estimate, and those of the estimates."""
    after = np.clip(np.searchsorted(estimated.time_ns, true.time_ns), 1, max(len(estimated) - 1, 1))
    before_ns = np.abs(estimated.time_ns[after - 1] - true.time_ns)
    after_ns = np.abs(estimated.time_ns[np.minimum(after, len(estimated) - 1)] - true.time_ns)
    nearest = np.where(before_ns <= after_ns, after - 1, np.minimum(after, len(estimated) - 1))
    near = np.minimum(before_ns, after_ns) <= np.median(np.diff(true.time_ns)) / 2
    return np.flatnonzero(near), nearest[near]
