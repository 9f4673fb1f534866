# SPDX-License-Identifier: Apache-2.0
"""Sweep-to-sweep and cloud-to-cloud distances: shifted planes, brute force, thinning that ignores the order."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_logs import drive, log_of, random_ranges, with_ranges
from scipy.spatial.distance import cdist

from hedgerow import Log
from hedgerow.metrics import compare
from hedgerow.metrics.cloud_distance import CloudDistances, ThinnedCloud
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.pair import Nearest, hash_points


def parallel_beams(n=40):
    """Beams along x from a grid 0.5 m apart: they see a wall across x as a grid of points."""
    y, z = (a.ravel() for a in np.meshgrid(np.arange(n) * 0.5, np.arange(n) * 0.5))
    return np.c_[np.zeros(n * n), y, z], np.tile([1.0, 0.0, 0.0], (n * n, 1))


def wall(range_m, **more):
    origins, directions = parallel_beams()
    return log_of(np.full(len(origins), range_m), directions, origins, **more)


def brute(real, simulated):
    """Both distances of two clouds by all pairs."""
    distance = cdist(real, simulated)
    there, back = distance.min(axis=0).mean(), distance.min(axis=1).mean()
    return max(there, back), (there + back) / 2


def test_a_wall_shifted_by_10_cm_is_10_cm_away():
    scores = compare(wall(20.0), wall(20.1))
    for key in ("sweep_distance_m", "sweep_distance_average_m", "cloud_distance_m", "cloud_distance_average_m"):
        assert scores[key] == pytest.approx(0.1, abs=2e-6)  # float32 step at 20 m: 2e-6
        assert scores.values[key].n == 2 * 1600


def test_the_worse_way_and_the_average_differ_where_half_is_missing():
    real = wall(20.0)
    y = real.beams.origin_m[:, 1]
    scores = compare(real, with_ranges(real, np.where(y < 10, 20.0, np.inf)))
    # Every simulated point is real; of the real ones the missing half lies 0.5 m, 1 m, ... 10 m from the rest.
    back = 0.5 * np.mean(0.5 * np.arange(1, 21))
    assert scores["sweep_distance_m"] == pytest.approx(back, rel=1e-6)
    assert scores["sweep_distance_average_m"] == pytest.approx(back / 2, rel=1e-6)


def test_distances_agree_with_brute_force():
    real = drive(1)
    simulated = with_ranges(real, random_ranges(np.random.default_rng(2), len(real)))
    scores = compare(real, simulated)
    sweeps = [brute(real.select(sweep=k).points(), simulated.select(sweep=k).points()) for k in range(6)]
    cloud = brute(real.points(), simulated.points())
    expected = [*np.mean(sweeps, axis=0), *cloud]
    keys = ("sweep_distance_m", "sweep_distance_average_m", "cloud_distance_m", "cloud_distance_average_m")
    np.testing.assert_allclose(np.array([scores[key] for key in keys], float), expected, rtol=1e-12)


def test_swapping_real_and_simulated_keeps_the_distances():
    a = drive(3)
    b = with_ranges(a, random_ranges(np.random.default_rng(4), len(a)))
    one, other = compare(a, b), compare(b, a)
    for key in ("sweep_distance_m", "cloud_distance_m", "sweep_distance_average_m", "range_histogram_match_m"):
        assert one[key] == pytest.approx(other[key], rel=1e-12)


def test_sweeps_without_returns_are_left_out_and_said():
    real = drive(5)
    gone = np.where(real.beams.sweep == 2, np.inf, real.returns.first_m)
    scores = compare(real, with_ranges(real, gone))
    assert scores["sweep_distance_m"] == 0
    distance_m = scores["cloud_distance_m"]
    assert distance_m is not None and distance_m > 0
    assert any(note.startswith("1 of 6 sweeps") for note in scores.notes)


def test_many_equal_points_are_found_at_once():
    points = np.tile([[1.0, 2.0, 3.0]], (200_000, 1))
    distance = Nearest(points).distance_m(
        points + np.array([0, 0, 1])
    )  # minutes if the tree kept all of them in one leaf
    np.testing.assert_array_equal(distance, 1)


def random_points(rng, n, side=1.0):
    return rng.uniform(-side, side, (n, 3))


def test_a_cloud_within_its_limit_keeps_every_point_and_counts_duplicates():
    points = random_points(np.random.default_rng(0), 900)
    cloud = ThinnedCloud(1000)
    cloud.add(points)
    cloud.add(points[:300])
    kept, counts = cloud.points()
    assert cloud.voxel_m == 0
    assert len(kept) == 900
    assert counts.sum() == 1200
    np.testing.assert_array_equal(kept[counts == 2], points[:300])


def test_a_point_counts_as_often_as_it_was_seen():
    real = log_of([5.0, 5.0, 5.0, 9.0], [[1.0, 0, 0]] * 4)
    scores = compare(real, with_ranges(real, [5.0, 5.0, 5.0, 5.0]))
    assert scores["cloud_distance_m"] == scores["sweep_distance_m"] == 4 / 4  # one of four is 4 m off
    assert scores["cloud_distance_average_m"] == 4 / 4 / 2


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n_parts=st.integers(1, 6))
def test_a_thinned_cloud_does_not_depend_on_order_or_partition(seed, n_parts):
    rng = np.random.default_rng(seed)
    points = np.round(random_points(rng, 4000, 0.2), 3)  # rounding makes duplicates, also across parts
    whole = ThinnedCloud(1000)
    whole.add(points)
    parts = [ThinnedCloud(1000) for _ in range(n_parts)]
    for part, chunk in zip(parts, np.array_split(rng.permutation(points), n_parts), strict=True):
        part.add(chunk)
    for part in parts[1:]:
        parts[0].merge(part)
    (a, n_a), (b, n_b) = whole.points(), parts[0].points()
    assert whole.level == parts[0].level
    assert n_a.sum() == n_b.sum() == 4000
    order_a, order_b = np.lexsort(a.T), np.lexsort(b.T)
    np.testing.assert_array_equal(a[order_a], b[order_b])
    np.testing.assert_array_equal(n_a[order_a], n_b[order_b])


def test_thinning_keeps_one_point_per_voxel_within_the_limit():
    points = random_points(np.random.default_rng(7), 20_000)
    cloud = ThinnedCloud(1000)
    cloud.add(points)
    kept, counts = cloud.points()
    assert len(kept) <= 1000
    assert counts.sum() == 20_000
    voxels = np.floor(kept / cloud.voxel_m)
    assert len(np.unique(voxels, axis=0)) == len(kept)
    coarser = np.unique(np.floor(points / cloud.voxel_m), axis=0)
    assert len(coarser) == len(kept)
    finer = np.unique(np.floor(points / (cloud.voxel_m / 2)), axis=0)
    assert len(finer) > 1000  # no coarser than it has to be


def test_thinning_takes_a_few_words_for_each_point_that_may_be_kept():
    rng, n = np.random.default_rng(11), 100_000
    sweeps = [random_points(rng, n // 10) for _ in range(30)]
    tracemalloc.start()
    try:
        cloud = ThinnedCloud(n)
        for sweep in sweeps:
            cloud.add(sweep.copy())
        cloud.points()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A point and its count have 32 bytes, and 1.3 n of them wait; two hashes and a new count while they are thinned.
    assert peak < 100 * n


def test_thinned_clouds_are_still_the_shift_apart():
    rng = np.random.default_rng(8)
    plane = np.c_[rng.uniform(0, 5, (200_000, 2)), np.zeros(200_000)]
    clouds = CloudDistances(CompareSettings(max_cloud_points=100_000), ["shifted"])
    clouds.real.add(plane)
    clouds.simulated["shifted"].add(plane + np.array([0, 0, 0.5]))
    found = clouds.values()["shifted"]["cloud_distance_m"].value
    side = clouds.real.voxel_m
    assert side > 0 and found is not None
    # The nearest kept point is at most a voxel's diagonal aside of the plane.
    assert 0.5 <= found <= np.hypot(0.5, np.sqrt(2) * side)


def test_thinning_is_said_in_the_notes():
    real = drive(9, n_sweeps=6, n=400)
    scores = compare(real, real, max_cloud_points=1000)
    assert scores["cloud_distance_m"] == 0
    assert any("thinned to one point per" in note for note in scores.notes)


def test_hashes_of_a_regular_grid_do_not_collide():
    grid = np.stack(np.meshgrid(*[np.arange(100)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(hash_points(grid.astype(np.int64).view(np.uint64)))) == 1_000_000
    assert len(np.unique(hash_points((grid * 0.01).view(np.uint64)))) == 1_000_000


def test_utm_coordinates_give_the_same_distances():
    near, far = drive(10), drive(10)
    shift = np.array([480_000.0, 5_400_000.0, 300.0])
    moved = Log.from_arrays(
        origins=far.beams.origin_m + shift,
        directions=far.beams.direction,
        ranges=far.returns.range_m,
        sweeps=far.beams.sweep,
        max_range_m=60.0,
    )
    other = random_ranges(np.random.default_rng(11), len(near))
    a, b = compare(near, with_ranges(near, other)), compare(moved, with_ranges(moved, other))
    for key in ("sweep_distance_m", "cloud_distance_m"):
        assert a[key] == pytest.approx(b[key], abs=1e-8)  # float64 step at 5400 km: 1e-9 m
