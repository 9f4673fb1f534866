# SPDX-License-Identifier: Apache-2.0
"""Bags of all kinds: clouds in the fields of several drivers, poses from TF, odometry, poses and files, packets."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from bag_maker import HESAI, KINDS, OUSTER, START_NS, VELODYNE, Maker, drive, points_at, rows_of
from packet_maker import HDL_64E, VLS_128, hdl_64e_calibration, hdl_64e_status, velodyne_drive, velodyne_pcap

import hedgerow as hr
from hedgerow.base import rotation
from hedgerow.errors import FileError

STANDING: dict[str, Any] = {"static": True}


def in_map(stamp_ns, xyz, time_s):
    """The drive of bag_maker.drive in closed form: odom is turned left by 90 degrees and 5 m along x of the map."""
    along = 10 * ((stamp_ns - START_NS) / 1e9 + time_s)
    in_odom = xyz + np.stack([along, 0 * along, 0 * along + 1.5], axis=1)
    return np.stack([-in_odom[:, 1] + 5, in_odom[:, 0], in_odom[:, 2]], axis=1)


def xyz_of(rows):
    return np.stack([rows[axis] for axis in "xyz"], axis=1).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_points_come_to_the_map_through_tf_each_at_its_instant(tmp_path, kind):
    source = hr.open_log(drive(kind).write(tmp_path))
    assert source.metadata["poses"] == "TF, velodyne in map"
    assert source.sweeps.tolist() == [0, 1, 2]
    for number, log in source.iter_sweeps():
        stamp = START_NS + number * 100_000_000
        rows = points_at(stamp, seed=number)
        expected = in_map(stamp, xyz_of(rows), rows["time"].astype(np.float64))
        np.testing.assert_allclose(log.points(), expected, atol=1e-5)  # float32 directions at 35 m
        np.testing.assert_array_equal(log.beams.ring, rows["ring"])
        np.testing.assert_array_equal(log.returns.intensity, rows["intensity"])
        assert np.abs(log.beams.time_ns - stamp - np.rint(rows["time"].astype(np.float64) * 1e9)).max() <= 1


def test_sweeps_can_be_read_alone_and_in_any_order(tmp_path):
    source = hr.open_log(drive("mcap", 5).write(tmp_path))
    every = dict(source.iter_sweeps())
    for number in (3, 1, 4, 0, 2):
        assert source.read(number).equal(every[number])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", [VELODYNE, OUSTER, HESAI], ids=["velodyne", "ouster", "hesai"])
def test_times_of_every_driver_are_understood(tmp_path, kind, fields):
    maker = Maker(kind)
    rows = rows_of(fields, 20)
    for axis in "xyz":
        rows[axis] = np.random.default_rng(1).uniform(1, 20, 20)
    rows["ring"] = np.arange(20)
    late_ns = np.arange(20) * 5_000_000 + 123_000
    names = rows.dtype.names or ()
    if "time" in names:
        rows["time"] = late_ns * 1e-9
    elif "t" in names:
        rows["t"] = late_ns
    else:
        rows["timestamp"] = (START_NS + late_ns) * 1e-9
    maker.cloud(rows, START_NS, pad=3)  # fields apart from each other
    log = hr.read_log(maker.write(tmp_path), **STANDING)
    # A float64 of Unix seconds has steps of 238 ns.
    np.testing.assert_allclose(log.beams.time_ns - START_NS, late_ns, atol=250 if fields is HESAI else 5)
    np.testing.assert_array_equal(log.beams.ring, np.arange(20))


def test_times_of_another_clock_begin_at_the_stamp(tmp_path):
    maker = Maker("mcap")
    rows = rows_of(HESAI, 10)
    rows["x"], rows["timestamp"] = 5, 1.5e9 + np.arange(10) * 0.01
    maker.cloud(rows, START_NS)
    log = hr.read_log(maker.write(tmp_path), **STANDING)
    np.testing.assert_allclose(log.beams.time_ns - START_NS, np.arange(10) * 10_000_000, atol=250)


def test_clouds_without_stamps_have_the_times_of_recording(tmp_path):
    maker = Maker("mcap")
    for k in range(3):
        maker.cloud(points_at(0, seed=k), 0, bag_ns=START_NS + k * 100_000_000)
    logs = dict(hr.open_log(maker.write(tmp_path), **STANDING).iter_sweeps())
    assert [int(log.beams.time_ns[0]) // 10**8 for log in logs.values()] == [START_NS // 10**8 + k for k in range(3)]


@pytest.mark.parametrize("kind", KINDS)
def test_odometry_and_a_static_mount_give_the_same_as_tf(tmp_path, kind):
    maker = drive(kind, tf=False)
    for k in range(-2, 9):
        maker.odometry(START_NS + k * 50_000_000, (10 * k * 0.05, 0, 0))
    maker.tf(START_NS - 10**9, "base_link", "velodyne", (0, 0, 1.5), static=True)
    source = hr.open_log(maker.write(tmp_path))
    assert source.metadata["poses"] == "/odom"
    assert "mount" not in source.metadata
    log = source.read(1)
    rows = points_at(0, seed=1)
    along = 10 * (0.1 + rows["time"].astype(np.float64))
    expected = xyz_of(rows) + np.stack([along, 0 * along, 0 * along + 1.5], axis=1)
    np.testing.assert_allclose(log.points(), expected, atol=1e-5)


def test_poses_without_tf_take_the_mount_that_is_said(tmp_path):
    maker = drive("mcap", tf=False)
    for k in range(-2, 9):
        maker.stamped_pose(START_NS + k * 50_000_000, (10 * k * 0.05, 0, 0))
    path = maker.write(tmp_path)
    assert "is taken to be what the poses describe" in hr.open_log(path).metadata["mount"]
    log = hr.read_log(path, 0, mount=[0, 0, 2, 0, 0, 0])
    np.testing.assert_allclose(log.beams.origin_m[:, 2], 2)


def test_a_trajectory_file_and_standing_still_come_before_the_bags_poses(tmp_path):
    path = drive("mcap").write(tmp_path)
    line = hr.Trajectory.from_poses([START_NS - 10**9, START_NS + 10**9], [hr.Pose([0, 0, 9])] * 2)  # pyright: ignore[reportArgumentType]  # lists are converted
    hr.write_trajectory(line, tmp_path / "poses.tum")
    assert hr.read_log(path, trajectory=tmp_path / "poses.tum").beams.origin_m[:, 2].tolist() == [9.0] * 150
    assert np.abs(hr.read_log(path, **STANDING).beams.origin_m).max() == 0


def test_a_chosen_map_frame_is_used_and_a_wrong_one_refused(tmp_path):
    path = drive("mcap").write(tmp_path)
    assert hr.open_log(path, map_frame="odom").metadata["poses"] == "TF, velodyne in odom"
    with pytest.raises(FileError, match="TF does not lead from 'velodyne' to 'earth'; it leads to velodyne, base_link"):
        hr.open_log(path, map_frame="earth")
    with pytest.raises(FileError, match="mount: TF says where 'velodyne' sits; leave it out"):
        hr.open_log(path, mount=[0] * 6)


def test_poses_far_out_get_a_map_origin(tmp_path):
    maker = drive("mcap", tf=False)
    for k in range(-2, 9):
        maker.odometry(START_NS + k * 50_000_000, (456_789 + 10 * k * 0.05, 5_432_100, 3), child="velodyne")
    source = hr.open_log(maker.write(tmp_path))
    np.testing.assert_array_equal(source.map_origin_m, [457_000, 5_432_000, 0])
    np.testing.assert_allclose(source.read(0).beams.origin_m[0], [-211, 100, 3], atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_velodyne_packets_on_a_topic_equal_the_same_in_a_capture(tmp_path, kind):
    packets = velodyne_drive(200)
    maker = Maker(kind)
    for first in range(0, 200, 60):
        maker.scan(packets[first : first + 60])
    path = maker.write(tmp_path)
    expected = hr.open_log(velodyne_pcap(tmp_path / "x.pcap", n_packets=200), **STANDING)
    source = hr.open_log(path, **STANDING)
    assert source.sensor == "vlp-16"
    assert source.sweeps.tolist() == expected.sweeps.tolist()
    for number in (2, 0):
        found, wanted = source.read(number), expected.read(number)
        assert found.beams.equal(wanted.beams)
        assert found.returns.equal(wanted.returns)


@pytest.mark.parametrize("name, model", [("vls-128", VLS_128), ("hdl-64e-s2", HDL_64E)])
def test_packets_of_many_lasers_on_a_topic_equal_the_same_in_a_capture(tmp_path, name, model):
    told: dict[str, Any] = {"status": hdl_64e_status()[0]} if model == HDL_64E else {}
    more = {"metadata": tmp_path / "unit.yaml"} if model == HDL_64E else {}
    hdl_64e_calibration(tmp_path / "unit.yaml")
    maker = Maker("mcap")
    maker.scan(velodyne_drive(100, model=model, **told))
    source = hr.open_log(maker.write(tmp_path), **STANDING, **more)
    expected = hr.read_log(velodyne_pcap(tmp_path / "x.pcap", n_packets=100, model=model, **told), **STANDING, **more)
    found = source.read()
    assert found.sensor == name
    assert found.beams.equal(expected.beams)
    assert found.returns.equal(expected.returns)


def test_two_points_of_one_ring_and_time_are_returns_of_one_pulse(tmp_path):
    rng = np.random.default_rng(2)
    rows = rows_of(VELODYNE, 60)
    unit = rng.normal(size=(40, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    pulse = np.concatenate([np.arange(40), np.arange(20)])
    range_m = np.concatenate([np.full(40, 10.0), rng.uniform(12, 20, 20)])
    for k, axis in enumerate("xyz"):
        rows[axis] = unit[pulse, k] * range_m
    rows["ring"], rows["time"] = pulse % 16, pulse * 1e-3
    maker = Maker("mcap")
    maker.cloud(rows[rng.permutation(60)], START_NS)
    log = hr.read_log(maker.write(tmp_path), **STANDING)
    assert log.returns.range_m.shape == (40, 2)
    np.testing.assert_allclose(log.returns.range_m[:20, 1], range_m[40:], rtol=1e-6)
    assert np.isinf(log.returns.range_m[20:, 1]).all()


def test_nan_points_are_left_out(tmp_path):
    rows = points_at(0)
    rows["x"][[3, 7]] = np.nan
    maker = Maker("bag")
    maker.cloud(rows, START_NS)
    source = hr.open_log(maker.write(tmp_path), **STANDING)
    assert len(source.read()) == 48
    assert source.n_left_out == 2  # pyright: ignore[reportAttributeAccessIssue]  # not every source counts them


@pytest.mark.parametrize("name", ["hdl-32e", "os1-64"])
def test_missing_returns_of_a_known_lidar_are_recovered_from_plain_clouds(tmp_path, name):
    path_in_map = hr.Trajectory.from_poses([0, 10**9], [hr.Pose(), hr.Pose.from_xyz_rpy([5, 0, 0], [0, 0, 0.3])])
    beams = hr.Sensor.named(name).drive(path_in_map).select(sweep=[1, 2])
    rng = np.random.default_rng(1)
    # One in ten: low beams that never return within a degree would be taken for ones that the vehicle hides.
    range_m = np.where(rng.random(len(beams)) < 0.1, np.inf, rng.uniform(3, 60, len(beams)))
    position, turn = path_in_map.at(beams.time_ns)
    maker = Maker("mcap")
    for sweep in (1, 2):
        chosen = (beams.sweep == sweep) & np.isfinite(range_m)
        points = beams.origin_m[chosen] + beams.direction[chosen] * range_m[chosen, None]
        points = rotation.rotate(rotation.conjugate(turn[chosen]), points - position[chosen])
        rows = rows_of(VELODYNE, len(points))
        for k, axis in enumerate("xyz"):
            rows[axis] = points[:, k]
        start = int(beams.time_ns[beams.sweep == sweep].min())
        rows["ring"], rows["time"] = beams.ring[chosen], (beams.time_ns[chosen] - start) * 1e-9
        maker.cloud(rows, start)
    path = maker.write(tmp_path)
    source = hr.open_log(path, trajectory=path_in_map, sensor=name)
    assert source.metadata["recovery"]["summary"].startswith("recovered; 100.00% of the points")
    log = source.read(1)
    expected = range_m[beams.sweep == 2]
    assert len(log) == len(expected)
    assert np.isinf(log.returns.range_m).sum() == np.isinf(expected).sum()
    # Without the name of the lidar nothing is made up.
    assert np.isfinite(hr.read_log(path, trajectory=path_in_map).returns.range_m).all()


def test_returns_of_the_vehicle_are_left_out_with_their_beams(tmp_path):
    rows = points_at(0)
    for axis in "xyz":
        rows[axis][:10] = 0.2
    maker = Maker("mcap")
    maker.cloud(rows, START_NS)
    path = maker.write(tmp_path)
    assert len(hr.read_log(path, **STANDING, min_range_m=0.9)) == 40
    assert len(hr.read_log(path, **STANDING)) == 50


def test_convert_on_the_command_line(tmp_path):
    maker = drive("bag", tf=False)
    maker.cloud(points_at(0), START_NS, topic="/rear")
    path = maker.write(tmp_path)
    command = [
        sys.executable,
        "-c",
        "from hedgerow.cli import main; main()",
        "convert",
        str(path),
        str(tmp_path / "out.mcap"),
    ]
    done = subprocess.run([*command, "--topic", "/velodyne_points", "--static"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "3 sweeps, 150 beams, 150 returns" in " ".join(done.stdout.split())
    assert len(hr.read_log(tmp_path / "out.mcap")) == 150
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "several topics of clouds; choose topic= /rear, /velodyne_points" in " ".join(done.stderr.split())
