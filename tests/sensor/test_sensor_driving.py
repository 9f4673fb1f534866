# SPDX-License-Identifier: Apache-2.0
"""Sweeps and drives: rolling shutter in closed form, rigid motion, and one result however the work is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from placing_reference import place_numpy

from hedgerow import _core
from hedgerow.base import rotation
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams
from hedgerow.sensor import Sensor

UNIT = st.floats(-1, 1)
ALL = Sensor.names()
SMALL = ["lms-291", "neato-xv-11", "vlp-16", "mid-360"]


def same_bytes(one: Beams, other: Beams) -> bool:
    pairs = zip(one.columns().values(), other.columns().values(), strict=True)
    arrays = ((np.asarray(a), np.asarray(b)) for a, b in pairs)
    return all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in arrays)


@st.composite
def poses(draw) -> Pose:
    return Pose.from_xyz_rpy([100 * draw(UNIT) for _ in range(3)], [3 * draw(UNIT) for _ in range(3)])


@st.composite
def trajectories(draw) -> Trajectory:
    """Between 2 and 5 poses over 0.5 s, starting anywhere in time."""
    n_poses = draw(st.integers(2, 5))
    start_ns = draw(st.integers(-(10**12), 2 * 10**18))
    times = start_ns + np.linspace(0, 500_000_000, n_poses).astype(np.int64)
    return Trajectory.from_poses(times, [draw(poses()) for _ in range(n_poses)])


@pytest.mark.parametrize("name", ALL)
def test_sweep_without_a_pose_is_the_pattern(name):
    sensor = Sensor.named(name)
    beams, pattern = sensor.sweep(), sensor.pattern
    n = sensor.pulses_per_sweep
    assert_allclose(beams.origin_m, pattern.origin_m[:n], atol=0)
    assert_allclose(beams.direction, pattern.direction[:n], atol=1e-7)  # one float32 rounding
    assert beams.time_ns.tolist() == pattern.time_ns[:n].tolist()
    assert beams.ring.tolist() == pattern.ring[:n].tolist()
    assert beams.pulse.tolist() == list(range(n))
    assert set(beams.sweep.tolist()) == {0}


@settings(max_examples=20)
@given(pose=poses())
def test_a_pose_moves_all_beams_rigidly(pose):
    sensor = Sensor.named("hdl-64e-s2")
    moved, still = sensor.sweep(pose), sensor.sweep()
    assert_allclose(moved.origin_m, pose.transform(still.origin_m), atol=1e-12 * 200)
    turned = rotation.rotate(pose.quaternion_xyzw, still.direction.astype(float))
    assert_allclose(moved.direction, turned, atol=2e-7)  # float32 directions on both sides
    assert_allclose(np.linalg.norm(moved.direction.astype(float), axis=1), 1, atol=2e-7)


@pytest.mark.parametrize("name", SMALL)
def test_drive_of_a_standing_trajectory_is_sweep_after_sweep(name):
    sensor = Sensor.named(name)
    pose = Pose.from_xyz_rpy([3, -2, 1], [0.1, 0.2, 2.0])
    beams = sensor.drive(Trajectory.standing(pose, 4 * sensor.sweep_s))
    assert beams.sweep[-1] == 3
    for number in range(4):
        alone = sensor.sweep(pose, number=number)
        part = beams.select(sweep=number)
        assert_allclose(part.origin_m, alone.origin_m, atol=1e-12)
        assert_allclose(part.direction, alone.direction, atol=1e-7)
        for column in ("time_ns", "ring", "sweep", "pulse"):
            assert getattr(part, column).tolist() == getattr(alone, column).tolist()


def test_straight_drive_shifts_each_pulse_by_speed_times_its_time():
    sensor = Sensor.named("hdl-64e-s2")
    beams = sensor.drive(Trajectory.line([0, 0, 2], [20, 0, 2], speed_mps=20), n_sweeps=2)
    pattern = sensor.pattern
    expected_x = np.tile(pattern.origin_m[:, 0], 2) + 20 * beams.time_s
    assert_allclose(beams.origin_m[:, 0], expected_x, atol=1e-9)
    assert_allclose(beams.origin_m[:, 2], 2 + np.tile(pattern.origin_m[:, 2], 2), atol=1e-9)
    # within a sweep of 0.1 s the sensor moves 2 m, less the last slot
    assert_allclose(np.ptp(beams.select(sweep=0).origin_m[:, 0]), 2, atol=0.06)


def test_turning_drive_turns_each_pulse_by_the_yaw_of_its_time():
    sensor = Sensor.named("vlp-16")
    rate_rad_s = 1.5
    turning = Trajectory.from_poses([0.0, 1.0], [Pose(), Pose.from_xyz_rpy([0, 0, 0], [0, 0, rate_rad_s])])
    beams = sensor.drive(turning, n_sweeps=3)
    yaw = rate_rad_s * beams.time_s
    x, y, z = np.tile(sensor.pattern.direction.astype(float), (3, 1)).T
    expected = np.stack([x * np.cos(yaw) - y * np.sin(yaw), x * np.sin(yaw) + y * np.cos(yaw), z], axis=1)
    assert_allclose(beams.direction, expected, atol=2e-7)


def test_mount_is_between_base_and_sensor():
    sensor = Sensor.named("lms-291")
    base = Trajectory.circle([5, 5, 0], radius_m=4, speed_mps=3, turns=0.2)
    mount = Pose.from_xyz_rpy([0.5, 0.1, 1.2], [0.0, 0.3, -0.4])
    beams = sensor.drive(base, mount=mount, n_sweeps=5)
    position_m, turn = base.at(beams.time_ns)
    local = np.tile(sensor.pattern.direction.astype(float), (5, 1))
    assert_allclose(
        beams.origin_m, position_m + rotation.rotate(turn, np.tile(mount.position_m, (len(turn), 1))), atol=1e-9
    )
    mounted = rotation.rotate(mount.quaternion_xyzw, local)
    assert_allclose(beams.direction, rotation.rotate(turn, mounted), atol=2e-7)


@settings(max_examples=15)
@given(trajectory=trajectories(), name=st.sampled_from(SMALL), start_s=st.floats(0, 0.05))
def test_drive_sweeps_joined_are_the_drive_byte_for_byte(trajectory, name, start_s):
    sensor = Sensor.named(name)
    whole = sensor.drive(trajectory, start_s=start_s)
    parts = list(sensor.drive_sweeps(trajectory, start_s=start_s))
    assert same_bytes(Beams.join(parts), whole)
    assert same_bytes(Beams.concatenate(parts), whole)


@pytest.mark.parametrize("options", [{"encoder": "uniform"}, {"cone": True}, {"encoder": "rounded", "cone": True}])
def test_random_aim_does_not_depend_on_how_the_drive_is_cut(options):
    sensor = Sensor.named("vlp-16")
    trajectory = Trajectory.line([0, 0, 0], [3, 0, 0], speed_mps=5)
    whole = sensor.drive(trajectory, seed=9, **options)
    parts = list(sensor.drive_sweeps(trajectory, seed=9, **options))
    assert same_bytes(Beams.join(parts), whole)
    assert not np.array_equal(whole.direction, sensor.drive(trajectory).direction)


def test_times_do_not_drift_over_a_long_drive():
    # 2.4e6 turns at 7.3 Hz: the start of turn k is the nearest nanosecond to k / 7.3 s
    sensor = Sensor.named("vlp-16", rate_hz=7.3)
    start_ns = 1_700_000_000_123_456_789
    day = Trajectory.from_poses(np.array([start_ns, start_ns + 400_000 * 10**9]), [Pose(), Pose()])
    sweep = next(iter(sensor.drive_sweeps(day, start_s=0.0, n_sweeps=1)))
    assert sweep.time_ns[0] == start_ns
    later = sensor.sweep(number=2_400_000)
    assert later.time_ns[0] == round(2_400_000 / 7.3 * 1e9)
    assert later.pulse[0] == 2_400_000 * sensor.pulses_per_sweep


def test_drive_fills_the_trajectory_with_whole_sweeps():
    sensor = Sensor.named("vlp-16")
    last_s = sensor.pattern.time_ns[-1] * 1e-9
    for sweeps, span_s in ((3, 0.2 + last_s), (2, 0.2 + last_s - 1e-6), (2, 0.2)):
        beams = sensor.drive(Trajectory.standing(Pose(), span_s))
        assert beams.sweep[-1] + 1 == sweeps


def test_start_and_duration_choose_the_sweeps():
    sensor = Sensor.named("vlp-16")
    beams = sensor.drive(Trajectory.standing(Pose(), 2.0), start_s=0.55, duration_s=0.35)
    assert beams.time_ns[0] == 550_000_000
    assert beams.sweep[-1] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start_s": -0.1}, r"start_s: -0.1 lies outside the trajectory, which lasts 1 s"),
        ({"start_s": float("nan")}, "start_s"),
        ({"start_s": 0.95}, r"trajectory: 0.05 s are left to fire in, but a sweep takes 0.1 s"),
        ({"duration_s": 0.0}, "duration_s: expected a finite number above 0"),
        ({"duration_s": 3.0}, r"duration_s: 3.0 s from 0.0 s on exceed the trajectory of 1 s"),
        ({"n_sweeps": 11}, r"n_sweeps: 11 asked for, but the trajectory of 1 s has room for 10"),
        ({"n_sweeps": 0}, "n_sweeps: 0 asked for"),
        ({"n_sweeps": 1, "duration_s": 0.5}, "n_sweeps: give either n_sweeps or duration_s"),
        ({"encoder": "fuzzy"}, "encoder: expected 'exact', 'rounded' or 'uniform', found 'fuzzy'"),
        ({"cone": True, "seed": -1}, "seed: expected a whole number"),
        ({"threads": -2}, "threads: expected 0 for all or a number above, found -2"),
    ],
)
def test_drive_refuses_and_names_the_argument(arguments, message):
    sensor, trajectory = Sensor.named("vlp-16"), Trajectory.standing(Pose(), 1.0)
    with pytest.raises(InputError, match=message):
        sensor.drive(trajectory, **arguments)
    with pytest.raises(InputError, match=message):
        sensor.drive_sweeps(trajectory, **arguments)


def test_a_drive_too_large_for_memory_is_refused_but_goes_by_sweeps():
    sensor, week = Sensor.named("hdl-64e-s2"), Trajectory.standing(Pose(), 7 * 86400.0)
    with pytest.raises(InputError, match=r"n_sweeps: .* pulses, more than .* use drive_sweeps"):
        sensor.drive(week)
    assert len(next(sensor.drive_sweeps(week))) == sensor.pulses_per_sweep


def test_sweep_refuses_a_negative_number():
    with pytest.raises(InputError, match="number"):
        Sensor.named("vlp-16").sweep(number=-1)


@settings(max_examples=20)
@given(trajectory=trajectories(), mount=poses(), first=st.integers(0, 2))
def test_native_placing_equals_the_numpy_reference(trajectory, mount, first):
    pattern = Sensor.named("vlp-16").pattern
    rows = slice(0, 2000)
    arguments = (
        np.ascontiguousarray(pattern.origin_m[rows]),
        np.ascontiguousarray(pattern.direction[rows]),
        np.ascontiguousarray(pattern.time_ns[rows]),
        2,
        1e9 / 7.3,
        trajectory.start_ns,
        trajectory.time_ns,
        trajectory.position_m,
        trajectory.quaternion_xyzw,
        mount.position_m,
        mount.quaternion_xyzw,
        first,
    )
    names = ("pattern_origin_m", "pattern_direction", "pattern_time_ns")
    knots = ("knot_time_ns", "knot_position_m", "knot_quaternion_xyzw")
    placed = _core.place_pattern(
        **dict(zip(names, arguments[:3], strict=True)),
        **dict(zip(knots, arguments[6:9], strict=True)),
        mount=_core.Mount(position_m=mount.position_m, quaternion_xyzw=mount.quaternion_xyzw),
        repeats=_core.Repeats(start_ns=trajectory.start_ns, period_ns=1e9 / 7.3, first=first, count=2),
        threads=2,
    )
    expected_m, expected, expected_ns = place_numpy(*arguments, 0)
    assert placed.time_ns.tolist() == expected_ns.tolist()
    assert_allclose(placed.origin_m, expected_m, atol=1e-9)
    assert_allclose(placed.direction, expected, atol=2e-7)
