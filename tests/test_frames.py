# SPDX-License-Identifier: Apache-2.0
"""Poses and trajectories against closed forms, SciPy as an oracle, and the group axioms.

Tolerances: float64 rotation arithmetic rounds at 2e-16 per operation; chains of a few dozen stay below 1e-14
relative, so 1e-12 leaves room and still sees any wrong formula.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.transform import Rotation, Slerp

from hedgerow.base import rotation
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory

SECOND = 1_000_000_000
metres = st.floats(-1e4, 1e4)
angles = st.floats(-np.pi, np.pi)
poses = st.builds(lambda x, y, z, r, p, w: Pose.from_xyz_rpy((x, y, z), (r, p, w)), *[metres] * 3, *[angles] * 3)


def random_quaternions(n: int, seed: int) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


# Pose


def test_yaw_of_90_degrees_turns_forward_to_left():
    pose = Pose.from_xyz_rpy((1, 2, 3), (0, 0, np.pi / 2))
    assert_allclose(pose.transform([1, 0, 0]), [1, 3, 3], atol=1e-15)


def test_positive_pitch_turns_forward_down_and_positive_roll_turns_left_up():
    assert_allclose(Pose.from_xyz_rpy((0, 0, 0), (0, np.pi / 2, 0)).transform([1, 0, 0]), [0, 0, -1], atol=1e-15)
    assert_allclose(Pose.from_xyz_rpy((0, 0, 0), (np.pi / 2, 0, 0)).transform([0, 1, 0]), [0, 0, 1], atol=1e-15)


@given(angles, angles, angles)
def test_roll_pitch_yaw_agree_with_scipy(roll, pitch, yaw):
    expected = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()
    assert_allclose(Pose.from_xyz_rpy((0, 0, 0), (roll, pitch, yaw)).matrix()[:3, :3], expected, atol=1e-12)


@given(poses)
def test_pose_times_its_inverse_is_the_identity(pose):
    # Positions to 1e4 m: rounding there is 2e-12 m per operation.
    assert_allclose((pose @ pose.inverse()).matrix(), np.eye(4), atol=1e-10)
    assert_allclose((pose.inverse() @ pose).matrix(), np.eye(4), atol=1e-10)


@given(poses, poses, poses)
def test_chaining_is_the_matrix_product_and_associative(a, b, c):
    assert_allclose((a @ b).matrix(), a.matrix() @ b.matrix(), atol=1e-10)
    assert_allclose(((a @ b) @ c).matrix(), (a @ (b @ c)).matrix(), atol=1e-10)


@given(poses)
def test_matrix_round_trip(pose):
    again = Pose.from_matrix(pose.matrix())
    assert_array_equal(again.position_m, pose.position_m)
    sign = np.sign(again.quaternion_xyzw @ pose.quaternion_xyzw)
    assert_allclose(again.quaternion_xyzw * sign, pose.quaternion_xyzw, atol=1e-12)


@given(poses, st.lists(st.tuples(metres, metres, metres), max_size=5))
def test_transform_is_the_matrix_on_homogeneous_points(pose, points):
    points = np.array(points).reshape(-1, 3)
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    assert_allclose(pose.transform(points), (homogeneous @ pose.matrix().T)[:, :3], atol=1e-10)


def test_half_turns_survive_the_matrix_round_trip():
    # Here w is 0 and the trace -1: the case that the naive formula divides by zero.
    for axis in np.eye(4)[:3]:
        assert_allclose(Pose.from_matrix(Pose(np.zeros(3), axis).matrix()).quaternion_xyzw, axis, atol=1e-15)


def test_quaternions_agree_with_scipy():
    q, v = random_quaternions(200, 1), np.random.default_rng(2).normal(size=(200, 3))
    p = random_quaternions(200, 3)
    assert_allclose(rotation.rotate(q, v), Rotation.from_quat(q).apply(v), atol=1e-13)
    assert_allclose(rotation.to_matrix(q), Rotation.from_quat(q).as_matrix(), atol=1e-13)
    product = (Rotation.from_quat(q) * Rotation.from_quat(p)).as_matrix()
    assert_allclose(rotation.to_matrix(rotation.multiply(q, p)), product, atol=1e-13)


def test_default_pose_is_the_identity():
    assert_array_equal(Pose().matrix(), np.eye(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pose(np.array([0, np.nan, 0])), "position_m: row 0 .*finite"),
        (lambda: Pose(np.zeros(2)), r"position_m: expected shape \(3,\)"),
        (lambda: Pose(np.zeros(3), np.array([0, 0, 0, 2.0])), "quaternion_xyzw: row 0 .*length 2; expected unit"),
        (lambda: Pose(np.zeros(3), np.zeros(4)), "quaternion_xyzw: row 0 .*length 0"),
        (lambda: Pose.from_matrix(np.eye(3)), r"matrix: expected shape \(3, 4\) or \(4, 4\)"),
        (lambda: Pose.from_matrix(np.diag([1, 1, -1, 1])), "matrix: row 0 holds no rotation"),
        (lambda: Pose.from_matrix(np.diag([2, 1, 1, 1])), "matrix: row 0 holds no rotation"),
        (lambda: Pose.from_matrix(np.diag([1, 1, 1, 2])), "matrix: the last row"),
        (lambda: Pose.from_matrix(np.full((4, 4), np.nan)[:3]), "matrix: row 0"),
        (lambda: Pose().transform([[1, 2]]), "points: expected shape"),
    ],
)
def test_bad_poses_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Trajectory


def test_positions_are_interpolated_linearly():
    trajectory = Trajectory(np.array([0, 10, 30]), [[0, 0, 0], [1, 2, 3], [1, 2, 13]], [[0, 0, 0, 1]] * 3)  # pyright: ignore[reportArgumentType]  # lists are converted
    position_m, _ = trajectory.at(np.array([0, 5, 10, 15, 30]))
    assert_allclose(position_m, [[0, 0, 0], [0.5, 1, 1.5], [1, 2, 3], [1, 2, 5.5], [1, 2, 13]], atol=1e-15)


@given(angles, st.floats(0, 1))
def test_turn_at_constant_rate_is_exact(yaw, fraction):
    start, end = Pose(), Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0.999 * yaw))
    time_ns = round(fraction * SECOND)
    pose = Trajectory.from_poses([0, SECOND], [start, end]).pose_at(time_ns)
    expected = Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0.999 * yaw * time_ns / SECOND))
    assert_allclose(pose.quaternion_xyzw, expected.quaternion_xyzw, atol=1e-14)


def test_interpolation_agrees_with_scipy():
    rng = np.random.default_rng(5)
    time_ns = np.cumsum(rng.integers(1, SECOND, 50))
    trajectory = Trajectory(time_ns, rng.normal(size=(50, 3)), random_quaternions(50, 6))
    wanted = rng.integers(time_ns[0], time_ns[-1], 1000)
    _, quaternion = trajectory.at(wanted)
    # Times relative to the start: SciPy takes float64 seconds.
    slerp = Slerp((time_ns - time_ns[0]) / 1e9, Rotation.from_quat(trajectory.quaternion_xyzw))
    expected = slerp((wanted - time_ns[0]) / 1e9).as_matrix()
    assert_allclose(rotation.to_matrix(quaternion), expected, atol=1e-9)


def test_antipodal_quaternions_are_the_same_rotation_and_the_short_way_is_taken():
    end = Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0.5)).quaternion_xyzw
    for sign in (1, -1):
        trajectory = Trajectory([0, 2], np.zeros((2, 3)), [[0, 0, 0, 1], sign * end])  # pyright: ignore[reportArgumentType]  # lists are converted
        assert_allclose(trajectory.pose_at(1).matrix(), Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0.25)).matrix(), atol=1e-15)


@pytest.mark.parametrize("turn_rad", [0, 1e-300, 1e-12, 1e-9, 1e-7, 3e-6, 1e-4])
def test_tiny_turns_are_interpolated_to_the_last_digits(turn_rad):
    q = [[0, 0, 0, 1], [0, 0, np.sin(turn_rad / 2), np.cos(turn_rad / 2)]]
    _, quaternion = Trajectory([0, 4], np.zeros((2, 3)), q).at(np.array([1]))  # pyright: ignore[reportArgumentType]  # lists are converted
    assert_allclose(quaternion[0, 2], np.sin(turn_rad / 8), rtol=1e-9)
    assert_allclose(np.linalg.norm(quaternion), 1, atol=1e-15)


@given(st.integers(2, 8), st.integers(0, 1000))
def test_the_poses_themselves_are_met_at_their_times(n, seed):
    rng = np.random.default_rng(seed)
    trajectory = Trajectory(np.arange(n) * 7, rng.normal(size=(n, 3)), random_quaternions(n, seed))
    position_m, quaternion = trajectory.at(trajectory.time_ns)
    assert_allclose(position_m, trajectory.position_m, atol=1e-14)
    assert_allclose(rotation.to_matrix(quaternion), rotation.to_matrix(trajectory.quaternion_xyzw), atol=1e-14)


@given(poses, st.integers(0, 1000))
def test_moving_the_map_moves_the_interpolated_poses(pose, seed):
    rng = np.random.default_rng(seed)
    trajectory = Trajectory(np.arange(4) * 100, rng.normal(size=(4, 3)), random_quaternions(4, seed))
    moved = Trajectory.from_poses(trajectory.time_ns, [pose @ trajectory.pose_at(t) for t in trajectory.time_ns])
    for time_ns in (30, 150, 299):
        assert_allclose(moved.pose_at(time_ns).matrix(), (pose @ trajectory.pose_at(time_ns)).matrix(), atol=1e-9)


def test_nanoseconds_of_unix_times_are_told_apart():
    start = 1_700_000_000 * SECOND
    trajectory = Trajectory([start, start + 4], [[0, 0, 0], [4, 0, 0]], [[0, 0, 0, 1]] * 2)  # pyright: ignore[reportArgumentType]  # lists are converted
    assert_array_equal(trajectory.at(start + np.arange(5))[0][:, 0], [0, 1, 2, 3, 4])


def test_float_times_are_seconds():
    trajectory = Trajectory.line((0, 0, 0), (10, 0, 0), 5)
    assert_allclose(trajectory.at([0.5, 2.0])[0][:, 0], [2.5, 10])


def test_mount_is_chained_on_the_inside():
    base = Trajectory.circle((5, 6, 0), 10, 2, turns=0.25, poses_per_turn=8)
    mount = Pose.from_xyz_rpy((1, 0, 2), (0, 0.1, 0))
    sensor = base @ mount
    for time_ns in base.time_ns:
        assert_allclose(sensor.pose_at(time_ns).matrix(), (base.pose_at(time_ns) @ mount).matrix(), atol=1e-12)


def test_times_outside_are_refused_naming_them():
    trajectory = Trajectory([10, 20], np.zeros((2, 3)), [[0, 0, 0, 1]] * 2)  # pyright: ignore[reportArgumentType]  # lists are converted
    with pytest.raises(InputError, match=r"time_ns: 2 of 3 times lie outside .* first is 9 ns; it spans 10 to 20 ns"):
        trajectory.at(np.array([15, 9, 21]))


def test_no_times_give_no_poses():
    position_m, quaternion = Trajectory.line((0, 0, 0), (1, 0, 0), 1).at(np.zeros(0, np.int64))
    assert position_m.shape == (0, 3)
    assert quaternion.shape == (0, 4)


def test_a_single_pose_holds_at_its_own_time_only():
    trajectory = Trajectory([5], [[1, 2, 3]], [[0, 0, 0, 1]])  # pyright: ignore[reportArgumentType]  # lists are converted
    assert_array_equal(trajectory.at(np.array([5, 5]))[0], [[1, 2, 3], [1, 2, 3]])
    with pytest.raises(InputError, match=r"outside"):
        trajectory.at(np.array([6]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_ns": [0, 10, 10]}, "time_ns: row 2 is 10, not later than the row before"),
        ({"time_ns": [0, -1, 10]}, "time_ns: row 1 is -1"),
        ({"time_ns": [0.0, np.nan, 1.0]}, "time_ns: row 1 is nan"),
        ({"time_ns": []}, "time_ns: the trajectory is empty"),
        ({"time_ns": [0, 1]}, r"position_m: expected shape \(2, 3\), found \(3, 3\)"),
        ({"position_m": [[0, 0, 0], [0, np.nan, 0], [0, 0, 0]]}, "position_m: row 1 .*finite"),
        ({"quaternion_xyzw": [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0.9]]}, "quaternion_xyzw: row 2 .*unit length"),
        ({"quaternion_xyzw": [[0, 0, 0, 1], [0, 0, np.inf, 1], [0, 0, 0, 1]]}, "quaternion_xyzw: row 1 .*finite"),
    ],
)
def test_bad_trajectories_are_refused_naming_the_row(change, message):
    good = {"time_ns": [0, 1, 2], "position_m": np.zeros((3, 3)), "quaternion_xyzw": [[0, 0, 0, 1]] * 3}
    with pytest.raises(InputError, match=message):
        Trajectory(**(good | change))


def test_rounded_quaternions_are_made_exact():
    rounded = np.asarray(random_quaternions(20, 8), np.float64).round(4)
    trajectory = Trajectory(np.arange(20), np.zeros((20, 3)), rounded)
    assert_allclose(np.linalg.norm(trajectory.quaternion_xyzw, axis=1), 1, atol=1e-15)


# Ready-made trajectories


def test_line_is_driven_at_its_speed_looking_ahead():
    trajectory = Trajectory.line((1, 1, 0), (1, 11, 0), 2.5)
    assert (trajectory.start_ns, trajectory.end_ns) == (0, 4 * SECOND)
    assert_allclose(trajectory.length_m, 10)
    assert_allclose(trajectory.pose_at(2 * SECOND).transform([1, 0, 0]), [1, 7, 0], atol=1e-14)


def test_circle_is_driven_counter_clockwise_along_its_tangent():
    trajectory = Trajectory.circle((2, 3, 1), 10, 5, turns=2)
    assert_allclose(trajectory.end_ns, 4 * np.pi * 10 / 5 * SECOND, atol=1)
    # The sagitta of 1 degree chords: r (1 - cos 0.5 deg) = 4e-4 m; length short by 5e-5.
    assert_allclose(trajectory.length_m, 4 * np.pi * 10, rtol=1e-4)
    quarter = trajectory.pose_at(round(np.pi / 2 * 10 / 5 * SECOND))
    assert_allclose(quarter.position_m, [2, 13, 1], atol=1e-6)
    assert_allclose(quarter.transform([1, 0, 0]), [1, 13, 1], atol=1e-6)


def test_standing_stays_exactly():
    pose = Pose.from_xyz_rpy((1.1, 2.2, 3.3), (0.1, 0.2, 0.3))
    position_m, quaternion = Trajectory.standing(pose, 10).at(np.linspace(0, 10, 101))
    assert_array_equal(position_m, np.tile(pose.position_m, (101, 1)))
    assert_allclose(quaternion, np.tile(pose.quaternion_xyzw, (101, 1)), atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trajectory.line((0, 0, 0), (1, 0, 0), 0), "speed_mps: expected a finite number above 0, found 0"),
        (lambda: Trajectory.line((0, 0, 0), (0, 0, 0), 1), "distance from start_m to end_m"),
        (lambda: Trajectory.circle((0, 0, 0), -1, 1), "radius_m"),
        (lambda: Trajectory.standing(Pose(), np.inf), "duration_s"),
    ],
)
def test_impossible_drives_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_pose_does_not_keep_the_array_that_its_numbers_came_from():
    origins = np.zeros((1000, 3))
    pose = Pose(origins[7])
    origins[7] = 5
    assert pose.position_m.tolist() == [0, 0, 0]
    assert pose.position_m.base is None or pose.position_m.base.nbytes < 100
