# SPDX-License-Identifier: Apache-2.0
"""Distributions that need no partners: closed forms, SciPy's distance of two samples, and logs of other beams."""

import json

import numpy as np
import pytest
from known_logs import PaintedWorld, drive, log_of, random_ranges, with_ranges
from scipy.stats import wasserstein_distance

from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.counts import GrowingHistogram, add_counts, count_labels, cumulative_difference
from hedgerow.metrics.shares import SHARES_METRICS


def upwards(elevation_deg):
    elevation = np.radians(np.asarray(elevation_deg, dtype=float))
    return np.c_[np.cos(elevation), np.zeros(len(elevation)), np.sin(elevation)]


def filled(values, step, most_bins=65536):
    histogram = GrowingHistogram(step, most_bins)
    histogram.add(np.asarray(values, dtype=float))
    return histogram


def test_the_area_between_distributions_is_that_of_scipy():
    rng = np.random.default_rng(0)
    one, other = rng.gamma(2, 0.1, 5000), rng.gamma(3, 0.1, 3000)
    found = cumulative_difference(filled(one, 1 / 4096), filled(other, 1 / 4096))
    assert found == pytest.approx(wasserstein_distance(one, other), abs=1 / 4096)  # the width of a bin


def test_bins_double_and_counts_do_not_depend_on_the_order():
    rng = np.random.default_rng(1)
    parts = [rng.random(300), 255 * rng.random(300), 6e4 * rng.random(300)]
    whole = filled(np.concatenate(parts), 1 / 64, 512)
    assert whole.step == 128  # 2^13 / 64: the first that holds 60,000 in 512 bins
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        merged = GrowingHistogram(1 / 64, 512)
        for k in order:
            merged.merge(filled(parts[k], 1 / 64, 512))
        assert merged.step == whole.step and merged.counts.tolist() == whole.counts.tolist()
    assert whole.n == 900
    assert filled([1.0, 2.0, 3.0], 1 / 64).median() == pytest.approx(2, abs=1 / 64)
    assert cumulative_difference(filled([], 1.0), filled([1.0], 1.0)) is None


def test_labels_are_counted():
    counts = {50: 1}
    add_counts(counts, count_labels(np.array([70, 50, 70], dtype=np.uint16)))
    assert counts == {50: 2, 70: 2}


def test_shares_by_elevation_are_weighted_by_real_beams():
    elevation = [-10.2] * 4 + [5.4] * 2
    real = log_of([9.0, 9.0, 9.0, 9.0, np.inf, np.inf], upwards(elevation))
    simulated = with_ranges(real, [9.0, np.inf, np.inf, 9.0, 9.0, np.inf])
    # Half of four beams too few, half of two too many.
    assert compare(real, simulated)["elevation_share_error"] == pytest.approx((4 * 0.5 + 2 * 0.5) / 6)
    table = json.loads(compare(real, simulated).to_json())["returns_by_elevation"]
    assert table["real"] == {"from_deg": [-10.5, 4.5], "beams": [4, 2], "returned": [4, 0]}
    assert table["simulated"]["returned"] == [2, 1]


def test_misses_that_are_found_elsewhere_do_not_count_within_a_band():
    real = log_of([9.0, np.inf], upwards([1.2, 1.4]))
    assert compare(real, with_ranges(real, [np.inf, 9.0]))["elevation_share_error"] == 0


def test_ranges_of_returns_leave_out_what_did_not_return():
    real = log_of([10.0, 20.0, np.inf, np.inf])
    assert compare(real, with_ranges(real, [10.0, 24.0, 10.0, 24.0]))["return_ranges_m"] == pytest.approx(2.0, abs=0.02)


def test_intensities_are_compared_as_distributions():
    rng = np.random.default_rng(2)
    n = 2000
    one, other = rng.random(n), rng.random(n) ** 2
    real, simulated = (log_of(np.full(n, 20.0), intensities=each) for each in (one, other))
    scores = compare(real, simulated)
    assert scores["intensity_distribution"] == pytest.approx(wasserstein_distance(one, other), abs=1 / 4096)
    assert "intensity_distribution" not in compare(real, log_of(np.full(n, 20.0))).values


def test_other_beams_count_all_of_them():
    real = log_of([10.0, 10.0], upwards([0.6, 40.6]))
    other = log_of([12.0] * 5, upwards([0.6, 0.62, 0.64, 0.66, 0.68]), intensities=[0.5] * 5)
    scores = compare(real, other)
    assert scores.values["return_ranges_m"].n == 7
    assert scores["return_ranges_m"] == pytest.approx(2, abs=0.02)
    assert scores.values["elevation_share_error"].n == 1
    assert any("50% of the real beams are at elevations where" in note for note in scores.notes)


def test_a_log_without_missing_returns_is_pointed_out():
    real = log_of([10.0, np.inf])
    said = "every simulated beam returned"
    assert any(said in note for note in compare(real, with_ranges(real, [10.0, 10.0])).notes)
    assert not any(said in note for note in compare(real, real).notes)


def test_intensities_of_another_unit_are_pointed_out():
    real = log_of([10.0, 10.0], intensities=[0.4, 0.5])
    assert any("another unit" in note for note in compare(real, log_of([10.0, 10.0], intensities=[90, 110])).notes)
    assert not any("another unit" in note for note in compare(real, real).notes)


def test_parts_add_up_to_the_whole():
    real = drive(5)
    simulated = with_ranges(real, random_ranges(np.random.default_rng(5), len(real)))
    named = {"log": simulated, "world": PaintedWorld(miss=0.2)}
    whole = compare(real, named)
    parts = [
        accumulate(real.select(sweep=some), named | {"log": simulated.select(sweep=some)}, CompareSettings())
        for some in (range(2), range(2, 6))
    ]
    parts[0].merge(parts[1])
    merged = score(parts[0], {})
    for name in named:
        for key in SHARES_METRICS:
            assert merged[name][key] == whole[name][key]
