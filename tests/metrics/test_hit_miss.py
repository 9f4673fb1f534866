# SPDX-License-Identifier: Apache-2.0
"""Hit/miss table and beam error against counts and differences done by hand."""

import numpy as np
import pytest
from known_logs import log_of, with_ranges

from hedgerow.metrics import compare

INF = np.inf
#                 found  found  lost  lost  lost  kept  invented
REAL = np.array([10.0, 20.0, 30.0, 40.0, 50.0, INF, INF])
SIMULATED = np.array([10.5, 19.0, INF, INF, INF, INF, 5.0])


@pytest.fixture(scope="module")
def scores():
    real = log_of(REAL)
    return compare(real, with_ranges(real, SIMULATED))


def test_detection_rates_are_shares_of_real_hits_and_misses(scores):
    assert scores["hits_found"] == 2 / 5
    assert scores["misses_found"] == 1 / 2
    assert scores.values["hits_found"].n == 5
    assert scores.values["misses_found"].n == 2


def test_precision_recall_and_f1_follow_their_definitions(scores):
    precision, recall = 2 / 3, 2 / 5
    assert scores["precision"] == precision
    assert scores["recall"] == recall
    assert scores["f1"] == pytest.approx(2 * precision * recall / (precision + recall), rel=1e-15)
    assert scores.values["precision"].n == 3
    assert scores.values["f1"].n == 7


def test_beam_error_is_over_true_hits_only(scores):
    assert scores["beam_error_mean_m"] == pytest.approx((0.5 + 1.0) / 2, abs=1e-6)  # float32 ranges: 2e-6 at 20 m
    assert scores.values["beam_error_mean_m"].n == 2


def test_median_of_many_errors_is_the_median():
    rng = np.random.default_rng(3)
    error = rng.exponential(0.3, 10_001)
    real = log_of(np.full(len(error), 20.0))
    found = compare(real, with_ranges(real, 20 + error))["beam_error_median_m"]
    # Bins are a 500th of a decade: 0.46 % wide; float32 adds 1e-6 m.
    assert found == pytest.approx(np.median(error), rel=0.005)


def test_nothing_simulated_leaves_precision_and_error_undefined():
    real = log_of([10.0, 20.0, INF])
    scores = compare(real, with_ranges(real, [INF, INF, INF]))
    assert scores["hits_found"] == 0
    assert scores["f1"] == 0
    assert scores["misses_found"] == 1
    assert scores["precision"] is None
    assert scores["beam_error_mean_m"] is None
    assert scores["sweep_distance_m"] is None
    assert scores["cloud_distance_m"] is None
    assert "1 of 1 sweeps have no distance" in " ".join(scores.notes)


def test_returns_outside_the_real_limits_count_as_none():
    real = log_of([10.0, INF, INF], max_range_m=30.0, min_range_m=2.0)
    simulated = log_of([10.0, 31.0, 1.0], max_range_m=200.0)
    scores = compare(real, simulated)
    assert scores["misses_found"] == 1
    assert scores["precision"] == 1


def test_only_the_first_of_several_returns_counts():
    real = log_of([[10.0, 12.0], [20.0, INF]])
    scores = compare(real, log_of([10.0, 20.0]))
    assert scores["beam_error_mean_m"] == 0
    assert scores["cloud_distance_m"] == 0
