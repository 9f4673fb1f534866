# SPDX-License-Identifier: Apache-2.0
"""PLY, PCD and LAS: round trips, what an independent reader finds, and where beams begin."""

import laspy
import numpy as np
import pytest
import trimesh
from kitti_maker import DATA
from numpy.testing import assert_allclose
from pypcd4.pypcd4 import Encoding, PointCloud

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io import open_log, open_sink, read_log, write_log
from hedgerow.io import source as whole_file
from hedgerow.io.convert import convert
from hedgerow.io.points.las import pulses_by_time
from hedgerow.io.points.las_classes import to_codes, to_labels

FILES = ["x.ply", "x.pcd", "x.las", "x.laz"]
# LAS rounds to millimetres, others hold doubles; ranges and directions are float32: 60 m steps by 4e-6 m.
TOLERANCE_M = {"x.ply": 2e-5, "x.pcd": 2e-5, "x.las": 1e-3, "x.laz": 1e-3}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n_returns", [1, 3])
def test_round_trip_keeps_all_but_the_missing_returns(tmp_path, log_maker, name, n_returns):
    log = log_maker(n_returns=n_returns, arrays=("intensity", "label"))
    write_log(log, tmp_path / name)
    again = read_log(tmp_path / name)
    hit = log.returns.hit.reshape(len(log), -1)
    kept = log[hit.any(axis=1)]
    assert len(again) == len(kept)
    assert_allclose(again.returns.range_m, kept.returns.range_m, atol=2 * TOLERANCE_M[name])
    assert_allclose(again.points(), kept.points(), atol=TOLERANCE_M[name])
    assert_allclose(again.beams.origin_m, kept.beams.origin_m, atol=1e-8)
    assert_allclose(again.beams.time_ns, kept.beams.time_ns, atol=300)  # float64 seconds of today: 240 ns
    assert again.returns.intensity is not None and again.returns.label is not None
    assert_allclose(again.returns.intensity, kept.returns.intensity, atol=1e-5)  # 16 bits
    for column in ("ring", "sweep"):
        assert np.array_equal(getattr(again.beams, column), getattr(kept.beams, column))
    assert np.array_equal(again.returns.label, kept.returns.label)
    assert (again.sensor, again.min_range_m, again.max_range_m) == ("test", 0.5, 60)
    assert np.array_equal(again.map_origin_m, log.map_origin_m)
    assert again.metadata["note"] == "größer"


@pytest.mark.parametrize("name", FILES)
def test_appending_sweep_by_sweep_gives_the_same_file(tmp_path, log_maker, name):
    log = log_maker(n_returns=2, arrays=("intensity",))
    write_log(log, tmp_path / name)
    (tmp_path / "b").mkdir()
    with open_sink(tmp_path / "b" / name) as sink:
        for _, sweep in log.iter_sweeps():
            sink.append(sweep)
    assert read_log(tmp_path / name).equal(read_log(tmp_path / "b" / name))
    assert [number for number, _ in open_log(tmp_path / name).iter_sweeps(range(1, 3))] == [1, 2]


@pytest.mark.parametrize("name", ["x.ply", "x.pcd"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_single_sweeps_of_a_file_are_those_of_the_whole(tmp_path, log_maker, name, shuffled):
    log = log_maker(n_sweeps=5, n_returns=2, arrays=("intensity",), shuffled=shuffled)
    write_log(log, tmp_path / name)
    whole, source = read_log(tmp_path / name), open_log(tmp_path / name)
    assert source.sweeps.tolist() == list(range(5))
    assert source.read(3).equal(whole[whole.beams.sweep == 3])
    assert read_log(tmp_path / name, sweeps=[1, 3]).equal(whole[np.isin(whole.beams.sweep, [1, 3])])


@pytest.mark.parametrize("name", ["x.ply", "x.pcd", "compressed.pcd"])
def test_what_memory_cannot_hold_is_refused_before_it_is_read(tmp_path, log_maker, monkeypatch, name):
    log = log_maker(n_sweeps=40, n_returns=2)
    write_log(log, tmp_path / name)
    n_bytes = (tmp_path / name).stat().st_size
    if name == "compressed.pcd":
        cloud = PointCloud.from_path(tmp_path / name)
        cloud.save(tmp_path / name, encoding=Encoding.BINARY_COMPRESSED)  # fewer bytes, the same points
    monkeypatch.setattr(whole_file, "free_memory_bytes", lambda: 4 * n_bytes)
    assert len(read_log(tmp_path / name)) > 0
    monkeypatch.setattr(whole_file, "free_memory_bytes", lambda: 2 * n_bytes)
    with monkeypatch.context() as patch, pytest.raises(FileError, match=r"is read whole, and would need .* GB of free"):
        patch.setattr(PointCloud, "from_path", None)  # nothing was loaded
        open_log(tmp_path / name)


def test_one_sweep_too_large_for_the_memory_is_refused(tmp_path, monkeypatch):
    points = np.ones((1000, 3), np.float32)
    PointCloud.from_xyz_points(points).save(tmp_path / "x.pcd")
    monkeypatch.setattr(whole_file, "free_memory_bytes", lambda: 100_000)  # the file has 12,000 bytes
    with pytest.raises(FileError, match=r"x.pcd: is read whole, and would need .* of free memory; split"):
        open_log(tmp_path / "x.pcd", scanner_m=[0, 0, 0])
    monkeypatch.setattr(whole_file, "free_memory_bytes", lambda: None)  # nothing tells: it is tried
    assert len(read_log(tmp_path / "x.pcd", scanner_m=[0, 0, 0])) == 1000


def test_free_memory_is_some_part_of_the_memory():
    free = whole_file.free_memory_bytes()
    assert free is None or 10_000_000 < free < 1e15


@pytest.mark.parametrize("name", ["x.ply", "x.pcd"])
def test_files_cut_off_say_how_many_points_are_left(tmp_path, log_maker, name):
    write_log(log_maker(arrays=("intensity",)), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    n_points = np.count_nonzero(read_log(tmp_path / name).returns.hit)
    for n_bytes, n_left in ((1, n_points - 1), (200, n_points - 4)):  # a point has 66 bytes
        (tmp_path / name).write_bytes(data[:-n_bytes])
        with pytest.raises(FileError, match=rf"{name}: ends after {n_left:,} of {n_points:,} points; is it cut off\?"):
            open_log(tmp_path / name)


def test_trimesh_reads_our_ply(tmp_path, log_maker):
    log = log_maker(arrays=("intensity",))
    write_log(log, tmp_path / "x.ply")
    cloud = trimesh.load(tmp_path / "x.ply")
    assert isinstance(cloud, trimesh.PointCloud)
    assert_allclose(cloud.vertices, log.points() + log.map_origin_m, atol=1e-6)
    data = cloud.metadata["_ply_raw"]["vertex"]["data"]
    assert_allclose(data["intensity"], log.returns.intensity[log.returns.hit])


def test_pypcd4_reads_our_pcd(tmp_path, log_maker):
    log = log_maker(arrays=("intensity", "label"))
    write_log(log, tmp_path / "x.pcd")
    cloud = PointCloud.from_path(tmp_path / "x.pcd")
    assert_allclose(cloud.numpy(("x", "y", "z")), log.points() + log.map_origin_m, atol=1e-6)
    assert np.array_equal(cloud.numpy(("label",))[:, 0], log.returns.label[log.returns.hit])
    assert np.array_equal(cloud.numpy(("ring",))[:, 0], log.beams.ring[log.returns.hit])


@pytest.mark.parametrize("name", ["x.las", "x.laz"])
def test_laspy_finds_return_numbers_classes_and_gps_time(tmp_path, log_maker, name):
    log = log_maker(n_returns=3, arrays=("intensity", "label"))
    write_log(log, tmp_path / name)
    las = laspy.read(tmp_path / name)
    hit = log.returns.hit
    assert las.header.are_points_compressed == (name == "x.laz")
    assert_allclose(np.asarray(las.xyz), log.points() + log.map_origin_m, atol=0.0006)
    assert np.array_equal(np.asarray(las.return_number), np.nonzero(hit)[1] + 1)
    assert np.array_equal(np.asarray(las.number_of_returns), hit.sum(axis=1)[np.nonzero(hit)[0]])
    label = log.returns.label[hit]
    assert np.array_equal(np.asarray(las.classification), to_codes(label, log.points()))
    assert np.array_equal(np.asarray(las["label"]), label)
    # Adjusted standard GPS time: 14 November 2023 22:13:20 UTC is 1384035218 s after the GPS epoch.
    assert las.header.global_encoding.gps_time_type == laspy.header.GpsTimeType.STANDARD
    assert np.asarray(las.gps_time).min() == pytest.approx(1700000000 - 315964800 + 18 - 1e9, abs=1e-3)


def test_las_without_our_header_is_read_with_a_scanner_or_a_trajectory(tmp_path):
    las = laspy.create(point_format=1, file_version="1.2")
    las.header.scales = np.full(3, 0.001)
    # Two pulses: one with two returns that were stored apart, one with a single return.
    las.x, las.y, las.z = [10, 0, 20.0], [0, 5, 0.0], [0, 0, 0.0]
    las.gps_time, las.return_number, las.number_of_returns = [100.5, 101.0, 100.5], [1, 1, 2], [2, 1, 2]
    las.classification, las.intensity = [5, 2, 3], [7, 8, 9]
    las.write(tmp_path / "x.las")
    with pytest.raises(FileError, match=r"not where they were seen from; give scanner_m=\[x, y, z\] or a trajectory"):
        open_log(tmp_path / "x.las")
    log = read_log(tmp_path / "x.las", scanner_m=[0, 0, 0])
    assert log.returns.range_m.tolist() == [[10, 20], [5, np.inf]]
    assert log.returns.label is not None
    assert log.returns.label.tolist() == [[70, 70], [72, 0]]  # plants, and the ground
    assert log.returns.intensity is not None
    assert log.returns.intensity[0].tolist() == [7, 9]
    path = Trajectory.from_poses([100.0, 102.0], [Pose((0, 0, 0.0)), Pose((0, -4, 0.0))])  # pyright: ignore[reportArgumentType]  # tuples are converted
    moved = read_log(tmp_path / "x.las", trajectory=path)
    assert_allclose(moved.beams.origin_m, [[0, -1, 0], [0, -2, 0]], atol=1e-9)
    assert_allclose(moved.returns.first_m, [np.sqrt(101), 7], rtol=1e-6)
    late = Trajectory.from_poses([0.0, 100.7], [Pose(), Pose()])
    with pytest.raises(FileError, match=r"1 of 3 points have times outside the trajectory"):
        read_log(tmp_path / "x.las", trajectory=late)


def test_las_larger_than_a_chunk_keeps_pulses_together(tmp_path, monkeypatch):
    las = laspy.create(point_format=1, file_version="1.2")
    n = 1000
    las.x, las.y, las.z = np.tile([10, 20.0], n), np.repeat(np.arange(n) * 0.01, 2), np.zeros(2 * n)
    las.gps_time, las.return_number = np.repeat(np.arange(n), 2), np.tile([1, 2], n)
    las.write(tmp_path / "x.las")
    whole = read_log(tmp_path / "x.las", scanner_m=[0, 0, 0])
    monkeypatch.setattr("hedgerow.io.points.las._AT_ONCE", 333)
    source = open_log(tmp_path / "x.las", scanner_m=[0, 0, 0])
    parts = [log for _, log in source.iter_sweeps()]
    assert [int(log.beams.sweep[0]) for log in parts] == source.sweeps.tolist() == list(range(7))
    joined = hr.Log.concatenate(parts)
    assert np.array_equal(joined.returns.range_m, whole.returns.range_m)
    assert len(joined) == n


def test_points_of_one_coarse_time_are_pulses_of_their_own():
    columns = {"x": np.zeros(5), "time": np.array([1, 1, 1, 2, 2.0]), "return_number": np.array([1, 2, 1, 2, 1])}
    pulse = pulses_by_time(columns)
    assert len(set(pulse[:3].tolist())) == 3
    assert pulse[3] == pulse[4]


@pytest.mark.parametrize("text", ["ascii", "binary", "binary_compressed"])
def test_every_encoding_of_pcd_is_read(tmp_path, text):
    points = np.random.default_rng(3).normal(0, 10, (50, 4)).astype(np.float32)
    cloud = PointCloud.from_points(points, ("x", "y", "z", "intensity"), (np.float32,) * 4)
    cloud.save(tmp_path / "x.pcd", encoding=Encoding(text))
    log = read_log(tmp_path / "x.pcd", scanner_m=[0, 0, 0])
    assert_allclose(log.points(), points[:, :3], atol=1e-4)
    assert log.returns.intensity is not None
    assert_allclose(log.returns.intensity, points[:, 3], rtol=1e-5)


def test_ascii_ply_of_others_is_read(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
    (tmp_path / "x.ply").write_text(header + "property uchar scalar_Intensity\nend_header\n3 4 0 9\n0 0 2 8\n")
    log = read_log(tmp_path / "x.ply", scanner_m=[0, 0, 0], max_range_m=10)
    assert log.returns.range_m.tolist() == [5, 2]
    assert log.returns.intensity is not None
    assert log.returns.intensity.tolist() == [9, 8]
    assert log.max_range_m == 10


@pytest.fixture(scope="module")
def drive():
    """A VLP-16 that drives past a wall: its sweeps, and its trajectory."""
    scene = hr.Scene()
    wall = np.array([[-50, 8, -5], [50, 8, -5], [50, 8, 9], [-50, 8, 9.0]])
    scene.add_mesh(wall, [[0, 1, 2], [0, 2, 3]], label=50)
    sensor = hr.Sensor.named("vlp-16")
    trajectory = Trajectory.line((0, 0, 1), (10, 0, 1), 10)
    beams = sensor.drive(trajectory, n_sweeps=3, start_s=0.1)
    return hr.SceneWorld(scene).fire(beams, 7, sensor=sensor), trajectory


def test_folder_of_pcd_files_round_trips(tmp_path, drive):
    log, trajectory = drive
    write_log(log, tmp_path / "seq", format="pcd-folder", trajectory=trajectory)
    again = read_log(tmp_path / "seq", recover="no")
    kept = log[log.returns.hit]
    # Each sweep is in the frame of its middle: an independent reader, and the pose of that instant.
    cloud = PointCloud.from_path(tmp_path / "seq" / "000001.pcd").numpy(("x", "y", "z"))
    middle_m = np.array([2.5, 0, 1])  # the last pulse comes 0.1 ms before the end of the sweep
    assert_allclose(cloud + middle_m, log.select(sweep=1).points(), atol=0.002)
    assert_allclose(again.points(), kept.points(), atol=2e-4)  # float32 points at 100 m, twice
    assert_allclose(again.beams.origin_m, kept.beams.origin_m, atol=0.0113)  # lasers emit up to 11.2 mm off the centre
    assert np.array_equal(again.beams.ring, kept.beams.ring)
    assert again.returns.label is not None
    assert np.array_equal(again.returns.label, kept.returns.label)


def test_folder_of_pcd_files_of_others_needs_poses(tmp_path):
    for number in range(3):
        points = np.full((4, 3), number + 1, np.float32)
        cloud = PointCloud.from_xyz_points(points)
        cloud.save(tmp_path / f"{number}.pcd")
    with pytest.raises(FileError, match="give a trajectory, or put"):
        open_log(tmp_path)
    poses = Trajectory.from_poses([1.0, 2.0, 3.0], [Pose((10.0 * k, 0, 0)) for k in range(3)])  # pyright: ignore[reportArgumentType]  # tuples are converted
    log = read_log(tmp_path, trajectory=poses)
    assert_allclose(log.points()[::4], [[1, 1, 1], [12, 2, 2], [23, 3, 3]], rtol=1e-6)
    short = Trajectory.from_poses([1.0, 2.0], [Pose(), Pose()])
    with pytest.raises(FileError, match="3 files but 2 poses; name the files by their time"):
        open_log(tmp_path, trajectory=short)
    for number in range(3):
        (tmp_path / f"{number}.pcd").rename(tmp_path / f"{1 + number * 0.5}.pcd")
    log = read_log(tmp_path, trajectory=short)
    assert np.unique(log.beams.time_ns).tolist() == [1_000_000_000, 1_500_000_000, 2_000_000_000]


def test_points_that_are_not_finite_and_missing_fields(tmp_path):
    name = "x.pcd"
    points = np.array([[1, 2, 3], [np.nan, 0, 0], [4, 5, 6]], np.float32)
    PointCloud.from_xyz_points(points).save(tmp_path / name)
    source = open_log(tmp_path / name, scanner_m=[0, 0, 0])
    assert (len(source.read()), source.n_left_out) == (2, 1)  # pyright: ignore[reportAttributeAccessIssue]  # not every source counts them
    PointCloud.from_points(points[:, :2], ("x", "y"), (np.float32,) * 2).save(tmp_path / name)
    with pytest.raises(FileError, match=r"field 'z' is missing \(has x, y\)"):
        open_log(tmp_path / name, scanner_m=[0, 0, 0])


@pytest.mark.parametrize("name", FILES)
def test_logs_that_do_not_fit_together_leave_nothing_behind(tmp_path, log_maker, name):
    first, second = log_maker(arrays=("label",)), log_maker()
    with pytest.raises(InputError, match="the first one had"), open_sink(tmp_path / name) as sink:
        sink.append(first)
        sink.append(second)
    with pytest.raises(InputError, match="nothing was appended"), open_sink(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []


def test_wrong_suffix_is_told_by_the_first_bytes(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.ply")
    (tmp_path / "x.ply").rename(tmp_path / "x.las")
    with pytest.raises(FileError, match=r"x.las: is ply by its first bytes, not las; rename it to .ply"):
        open_log(tmp_path / "x.las")
    write_log(log_maker(), tmp_path / "x.parquet")
    (tmp_path / "x.parquet").rename(tmp_path / "x.mcap")
    with pytest.raises(FileError, match=r"not mcap; rename it to .parquet$"):
        open_log(tmp_path / "x.mcap")


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the recordings in ../shared/data")
def test_real_laz_has_pulses_with_several_returns():
    path = DATA / "forest_plots" / "Topography.laz"
    las = laspy.read(path)
    above = [
        float(np.mean(np.asarray(las.x))),
        float(np.mean(np.asarray(las.y))),
        float(np.max(np.asarray(las.z))) + 1000,
    ]
    log = read_log(path, scanner_m=above)
    assert np.count_nonzero(log.returns.hit) == len(las.x)
    n_first = np.count_nonzero(np.asarray(las.return_number) == 1)
    assert len(log) == pytest.approx(n_first, rel=0.08)  # of some pulses the first return lies outside the clip
    assert log.returns.label is not None
    found = np.unique(to_labels(np.asarray(las.classification)))
    assert np.array_equal(np.unique(log.returns.label[log.returns.hit]), found)
    assert 72 in found  # the ground


@pytest.mark.parametrize("suffix", ["ply", "pcd", "las", "laz"])
def test_points_out_of_range_or_without_a_place_are_counted(tmp_path, log_maker, suffix):
    log = log_maker()
    write_log(log, tmp_path / f"x.{suffix}")
    reach_m = float(np.median(log.returns.range_m[log.returns.hit]))
    done = convert(open_log(tmp_path / f"x.{suffix}", max_range_m=reach_m), tmp_path / "near.parquet")
    n_far = int(np.count_nonzero(log.returns.range_m[log.returns.hit] > reach_m + 1e-3))
    assert 0 < n_far <= done.n_left_out <= n_far + 1
    assert done.n_left_out + done.written.n_returns == int(log.returns.hit.sum())
