# SPDX-License-Identifier: Apache-2.0
"""Missing returns of bare points: simulated sweeps, whose misses are known, and a real one, whose misses were found."""

import importlib.util

import numpy as np
import pytest
from kitti_maker import DATA, DRIVE
from lane import lane_trajectory, lane_world
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.frames import Pose
from hedgerow.io.convert import convert
from hedgerow.io.kitti import kitti_order, read_bin
from hedgerow.io.recovery import NotRecovered, Recovery
from hedgerow.io.recovery.fit import split_rings
from hedgerow.io.recovery.lasers import fit_lattice, fit_line

S2 = hr.Sensor.named("hdl-64e-s2")
HEIGHT_M = 1.9


@pytest.fixture(scope="module")
def world():
    return lane_world()


@pytest.fixture(scope="module")
def standing(world):
    """A simulated sweep of a standing sensor, and its points as KITTI stores them: rings and misses are known."""
    log = world.fire(S2.sweep(Pose.from_xyz_rpy((0, 0, HEIGHT_M))), 7, sensor=S2)
    points = (log.points() - [0, 0, HEIGHT_M]).astype(np.float32)
    order = kitti_order(points, log.beams.ring[log.returns.hit], log.beams.direction[log.returns.hit, 2])
    return log, points[order].astype(np.float64), order


def test_points_of_a_laser_show_its_elevation_height_and_sideways_distance():
    rng = np.random.default_rng(1)
    azimuth, rho = np.deg2rad(0.09) * rng.integers(0, 4000, 800) + 0.0004, rng.uniform(3, 60, 800)
    left, up, elevation = 0.026, 0.2, np.deg2rad(-7)
    x = rho * np.cos(azimuth) - left * np.sin(azimuth)
    y = rho * np.sin(azimuth) + left * np.cos(azimuth)
    points = np.column_stack([x, y, up + np.tan(elevation) * np.hypot(x, y)]).round(3)  # as KITTI rounds
    found, height, _ = fit_line(points)
    assert_allclose(np.rad2deg(found), -7, atol=0.001)  # 0.3 mm rms at 30 m, over the root of 800
    assert_allclose(height, 0.2, atol=0.001)
    sideways, phase, kept = fit_lattice(points, np.deg2rad(0.09), 0.0, 1)
    assert sideways == pytest.approx(0.026)
    assert_allclose(phase, 0.0004, atol=1e-5)
    assert kept > 0.98


def test_order_of_the_points_shows_the_rings(standing):
    log, points, order = standing
    ring = split_rings(points, 64)
    assert ring is not None
    assert np.array_equal(63 - ring, log.beams.ring[log.returns.hit][order])
    assert split_rings(points[np.random.default_rng(0).permutation(len(points))], 64) is None
    assert split_rings(points, 32) is None


def test_simulated_sweep_comes_back_with_its_rings_and_misses(standing):
    log, points, order = standing
    recovery = Recovery.of(S2, [points])
    pulses = recovery.complete(points)
    assert recovery.quality["explained"] > 0.999
    seen = pulses.point >= 0
    known_ring = log.beams.ring[log.returns.hit][order]
    assert np.array_equal(pulses.ring[seen], known_ring[pulses.point[seen]])
    assert_allclose((pulses.origin_m + pulses.direction * pulses.range_m[:, None])[seen], points[pulses.point[seen]])
    # Every firing is found once, ring by ring, but for the few of stray points.
    missed = np.bincount(log.beams.ring[~log.returns.hit], minlength=64)
    assert_allclose(np.bincount(pulses.ring[~seen], minlength=64), missed, atol=2)
    for ring in (50, 58, 63):
        mine = _azimuths(pulses.direction[~seen & (pulses.ring == ring)])
        theirs = _azimuths(log.beams.direction[~log.returns.hit & (log.beams.ring == ring)])
        assert np.abs(mine[:, None] - theirs).min(axis=1).max() < np.deg2rad(0.01)  # of steps of 0.17 degrees


def test_beams_that_the_vehicle_hides_are_not_called_misses(standing):
    log, points, _ = standing
    azimuth = np.rad2deg(np.arctan2(points[:, 1], points[:, 0]))
    hidden = (np.abs(azimuth) < 20) & (points[:, 2] < -0.3 * np.hypot(points[:, 0], points[:, 1]))
    pulses = Recovery.of(S2, [points[~hidden]]).complete(points[~hidden])
    n_missed = int(np.count_nonzero(~log.returns.hit))
    assert hidden.sum() > 3000
    # Sectors of a degree that are hidden in part keep a few.
    assert np.count_nonzero(pulses.point < 0) < n_missed + 0.1 * hidden.sum()


def test_clouds_that_do_not_show_their_firings_are_refused(standing):
    _, points, _ = standing
    rng = np.random.default_rng(2)
    with pytest.raises(NotRecovered, match="keep no common step"):
        Recovery.of(S2, [rng.uniform(-20, 20, (20000, 3))])
    with pytest.raises(NotRecovered, match="no points"):
        Recovery.of(S2, [np.zeros((0, 3))])
    with pytest.raises(NotRecovered, match=r"only .* of 64 lasers"):
        Recovery.of(S2, [points[:100]])
    with pytest.raises(NotRecovered, match="no plain rows of lasers"):
        Recovery.of(hr.Sensor.named("mid-360"), [points])
    recovery = Recovery.of(S2, [points])
    with pytest.raises(NotRecovered, match="of the points fit a firing"):
        recovery.complete(points + rng.normal(0, 0.1, points.shape))


def test_misses_of_moving_sweeps_are_recovered_from_kittis_clouds_alone(world, tmp_path):
    trajectory = lane_trajectory()
    log = world.fire(S2.drive(trajectory, n_sweeps=2, start_s=1.0), 7, sensor=S2)
    hr.write_log(log, tmp_path / "seq", format="kitti", trajectory=trajectory)
    (tmp_path / "seq" / "hedgerow.parquet").unlink()
    again = hr.open_log(tmp_path / "seq")
    assert again.metadata["motion"] == "compensated"
    for number, sweep in again.iter_sweeps():
        true = log.select(sweep=number)
        assert len(sweep) == pytest.approx(len(true), rel=0.002)
        assert np.bincount(sweep.beams.ring[~sweep.returns.hit], minlength=64) == pytest.approx(
            np.bincount(true.beams.ring[~true.returns.hit], minlength=64), abs=12
        )
        # The sensor moves 50 cm in a sweep; poses between sweeps are interpolated, the lane swerves by millimetres.
        assert np.ptp(sweep.beams.origin_m[:, 0]) == pytest.approx(np.ptp(true.beams.origin_m[:, 0]), abs=0.01)


@pytest.mark.skipif(not DRIVE.is_dir(), reason="needs the recording in ../shared/data")
@pytest.mark.parametrize("format", ["kitti", "pcd-folder"])
def test_real_drive_written_and_read_again_keeps_its_misses(tmp_path, format):
    raw = hr.open_log(DRIVE)
    convert(raw, tmp_path / "seq", format=format, sweeps=range(62, 65))
    before = raw.read(range(62, 65))
    assert hr.read_log(tmp_path / "seq").equal(before)
    (tmp_path / "seq" / "hedgerow.parquet").unlink()  # the points alone
    again = hr.read_log(tmp_path / "seq")
    assert len(again) == pytest.approx(len(before), rel=0.002)
    assert np.count_nonzero(again.returns.hit) == np.count_nonzero(before.returns.hit)
    wrong_kind = hr.open_log(tmp_path / "seq", deskewed=False)
    assert "not recovered" in wrong_kind.metadata["recovery"]["summary"]  # the motion is still in it


@pytest.mark.skipif(not DRIVE.is_dir(), reason="needs the recording in ../shared/data")
def test_real_sweep_agrees_with_what_its_curators_found():
    spec = importlib.util.spec_from_file_location("load", DATA / "kitti_0005" / "load.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    curated = module.Log(str(DATA / "kitti_0005"))
    clouds = [read_bin(DRIVE / f"velodyne_points/data/{n:010d}.bin")[:, :3].astype(float) for n in (60, 62, 64)]
    recovery = Recovery.of(S2, clouds, np.pi)
    assert recovery.quality["explained"] > 0.9999
    lasers, calibration = recovery.lasers, np.load(DATA / "kitti_0005" / "calib.npz")
    assert_allclose(np.rad2deg(lasers.elevation_rad - calibration["elev_raw"]), 0, atol=0.005)
    assert_allclose(lasers.left_m, -calibration["hoff"], atol=1e-3)
    pulses = recovery.complete(clouds[0])
    range_m = curated.image(60)[0]
    mine = np.bincount(63 - pulses.ring[pulses.point < 0], minlength=64)
    theirs = np.isinf(range_m).sum(axis=1)
    # The upper block sees no part of the car, so both must count the same; a firing at the seam is one of 2150.
    assert_allclose(mine[:20], theirs[:20], atol=2)
    assert np.count_nonzero(pulses.point < 0) == pytest.approx(np.isinf(range_m).sum(), rel=0.06)


def _azimuths(direction):
    return np.arctan2(direction[:, 1], direction[:, 0]).astype(float)
