# SPDX-License-Identifier: Apache-2.0
"""Organised clouds: empty cells become missing returns that point where the lidar did."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_maker import OUSTER, START_NS, VELODYNE, Maker, rows_of
from pcd_maker import N_COLUMNS, N_LASERS, lidar, organised, organised_folder, pcd_folder, write_pcd

import hedgerow as hr
from hedgerow.errors import FileError, HedgerowError

BSD = Path(__file__).resolve().parents[3] / "shared" / "data" / "ouster_bsd"
STANDING: dict[str, Any] = {"static": True}


def read(tmp_path, rows, **options):
    maker = Maker("mcap")
    maker.cloud(rows, START_NS, frame="os_lidar")
    source = hr.open_log(maker.write(tmp_path), **STANDING, **options)
    return source, source.read()


@pytest.mark.parametrize("blank", [np.nan, 0.0])
def test_empty_cells_become_missing_returns_in_their_true_directions(tmp_path, blank):
    source, log = read(tmp_path, organised(blank))
    unit, time_ns, range_m = lidar()
    order = np.argsort(time_ns.ravel(), kind="stable")
    assert len(log) == N_LASERS * N_COLUMNS
    np.testing.assert_array_equal(np.isinf(log.returns.range_m), np.isnan(range_m.ravel()[order]))
    off = np.linalg.norm(log.beams.direction - unit.reshape(-1, 3)[order], axis=1)
    assert off.max() < 1e-5  # of points rounded to float32, and the even grid between them
    assert np.abs(log.beams.time_ns - START_NS - time_ns.ravel()[order]).max() <= 1
    summary = source.metadata["recovery"]["summary"]
    assert summary.startswith("kept, 4") and "degrees rms off" in summary


def test_a_grid_with_lasers_in_columns_is_the_same(tmp_path):
    _, log = read(tmp_path / "a", organised(fields=VELODYNE))
    _, turned = read(tmp_path / "b", organised(fields=VELODYNE).T)
    assert turned.equal(log)


def test_cells_in_no_order_are_not_taken_for_a_lidars(tmp_path):
    rows = organised()
    shuffled = rows.ravel()[np.random.default_rng(3).permutation(rows.size)].reshape(rows.shape)
    source, log = read(tmp_path / "a", shuffled)
    assert np.isfinite(log.returns.range_m).all()
    assert "degrees off the grid" in source.metadata["organised"]
    with pytest.raises(FileError, match=r"empty cells cannot be told where they point, .* degrees off the grid"):
        read(tmp_path / "b", shuffled, recover="yes")


def test_recovery_can_be_declined(tmp_path):
    _, log = read(tmp_path, organised(), recover="no")
    assert np.isfinite(log.returns.range_m).all()
    assert len(log) == np.isfinite(lidar()[2]).sum()


@pytest.mark.skipif(not BSD.exists(), reason="needs ../shared/data/ouster_bsd")
@pytest.mark.parametrize(
    "name, rms_deg",
    # Found: 0.0036, 0.0018, 0.0054 and 0.132. The beams of an OS0 bend 28 mm before the axis, which the model of a grid
    # does not know; that shows in what it sees from near.
    [
        ("OS1-128_1024_street_3sweeps", 0.01),
        ("OS2-128_1024_street", 0.01),
        ("OS1-32_1024_street", 0.01),
        ("OS0-128_1024_street", 0.2),
    ],
)
def test_directions_of_a_real_lidars_missing_returns(tmp_path, name, rms_deg):
    arrays = np.load(BSD / f"{name}.npz")
    range_m = arrays["range_mm"][0] * 1e-3
    n_lasers, n_columns = range_m.shape
    origin, unit = (arrays[key].reshape(n_lasers, n_columns, 3) for key in ("org", "dir"))
    rows = rows_of(OUSTER, range_m.shape)
    for k, axis in enumerate("xyz"):
        rows[axis] = np.where(range_m > 0, origin[..., k] + unit[..., k] * range_m, np.nan)
    rows["t"], rows["ring"] = np.arange(n_columns) * 97_000, np.arange(n_lasers)[:, None]
    source, log = read(tmp_path, rows)
    missed = np.isinf(log.returns.range_m)
    assert missed.sum() == (range_m == 0).sum()
    column = (log.beams.time_ns - START_NS + 48_500) // 97_000
    off = np.linalg.norm(log.beams.direction - unit[log.beams.ring, column], axis=1)[missed]
    assert np.rad2deg(np.sqrt(np.mean(off**2))) < rms_deg
    assert source.metadata["recovery"]["rms_deg"] < rms_deg


@pytest.mark.parametrize("fields", [OUSTER, VELODYNE], ids=["nanoseconds", "seconds"])
def test_organised_pcd_files_keep_their_missing_returns(tmp_path, fields):
    folder, drive = pcd_folder(tmp_path, organised(fields=fields))
    source = hr.open_log(folder, trajectory=drive, max_range_m=60)
    log = source.read(1)
    unit, time_ns, range_m = lidar()
    order = np.argsort(time_ns.ravel(), kind="stable")
    missing = np.isnan(range_m.ravel()[order])
    assert len(log) == N_LASERS * N_COLUMNS
    np.testing.assert_array_equal(np.isinf(log.returns.range_m), missing)
    np.testing.assert_allclose(log.returns.range_m[~missing], range_m.ravel()[order][~missing], rtol=1e-5)
    off = np.linalg.norm(log.beams.direction - unit.reshape(-1, 3)[order], axis=1)
    assert np.rad2deg(off[missing].max()) < 0.01  # the model is exact here; float32 points
    # the sensor moves by 1 m in 0.1 s, and every pulse has its own time and place
    since_ns = log.beams.time_ns - (START_NS + 100_000_000)
    np.testing.assert_allclose(since_ns, time_ns.ravel()[order], atol=300)
    np.testing.assert_allclose(log.beams.origin_m[:, 0], 2 + since_ns * 1e-8, atol=1e-3)
    assert source.metadata["recovery"]["method"] == "organised cloud"
    assert source.metadata["recovery"]["rms_deg"] < 0.01
    assert source.metadata["motion"] == "raw"
    bare = hr.open_log(folder, trajectory=drive, max_range_m=60, recover="no").read(1)
    assert len(bare) == np.count_nonzero(~missing)


def test_a_single_organised_pcd_file_is_seen_from_its_scanner(tmp_path):
    rows, scanner_m = organised(), np.array([500_000.0, 5_000_000.0, 30.0])
    wide = np.zeros(rows.shape, [("x", "<f8"), ("y", "<f8"), ("z", "<f8"), ("ring", "<u2")])
    unit, _, range_m = lidar()
    for k, axis in enumerate("xyz"):
        wide[axis] = unit[..., k] * range_m + scanner_m[k]
    wide["ring"] = rows["ring"]
    write_pcd(tmp_path / "x.pcd", wide)
    log = hr.read_log(tmp_path / "x.pcd", scanner_m=scanner_m.tolist(), max_range_m=60)
    assert len(log) == rows.size
    assert np.count_nonzero(np.isinf(log.returns.range_m)) == np.count_nonzero(np.isnan(range_m))
    # float32 heights of the lasers, which the fit does not put at exactly 0
    np.testing.assert_allclose(log.beams.origin_m + log.map_origin_m, np.tile(scanner_m, (len(log), 1)), atol=2e-3)
    plain = hr.read_log(tmp_path / "x.pcd", scanner_m=scanner_m.tolist(), recover="no")
    assert len(plain) == np.count_nonzero(np.isfinite(range_m))


def test_pcd_cells_in_no_order_are_plain_points(tmp_path):
    rows = organised()
    mixed = np.random.default_rng(1).permutation(rows.ravel()).reshape(rows.shape)
    folder, drive = pcd_folder(tmp_path, mixed)
    source = hr.open_log(folder, trajectory=drive)
    assert "off the grid" in source.metadata["organised"]
    assert np.isfinite(source.read().returns.range_m).all()
    with pytest.raises(FileError, match="empty cells cannot be told where they point"):
        hr.open_log(folder, trajectory=drive, recover="yes")


def test_an_unorganised_file_among_organised_ones_is_named(tmp_path):
    rows = organised()
    folder, drive = pcd_folder(tmp_path, rows)
    write_pcd(folder / f"{(START_NS + 50_000_000) / 1e9:.6f}.pcd", rows.reshape(1, -1))
    with pytest.raises(FileError, match=r"050000\.pcd: has one row of points, but .* is organised; use recover=no"):
        hr.open_log(folder, trajectory=drive)


def test_huge_poses_are_refused_without_a_warning_of_numpy(tmp_path):
    folder = organised_folder(tmp_path)
    lines = (folder / "poses.tum").read_text().splitlines()
    words = lines[-1].split()
    (folder / "poses.tum").write_text("\n".join([*lines[:-1], " ".join([words[0], "1.7e308", *words[2:]])]))
    with warnings.catch_warnings(), pytest.raises(HedgerowError):
        warnings.simplefilter("error")
        hr.read_log(folder)
