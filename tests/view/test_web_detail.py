# SPDX-License-Identifier: Apache-2.0
"""Level of detail: slices of clouds, and which of them keep to a number of points."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hedgerow.view.web.drawing import (
    COARSEST_POINTS,
    MAX_POINT_SCALE,
    assign_octaves,
    choose_octave,
    choose_point_scale,
    count_drawn,
)
from hedgerow.view.web.frame import hash_pulses

N = 40 * COARSEST_POINTS


def test_each_octave_has_half_of_the_points_before_it():
    found = assign_octaves(hash_pulses(np.arange(N)), np.full(N, 10, dtype=np.float32))
    counts = np.bincount(found)
    assert_array_equal(counts, [N // 2, N // 4, N // 8, N // 16, N // 32, N // 32])
    assert counts[-1] >= COARSEST_POINTS


@pytest.mark.parametrize("n", [0, 1, 100, 2 * COARSEST_POINTS - 1])
def test_a_small_cloud_is_one_slice(n):
    assert_array_equal(assign_octaves(hash_pulses(np.arange(n)), np.ones(n, dtype=np.float32)), np.zeros(n))


def test_a_thinned_cloud_keeps_its_near_points_in_every_slice():
    n = 2**18
    key, range_m = hash_pulses(np.arange(n)), np.where(np.arange(n) % 10, 4.0, 40.0).astype(np.float32)
    left = key < np.uint64(2**63)  # as `thin` leaves them
    found = assign_octaves(key[left], range_m[left])
    near = np.count_nonzero(range_m[left][found == found.max()] < 5)
    # Nine times as many near points, of a hundredth of the weight: 8 % of the last slice, 680 of 8,192; a tenth of the
    # points are far, so that hardly any run out. Five standard deviations are 130.
    assert 550 < near < 1100


def test_a_coarse_cloud_is_spread_evenly_though_beams_crowd_near_the_sensor():
    n, n_left = 2**19, 2**15
    range_m = (2 / np.linspace(1, 0.05, n)).astype(np.float32)  # 2 to 40 m, the density falls with the squared range
    coarse = assign_octaves(hash_pulses(np.arange(n)), range_m) >= 4
    assert np.count_nonzero(coarse) == n_left
    # Exponential times with rates r^2: until tau, 1 - exp(-tau r^2) of those at r are drawn; tau is told by their sum.
    low, high, share = 1e-9, 1.0, np.ones(n)
    for _ in range(60):
        tau = (low * high) ** 0.5
        share = 1 - np.exp(-tau * range_m.astype(float) ** 2)
        low, high = (tau, high) if share.sum() < n_left else (low, tau)
    edges = [2, 5, 10, 15, 20, 25, 30, 40]
    counts, expected = np.histogram(range_m[coarse], edges)[0], np.histogram(range_m, edges, weights=share)[0]
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()  # false alarm: under 1e-5
    assert np.ptp(counts[1:6]) < 0.4 * counts[1:6].mean()  # all alike, where the cloud itself thins out 18-fold


def test_the_same_points_stay_whatever_else_is_there():
    range_m = np.full(N, 5, dtype=np.float32)
    key = hash_pulses(np.arange(N))
    assert_array_equal(assign_octaves(key, range_m)[::-1], assign_octaves(key[::-1], range_m))


def test_the_finest_octave_keeps_the_budget_and_the_last_slice_stays():
    clouds = [{0: 800, 1: 400, 2: 400}, {0: 50}, {}]
    assert [count_drawn(clouds, octave) for octave in (0, 1, 2, 9)] == [1650, 850, 450, 450]
    assert [choose_octave(clouds, budget) for budget in (5000, 1650, 1649, 850, 849, 3)] == [0, 0, 1, 1, 2, 2]
    assert choose_octave([], 10) == 0


def test_fewer_points_are_larger_by_the_root_and_not_without_end():
    assert choose_point_scale(25, 100) == 2.0
    assert choose_point_scale(100, 100) == 1.0
    assert choose_point_scale(1, 10_000) == MAX_POINT_SCALE
    assert choose_point_scale(0, 0) == 0.0  # nothing to draw
