# SPDX-License-Identifier: Apache-2.0
"""Logs that other programs wrote: files without sweeps, beams that are nearly the same, logs from elsewhere."""

import laspy
import numpy as np
import pytest
from known_logs import log_of

import hedgerow as hr
from hedgerow import InputError
from hedgerow.frames import Trajectory
from hedgerow.io.trajectory import write_tum
from hedgerow.metrics import CompareSettings, compare
from hedgerow.metrics.beside import SweepsBeside

USUAL = CompareSettings()
N_SWEEPS, N_AZIMUTHS, ELEVATIONS_DEG = 4, 200, (-15.0, -5.0, 3.0)
SWEEP_S, SPEED_MPS, WALL_M = 0.1, 1.0, 30.0
PATH = Trajectory(np.array([0.0, 1.0]), np.array([[0, 0, 2.0], [SPEED_MPS, 0, 2.0]]), np.tile([0, 0, 0, 1.0], (2, 1)))
MISS_M = 20_000.0
"""Where a program may put beams that met nothing."""


def spinning(phase_deg=0.0, jitter_deg=0.0):
    """A sensor that drives along x, its beams one by one, before a wall at x = 30 m; what looks back meets nothing."""
    n = N_AZIMUTHS * len(ELEVATIONS_DEG)
    k = np.arange(N_SWEEPS * n)
    time_s = (k + 0.5) * SWEEP_S / n
    azimuth = np.radians(phase_deg - 360 * time_s / SWEEP_S)
    rng = np.random.default_rng(0)
    elevation = np.radians(np.array(ELEVATIONS_DEG)[k % 3] + rng.uniform(-jitter_deg, jitter_deg, len(k)))
    direction = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    origin = np.c_[SPEED_MPS * time_s, np.zeros(len(k)), np.full(len(k), 2.0)]
    range_m = np.where(direction[:, 0] > 0.5, (WALL_M - origin[:, 0]) / direction[:, 0], np.inf)
    return log_of(range_m, direction, origin, k // n, times=time_s, rings=k % 3)


def write_las(log, path):
    """Write a log as another program does: points and times, a ring, misses far away, no sweeps."""
    range_m = np.where(log.returns.hit, log.returns.first_m, MISS_M).astype(np.float64)
    points = log.beams.origin_m + range_m[:, None] * log.beams.direction
    header = laspy.LasHeader(version="1.4", point_format=6)
    header.scales = np.full(3, 1e-5)
    header.add_extra_dim(laspy.ExtraBytesParams("ring", "uint16"))
    las = laspy.LasData(header)
    las.x, las.y, las.z = points.T
    las.gps_time = log.beams.time_ns / 1e9
    las.ring = log.beams.ring
    las.write(str(path))


@pytest.fixture
def opened(tmp_path):
    write_tum(PATH, tmp_path / "path.tum")

    def open_las(log):
        write_las(log, tmp_path / "other.las")
        return hr.open_log(tmp_path / "other.las", trajectory=tmp_path / "path.tum")

    return open_las


def test_a_file_without_sweeps_is_cut_by_the_time_of_the_real_ones(opened, monkeypatch):
    real = spinning()
    other = opened(spinning(phase_deg=0.05))
    for at_once in (1_000_000, 500):  # one piece, and pieces that end within sweeps
        monkeypatch.setattr("hedgerow.io.points.las._AT_ONCE", at_once)
        beside = SweepsBeside(other, USUAL)
        for number, sweep in real.iter_sweeps():
            found = beside.find(sweep)
            assert found is not None
            np.testing.assert_array_equal(found.beams.time_ns, sweep.beams.time_ns, err_msg=f"sweep {number}")


def test_another_programs_file_has_scores_of_beams_and_of_clouds(opened):
    scores = compare(spinning(), opened(spinning(phase_deg=0.05)))
    # 0.05 of 1.8 degrees: the wall at 60 degrees is 60 m away, and 60 m tan(60 deg) 0.05 deg = 9 cm farther or nearer.
    assert scores["hits_found"] == 1.0 and scores["misses_found"] == 1.0
    assert 0 < (scores["beam_error_mean_m"] or 0.0) < 0.09
    assert any("2,400 of 2,400 real beams (100.0%) have a partner" in note for note in scores.notes)
    assert scores["elevation_share_error"] == 0.0


def test_lasers_of_whole_degrees_are_not_split_by_rounding(opened):
    scores = compare(spinning(), opened(spinning(jitter_deg=0.02)))
    assert scores["elevation_share_error"] == 0.0


def test_a_log_from_elsewhere_is_refused():
    real = spinning()
    far = hr.Log.from_arrays(
        origins=real.beams.origin_m + np.array([1000.0, 0, 0]),
        directions=real.beams.direction,
        ranges=real.returns.first_m,
        sweeps=real.beams.sweep,
        max_range_m=100.0,
    )
    with pytest.raises(InputError, match=r"^far: none of its sweeps is within 5 m of one of the real log"):
        compare(real, {"far": far})


def test_an_empty_log_is_refused():
    real = spinning()
    with pytest.raises(InputError, match=r"^nothing: the log has no beams"):
        compare(real, {"nothing": real[:0]})


def test_few_partners_are_explained():
    real = spinning()
    turned = compare(real, spinning(phase_deg=0.4))
    assert turned.values["hits_found"].n == 0
    assert any("match_deg and match_origin_m can be larger" in note for note in turned.notes)
    assert not any("can be larger" in note for note in compare(real, spinning(phase_deg=0.05)).notes)
