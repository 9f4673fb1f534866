# SPDX-License-Identifier: Apache-2.0
"""Errors of the reported pose: their size, their memory, and what they do to a log."""

from typing import cast

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.base import rotation
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.scenes import mesh
from hedgerow.sensor.pose_errors import PoseErrors, gauss_markov
from hedgerow.world import Scene, SceneWorld

SENSOR = hr.Sensor.named("vlp-16")
LINE = Trajectory.line((0, 0, 2), (20, 5, 2), 5.0)
MOUNT = Pose.from_xyz_rpy((0.5, -0.2, 1.0), (0.1, -0.2, 0.3))
ALL = PoseErrors(
    position_sigma_m=0.02,
    heading_sigma_deg=0.1,
    tilt_sigma_deg=0.02,
    mount_offset_m=(0.01, -0.02, 0.03),
    mount_rpy_deg=(0.2, 0.1, -0.3),
    seed=5,
)


def ground_world() -> SceneWorld:
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((-50, -50, 0), (100, 0, 0), (0, 100, 0)))
    return SceneWorld(scene)


def test_the_process_has_deviation_1_and_forgets_within_its_correlation_time():
    time_ns = np.arange(0, 200_000, dtype=np.int64) * 100_000_000  # every 0.1 s, of which 20,000 s
    value = gauss_markov(3, 1000, time_ns, 2.0)
    # 20,000 s of memory 2 s are about 10,000 independent values: the deviation is right to 0.7 %, correlations to 1 %.
    # Five standard errors each: a false alarm in a million runs.
    assert value.std() == pytest.approx(1, abs=0.035)
    assert value.mean() == pytest.approx(0, abs=0.07)
    for lag_s in (1.0, 2.0, 4.0):
        lag = round(lag_s / 0.1)
        found = np.mean(value[:-lag] * value[lag:])
        assert found == pytest.approx(np.exp(-lag_s / 2), abs=0.05)


def test_a_part_of_the_time_has_the_errors_of_the_whole():
    time_ns = np.arange(-50, 400, dtype=np.int64) * 73_000_000 + 1_700_000_000_000_000_000
    whole = gauss_markov(1, 1002, time_ns, 0.5)
    assert np.array_equal(whole[123:200], gauss_markov(1, 1002, time_ns[123:200], 0.5))
    assert not np.array_equal(whole, gauss_markov(2, 1002, time_ns, 0.5))


def test_sigmas_are_recovered_from_a_long_drive():
    still = Trajectory.standing(Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0.7)), 20_000.0)
    values = {"position_sigma_m": 0.02, "heading_sigma_deg": 0.1, "tilt_sigma_deg": 0.03}
    times = {f"{name}_correlation_s": 5.0 for name in ("position", "heading", "tilt")}
    seen = PoseErrors.parse({**values, **times, "seed": 2}, "pose errors").displace(still)
    # 4,000 independent values: 1.1 % of the deviation; five of these
    assert seen.position_m.std(axis=0) == pytest.approx([0.02] * 3, rel=0.06)
    turn = rotation.to_matrix(seen.quaternion_xyzw)
    heading = np.arctan2(turn[:, 1, 0], turn[:, 0, 0]) - 0.7
    pitch, roll = -np.arcsin(turn[:, 2, 0]), np.arctan2(turn[:, 2, 1], turn[:, 2, 2])
    assert np.rad2deg([heading.std(), pitch.std(), roll.std()]) == pytest.approx([0.1, 0.03, 0.03], rel=0.06)


def test_a_very_long_correlation_time_is_a_constant():
    seen = PoseErrors(position_sigma_m=0.5, position_correlation_s=1e9, seed=1).displace(LINE)
    shift = seen.position_m - LINE.position_m
    assert np.abs(shift).min() > 1e-3
    assert np.abs(shift - shift[0]).max() < 1e-6


def test_no_errors_give_the_same_bytes():
    world = ground_world()
    plain = hr.simulate(world, SENSOR, LINE, seed=4, sweeps=2).sweep(1)
    assert PoseErrors(seed=9).is_ideal
    assert hr.simulate(world, SENSOR, LINE, seed=4, sweeps=2, pose_errors=PoseErrors(seed=9)).sweep(1).equal(plain)


def test_ranges_are_those_of_the_true_pose_and_points_move_by_the_known_error():
    world = ground_world()
    true = hr.simulate(world, SENSOR, LINE, seed=4, sweeps=3, mount=MOUNT)
    wrong = hr.simulate(world, SENSOR, LINE, seed=4, sweeps=3, mount=MOUNT, pose_errors=ALL)
    exact, log = true.sweep(1), wrong.sweep(1)
    assert np.array_equal(exact.returns.range_m, log.returns.range_m) and exact.returns.hit.any()
    # T_reported T_true^-1 takes true points to reported ones, pulse by pulse.
    hit = exact.returns.hit
    position, turn = (LINE @ MOUNT).at(exact.beams.time_ns[hit])
    seen_position, seen_turn = (wrong.reported @ MOUNT).at(exact.beams.time_ns[hit])
    inner = rotation.rotate(rotation.conjugate(turn), exact.points() - position)
    moved = seen_position + rotation.rotate(seen_turn, inner)
    assert np.abs(moved - exact.points()).max() > 0.02
    assert np.abs(moved - log.points()).max() < 2e-5  # directions are float32: 6e-8 of 100 m, twice over
    assert log.metadata["pose_errors"]["position_sigma_m"] == 0.02 and "pose_errors" not in exact.metadata


def test_a_mount_error_alone_turns_the_cloud_about_the_sensor():
    errors = PoseErrors(mount_rpy_deg=(0, 0, 1.0), mount_offset_m=(0, 0, 0.1))
    sensor = LINE @ MOUNT
    seen = errors.displace(LINE, MOUNT) @ MOUNT
    expected = sensor @ Pose.from_xyz_rpy((0, 0, 0.1), (0, 0, np.deg2rad(1)))
    assert np.abs(seen.position_m - expected.position_m).max() < 1e-12
    assert np.abs(np.sum(seen.quaternion_xyzw * expected.quaternion_xyzw, axis=1)).min() > 1 - 1e-12


def test_a_sweep_alone_has_the_bytes_that_it_has_in_turn():
    world = ground_world()
    simulation = hr.simulate(world, SENSOR, LINE, seed=4, sweeps=4, pose_errors=ALL)
    third = list(simulation)[2]
    again = hr.simulate(world, SENSOR, LINE, seed=4, pose_errors=ALL)
    assert again.sweep(2).equal(third)
    other = hr.simulate(world, SENSOR, LINE, seed=4, pose_errors=ALL.model_copy(update={"seed": 6}))
    assert not np.array_equal(other.sweep(2).beams.origin_m, third.beams.origin_m)


def test_presets_and_files_are_opened_and_others_refused(tmp_path):
    assert PoseErrors.open("browning-2012").heading_sigma_deg == 0.1
    path = tmp_path / "errors.toml"
    path.write_text("position_sigma_m = 0.5\nmount_rpy_deg = [0, 0, 2]\n")
    assert PoseErrors.open(path) == PoseErrors(position_sigma_m=0.5, mount_rpy_deg=(0, 0, 2))
    path.write_text("position_sigma = 0.5\n")
    with pytest.raises(FileError, match="did you mean position_sigma_m"):
        PoseErrors.open(path)
    with pytest.raises(InputError, match="browning-2013 is no preset"):
        PoseErrors.open("browning-2013")
    with pytest.raises(InputError, match="tilt_sigma_deg: input should be less than or equal to 90"):
        PoseErrors.parse({"tilt_sigma_deg": 100}, "pose errors")
    with pytest.raises(InputError, match="too short for a drive"):
        PoseErrors(tilt_sigma_deg=1, tilt_correlation_s=0.01).displace(Trajectory.standing(Pose(), 1e6))
    with pytest.raises(InputError, match="pose_errors"):
        hr.simulate(ground_world(), SENSOR, LINE, pose_errors=cast("PoseErrors", 3))
