# SPDX-License-Identifier: Apache-2.0
"""Histograms of a standing sensor: closed forms of Bhattacharyya distance and histogram match."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_logs import drive, log_of, with_ranges

from hedgerow import Beams, InputError
from hedgerow.metrics import compare
from hedgerow.metrics.bearing import BearingHistogram, Directions, bearing_distances, split_keys
from hedgerow.metrics.range_histogram import RangeHistogram, histogram_match_m

AHEAD = np.array([[1.0, 0.0, 0.0]])


def standing(ranges, directions=AHEAD, **more):
    """Every direction fired once per row of (repeats, directions) ranges; each row is a sweep."""
    ranges = np.atleast_2d(ranges)
    repeats, n = ranges.shape
    return log_of(ranges.ravel(), np.tile(directions, (repeats, 1)), sweeps=np.repeat(np.arange(repeats), n), **more)


def column(values):
    return np.asarray(values, dtype=float)[:, None]


def test_equal_histograms_are_0_apart():
    log = standing(column([10, 10.1, 10.1, np.inf] * 5))
    scores = compare(log, log)
    assert scores.static
    for key in ("bhattacharyya", "bhattacharyya_per_direction", "histogram_match_m"):
        assert scores[key] == 0
        assert scores.values[key].n == 20


def test_disjoint_histograms_are_at_the_bound_of_one_shared_beam():
    real = standing(column([10.0] * 50))
    scores = compare(real, with_ranges(real, [11.0] * 50))
    assert scores["bhattacharyya"] == pytest.approx(np.log(50), rel=1e-12)  # -log(1 / sqrt(50 * 50))
    assert scores["bhattacharyya_per_direction"] == pytest.approx(np.log(50), rel=1e-12)
    assert scores["histogram_match_m"] == pytest.approx(1.0, rel=1e-9)


def test_two_known_histograms_have_the_distance_of_the_formula():
    # Shares (1/4, 1/2, 1/4 without return) against (1/2, 1/2, 0).
    real = standing(column([10.0] * 5 + [12.0] * 10 + [np.inf] * 5), max_range_m=20.0)
    scores = compare(real, with_ranges(real, [10.0] * 10 + [12.0] * 10))
    expected = -np.log(np.sqrt(1 / 8) + 1 / 2)
    assert scores["bhattacharyya"] == pytest.approx(expected, rel=1e-12)
    # A quarter moves from 10 to 12 m, and a quarter from 12 m to the maximal range, 20 m.
    assert scores["histogram_match_m"] == pytest.approx(0.25 * 2 + 0.25 * 8, rel=1e-9)


def test_one_direction_in_two_wrong_tells_the_whole_from_the_mean():
    two = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    real = standing(np.tile([10.0, 10.0], (50, 1)), two)
    scores = compare(real, with_ranges(real, np.tile([10.0, 15.0], (50, 1)).ravel()))
    assert scores["bhattacharyya"] == pytest.approx(-np.log(1 / 2), rel=1e-12)
    assert scores["bhattacharyya_per_direction"] == pytest.approx(np.log(50) / 2, rel=1e-12)


def test_two_normals_have_the_distance_of_their_closed_form():
    n, sigma = 200_000, 0.2
    rng = np.random.default_rng(0)
    directions = Directions(0.09)
    a, b = BearingHistogram(directions, 0.02), BearingHistogram(directions, 0.02)
    where = np.zeros(n, dtype=np.int64)
    a.add(where, rng.normal(20.0, sigma, n).astype(np.float32))
    b.add(where, rng.normal(20.3, sigma, n).astype(np.float32))
    found = bearing_distances(a, b, 5, np.inf)
    # Equal sigmas: D = (difference / sigma)² / 8. About 80 occupied bins of 200,000 beams bias it by less than
    # 80 / (4 n) = 1e-4, and it scatters by some sqrt(D / n) = 1e-3.
    assert found["bhattacharyya"].value == pytest.approx(1.5**2 / 8, abs=5e-3)
    # Moving every beam by 0.3 m; its standard error is 0.2 m * sqrt(2 / n) = 6e-4 m.
    assert found["histogram_match_m"].value == pytest.approx(0.3, abs=5 * 6.4e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_distances_are_symmetric_and_ignore_order_and_partition(seed):
    rng = np.random.default_rng(seed)
    directions = Directions(0.09)
    where = rng.integers(0, 5, 400)
    ranges = [np.where(rng.random(400) < 0.2, np.inf, rng.normal(10, 0.01, 400)).astype(np.float32) for _ in range(2)]
    whole = [BearingHistogram(directions, 0.002) for _ in range(2)]
    for histogram, range_m in zip(whole, ranges, strict=True):
        histogram.add(where, range_m)
    order = rng.permutation(400)
    parts = [BearingHistogram(directions, 0.002) for _ in range(3)]
    for part, rows in zip(parts, np.array_split(order, 3), strict=True):
        part.add(where[rows], ranges[0][rows])
    parts[2].merge(parts[0])
    parts[2].merge(parts[1])
    np.testing.assert_array_equal(parts[2].entries(), whole[0].entries())
    first, second = whole
    there, back = bearing_distances(first, second, 5, 50.0), bearing_distances(second, first, 5, 50.0)
    # Both weigh the directions by the beams of the first histogram, which are the same here.
    assert there["bhattacharyya"].value == pytest.approx(back["bhattacharyya"].value, rel=1e-12)
    assert there["histogram_match_m"].value == pytest.approx(back["histogram_match_m"].value, rel=1e-9)
    value = there["bhattacharyya"].value
    assert value is not None and value > 0


def test_reported_ranges_fall_in_the_middle_of_their_bins():
    # Multiples of 2 mm, as float32, must not flicker between two bins.
    k = np.arange(1, 50_000)
    histogram = BearingHistogram(Directions(0.09), 0.002)
    histogram.add(np.zeros(len(k), dtype=np.int64), (k * 0.002).astype(np.float32))
    keys, counts = histogram.entries()
    np.testing.assert_array_equal(split_keys(keys)[1], k)
    np.testing.assert_array_equal(counts, 1)


def test_directions_are_told_apart_by_ring_azimuth_and_elevation():
    azimuth = np.radians([0, 0.09, -0.09, 180, -180, 0])
    elevation = np.radians([0, 0, 0, 0, 0, 1.0])
    vectors = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    directions = Directions(0.09)
    numbers = directions.of(Beams.from_arrays(origins=(0, 0, 0), directions=vectors, rings=3))
    assert numbers[3] == numbers[4]  # the seam
    assert len(set(numbers[[0, 1, 2, 3, 5]].tolist())) == 5
    ring, azimuth_deg = directions.ring_and_azimuth_deg(numbers)
    np.testing.assert_array_equal(ring, 3)
    np.testing.assert_allclose(azimuth_deg[:3], [0, 0.09, -0.09], atol=1e-9)
    other = directions.of(Beams.from_arrays(origins=(0, 0, 0), directions=vectors, rings=4))
    assert not set(numbers.tolist()) & set(other.tolist())


def test_a_moving_log_has_no_distance_by_direction():
    log = drive()
    scores = compare(log, log)
    assert not scores.static
    assert scores["bhattacharyya"] is None


def test_a_single_turn_of_a_standing_sensor_is_not_static():
    log = standing(np.full((1, 100), 10.0), log_of(np.ones(100)).beams.direction)
    assert not compare(log, log).static


def test_lasers_apart_in_one_housing_still_stand():
    origins = np.tile([[0, 0, 0], [0, 0, 0.2]], (20, 1))
    log = log_of(np.full(40, 10.0), np.tile(AHEAD, (40, 1)), origins, np.repeat(np.arange(20), 2))
    assert compare(log, log).static
    creeping = log_of(np.full(40, 10.0), np.tile(AHEAD, (40, 1)), origins + np.repeat(np.arange(20), 2)[:, None] * 0.01)
    assert compare(creeping, creeping, static_tolerance_m=0.2).static
    moved = creeping.select(sweep=0)
    sweeps = np.repeat(np.arange(20), 2)
    moved = log_of(np.full(40, 10.0), np.tile(AHEAD, (40, 1)), moved.beams.origin_m, sweeps)
    assert not compare(moved, moved).static


def test_the_setting_overrides_what_the_log_looks_like():
    still, moving = standing(column([10.0] * 20)), drive()
    assert compare(still, still, static=False)["bhattacharyya"] is None
    scores = compare(moving, moving, static=True)
    assert scores.static
    assert scores["bhattacharyya"] is None  # no direction repeats
    assert scores.values["bhattacharyya"].n == 0


def test_few_repeats_are_said_in_the_notes():
    log = standing(column([10.0] * 20))
    assert any("20 beams on average" in note for note in compare(log, log).notes)
    many = standing(column([10.0] * 100))
    assert not any("beams on average" in note for note in compare(many, many).notes)


def test_a_histogram_moved_by_three_bins_matches_within_three_bins():
    a, b = RangeHistogram(0.1), RangeHistogram(0.1)
    a.add(np.full(100, 10.05, dtype=np.float32))
    b.add(np.full(100, 10.35, dtype=np.float32))
    assert histogram_match_m(a, b, 80.0) == pytest.approx(0.3, rel=1e-12)
    assert histogram_match_m(b, a, np.inf) == pytest.approx(0.3, rel=1e-12)


def test_lost_returns_count_as_returns_at_the_maximal_range():
    real = log_of([10.05] * 4, max_range_m=30.0)
    scores = compare(real, with_ranges(real, [10.05, 10.05, 10.05, np.inf]))
    # A quarter moves from the bin at 10.0 m to the end, 30 m.
    assert scores["range_histogram_match_m"] == pytest.approx(20 / 4, rel=1e-9)


def test_a_step_too_fine_for_the_numbers_is_refused():
    log = standing(column([10.0] * 20))
    with pytest.raises(InputError, match="bearing_step_deg"):
        compare(log, log, bearing_step_deg=0.01)
