# SPDX-License-Identifier: Apache-2.0
"""Folders of clouds that Hedgerow wrote: every beam comes back, plain readers find theirs, damage is refused."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from plain_readers import plain_pcd
from pypcd4.pypcd4 import PointCloud

import hedgerow as hr
from hedgerow.base.labels import LABELS
from hedgerow.errors import FileError, HedgerowWarning, InputError
from hedgerow.io import open_log, open_sink, read_log, write_log
from hedgerow.io.convert import convert

KINDS = ["kitti", "pcd-folder"]


@pytest.fixture
def log(log_maker):
    """Three sweeps, 7 to 9, near each other, with second returns, misses, elements and labels of ours."""
    log = log_maker(n_returns=2, arrays=("intensity", "label", "element"))
    hit = log.returns.hit
    numbers = sorted({each.number for each in LABELS.values()})
    label = np.where(hit, np.random.default_rng(4).choice(numbers, hit.shape), 0).astype(np.uint16)
    beams = replace(log.beams, origin_m=log.beams.origin_m * 1e-5, sweep=log.beams.sweep + np.int32(7))
    return replace(log, beams=beams, returns=replace(log.returns, label=label))


@pytest.fixture
def trajectory(log):
    ends = [int(log.beams.time_ns[0]) - 1, int(log.beams.time_ns[-1]) + 1]
    return hr.Trajectory.from_poses(ends, [hr.Pose.from_xyz_rpy((k, 0, 0), (0, 0.1, k)) for k in (0, 1)])


def silently(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", HedgerowWarning)
        return read_log(path, **options)


def file_of(folder, number=0):
    return next(iter(folder.rglob(f"{number:06d}.[bp][ic][nd]")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_beam_comes_back_to_the_last_bit(tmp_path, log, trajectory, kind, moving, shuffled):
    given = log[np.random.default_rng(1).permutation(len(log))] if shuffled else log
    with open_sink(tmp_path / "seq", format=kind, trajectory=trajectory if moving else None) as sink:
        sink.append(given)
    again = silently(tmp_path / "seq")
    expected = hr.Log.concatenate([sweep for _, sweep in given.iter_sweeps()])  # a sweep after the other
    assert again.equal(expected)
    assert np.count_nonzero(again.returns.first_m == np.inf) == sink.written.n_misses > 0
    assert np.count_nonzero(again.returns.range_m[:, 1] < np.inf) > 0
    assert (sink.written.n_misses_left_out, sink.written.losses) == (0, [])
    source = open_log(tmp_path / "seq")
    assert source.sweeps.tolist() == [7, 8, 9]
    assert source.read(8).equal(expected.select(sweep=8))
    assert (source.trajectory is not None) == moving


@pytest.mark.parametrize("kind", KINDS)
def test_misses_of_a_simulated_drive_survive_without_a_trajectory(tmp_path, kind):
    scene = hr.Scene()
    scene.add_mesh(np.array([[-50, 8, -5], [50, 8, -5], [50, 8, 9.0]]), [[0, 1, 2]], label=LABELS["grass"].number)
    sensor = hr.Sensor.named("vlp-16")
    beams = sensor.drive(hr.Trajectory.line((0, 0, 1), (10, 0, 1), 10), n_sweeps=2, start_s=0.1)
    log = hr.SceneWorld(scene).fire(beams, 7, sensor=sensor)
    write_log(log, tmp_path / "a.parquet")
    converted = convert(open_log(tmp_path / "a.parquet"), tmp_path / "seq", format=kind)
    assert converted.written.n_misses_left_out == 0
    assert silently(tmp_path / "seq").equal(log)
    # 8 to 12 bytes per beam of a simulation, beside the 16 per point of KITTI's own files.
    assert (tmp_path / "seq" / "hedgerow.parquet").stat().st_size < 15 * len(log)


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_without_any_return_come_back(tmp_path, log, kind):
    missed = log.with_returns(hr.Returns(np.full((len(log), 2), np.float32(np.inf))))
    write_log(missed, tmp_path / "seq", format=kind)
    assert silently(tmp_path / "seq").equal(missed)


def test_plain_parquet_reader_finds_the_misses_beside_kittis_files(tmp_path, log):
    write_log(log, tmp_path / "seq", format="kitti")
    table = pq.read_table(tmp_path / "seq" / "hedgerow.parquet")
    missed = table["range_m"].to_numpy() == np.inf
    assert np.count_nonzero(missed) == np.count_nonzero(log.returns.first_m == np.inf)
    pulse = np.nonzero(log.returns.first_m == np.inf)[0]
    assert np.array_equal(table["direction_x"].to_numpy()[missed], log.beams.direction[pulse, 0])
    assert np.array_equal(table["time_ns"].to_numpy()[missed], log.beams.time_ns[pulse])


def test_plain_readers_find_all_columns_of_a_folder_of_pcd_files(tmp_path, log, trajectory):
    write_log(log, tmp_path / "seq", format="pcd-folder", trajectory=trajectory)
    sweep = log.select(sweep=8)
    hit = sweep.returns.hit
    pulse, slot = np.nonzero(hit)
    file = tmp_path / "seq" / "000001.pcd"
    found = plain_pcd(file)
    assert np.array_equal(found["label"], sweep.returns.label[hit])
    assert np.array_equal(found["ring"], sweep.beams.ring[pulse])
    assert np.array_equal(found["return_number"], slot + 1)
    assert np.array_equal(found["intensity"].astype(np.float32), sweep.returns.intensity[hit])
    assert_allclose(found["time"], sweep.beams.time_ns[pulse] / 1e9, rtol=0, atol=3e-7)  # float64 seconds of today
    stamp, *pose = np.loadtxt(tmp_path / "seq" / "poses.tum")[1]
    middle = hr.Pose(np.array(pose[:3]), np.array(pose[3:]))
    assert sweep.beams.time_s.min() <= stamp <= sweep.beams.time_s.max()
    in_map = middle.transform(np.column_stack([found[axis] for axis in "xyz"]))
    assert_allclose(in_map, sweep.points(), atol=2e-5)  # float32 at 50 m
    assert len(PointCloud.from_path(file).pc_data) == len(pulse)


@pytest.mark.parametrize("kind", KINDS)
def test_cloud_that_was_changed_is_read_from_its_points_and_that_is_said(tmp_path, log, trajectory, kind):
    write_log(log, tmp_path / "seq", format=kind, trajectory=trajectory)
    file = file_of(tmp_path / "seq", 1)
    data = bytearray(file.read_bytes())
    data[-30] ^= 1  # a bit of some number
    file.write_bytes(data)
    with pytest.warns(HedgerowWarning, match=r"000001\.\w+: was changed since Hedgerow wrote it") as said:
        again = read_log(tmp_path / "seq")
    assert len(said) == 1 and len(str(said[0].message)) < 300 + len(str(file))
    assert again.sweeps.tolist() == [7, 8, 9]
    assert again.select(sweep=[7, 9]).beams.equal(log.select(sweep=[7, 9]).beams)
    changed = again.select(sweep=8)
    assert np.count_nonzero(changed.returns.hit) == np.count_nonzero(log.select(sweep=8).returns.hit)
    assert changed.returns.range_m.shape[1] == 2 and (changed.returns.element == -1).all()
    assert np.array_equal(silently(tmp_path / "seq", sweeps=[7, 9]).sweeps, [7, 9])


def test_labels_that_were_changed_are_those_of_the_file(tmp_path, log):
    write_log(log, tmp_path / "seq", format="kitti")
    file = tmp_path / "seq" / "labels" / "000000.label"
    n = file.stat().st_size // 4
    np.full(n, 50, "<u4").tofile(file)
    with pytest.warns(HedgerowWarning, match="000000.bin: was changed since Hedgerow wrote it, or its labels were"):
        again = read_log(tmp_path / "seq", 7)
    assert again.returns.label is not None
    assert (again.returns.label[again.returns.hit] == 50).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_whose_clouds_were_deleted_are_gone(tmp_path, log, kind):
    write_log(log, tmp_path / "seq", format=kind)
    for file in [*(tmp_path / "seq").rglob("000001.*")]:
        file.unlink()
    assert silently(tmp_path / "seq").equal(log.select(sweep=[7, 9]))


def test_cloud_of_another_makes_all_of_them_plain(tmp_path, log):
    write_log(log, tmp_path / "seq", format="kitti")
    for name in ("velodyne/000000.bin", "labels/000000.label"):
        data = (tmp_path / "seq" / name).read_bytes()
        (tmp_path / "seq" / name.replace("000000", "000003")).write_bytes(data)
    times = tmp_path / "seq" / "times.txt"
    times.write_text(times.read_text() + "1700000000.001\n")
    poses = tmp_path / "seq" / "poses.txt"
    poses.write_text(poses.read_text() + poses.read_text().splitlines()[0] + "\n")
    with pytest.warns(
        HedgerowWarning, match=r"Hedgerow did not write 000003.bin \(1 such files\); all sweeps are read"
    ):
        assert open_log(tmp_path / "seq").sweeps.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_options_that_read_points_leave_the_kept_beams_aside(tmp_path, log, trajectory, kind):
    write_log(log, tmp_path / "seq", format=kind, trajectory=trajectory)
    n_returns = np.count_nonzero(log.returns.hit)
    every: list[dict[str, Any]] = [
        {"recover": "no"},
        {"trajectory": trajectory},
        {"deskewed": True},
        {"elevation_bias_deg": 1.0},
    ]
    for options in every:
        assert len(read_log(tmp_path / "seq", **options)) == n_returns
    assert silently(tmp_path / "seq", recover="yes").equal(log)
    (tmp_path / "seq" / "hedgerow.parquet").unlink()
    assert len(read_log(tmp_path / "seq")) == n_returns


def test_limits_apply_to_kept_beams(tmp_path, log):
    write_log(log, tmp_path / "seq", format="kitti")
    again = silently(tmp_path / "seq", max_range_m=30, min_range_m=5, sensor="vlp-16")
    assert (again.sensor, again.min_range_m, again.max_range_m) == ("vlp-16", 5, 30)
    near = log.returns.first_m < 5
    assert len(again) == len(log) - np.count_nonzero(near)
    expected = np.where(log.returns.range_m > 30, np.float32(np.inf), log.returns.range_m)[~near]
    assert np.array_equal(again.returns.range_m, expected)
    assert again.returns.intensity is not None
    assert np.isnan(again.returns.intensity[np.isinf(expected)]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_beams_are_refused_in_one_sentence(tmp_path, log, kind):
    write_log(log, tmp_path / "seq", format=kind)
    kept = tmp_path / "seq" / "hedgerow.parquet"
    good = kept.read_bytes()
    for data in (b"", good[:-100], b"x" * 1000):
        kept.write_bytes(data)
        with pytest.raises(FileError, match=r"hedgerow.parquet: .*; without hedgerow.parquet the clouds can be read"):
            open_log(tmp_path / "seq")
    write_log(log.select(sweep=[7, 8]), kept)  # a good log, but not this one
    with pytest.raises(FileError, match=r"hedgerow.parquet: does not hold sweep 9 of the clouds beside it"):
        open_log(tmp_path / "seq")
    write_log(hr.Log.concatenate([log.select(sweep=[7, 8]), log.select(sweep=9)[:5]]), kept)
    with pytest.raises(FileError, match=r"hedgerow.parquet: sweep 9 is not that of the cloud beside it"):
        read_log(tmp_path / "seq")


def test_a_sweep_that_comes_again_is_refused(tmp_path, log):
    later = replace(log.beams, time_ns=log.beams.time_ns + 10**9)
    with pytest.raises(InputError, match="sweep: sweep 7 comes again"), open_sink(tmp_path / "x", format="kitti") as s:
        s.append(log)
        s.append(replace(log, beams=later))
    assert list(tmp_path.iterdir()) == []


WRONG = [None, True, -1, 1e400, 2**70, "x", "\x1b[31m\n", [], [1], [[]], {}, {"0": 1}, {"0": [1]}, {"0": ["a", 2]}, 1.5]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_sidecar_is_checked(tmp_path, log, kind):
    write_log(log, tmp_path / "seq", format=kind)
    path = tmp_path / "seq" / "hedgerow.json"
    good = json.loads(path.read_text())
    fine = {
        "hedgerow": WRONG,
        "sensor": ["x"],
        "kind": ["x", "\x1b[31m\n"],
        "min_range_m": [1.5],
        "max_range_m": [None, 2**70, 1.5],
        "start_azimuth_deg": [-1, 1.5],
        "clockwise": [True],
        "metadata": [{}, {"0": 1}, {"0": [1]}, {"0": ["a", 2]}],
        "spans_ns": [{}],
        "clouds": [{}],
    }
    for field in good:
        for value in WRONG:
            if repr(value) in map(repr, fine.get(field, [])):
                continue
            path.write_text(json.dumps(good | {field: value}))
            with pytest.raises(FileError, match=r"hedgerow.json: what Hedgerow noted there is damaged \(") as said:
                open_log(tmp_path / "seq")
            text = str(said.value).replace(str(tmp_path), "")
            assert len(text) < 300 and text.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "3",
        "[" * 100_000,
        '{"a":' * 60 + "1" + "}" * 60,
        "9" * 5000,
        '{"' + "k" * 400_000 + '": 1}',
        "\x00",
    ],
)
def test_sidecar_that_is_none_is_refused_in_one_sentence(tmp_path, log, text):
    write_log(log, tmp_path / "seq", format="kitti")
    (tmp_path / "seq" / "hedgerow.json").write_text(text)
    with pytest.raises(FileError, match=r"hedgerow.json: what Hedgerow noted there is damaged") as said:
        open_log(tmp_path / "seq")
    text = str(said.value).replace(str(tmp_path), "")
    assert len(text) < 300 and text.isprintable()


def test_marks_of_clouds_are_checked(tmp_path, log):
    write_log(log, tmp_path / "seq", format="kitti")
    path = tmp_path / "seq" / "hedgerow.json"
    good = json.loads(path.read_text())
    for field in ("sweep", "n_points", "crc32"):
        for value in (None, "1", 1.5, 2**70, -(2**33)):
            clouds = good["clouds"] | {"000001": good["clouds"]["000001"] | {field: value}}
            path.write_text(json.dumps(good | {"clouds": clouds}))
            with pytest.raises(FileError, match=rf"damaged \(clouds.000001.{field}: "):
                open_log(tmp_path / "seq")
    clouds = good["clouds"] | {"000001": good["clouds"]["000000"]}
    path.write_text(json.dumps(good | {"clouds": clouds}))
    with pytest.raises(FileError, match="does not hold some of the sweeps of the clouds beside it"):
        open_log(tmp_path / "seq")


def test_folders_written_before_beams_were_kept_are_still_read(tmp_path, log, trajectory):
    write_log(log, tmp_path / "seq", format="kitti", trajectory=trajectory)
    path = tmp_path / "seq" / "hedgerow.json"
    content = json.loads(path.read_text())
    del content["clouds"]
    path.write_text(json.dumps(content))
    (tmp_path / "seq" / "hedgerow.parquet").unlink()
    again = silently(tmp_path / "seq")
    assert len(again) == np.count_nonzero(log.returns.hit)
    assert again.sensor == log.sensor
