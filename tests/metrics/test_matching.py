# SPDX-License-Identifier: Apache-2.0
"""Logs whose beams are not the same: partners against brute force, geometry by hand, sweeps by number and place."""

import numpy as np
import pytest
from known_logs import drive, log_of, with_ranges

import hedgerow as hr
from hedgerow import InputError
from hedgerow.metrics import CompareSettings, compare
from hedgerow.metrics.beside import NextSweep, SweepsBeside
from hedgerow.metrics.inputs import Again, simulate_sweeps
from hedgerow.metrics.matching import find_partners, match_sweep

USUAL = CompareSettings()


def spin(n=360, rings=(-10.0, -5.0, 0.0), phase_deg=0.0, origin=(0.0, 0.0, 2.0), wall_m=10.0, sweep=0, **more):
    """One turn of a sensor inside a vertical cylinder about the map's z axis, ring by ring."""
    azimuth = np.radians(np.tile(np.arange(n) * 360 / n + phase_deg, len(rings)))
    elevation = np.radians(np.repeat(rings, n))
    direction = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    flat = direction[:, :2]
    # |o + t d| = R in the plane.
    a, b, c = (flat**2).sum(1), flat @ np.array(origin[:2]), np.dot(origin[:2], origin[:2]) - wall_m**2
    ranges = (-b + np.sqrt(b**2 - a * c)) / a
    return log_of(ranges, direction, origin, sweep, rings=np.repeat(np.arange(len(rings)), n), **more)


def slow_partners(real, other, match_deg):
    """The nearest direction of all, beam by beam."""
    cosine = real.direction.astype(np.float64) @ other.direction.astype(np.float64).T
    best = cosine.argmax(axis=1)
    angle = np.degrees(np.arccos(np.clip(cosine.max(axis=1), -1, 1)))
    return np.where(angle <= match_deg, best, -1)


def test_partners_are_those_of_brute_force():
    real, other = drive(1, n_sweeps=1, n=800), drive(2, n_sweeps=1, n=900)
    found = find_partners(real.beams, other.beams, 3.0, 0.1)
    np.testing.assert_array_equal(found, slow_partners(real.beams, other.beams, 3.0))
    assert 0.1 < np.mean(found >= 0) < 0.9


def test_a_turned_sensor_sees_the_same_cylinder_beam_by_beam():
    scores = compare(spin(), spin(phase_deg=0.06))
    assert scores["hits_found"] == 1.0
    assert scores["beam_error_mean_m"] == pytest.approx(0, abs=2e-5)  # cos of 0.06 degrees, times 10 m
    [note] = [note for note in scores.notes if "partner" in note]
    assert note.startswith("1,080 of 1,080 real beams (100.0%) have a partner within 0.1 degrees and 0.1 m")


def test_beams_beyond_the_tolerance_have_no_partner_but_clouds_are_compared():
    scores = compare(spin(), spin(phase_deg=0.3))
    assert scores["hits_found"] is None and scores.values["hits_found"].n == 0
    assert scores["range_histogram_match_m"] == pytest.approx(0, abs=1e-3)
    # The nearest of the other is 0.3 degrees on along the circle of 10 m.
    assert scores["cloud_distance_m"] == pytest.approx(2 * 10 * np.sin(np.radians(0.15)), rel=1e-3)
    assert compare(spin(), spin(phase_deg=0.3), match_deg=0.4)["hits_found"] == 1.0


def test_a_shifted_origin_is_taken_off_the_range():
    real, other = spin(), spin(origin=(0.06, 0.0, 2.0))
    found = match_sweep(real, other, USUAL)
    ahead = np.flatnonzero(np.arange(len(real)) % 360 == 0)
    # Seen from 6 cm ahead the wall ahead is 6 cm nearer; along the real beam, if it is level, it is where it was.
    np.testing.assert_allclose(found.range_m[ahead[2]], 10, atol=1e-5)
    # A beam of 10 degrees down that starts 6 cm on runs 6 cm sin(10 deg) above the real one; projected, that squared.
    np.testing.assert_allclose(
        found.range_m[ahead[0]],
        10 / np.cos(np.radians(10)) - 0.06 * np.sin(np.radians(10)) * np.tan(np.radians(10)),
        atol=1e-4,
    )
    far = compare(real, spin(origin=(0.2, 0.0, 2.0)))
    assert far.values["hits_found"].n == 0


def test_rings_of_other_elevations_are_partners_by_azimuth():
    real, other = spin(), spin(rings=(-11.5, -5.5, 0.8))
    assert (find_partners(real.beams, other.beams, 0.1, 0.1) >= 0).all()
    turned = spin(rings=(0.8, -5.5, -11.5))  # numbered from the top: ring numbers mean nothing
    assert (find_partners(real.beams, turned.beams, 0.1, 0.1) == -1).all()


def test_what_has_no_rings_is_matched_by_direction():
    real, other = spin(), spin(phase_deg=0.05)
    blind = hr.Log.from_arrays(
        origins=other.beams.origin_m, directions=other.beams.direction, ranges=other.returns.first_m, max_range_m=100.0
    )
    found = find_partners(real.beams, blind.beams, 0.1, 0.1)
    np.testing.assert_array_equal(found, np.arange(len(real)))


def test_missing_returns_of_partners_are_misses():
    other = spin(phase_deg=0.05)
    half = with_ranges(other, np.where(np.arange(len(other)) % 2, np.inf, other.returns.first_m))
    scores = compare(spin(), half)
    assert scores["hits_found"] == 0.5


def test_sweeps_are_found_by_number_then_time_then_place():
    spots = [(3.0 * k, 0.0, 2.0) for k in range(4)]
    real = hr.Log.concatenate([spin(wall_m=40, origin=at, sweep=k) for k, at in enumerate(spots)])
    later = hr.Log.concatenate([spin(wall_m=40, origin=at, sweep=k + 7) for k, at in enumerate(spots)])
    beside = SweepsBeside(later, USUAL)
    found = [beside.find(sweep) for _, sweep in real.iter_sweeps()]
    assert [None if each is None else int(each.beams.sweep[0]) for each in found] == [7, 8, 9, 10]
    assert compare(real, later)["beam_error_mean_m"] == 0.0
    backwards = hr.Log.concatenate([spin(wall_m=40, origin=at, sweep=k) for k, at in enumerate(spots[::-1])])
    assert compare(real, backwards, match_place_m=1.0)["beam_error_mean_m"] == 0.0  # same numbers, other places


def test_times_tell_sweeps_apart_where_numbers_and_places_do_not():
    def turn(k, number):
        return spin(wall_m=10 + k, sweep=number, times=np.full(1080, 0.1 * k))

    real = hr.Log.concatenate([turn(k, k) for k in range(4)])
    other = hr.Log.concatenate([turn(k, k + 100) for k in range(4)])
    assert compare(real, other)["beam_error_mean_m"] == 0.0


def test_sweeps_with_none_beside_them_are_said_and_left_out():
    near, far = spin(), spin(origin=(20.0, 0.0, 2.0), wall_m=60, sweep=1)
    scores = compare(hr.Log.concatenate([near, far]), near)
    assert scores.values["hits_found"].n == len(near)
    assert "1 of 2 real sweeps have none beside them, and no score here" in scores.notes


def test_a_longer_simulated_log_is_read_where_it_is_needed(tmp_path):
    real = drive(3)
    hr.write_log(real, tmp_path / "long.parquet")
    part = real.select(sweep=[1, 4])
    assert compare(part, hr.open_log(tmp_path / "long.parquet"))["beam_error_mean_m"] == 0.0


def test_a_log_of_another_map_is_refused():
    real = spin()
    with pytest.raises(InputError, match="simulated: its map begins at"):
        moved = hr.Log(real.beams, real.returns, max_range_m=100.0, map_origin_m=np.array([480_000.0, 5.4e6, 0]))
        compare(real, moved)


def test_a_standing_sensor_is_its_own_second_recording_in_parts_too():
    rng = np.random.default_rng(0)
    still = spin()
    turns = [
        hr.Log.from_arrays(
            origins=(0, 0, 2.0),
            directions=still.beams.direction,
            ranges=rng.normal(10, 0.1, len(still)),
            rings=still.beams.ring,
            sweeps=k,
            max_range_m=100.0,
        )
        for k in range(5)
    ]
    log = hr.Log.concatenate(turns)
    again = Again(NextSweep(log))
    whole = list(simulate_sweeps("again", again, (sweep for _, sweep in log.iter_sweeps()), 0, USUAL))
    for k, found in enumerate(whole):
        expected = turns[min(k + 1, 4) if k < 4 else 3]
        np.testing.assert_allclose(found.range_m, expected.returns.first_m, rtol=1e-6)
    [alone] = simulate_sweeps("again", again, [turns[2]], 0, USUAL)
    np.testing.assert_array_equal(alone.range_m, whole[2].range_m)
    scores = compare(log, {"again": again})["again"]
    # |difference of two N(0, 0.1²)|, halved: the CRPS of the true distribution.
    assert scores.values["crps_m"].n == len(log)
    assert scores["crps_m"] == pytest.approx(0.1 / np.sqrt(np.pi), abs=5 * 0.0426 / np.sqrt(len(log)))
