# SPDX-License-Identifier: Apache-2.0
"""Voxel statistics against plain NumPy, and the promise that neither cutting nor merging order matters."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from volume_clouds import log_of_points, random_log

from hedgerow import InputError
from hedgerow.models.steps.moments import Moments, VoxelStatistics, point_records
from hedgerow.world import Scene

SIDE_M = 0.3
STEP_M = SIDE_M / 2**18


def gathered(*logs, side_m=SIDE_M, threads=0):
    statistics = VoxelStatistics(side_m)
    for log in logs:
        statistics.add(log, threads=threads)
    return statistics


def columns(moments):
    return {name: getattr(moments, name) for name in Moments.__slots__}


def assert_same(moments, other):
    """Equal to the last bit."""
    for name, column in columns(moments).items():
        assert_array_equal(column, getattr(other, name), err_msg=name)


def test_moments_of_each_voxel_are_those_of_its_points():
    log = random_log(np.random.default_rng(1), 4000)
    statistics = gathered(log)
    moments, records = statistics.moments(), point_records(log)
    voxel = np.floor(records["position_m"] / SIDE_M).astype(int)
    keys, row = np.unique(voxel, axis=0, return_inverse=True)
    assert_array_equal(statistics.keys(), keys)
    assert_array_equal(moments.count, np.bincount(row.ravel()))
    for i in range(len(keys)):
        mine = records[row.ravel() == i]
        # Each coordinate is rounded to a step, of which the error is at most a half.
        assert_allclose(moments.mean_m[i], mine["position_m"].mean(axis=0), atol=STEP_M / 2)
        expected = np.cov(mine["position_m"].T, ddof=0).reshape(3, 3) if len(mine) > 1 else np.zeros((3, 3))
        assert_allclose(moments.covariance_m2[i], expected, atol=SIDE_M * STEP_M)
        known = mine["intensity"][~np.isnan(mine["intensity"])].astype(float)
        assert moments.intensity_count[i] == len(known)
        sums = [moments.intensity_sum[i], moments.intensity_square[i]]
        assert_allclose(sums, [known.sum(), (known**2).sum()], atol=len(known) * 2.0**-33, rtol=1e-14)
        labels, counts = np.unique(mine["label"][mine["label"] > 0], return_counts=True)
        assert_array_equal(moments.label[moments.label_row == i], labels)
        assert_array_equal(moments.label_count[moments.label_row == i], counts)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_any_partition_merged_in_any_order_gives_the_same_table(seed, n_parts, backwards):
    rng = np.random.default_rng(seed)
    log = random_log(rng, 500)
    part = rng.integers(0, n_parts, len(log))
    tables = [gathered(log[part == i]) for i in rng.permutation(n_parts)]
    merged = VoxelStatistics(SIDE_M)
    for table in tables[::-1] if backwards else tables:
        merged.merge(table)
    whole = gathered(log)
    assert merged.n_beams == whole.n_beams == 500
    assert_array_equal(merged.keys(), whole.keys())
    assert_same(merged.moments(), whole.moments())


def test_whole_intensities_as_sensors_report_them_merge_exactly_too():
    rng = np.random.default_rng(5)
    log = log_of_points(rng.uniform(0, 1, (3000, 3)), intensities=rng.integers(0, 256, 3000))
    assert_same(gathered(log[::2], log[1::2]).moments(), gathered(log).moments())


def test_the_number_of_threads_changes_no_bit():
    log = random_log(np.random.default_rng(2), 100_000)  # several chunks
    assert_same(gathered(log, threads=1).moments(), gathered(log, threads=7).moments())


def test_statistics_can_be_sent_to_another_process_and_go_on_there():
    logs = [random_log(np.random.default_rng(i), 800) for i in range(2)]
    sent = pickle.loads(pickle.dumps(gathered(logs[0])))
    sent.add(logs[1])
    assert sent.n_beams == 1600
    assert_same(sent.moments(), gathered(*logs).moments())


def test_utm_coordinates_keep_the_covariance():
    rng = np.random.default_rng(3)
    points = rng.normal([1.125, 2.125, 3.125], [0.02, 0.01, 0.001], (2000, 3))
    far = np.array([500_000.0, 5_400_000.0, 250.0])  # whole multiples of the side, so voxels stay the same
    near = gathered(log_of_points(points), side_m=0.25).moments()
    moved = gathered(log_of_points(points + far), side_m=0.25).moments()
    assert len(moved) == len(near) == 1
    # A northing in float64 steps by 1e-9 m, a coordinate here by 1e-6 m: together far below 1e-5 of sigma squared.
    assert_allclose(moved.covariance_m2, near.covariance_m2, atol=1e-5 * 0.001**2 * 10)
    assert_allclose(moved.mean_m - far, near.mean_m, atol=2e-8)


@pytest.mark.parametrize("n", [1, 2, 7, 200_000])
def test_equal_points_have_no_covariance_and_a_scene_takes_them(n):
    moments = gathered(log_of_points(np.full((n, 3), 0.11), seed=4)[np.zeros(n, dtype=int)]).moments()
    assert moments.count.tolist() == [n]
    assert_array_equal(moments.covariance_m2, np.zeros((1, 3, 3)))
    scene = Scene()
    moments.gaussians(tau=3.5, min_sigma_m=0.001).add_to(scene)
    assert scene.n_elements == 1


def test_the_most_frequent_label_wins_the_smaller_of_equals_and_unlabelled_points_do_not_vote():
    points = np.repeat([[0.1, 0.1, 0.1], [0.4, 0.1, 0.1], [0.7, 0.1, 0.1]], [6, 4, 3], axis=0)
    log = log_of_points(points, labels=[0, 0, 0, 7, 7, 9, 5, 5, 4, 4, 0, 0, 0])
    assert gathered(log).gaussians(min_points=1).label.most_common().tolist() == [7, 4, 0]


def test_intensity_mean_and_spread_leave_unknown_ones_out():
    points = np.repeat([[0.1, 0.1, 0.1], [0.4, 0.1, 0.1]], [3, 2], axis=0)
    log = log_of_points(points, intensities=[0.25, 0.75, np.nan, np.nan, np.nan])
    elements = gathered(log).gaussians(min_points=1)
    assert_array_equal(elements.intensity, np.array([0.5, np.nan], np.float32))
    assert_array_equal(elements.intensity_sigma, np.array([0.25, 0], np.float32))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_joining_groups_gives_the_moments_of_all_their_points(seed):
    rng = np.random.default_rng(seed)
    records = point_records(random_log(rng, 200))
    records["position_m"] += [500_000.0, 5_400_000.0, 0.0]
    begin = np.unique([0, *rng.integers(1, len(records), 12), len(records)])
    small = Moments.of_points(records, begin)
    group = np.sort(rng.integers(0, 3, len(small)))
    group = np.unique(group, return_inverse=True)[1]
    large = begin[np.unique([*np.searchsorted(group, np.arange(group.max() + 1)), len(group)])]
    joined, direct = small.join(group, group.max() + 1), Moments.of_points(records, large)
    for name, column in columns(direct).items():
        # Means of some 1 m spread are known to 1e-9 m at a northing of 5,400 km.
        assert_allclose(getattr(joined, name), column, rtol=1e-12, atol=1e-7, err_msg=name)


def test_merging_refuses_another_side_another_map_and_itself():
    statistics = gathered(random_log(np.random.default_rng(0), 10))
    with pytest.raises(InputError, match=r"side_m: cannot merge voxels of 0.3 m and 0.2 m"):
        statistics.merge(VoxelStatistics(0.2))
    with pytest.raises(InputError, match="itself"):
        statistics.merge(statistics)
    with pytest.raises(InputError, match="map_origin_m: differs"):
        statistics.merge(gathered(log_of_points(np.zeros((1, 3)), map_origin_m=(1.0, 0, 0))))


def test_points_too_far_out_for_the_grid_are_refused():
    log = log_of_points(np.array([[500_000.0, 5_400_000.0, 0.0]]))
    with pytest.raises(InputError, match=r"side_m: points up to 5.4e\+06 m.*map_origin_m"):
        gathered(log, side_m=0.001)
    assert len(gathered(log, side_m=0.01)) == 1


@pytest.mark.parametrize("side_m", [0.0, -1.0, np.nan, np.inf])
def test_a_side_that_is_no_length_is_refused(side_m):
    with pytest.raises(InputError, match="side_m"):
        VoxelStatistics(side_m)
