# SPDX-License-Identifier: Apache-2.0
"""Bags that Hedgerow writes, read by others: the mcap package with its own decoder of ROS 2, a parser of ROS 1 bags."""

import json
from typing import Any

import numpy as np
import pytest
from bag_parser import read_by_others

import hedgerow as hr
from hedgerow.base import rotation
from hedgerow.errors import FileError, HedgerowError, InputError
from hedgerow.io import open_sink
from hedgerow.io.convert import convert

DRIVE = hr.Trajectory.from_poses(
    [1_000_000_000, 1_120_000_000, 1_400_000_000],
    [hr.Pose.from_xyz_rpy([0, 0, 1]), hr.Pose.from_xyz_rpy([1, 0, 1], [0, 0, 0.3]), hr.Pose.from_xyz_rpy([2, 1, 1])],
)
NAMES = ["x", "y", "z", "intensity", "ring", "time"]


def sample(n_returns=1, label=False):
    """Two sweeps of a turning sensor that drives, 30 % missing."""
    rng = np.random.default_rng(4)
    n = 400
    time_ns = 1_000_000_000 + np.arange(n) * 900_000
    position, turn = DRIVE.at(time_ns)
    angle = np.arange(n, dtype=np.float64) * 0.1
    unit = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    ranges = np.sort(rng.uniform(1, 40, (n, n_returns)).astype(np.float32), axis=1)
    ranges[rng.random(n) < 0.3] = np.inf
    if n_returns > 1:
        ranges[::3, 1:] = np.inf
    ranges = ranges[:, 0] if n_returns == 1 else ranges
    hit = np.isfinite(ranges)
    labels = np.where(hit, rng.integers(1, 40, ranges.shape), 0).astype(np.uint16) if label else None
    intensity = np.where(hit, rng.integers(0, 256, ranges.shape), np.nan).astype(np.float32)
    beams = hr.Beams.from_arrays(
        origins=position,
        directions=rotation.rotate(turn, unit),
        times=time_ns,
        rings=np.arange(n) % 16,
        sweeps=np.arange(n) // 200,
    )
    returns = hr.Returns(ranges, intensity, labels)
    return hr.Log(beams, returns, "vlp-16", 0.5, 60.0, np.array([400_000.0, 5_000_000.0, 0.0]), {"seed": 7})


@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_others_read_the_clouds_and_the_frames(tmp_path, suffix):
    log, path = sample(), tmp_path / f"x{suffix}"
    hr.write_log(log, path, trajectory=DRIVE)
    found = read_by_others(path)
    clouds = [content for topic, _, content in found if topic == "/points"]
    misses = [content for topic, _, content in found if topic == "/points/no_return"]
    moves = [each for topic, _, content in found if topic == "/tf" for each in content]
    still = [each for topic, _, content in found if topic == "/tf_static" for each in content]
    assert [(each[1], each[2]) for each in still] == [("base_link", "lidar")]
    assert {(each[1], each[2]) for each in moves} == {("map", "base_link")}
    time_ns, position_m, quaternion = (np.array([each[k] for each in moves]) for k in (0, 3, 4))
    path_in_map = hr.Trajectory(time_ns, position_m, quaternion)
    for (_, sweep), cloud, missed in zip(log.iter_sweeps(), clouds, misses, strict=True):
        stamp, frame, rows, is_dense = cloud
        assert (stamp, frame, is_dense) == (sweep.beams.time_ns[0], "lidar", True)
        assert list(rows.dtype.names) == NAMES
        hit = sweep.returns.hit
        assert sweep.returns.intensity is not None
        np.testing.assert_array_equal(rows["intensity"], sweep.returns.intensity[hit])
        np.testing.assert_array_equal(rows["ring"], sweep.beams.ring[hit])
        time_ns = stamp + np.rint(rows["time"].astype(np.float64) * 1e9).astype(np.int64)
        assert np.abs(time_ns - sweep.beams.time_ns[hit]).max() <= 8  # float32 of 0.2 s
        # Each point at its own instant, through what /tf says, is where it was.
        position, turn = path_in_map.at(np.clip(time_ns, path_in_map.start_ns, path_in_map.end_ns))
        xyz = np.stack([rows[axis] for axis in "xyz"], axis=1).astype(np.float64)
        np.testing.assert_allclose(position + rotation.rotate(turn, xyz), sweep.points(), atol=1e-5)
        assert len(missed[2]) == np.count_nonzero(~hit)
        length = np.sqrt(sum(missed[2][axis].astype(np.float64) ** 2 for axis in "xyz"))
        np.testing.assert_allclose(length, 1, atol=1e-6)
    about = json.loads(next(content for topic, _, content in found if topic == "/hedgerow/log"))
    assert about["sensor"] == "vlp-16"
    log_times = [time_ns for _, time_ns, _ in found]
    assert log_times == sorted(log_times)


@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
@pytest.mark.parametrize("n_returns, label", [(1, False), (2, True)])
@pytest.mark.parametrize("trajectory", [DRIVE, None])
def test_a_log_comes_back_whole(tmp_path, suffix, n_returns, label, trajectory):
    log = sample(n_returns, label)
    hr.write_log(log, tmp_path / f"x{suffix}", trajectory=trajectory)
    source = hr.open_log(tmp_path / f"x{suffix}")
    assert (source.sensor, source.min_range_m, source.max_range_m) == ("vlp-16", 0.5, 60.0)
    np.testing.assert_array_equal(source.map_origin_m, log.map_origin_m)
    assert source.metadata["seed"] == 7
    back = source.read()
    assert len(back) == len(log)
    assert np.abs(back.beams.time_ns - log.beams.time_ns).max() <= 8
    np.testing.assert_array_equal(back.beams.ring, log.beams.ring)
    np.testing.assert_array_equal(back.beams.sweep, log.beams.sweep)
    np.testing.assert_array_equal(back.returns.hit, log.returns.hit)
    np.testing.assert_array_equal(back.returns.intensity, log.returns.intensity)
    if label:
        np.testing.assert_array_equal(back.returns.label, log.returns.label)
    # Without the trajectory the sensor is known at 50 origins per sweep: beams begin a few millimetres elsewhere, and
    # the farther return of a pulse no longer lies quite behind the nearer one. First returns are where they were.
    tolerance_m = 0.05 if trajectory is None and n_returns > 1 else 1e-5
    np.testing.assert_allclose(back.points(), log.points(), atol=tolerance_m)
    np.testing.assert_allclose(back.beams.origin_m, log.beams.origin_m, atol=0.01)
    if trajectory is not None:
        np.testing.assert_allclose(back.beams.origin_m, log.beams.origin_m, atol=1e-7)
        np.testing.assert_allclose(back.beams.direction, log.beams.direction, atol=1e-6)


def test_sweep_by_sweep_and_under_another_name_the_bytes_are_the_same(tmp_path):
    log = sample(2, label=True)
    for suffix in (".mcap", ".bag"):
        hr.write_log(log, tmp_path / f"a{suffix}", trajectory=DRIVE)
        with open_sink(tmp_path / f"another{suffix}", trajectory=DRIVE) as sink:
            for _, sweep in log.iter_sweeps():
                sink.append(sweep)
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"another{suffix}").read_bytes()


def test_from_bag_to_mcap_to_parquet(tmp_path):
    hr.write_log(sample(), tmp_path / "a.bag", trajectory=DRIVE)
    first = hr.open_log(tmp_path / "a.bag")
    convert(first, tmp_path / "b.mcap")
    convert(hr.open_log(tmp_path / "b.mcap"), tmp_path / "c.parquet")
    log, expected = hr.read_log(tmp_path / "c.parquet"), first.read()
    np.testing.assert_allclose(log.points(), expected.points(), atol=2e-5)
    np.testing.assert_array_equal(log.returns.hit, expected.returns.hit)


@pytest.mark.parametrize("suffix", [".mcap", ".bag"])
def test_an_error_leaves_what_was_there(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_text("old")
    log = sample()
    with pytest.raises(RuntimeError), open_sink(path) as sink:
        sink.append(log)
        raise RuntimeError
    with pytest.raises(HedgerowError, match="nothing was appended"), open_sink(path):
        pass
    with pytest.raises(InputError, match="sweep 0 begins before the one before it ends"), open_sink(path) as sink:
        sink.append(log)
        sink.append(log)
    with pytest.raises(InputError, match="spans 1000000000 to 1100000000 ns, but sweep 0"):
        hr.write_log(log, path, trajectory=hr.Trajectory.from_poses([10**9, 11 * 10**8], [hr.Pose()] * 2))
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_times_that_ros_cannot_tell_are_refused(tmp_path):
    log = sample()
    columns: dict[str, Any] = log.beams.columns() | {"time_ns": log.beams.time_ns - 2 * 10**9}
    early = hr.Log(hr.Beams(**columns), log.returns, "x", 0.5, 60.0)
    with pytest.raises(InputError, match="outside of what ROS can tell, 1970 to 2038; shift the log"):
        hr.write_log(early, tmp_path / "x.mcap")


def test_damaged_bags_are_refused_with_one_sentence(tmp_path):
    hr.write_log(sample(), tmp_path / "good.mcap")
    hr.write_log(sample(), tmp_path / "good.bag")
    for suffix in (".mcap", ".bag"):
        data = (tmp_path / f"good{suffix}").read_bytes()
        (tmp_path / f"cut{suffix}").write_bytes(data[: len(data) // 2])
        with pytest.raises(FileError, match=r"cut\.\w+: is damaged, cut off, or no ROS"):
            hr.open_log(tmp_path / f"cut{suffix}")
        (tmp_path / f"zip{suffix}").write_bytes(b"PK\x03\x04" + data)
        with pytest.raises(FileError, match=r"is a zip archive, not \w+; unpack it first"):
            hr.open_log(tmp_path / f"zip{suffix}")
        (tmp_path / f"empty{suffix}").write_bytes(b"")
        with pytest.raises(FileError, match="empty"):
            hr.open_log(tmp_path / f"empty{suffix}")
    (tmp_path / "good.mcap").rename(tmp_path / "wrong.bag")
    with pytest.raises(FileError, match=r"is mcap by its first bytes, not ros1; rename it to \.mcap"):
        hr.open_log(tmp_path / "wrong.bag")
