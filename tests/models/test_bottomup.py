# SPDX-License-Identifier: Apache-2.0
"""The bottom-up model: what is dense grows together, corners and gaps stay apart, cutting the log changes nothing."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError
from volume_clouds import REFUSALS, chunks_of, fired, log_of_points, park

from hedgerow import InputError
from hedgerow.models.bottomup import BottomupParameters, fit_regions, merge_voxels
from hedgerow.models.steps.moments import VoxelStatistics

SIDE_M = 0.1


def learned(points, **parameters):
    return fit_regions(chunks_of(log_of_points(points)), BottomupParameters(side_m=SIDE_M, **parameters))


def box(rng, low, high, n):
    return rng.uniform(low, high, (n, 3))


def test_a_filled_box_grows_into_one_ellipsoid():
    points = box(np.random.default_rng(0), [0, 0, 0], [0.4, 0.3, 0.2], 5000)
    found = learned(points, max_spread_m=1.0)
    assert len(found) == 1
    assert_allclose(found.mean_m[0], points.mean(axis=0), atol=1e-5)
    assert_allclose(found.covariance_m2[0], np.cov(points.T, ddof=0), atol=1e-6)


def test_two_boxes_with_a_gap_between_them_stay_apart():
    rng = np.random.default_rng(1)
    near, far = box(rng, [0, 0, 0], [0.2, 0.2, 0.2], 2000), box(rng, [0.4, 0, 0], [0.6, 0.2, 0.2], 2000)
    found = learned(np.concatenate([near, far]), max_spread_m=1.0)
    assert_allclose(np.sort(found.mean_m[:, 0]), [near[:, 0].mean(), far[:, 0].mean()], atol=1e-5)


def test_walls_that_meet_in_a_corner_do_not_become_one():
    rng = np.random.default_rng(2)
    one = box(rng, [0, 0.045, 0], [1.0, 0.055, 0.5], 8000)
    other = box(rng, [0.045, 0, 0], [0.055, 1.0, 0.5], 8000)
    found = learned(np.concatenate([one, other]), max_spread_m=1.0)
    # A wall 1 cm thick has a sigma of 3 mm; one ellipsoid of both would be some 0.3 m thick.
    thin = np.sqrt(np.linalg.eigvalsh(found.covariance_m2)[:, 0])
    assert len(found) >= 2
    assert np.median(thin) < 0.005
    assert thin.max() < 0.06


def test_lower_density_share_merges_more_and_no_element_grows_beyond_the_spread():
    log = fired(park(), 40_000, seed=3)
    sizes = [
        len(fit_regions(chunks_of(log), BottomupParameters(density_share=s, min_points=1))) for s in (0.9, 0.5, 0.2)
    ]
    assert sizes[0] > sizes[1] > sizes[2]
    found = fit_regions(chunks_of(log), BottomupParameters(density_share=0.2, max_spread_m=0.2))
    # The limit is on the points and one more in each voxel, smeared over it; without those it can be a bit more.
    assert np.sqrt(np.einsum("nii->n", found.covariance_m2)).max() < 0.25


def test_regions_are_connected_and_keep_all_points():
    statistics = VoxelStatistics(0.15)
    statistics.add(fired(park(), 20_000, seed=4))
    key, moments = statistics.keys(), statistics.moments()
    region = merge_voxels(moments, key, BottomupParameters())
    assert_array_equal(np.unique(region), np.arange(region.max() + 1))
    assert moments.join(region, region.max() + 1).count.sum() == moments.count.sum()
    for number in np.flatnonzero(np.bincount(region) > 1)[:200]:
        left = {tuple(k) for k in key[region == number].tolist()}
        reached = [left.pop()]
        while reached:
            at = np.array(reached.pop())
            touching = {k for k in left if np.abs(np.array(k) - at).max() <= 1}
            left -= touching
            reached.extend(touching)
        assert not left


def test_cutting_the_log_changes_no_bit():
    log = fired(park(), 30_000, seed=5)
    once = fit_regions(chunks_of(log), BottomupParameters())
    again = fit_regions(chunks_of(log[20_000:], log[:20_000]), BottomupParameters())
    assert_array_equal(once.mean_m, again.mean_m)
    assert_array_equal(once.covariance_m2, again.covariance_m2)


def test_utm_coordinates_give_the_same_elements():
    points = np.random.default_rng(6).normal(size=(3000, 3)) * [1, 1, 0.02]
    far = np.array([500_000.0, 5_400_000.0, 250.0])
    parameters: dict[str, Any] = {"min_points": 1}
    near = fit_regions(chunks_of(log_of_points(points)), BottomupParameters(side_m=0.125, **parameters))
    moved = fit_regions(chunks_of(log_of_points(points + far)), BottomupParameters(side_m=0.125, **parameters))
    assert abs(len(near) - len(moved)) <= 2  # a point within a nanometre of a voxel's face may fall on its other side
    assert_allclose(np.median(moved.mean_m, axis=0) - far, np.median(near.mean_m, axis=0), atol=1e-3)


def test_labels_and_intensities_are_those_of_the_merged_points():
    points = box(np.random.default_rng(7), [0, 0, 0], [0.3, 0.2, 0.2], 900)
    log = log_of_points(points, labels=np.where(points[:, 0] < 0.2, 4, 9), intensities=points[:, 0])
    found = fit_regions(chunks_of(log), BottomupParameters(side_m=SIDE_M, max_spread_m=1.0))
    assert found.label.most_common().tolist() == [4]
    assert_allclose(found.intensity, [points[:, 0].mean()], rtol=1e-5)
    assert_allclose(found.intensity_sigma, [points[:, 0].std()], rtol=1e-5)


@pytest.mark.parametrize("case", REFUSALS)
def test_a_log_without_anything_to_learn_is_refused(case):
    parts, words = REFUSALS[case]
    with pytest.raises(InputError, match=words):
        fit_regions(parts, BottomupParameters())


def test_one_beam_is_too_few_and_equal_points_make_one_element():
    with pytest.raises(InputError, match=r"min_points: none of 1 regions has 5 points, the fullest has 1"):
        learned(np.zeros((1, 3)) + 0.05)
    found = learned(np.full((50, 3), 0.05))
    assert_allclose(found.mean_m, [[0.05, 0.05, 0.05]], atol=1e-6)


@pytest.mark.parametrize("wrong", [{"density": 0.5}, {"density_share": 0.0}, {"max_spread_m": np.inf}])
def test_unknown_and_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        BottomupParameters(**wrong)
