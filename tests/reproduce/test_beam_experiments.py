# SPDX-License-Identifier: Apache-2.0
"""The experiments of Goodin 2018 in small: the same conclusions, with fewer pulses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.pulse.receiver import BeamSettings
from hedgerow.reproduce import grass_ranges, mixed_pixels, shrub_histogram
from hedgerow.reproduce.grass_ranges import Stand
from hedgerow.reproduce.receivers import OURS
from hedgerow.reproduce.shrub_histogram import Shrub
from hedgerow.scenes.site import load_site


def test_a_single_ray_into_grass_follows_the_exponential_law():
    stand = Stand(20, 100, 0.02, 0.0, grass_ranges.DEPTH_M)
    range_m = grass_ranges.ranges(stand, 2000, seed=3, ways={"ray": BeamSettings(sub_rays=1)})["ray"]
    # Pulses of one stand meet the same stems: 40 stands, each with some 45 independent ways, count as about 1,800.
    assert grass_ranges.ks_distance(range_m, stand.exponential) < 1.95 / np.sqrt(1800)  # false alarm 1e-3


@pytest.mark.parametrize("diameter_m", [0.01, 0.02])
def test_a_wide_beam_in_grass_is_nearer_to_the_gamma_law(diameter_m):
    stand = Stand(30, 50, diameter_m, 1e-3, grass_ranges.DEPTH_M)
    found = grass_ranges.ranges(stand, 2000, seed=1)
    for way in (grass_ranges.DRAWN, OURS):
        exponential, gamma = grass_ranges.Case(stand, way, found[way]).distances
        assert gamma < 0.8 * exponential


def test_ks_distance_of_known_samples():
    assert grass_ranges.ks_distance(np.array([0.25, 0.75]), lambda r: r) == pytest.approx(0.25)
    assert grass_ranges.ks_distance(np.array([0.9, 1.0]), lambda r: r) == pytest.approx(0.9)


def test_the_peak_of_ranges_of_the_gamma_law_is_the_laws_own():
    stand = Stand(30, 50, 0.02, 1e-3, grass_ranges.DEPTH_M)
    at = np.linspace(30, 35, 20_001)
    drawn = np.interp((np.arange(50_000) + 0.5) / 50_000, stand.gamma(at), at)  # quantiles: no chance in it
    case = grass_ranges.Case(stand, "law", drawn)
    assert case.peak_error_m <= grass_ranges.PEAK_BIN_M
    assert grass_ranges.Case(stand, "shifted", drawn + 0.4).peak_error_m == pytest.approx(0.4, abs=0.02)


def test_mixed_pixels_appear_before_a_near_plane_and_not_before_a_far_one():
    near, far = (mixed_pixels.scan(background_m) for background_m in mixed_pixels.BACKGROUNDS_M)
    assert near.mixed.sum() >= 10
    assert far.mixed.sum() == 0
    assert far.touched.sum() == near.touched.sum()  # the same pulses are split


def test_the_papers_stencil_splits_fewer_pulses_and_mixes_fewer_still():
    ours, theirs = (mixed_pixels.scan(0.6, way) for way in (OURS, "the paper's stencil"))
    assert theirs.touched.sum() < ours.touched.sum() / 2  # it covers the inner third of the spot
    assert 0 < theirs.mixed.sum() < theirs.touched.sum()
    assert mixed_pixels.scan(2.0, "the paper's stencil and processing").mixed.sum() == 0


def test_a_mixed_pixel_lies_between_rod_and_plane():
    scan = mixed_pixels.scan(0.6)
    ahead = scan.log.returns.range_m * scan.log.beams.direction[:, 0]
    assert ((ahead[scan.mixed] > 0.78) & (ahead[scan.mixed] < 1.4)).all()


def test_the_shrub_is_broad_and_has_two_modes():
    shrub = shrub_histogram.scan(load_site("shrub"), 7, seed=1)
    peaks, valley = shrub.modes()
    assert shrub.range_m.std() > 0.1  # five times the sensor's noise
    assert len(peaks) >= 2
    assert valley > 0.05


def test_modes_of_known_curves():
    rng = np.random.default_rng(0)
    one = Shrub(rng.normal(8, 0.1, 20_000), np.zeros(20_000, bool))
    assert len(one.modes()[0]) == 1
    both = Shrub(np.concatenate([rng.normal(7.6, 0.1, 20_000), rng.normal(8.4, 0.1, 20_000)]), np.zeros(40_000, bool))
    peaks, valley = both.modes()
    assert_allclose(peaks, [7.6, 8.4], atol=0.03)  # a bin and a half
    assert valley > 0.9
