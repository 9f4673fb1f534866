# SPDX-License-Identifier: Apache-2.0
"""Closed forms of ranges in grass (Goodin 2018 eqs. 2 to 5)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.reproduce.grass_ranges import Stand


def test_without_divergence_both_laws_are_exponential():
    stand = Stand(20, 50, 0.01, 0.0)
    range_m = np.linspace(20, 40, 50)
    assert_allclose(stand.exponential(range_m), 1 - np.exp(-0.5 * (range_m - 20)), atol=1e-12)
    assert_allclose(stand.gamma(range_m), stand.exponential(range_m), atol=1e-12)


def test_the_exponential_density_is_that_of_the_paper():
    stand = Stand(20, 50, 0.01, 1e-3)
    r, h = np.linspace(20.1, 30, 40), 1e-5
    a = 2 * np.tan(0.5e-3)
    density = 0.5 * (1 + a * r) * np.exp(-0.5 * (r - 20) * (1 + a * (r + 20) / 2))
    slope = (stand.exponential(r + h) - stand.exponential(r - h)) / (2 * h)
    assert_allclose(slope, density, rtol=1e-6)  # central difference: error of order h squared


def test_the_gamma_law_has_the_papers_shape_and_mean():
    stand = Stand(30, 100, 0.02, 1e-3)  # shape 1.9, rate 1.9 * 2
    r = np.linspace(30, 60, 300_001)
    density = np.diff(stand.gamma(r)) / np.diff(r)
    middle = (r[1:] + r[:-1]) / 2
    assert_allclose((density * middle).sum() * (r[1] - r[0]), 30.5, atol=1e-4)  # 1 / (lambda d) into the stand
    assert middle[density.argmax()] == pytest.approx(30 + 0.9 / 3.8, abs=1e-3)  # (shape - 1) / rate


def test_a_stand_of_finite_depth_returns_everything_within_it():
    stand = Stand(20, 50, 0.01, 1e-3, depth_m=5)
    for law in (stand.exponential, stand.gamma):
        assert_allclose(law([19, 20, 25, 30]), [0, 0, 1, 1], atol=1e-12)
