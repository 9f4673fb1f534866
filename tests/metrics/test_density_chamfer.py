# SPDX-License-Identifier: Apache-2.0
"""Density-aware Chamfer distance: closed forms, and a slow sum over all pairs of points."""

import numpy as np
import pytest
from known_logs import drive, log_of, random_ranges, with_ranges

from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.density_chamfer import density_chamfer_one_way
from hedgerow.metrics.pair import Nearest, points_of

LENGTH_M = CompareSettings().density_length_m


def slow(one, other, length_m):
    """The distance of two sets of points by all pairs of them."""
    total = 0.0
    for a, b in ((one, other), (other, one)):
        apart = np.linalg.norm(a[:, None] - b[None], axis=2)
        nearest = apart.argmin(axis=1)
        shared = np.array([(nearest == each).sum() for each in nearest])
        total += np.mean(1 - np.exp(-apart.min(axis=1) / length_m) / shared) / 2
    return total


def test_equal_sweeps_have_none_and_far_ones_have_one():
    real = log_of([10.0, 20.0, 30.0])
    assert compare(real, real)["density_chamfer"] == 0
    assert compare(real, with_ranges(real, [50.0, 60.0, 70.0]))["density_chamfer"] == pytest.approx(1, abs=1e-9)


def test_one_point_at_a_distance_is_an_exponential():
    real = log_of([10.0], [[1.0, 0, 0]])
    found = compare(real, with_ranges(real, [10.3]), density_length_m=0.5)["density_chamfer"]
    assert found == pytest.approx(1 - np.exp(-0.3 / 0.5), rel=1e-5)  # float32 ranges


def test_points_that_share_one_count_but_once():
    """Three simulated returns at one of two real ones: 1 - 1/3 each; back, both share one place: 1 - 1/2, and 1."""
    real = log_of([10.0, 90.0], [[1.0, 0, 0], [0, 1.0, 0]])
    other = log_of([10.0, 10.0, 10.0], np.tile([[1.0, 0, 0]], (3, 1)), origins=(0, 0, 0))
    found = compare(real, other)["density_chamfer"]
    assert found == pytest.approx((2 / 3 + (1 / 2 + 1) / 2) / 2, abs=1e-9)
    # The mean distance to the nearest of the other sweep sees no fault in them, one way.
    there = Nearest(np.array([[10.0, 0, 0], [0, 90.0, 0]])).find(np.tile([[10.0, 0, 0]], (3, 1)))
    assert there.distance_m.max() == 0
    assert density_chamfer_one_way(there, LENGTH_M) == pytest.approx(2 / 3)


@pytest.mark.parametrize("length_m", [0.05, 0.2, 3.0])
def test_it_is_the_slow_sum_over_pairs(length_m):
    rng = np.random.default_rng(0)
    real = drive(0, n_sweeps=2, n=200)
    simulated = with_ranges(real, np.where(rng.random(400) < 0.5, real.returns.first_m, random_ranges(rng, 400)))
    found = compare(real, simulated, density_length_m=length_m)["density_chamfer"]
    clouds = [[points_of(each.beams, r := each.returns.first_m, np.isfinite(r)) for _, each in log.iter_sweeps()]
              for log in (real, simulated)]  # fmt: skip
    by_hand = np.mean([slow(one, other, length_m) for one, other in zip(*clouds, strict=True)])
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_parts_add_up_and_empty_sweeps_are_left_out():
    real, settings = drive(1, n_sweeps=3, n=100), CompareSettings()
    ranges = random_ranges(np.random.default_rng(1), 300)
    ranges[100:200] = np.inf
    simulated = with_ranges(real, ranges)
    whole = compare(real, simulated)
    parts = [accumulate(real.select(sweep=[k]), {"simulated": simulated.select(sweep=[k])}, settings) for k in range(3)]
    for each in parts[1:]:
        parts[0].merge(each)
    merged = score(parts[0], {})["simulated"]
    assert merged.values["density_chamfer"].value == pytest.approx(whole["density_chamfer"], rel=1e-12)
    assert merged.values["density_chamfer"].n == whole.values["density_chamfer"].n
    alone = [compare(real.select(sweep=[k]), simulated.select(sweep=[k]))["density_chamfer"] for k in (0, 2)]
    assert whole["density_chamfer"] == pytest.approx(sum(each or 0.0 for each in alone) / 2)
