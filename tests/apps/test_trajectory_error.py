# SPDX-License-Identifier: Apache-2.0
"""Errors of trajectories against closed forms."""

import numpy as np
import pytest

from hedgerow.apps.app import Outcome
from hedgerow.apps.trajectory_error import OBJECTIVES, trajectory_sums
from hedgerow.frames import Pose, Trajectory

TIMES = np.arange(11) * 0.1


def path(step: Pose, start: Pose | None = None) -> Trajectory:
    """Eleven poses, each the last moved by the same step."""
    poses = [start or Pose()]
    for _ in range(10):
        poses.append(poses[-1] @ step)
    return Trajectory.from_poses(TIMES, poses)


def errors(outcome: Outcome) -> dict[str, float]:
    assert not outcome.failed
    values = {name: np.array(each) for name, each in outcome.sums.items()}
    return {name: float(objective.reduce(values)) for name, objective in OBJECTIVES.items()}


def test_the_true_trajectory_in_another_frame_has_no_error():
    true = path(Pose.from_xyz_rpy([1, 0, 0], [0, 0, 0.1]))
    moved = path(Pose.from_xyz_rpy([1, 0, 0], [0, 0, 0.1]), Pose.from_xyz_rpy([5, -3, 2], [0.3, 0.2, 2]))
    assert errors(trajectory_sums(true, moved)) == pytest.approx(dict.fromkeys(OBJECTIVES, 0.0), abs=1e-9)


def test_steps_too_long_are_relative_errors_of_their_excess():
    # Straight, x from 0 to 10 true and 0 to 11 estimated: after the fit of the means the distances are 0.1 (i - 5).
    found = errors(trajectory_sums(path(Pose.from_xyz_rpy([1, 0, 0])), path(Pose.from_xyz_rpy([1.1, 0, 0]))))
    assert found["relative_m"] == pytest.approx(0.1)
    assert found["relative_rad"] == pytest.approx(0, abs=1e-12)
    assert found["absolute_m"] == pytest.approx(0.1 * np.sqrt(10))  # mean of (i - 5)^2, i = 0..10, is 10


def test_a_constant_turn_too_much_is_its_angle():
    found = errors(
        trajectory_sums(path(Pose.from_xyz_rpy([1, 0, 0])), path(Pose.from_xyz_rpy([1, 0, 0], [0, 0, 0.02])))
    )
    assert found["relative_rad"] == pytest.approx(0.02)
    assert found["relative_m"] == pytest.approx(0, abs=1e-12)


def test_the_angle_is_that_of_the_turn_about_any_axis():
    turn = [0.3, -0.2, 0.4]
    step = Pose.from_xyz_rpy([0, 0, 0], turn)
    angle_rad = 2 * np.arccos(abs(step.quaternion_xyzw[3]))
    assert errors(trajectory_sums(path(Pose()), path(step)))["relative_rad"] == pytest.approx(angle_rad)


def test_poses_are_matched_by_time():
    true = path(Pose.from_xyz_rpy([1, 0, 0], [0, 0, 0.1]))
    keep = np.array([0, 1, 2, 4, 5, 6, 7, 9, 10])
    shifted = Trajectory(true.time_ns[keep] + 30_000_000, true.position_m[keep], true.quaternion_xyzw[keep])
    outcome = trajectory_sums(true, shifted)
    assert outcome.sums["poses"] == 9
    assert outcome.sums["steps"] == 6  # steps over a gap do not count
    assert errors(outcome) == pytest.approx(dict.fromkeys(OBJECTIVES, 0.0), abs=1e-9)


def test_an_estimate_of_fewer_than_half_of_the_poses_is_lost():
    true = path(Pose.from_xyz_rpy([1, 0, 0]))
    assert trajectory_sums(true, Trajectory(true.time_ns[:5], true.position_m[:5], true.quaternion_xyzw[:5])).failed
    late = Trajectory(true.time_ns + 10**12, true.position_m, true.quaternion_xyzw)
    assert trajectory_sums(true, late).failure == "lost: 0 of 11 poses have an estimate"
    assert trajectory_sums(Trajectory(true.time_ns[:1], true.position_m[:1], true.quaternion_xyzw[:1]), true).failed
