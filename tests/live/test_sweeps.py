# SPDX-License-Identifier: Apache-2.0
"""Sweeps at any time, and their points in the sensor's frame."""

import numpy as np
import pytest

from hedgerow import Log, Pose, Returns, Sensor, Trajectory
from hedgerow.live.points import make_points


@pytest.mark.parametrize("name", ["vlp-16", "mid-360"])
def test_a_sweep_at_its_own_time_is_that_of_the_drive(name):
    sensor = Sensor.named(name)
    trajectory = Trajectory.line((0, 0, 2), (6, 1, 2), 5.0)
    number = 7
    [alone] = [b for k, b in enumerate(sensor.drive_sweeps(trajectory, n_sweeps=8)) if k == number]
    assert sensor.sweep_at(trajectory, number, trajectory.start_ns + sensor.pattern.start_ns(number)).equal(alone)


def test_a_sweep_at_another_time_keeps_its_pulse_ids(sensor):
    trajectory = Trajectory.line((0, 0, 2), (6, 1, 2), 5.0)
    beams = sensor.sweep_at(trajectory, 4, 250_000_000)
    first = next(iter(sensor.drive_sweeps(trajectory, start_s=0.25)))
    assert np.array_equal(beams.pulse, first.pulse + 4 * sensor.pulses_per_sweep)
    assert np.array_equal(beams.time_ns, first.time_ns) and np.array_equal(beams.origin_m, first.origin_m)


def test_the_last_sweep_that_can_be_counted_is_fired_like_the_first(sensor):
    trajectory = Trajectory.line((0, 0, 2), (6, 1, 2), 5.0)
    number = (1 << 31) - 1
    last, first = sensor.sweep_at(trajectory, number, 0), sensor.sweep_at(trajectory, 0, 0)
    assert np.array_equal(last.time_ns, first.time_ns) and np.array_equal(last.direction, first.direction)
    assert last.sweep[0] == number and last.pulse[0] == number * sensor.pulses_per_sweep


def test_points_put_back_along_the_trajectory_are_those_of_the_log(world, sensor):
    turn = Pose.from_xyz_rpy((2, 0.5, 1), (0.02, -0.01, 0.3))
    trajectory = Trajectory.from_poses([0.0, 0.11], [Pose.from_xyz_rpy((0, 0, 1)), turn])
    log = world.fire(sensor.sweep_at(trajectory, 0, 0), 5, sensor=sensor)
    all_points = make_points(sensor, log, 0)
    assert len(all_points) == log.returns.hit.sum() > 1000
    points = all_points[::50]
    pulse = np.nonzero(log.returns.hit)[0][::50]
    position_m, quaternion = trajectory.at(log.beams.time_ns[pulse])
    xyz = np.stack([points[name] for name in "xyz"], axis=1)
    back = np.array([Pose(p, q).transform(x) for p, q, x in zip(position_m, quaternion, xyz, strict=True)])
    assert np.abs(back - log.points()[::50]).max() < 1e-5  # float32 directions at 10 m: 1e-6
    assert np.array_equal(points["ring"], log.beams.ring[pulse])
    assert np.array_equal(points["intensity"], log.returns.intensity[pulse], equal_nan=True)
    assert np.abs(points["time"] - log.beams.time_ns[pulse] * 1e-9).max() < 1e-8  # float32 step at 0.1 s


def test_misses_are_points_at_nan_and_second_returns_points_of_their_own(sensor):
    beams = sensor.sweep()
    ranges = np.full((len(beams), 2), np.inf)
    ranges[:4] = [[5, 9], [7, np.inf], [np.inf, np.inf], [3, np.inf]]
    log = Log(beams, Returns.from_arrays(ranges=ranges))
    points = make_points(sensor, log, 0)
    assert len(points) == 4 and np.isfinite(points["x"]).all()
    assert np.isnan(points["intensity"]).all()  # not known
    points = make_points(sensor, log, 0, misses=True)
    distance = np.linalg.norm(np.stack([points[name] for name in "xyz"], axis=1), axis=1)
    assert len(points) == len(beams) + 1
    assert np.allclose(distance[:5], [5, 9, 7, np.nan, 3], atol=0.1, equal_nan=True)  # a VLP-16 counts from 4 cm off
    assert np.isnan(distance[5:]).all()
    assert np.array_equal(points["ring"], beams.ring[[0, *range(len(beams))]])
