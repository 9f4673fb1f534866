# SPDX-License-Identifier: Apache-2.0
"""Organised clouds: empty cells become missing returns that point where the lidar did."""

from pathlib import Path

import numpy as np
import pytest
from bag_maker import OUSTER, START_NS, VELODYNE, Maker, rows_of

import hedgerow as hr
from hedgerow.errors import FileError

BSD = Path(__file__).resolve().parents[3] / "shared" / "data" / "ouster_bsd"
STANDING = {"static": True}
N_LASERS, N_COLUMNS = 16, 200


def lidar(seed=1):
    """Directions (lasers, columns, 3), times and ranges of a lidar that is in no catalogue."""
    rng = np.random.default_rng(seed)
    elevation = np.deg2rad(np.linspace(15, -15, N_LASERS))[:, None]
    azimuth = -np.linspace(0, 2 * np.pi, N_COLUMNS, endpoint=False) + np.deg2rad(rng.uniform(-3, 3, (N_LASERS, 1)))
    flat = np.cos(elevation)
    up = np.broadcast_to(np.sin(elevation), azimuth.shape)
    unit = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), up], axis=-1)
    time_ns = np.arange(N_COLUMNS) * 500_000 + np.arange(N_LASERS)[:, None] * 2_000
    range_m = rng.uniform(2, 50, azimuth.shape)
    range_m[rng.random(azimuth.shape) < 0.4] = np.nan
    range_m[:, 60:75] = np.nan  # nothing at all, as towards the sky
    range_m[:, :3] = range_m[:, -4:] = np.nan
    return unit, time_ns, range_m


def organised(blank=np.nan, fields=OUSTER):
    unit, time_ns, range_m = lidar()
    rows = rows_of(fields, unit.shape[:2])
    for k, axis in enumerate("xyz"):
        rows[axis] = np.where(np.isnan(range_m), blank, unit[..., k] * range_m)
    rows["ring"] = np.arange(N_LASERS)[:, None]
    if fields is OUSTER:
        rows["t"] = time_ns
    else:
        rows["time"] = time_ns * 1e-9
    return rows


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
