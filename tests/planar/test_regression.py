# SPDX-License-Identifier: Apache-2.0
"""Kernel smoothing, local planes and smoothed histograms against closed forms and slow loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from hedgerow.errors import InputError
from hedgerow.planar.regression import Histograms, Observations, Scale, histogram_match, kernel, local_linear, smooth

RANDOM = np.random.default_rng(20)
STATES = RANDOM.uniform(0, 1, (60, 2))
BANDWIDTH = np.array([0.2, 0.3])


def test_a_plane_is_reproduced_exactly_by_local_planes_inside_and_outside_the_data():
    plane = 3.0 + STATES @ [2.0, -1.0]
    query = np.array([[0.5, 0.5], [0.0, 1.0], [1.2, -0.2]])
    found = local_linear(query, STATES, plane, BANDWIDTH)
    # The ridge of 1e-8 shrinks slopes by as much, relative to a spread of the states of about a bandwidth.
    assert_allclose(found, 3.0 + query @ [2.0, -1.0], atol=1e-6)


def test_a_local_plane_equals_weighted_least_squares_query_by_query():
    value = np.sin(4 * STATES[:, 0]) + STATES[:, 1] ** 2
    query = RANDOM.uniform(0, 1, (7, 2))
    for each, found in zip(query, local_linear(query, STATES, value, BANDWIDTH), strict=True):
        weight = np.exp(-0.5 * (((STATES - each) / BANDWIDTH) ** 2).sum(axis=1))
        design = np.column_stack([np.ones(len(STATES)), STATES - each])
        root = np.sqrt(weight)
        expected = np.linalg.lstsq(design * root[:, None], value * root, rcond=None)[0][0]
        assert found == pytest.approx(expected, abs=1e-6)


def test_states_in_one_place_give_their_mean():
    states = np.full((5, 2), 0.3)
    assert_allclose(local_linear(np.array([[0.9, 0.1]]), states, np.arange(5.0), BANDWIDTH), 2.0)


def test_kernel_means_equal_a_loop():
    value = RANDOM.normal(size=len(STATES))
    query = RANDOM.uniform(-1, 2, (9, 2))
    for each, found in zip(query, smooth(query, STATES, value, BANDWIDTH), strict=True):
        weight = np.exp(-0.5 * (((STATES - each) / BANDWIDTH) ** 2).sum(axis=1))
        assert found == pytest.approx((weight * value).sum() / weight.sum(), rel=1e-9)


def test_a_query_far_from_all_states_takes_the_nearest():
    value = np.zeros(len(STATES))
    nearest = np.argmax(STATES @ (1 / BANDWIDTH**2))
    value[nearest] = 7.0
    far = STATES[[nearest]] + 1e5
    assert np.isfinite(kernel(far, STATES, BANDWIDTH)).all()
    assert smooth(far, STATES, value, BANDWIDTH)[0] == pytest.approx(7.0)


def test_moments_are_over_the_readings_that_are_not_null():
    seen = Observations(
        np.array([[0.0], [1.0], [2.0]]), np.array([[1, 3, np.inf], [np.inf, np.inf, np.nan], [2, 2, 2]])
    )
    share, mean, sigma = seen.moments()
    assert_allclose(share, [1 / 3, 1, 0])
    assert_allclose(mean, [2, np.nan, 2])
    assert_allclose(sigma, [1, np.nan, 0])  # mean of squares, not of squares over n - 1


def test_smoothed_histograms_equal_a_loop():
    value = np.round(RANDOM.normal(0.5, 0.1, (60, 20)), 2)
    value[RANDOM.uniform(size=value.shape) < 0.2] = np.inf
    tables = Histograms(Observations(STATES, value), Scale(high_m=1.0, step_m=0.01))
    query = RANDOM.uniform(0, 1, (4, 2))
    predicted = tables.predict(query, BANDWIDTH)
    for each, found in zip(query, predicted.T, strict=True):
        expected = np.zeros(102)
        weight = np.exp(-0.5 * (((STATES - each) / BANDWIDTH) ** 2).sum(axis=1))
        for share, readings in zip(weight / weight.sum(), value, strict=True):
            for reading in readings:
                expected[101 if np.isinf(reading) else round(reading / 0.01)] += share / 20
        assert_allclose(found, expected, atol=1e-12)


@given(st.integers(1, 30), st.integers(1, 30))
def test_the_match_of_two_certain_readings_is_their_distance(first, second):
    certain = np.zeros((40, 2))
    certain[[first, second], [0, 1]] = 1
    assert histogram_match(certain[:, 0], certain[:, 1], 0.001) == pytest.approx(abs(first - second) * 0.001)


@pytest.mark.parametrize(
    ("state", "value", "said"),
    [
        (np.zeros((2, 1)), np.zeros((3, 2)), "value: has 3 rows, state 2"),
        (np.zeros((0, 1)), np.zeros((0, 2)), "holds no observation"),
        (np.zeros((1, 1)), np.full((1, 2), np.nan), "holds no observation"),
        (np.array([[np.nan]]), np.zeros((1, 1)), "state"),
    ],
)
def test_bad_observations_are_refused(state, value, said):
    with pytest.raises(InputError, match=said):
        Observations(state, value)
