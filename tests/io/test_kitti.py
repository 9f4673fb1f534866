# SPDX-License-Identifier: Apache-2.0
"""KITTI drives and sequences: geometry and times in closed form, round trips, and damage."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from kitti_maker import DRIVE, make_raw, make_sequence, points
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import FileError, HedgerowWarning, InputError
from hedgerow.io import open_log, open_sink, read_log, write_log

FIRST_NS = 1317042272_100000000  # 2011-09-26 13:04:32.1


def refused(match, path, sweeps=None, **options):
    with pytest.raises(FileError, match=match) as caught:
        read_log(path, sweeps, **options)
    assert "\n" not in str(caught.value)


def test_raw_points_are_placed_by_the_pose_of_their_own_instant(tmp_path):
    log = read_log(make_raw(tmp_path), 1, elevation_bias_deg=0, recover="no")
    cloud = points(1)
    assert len(log) == len(cloud)
    # Clockwise from the back: a share of the tenth of a second, and of the 7.3 cm driven in it.
    share = ((np.pi - np.arctan2(cloud[:, 1], cloud[:, 0])) % (2 * np.pi)) / (2 * np.pi)
    assert_allclose(log.beams.time_ns, FIRST_NS + 1e8 + share * 1e8, atol=30)  # float32 azimuths
    step_m = 6378137 * np.cos(np.deg2rad(49)) * np.deg2rad(1e-6)
    east_m = (share - 0.5 + 1) * step_m  # the packet comes half way through the sweep
    assert_allclose(log.beams.origin_m[:, 0] - log.beams.origin_m[0, 0], east_m - east_m[0], atol=1e-8)
    moved = log.points() - cloud[:, :3]
    assert_allclose(moved - log.beams.origin_m, 0, atol=1e-5)  # float32 ranges and directions at 28 m
    assert log.returns.intensity is not None
    assert_allclose(log.returns.intensity, cloud[:, 3])
    assert (log.sensor, log.max_range_m, log.metadata["motion"]) == ("hdl-64e-s2", 80.0, "raw")


def test_elevation_bias_turns_every_beam_up(tmp_path):
    drive = make_raw(tmp_path)
    plain, turned = (read_log(drive, 0, recover="no", elevation_bias_deg=each) for each in (0, None))
    elevation = [np.rad2deg(np.arcsin(log.beams.direction[:, 2].astype(float))) for log in (plain, turned)]
    assert_allclose(elevation[1] - elevation[0], 0.205, atol=1e-4)
    assert_allclose(turned.returns.range_m, plain.returns.range_m, rtol=1e-6)
    assert turned.metadata["elevation_bias_deg"] == 0.205


def test_deskewed_points_get_the_origin_of_their_own_instant(tmp_path):
    sequence = make_sequence(tmp_path, labels=True)
    log = read_log(sequence, 1, elevation_bias_deg=0, recover="no")
    cloud = points(1)
    # The cloud is in the frame of 0.1 s, at x = 1 m: its points stay where they are, their beams begin elsewhere.
    assert_allclose(log.points(), cloud[:, :3] + [1, 0, 0], atol=1e-5)
    share = (log.beams.time_ns - 50_000_000) / 1e8
    assert_allclose(log.beams.origin_m, np.column_stack([0.5 + share, 0 * share, 0 * share]), atol=1e-6)
    assert log.returns.label is not None
    assert log.returns.label.tolist() == list(range(30))  # without the instance
    assert log.metadata["motion"] == "compensated"
    raw = read_log(sequence, 1, elevation_bias_deg=0, recover="no", deskewed=False)
    assert raw.metadata["motion"] == "raw"
    assert_allclose(raw.points() - raw.beams.origin_m, cloud[:, :3], atol=1e-5)


def test_trajectory_option_replaces_the_poses(tmp_path):
    drive = make_raw(tmp_path)
    shutil.rmtree(drive / "oxts")
    poses = hr.Trajectory.from_poses([1317042272.0, 1317042273.0], [hr.Pose(), hr.Pose((10.0, 0, 0))])  # pyright: ignore[reportArgumentType]  # tuples are converted
    log = read_log(drive, 0, trajectory=poses, mount=[0, 0, 2, 0, 0, 0], recover="no")
    assert_allclose(log.beams.origin_m[:, 2], 2)
    assert_allclose(log.beams.origin_m[:, 0], (log.beams.time_ns - 1317042272_000000000) / 1e8, atol=1e-6)


OFFICIAL = {0: 0, 40: 40, 70: 70, 252: 252, 101: 70, 111: 49, 112: 72, 115: 99, 200: 0, 60000: 0}
"""SemanticKITTI's numbers (semantic-kitti.yaml) of some of its own, ours (grass, trail, rock, target) and nobody's."""


def labelled(log):
    """Return a log with the labels of OFFICIAL, and how many of them SemanticKITTI does not know at all."""
    hit = log.returns.hit
    label = np.where(hit, np.random.default_rng(5).choice(list(OFFICIAL), hit.shape), 0).astype(np.uint16)
    return log.with_returns(replace(log.returns, label=label)), int(np.isin(label, [200, 60000]).sum())


def test_written_sequence_is_plain_kitti(tmp_path, log_maker):
    log, n_unknown = labelled(log_maker(arrays=("intensity",)))
    with pytest.warns(HedgerowWarning, match=f"seq: {n_unknown} labels are 0 in the label files") as said:
        write_log(log, tmp_path / "seq", format="kitti")
    assert len(said) == 1
    for number in range(3):
        sweep = log.select(sweep=number)
        # An independent reader: numpy and the definition of the format.
        cloud = np.fromfile(tmp_path / f"seq/velodyne/{number:06d}.bin", "<f4").reshape(-1, 4)
        label = np.fromfile(tmp_path / f"seq/labels/{number:06d}.label", "<u4")
        pose = np.loadtxt(tmp_path / "seq/poses.txt")[number].reshape(3, 4)
        turn = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]])
        in_map = (turn.T @ pose[:, :3] @ turn @ cloud[:, :3].T).T + turn.T @ pose[:, 3]
        mine = np.column_stack([in_map, cloud[:, 3], label])
        hit = sweep.returns.hit
        official = [OFFICIAL[each] for each in sweep.returns.label[hit].tolist()]
        theirs = np.column_stack([sweep.points(), sweep.returns.intensity[hit], official])
        ours, read = (rows[np.argsort(rows[:, 3])] for rows in (theirs, mine))
        assert_allclose(read[:, :3], ours[:, :3], atol=0.02)  # float32 at 10 km between random origins: 1 mm
        assert np.array_equal(read[:, 3:], ours[:, 3:])
        stamp = float((tmp_path / "seq/times.txt").read_text().split()[number])
        assert sweep.beams.time_s.min() <= stamp <= sweep.beams.time_s.max()


def test_own_sequence_keeps_settings(tmp_path, log_maker):
    log, _ = labelled(log_maker(arrays=("intensity",)))
    with pytest.warns(HedgerowWarning, match="SemanticKITTI has no such number"):
        write_log(log, tmp_path / "seq", format="kitti")
    again = open_log(tmp_path / "seq")
    assert (again.sensor, again.min_range_m, again.max_range_m) == ("test", 0.5, 60)
    assert_allclose(again.map_origin_m, log.map_origin_m)
    assert again.metadata["note"] == "größer"
    assert again.arrays == ["intensity", "label"]


def test_folder_of_another_is_never_replaced(tmp_path, log_maker):
    sequence = make_sequence(tmp_path)
    with pytest.raises(FileError, match="Hedgerow did not write it"):
        write_log(log_maker(), sequence, format="kitti")
    assert len(list((sequence / "velodyne").iterdir())) == 3
    write_log(log_maker(), tmp_path / "own", format="kitti")
    write_log(log_maker(n_sweeps=2), tmp_path / "own", format="kitti")
    assert open_log(tmp_path / "own").sweeps.tolist() == [0, 1]


def test_sweeps_out_of_order_leave_nothing_behind(tmp_path, log_maker):
    log = log_maker()
    sink = open_sink(tmp_path / "seq", format="kitti")
    with pytest.raises(InputError, match="not later than the one before"), sink:
        sink.append(log.select(sweep=2))
        sink.append(log.select(sweep=1))
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_number_are_refused(tmp_path):
    sequence = make_sequence(tmp_path)
    shutil.copy(sequence / "velodyne" / "000001.bin", sequence / "velodyne" / "1.bin")
    refused(r"1\.bin: is sweep 1 as 0*1\.bin is; remove one of the two", sequence)


def test_half_a_point(tmp_path):
    drive = make_raw(tmp_path)
    file = drive / "velodyne_points" / "data" / "0000000001.bin"
    file.write_bytes(file.read_bytes()[:-7])
    refused("0000000001.bin: has 473 bytes, not a multiple of 16", drive)
    assert len(read_log(drive, 0)) == 30  # other sweeps can be read


def test_empty_cloud_file(tmp_path):
    drive = make_raw(tmp_path)
    (drive / "velodyne_points" / "data" / "0000000001.bin").write_bytes(b"")
    refused("0000000001.bin: the file is empty", drive)


def test_points_that_are_not_finite_are_left_out(tmp_path):
    drive = make_raw(tmp_path)
    cloud = points(0)
    cloud[3, 0], cloud[4, 2], cloud[5, :3] = np.nan, np.inf, 0
    cloud.tofile(drive / "velodyne_points" / "data" / "0000000000.bin")
    assert len(read_log(drive, 0, recover="no")) == 27


def test_missing_calibration(tmp_path):
    drive, sequence = make_raw(tmp_path), make_sequence(tmp_path)
    (tmp_path / "calib_imu_to_velo.txt").unlink()
    refused("calib_imu_to_velo.txt: no such file; KITTI's calibration", drive)
    (sequence / "calib.txt").write_text("P0: 1 0 0 0 0 1 0 0 0 0 1 0\n")
    refused(r"calib.txt: there is no line 'Tr:' in it", sequence)
    (sequence / "calib.txt").write_text("Tr: 1 0 0 0 0 1 0 0 0 0 9 0\n")
    refused(r"calib.txt: 'Tr:' is no transform", sequence)
    (sequence / "calib.txt").write_text("Tr: one two\n")
    refused(r"calib.txt: 'Tr:' is no transform", sequence)


def test_poses_that_end_early(tmp_path):
    sequence = make_sequence(tmp_path, n_sweeps=6)
    (sequence / "poses.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 1 0 0 0 0 1 1\n")
    refused("sweep 2: the poses end 0.050 s before this sweep does; choose sweeps", sequence, recover="no")
    assert read_log(sequence, range(2)).sweeps.tolist() == [0, 1]
    drive = make_raw(tmp_path, n_sweeps=5)
    for number in (1, 2, 3, 4):
        (drive / "oxts" / "data" / f"{number:010d}.txt").unlink()
    refused("sweep 1: has no pose, they end 0.100 s before its middle; choose sweeps", drive, recover="no")
    refused(r"\(poses -0.100 to 0.200 s, sweep 0.150 to 0.250 s\)", sequence, recover="no")


def test_last_sweep_without_a_pose_is_refused_though_half_a_sweep_may_stick_out(tmp_path):
    drive = make_raw(tmp_path, n_sweeps=6)
    assert read_log(drive, recover="no").sweeps.tolist() == list(range(6))
    (drive / "oxts" / "data" / "0000000005.txt").unlink()
    refused("sweep 5: has no pose, they end 0.100 s before its middle; choose sweeps", drive, recover="no")
    assert read_log(drive, range(5), recover="no").sweeps.tolist() == list(range(5))
    (drive / "oxts" / "data" / "0000000000.txt").unlink()
    refused("sweep 0: has no pose, they begin 0.100 s after its middle", drive, recover="no")


def test_pose_missing_between_others_is_said(tmp_path):
    drive = make_raw(tmp_path, n_sweeps=6)
    (drive / "oxts" / "data" / "0000000003.txt").unlink()
    with pytest.warns(HedgerowWarning, match=r"no packet for sweep 3 \(1 such sweeps\); their poses are taken from"):
        assert len(read_log(drive, 3, recover="no")) == 30


def test_trajectory_that_ends_before_the_sweeps_is_refused_by_reader_and_writer(tmp_path, log_maker):
    sequence = make_sequence(tmp_path, n_sweeps=6)
    short = hr.Trajectory.from_poses([0.0, 0.4], [hr.Pose(), hr.Pose((4.0, 0, 0))])  # pyright: ignore[reportArgumentType]  # tuples are converted
    refused("sweep 5: the poses end 0.050 s before this sweep does", sequence, trajectory=short, recover="no")
    log = read_log(sequence, recover="no")
    with pytest.raises(InputError, match=r"trajectory: spans 0.000 to 0.400 s, but sweep 4 is at 0.\d+ s; give one"):
        write_log(log, tmp_path / "seq", format="kitti", trajectory=short)
    assert not (tmp_path / "seq").exists()


def test_stamps_that_do_not_rise(tmp_path):
    drive, sequence = make_raw(tmp_path), make_sequence(tmp_path)
    for name in ("oxts/timestamps.txt", "velodyne_points/timestamps_start.txt"):
        file = drive / name
        good = file.read_text()
        lines = good.splitlines()
        file.write_text("\n".join([lines[0], lines[0], lines[2]]))
        refused(r"line 2: the time is not later than that of line 1", drive)
        file.write_text("\n".join([lines[0], "yesterday", lines[2]]))
        refused("line 2: 'yesterday' is not a date and time", drive)
        file.write_text(lines[0])
        refused("has 1 lines but there is a (sweep|packet) 2", drive)
        file.write_text(good)
    (sequence / "times.txt").write_text("0\n0.1\n0.1\n")
    refused("times.txt, line 3: the time stamp is not later", sequence)
    (sequence / "times.txt").write_text("0\n0.1\n")
    refused("times.txt: has 2 times but there is a sweep 2", sequence)


def test_damaged_packet_and_labels(tmp_path):
    drive, sequence = make_raw(tmp_path), make_sequence(tmp_path, labels=True)
    file = drive / "oxts" / "data" / "0000000001.txt"
    file.write_text("49.0 8.4")
    refused("0000000001.txt, line 1: expected 30 numbers", drive)
    file.write_text(" ".join(["nan"] * 30))
    refused("holds NaN or infinity", drive)
    for place, said in (("90 8", "the latitude is 90 degrees"), ("49 1e308", r"the longitude is 1e\+308 degrees")):
        file.write_text(f"{place} {' '.join(['0'] * 28)}")
        refused(said, drive)
    (sequence / "labels" / "000001.label").write_bytes(b"123")
    refused("000001.label: has 3 bytes, expected 120", sequence)


def test_recovery_that_was_asked_for_and_is_not_possible(tmp_path):
    drive = make_raw(tmp_path)
    refused("missing returns cannot be recovered, only 0 of 64 lasers", drive, recover="yes")
    log = open_log(drive)
    assert log.metadata["recovery"]["summary"].startswith("not recovered, every beam has a return")


@pytest.mark.skipif(not DRIVE.is_dir(), reason="needs the recording in ../shared/data")
def test_real_drive_reads_with_misses_and_smooth_origins():
    log = read_log(DRIVE, range(62, 64))
    assert 0.04 < np.mean(~log.returns.hit) < 0.06
    assert np.unique(log.beams.ring).tolist() == list(range(64))
    # 3.9 m/s; the sensor moves between sweeps as it does within them.
    first, second = (log.select(sweep=number).beams for number in (62, 63))
    assert np.linalg.norm(second.origin_m[0] - first.origin_m[-1]) < 0.12  # lasers emit up to 10 cm apart
    assert np.linalg.norm(second.origin_m[0] - first.origin_m[0]) == pytest.approx(0.39, abs=0.06)
