# SPDX-License-Identifier: Apache-2.0
"""The top-down model: planted clusters, the criterion of K-means, determinism, and no seams between cells."""

import tempfile
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from pydantic import ValidationError
from volume_clouds import REFUSALS, chunks_of, fired, log_of_points, park

from hedgerow import FileError, InputError, _core
from hedgerow.models.topdown import CellTree, PointSample, TopdownParameters, fit_clusters
from hedgerow.world import Scene

ONE_LEVEL: dict[str, Any] = {
    "restarts": 1,
    "iterations": 1000,
    "tolerance": 0.0,
    "start": _core.ClusterStart.points,
    "max_skewness": 0.0,
    "max_kurtosis": 0.0,
    "seed": 0,
}


def leaves(points, *, clusters=10, split_points=120, root=0, threads=0, **more):
    settings: dict[str, Any] = {"clusters": clusters, "split_points": split_points, "root": root} | ONE_LEVEL | more
    return _core.cluster(points, _core.ClusterSettings(**settings), threads=threads, progress=None)


def variation(points, order, begin):
    """Sum of squared distances from the cluster means."""
    return sum(((part - part.mean(axis=0)) ** 2).sum() for part in np.split(points[order], begin[1:-1]))


def planted(rng, n_each=100):
    """Three groups, 100 m apart, of three clusters each, 10 m apart: two levels of K-means with K = 3."""
    centre = np.array([[100.0 * i, 10.0 * j, 3.0 * j] for i in range(3) for j in range(3)])
    return centre, (centre[:, None] + rng.normal(size=(9, n_each, 3)) * 0.1).reshape(-1, 3)


@pytest.mark.parametrize("start", ["points", "partition"])
@pytest.mark.parametrize("farthest_m", [np.zeros(3), np.array([500_000.0, 5_400_000.0, 0.0])], ids=["local", "utm"])
def test_planted_clusters_come_back(start, farthest_m):
    centre, points = planted(np.random.default_rng(0))
    # A start finds three clusters in more than one case of five: all of 30 fail in one of 1000, at four nodes.
    parameters = TopdownParameters(clusters=3, start=start, restarts=30)
    found = fit_clusters(chunks_of(log_of_points(points + farthest_m)), parameters)
    assert len(found) == len(centre)
    distance = np.linalg.norm(found.mean_m[:, None] - centre - farthest_m, axis=2)
    assert_array_equal(np.sort(distance.argmin(axis=1)), np.arange(len(centre)))
    # Of 100 points with sigma 0.1 m: means to 0.01 m, variances to 14 %; 5 sigma over 27 numbers: false alarm 2e-5.
    assert distance.min(axis=1).max() < 5 * 0.01 * np.sqrt(3)
    assert_allclose(np.einsum("nii->ni", found.covariance_m2), 0.01, rtol=5 * 0.142)


def test_clusters_larger_than_the_limit_are_split_and_no_point_is_lost():
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 30, (50_000, 3)) * [1, 1, 0.1]
    order, begin = leaves(points, iterations=30, tolerance=1e-3)
    assert_array_equal(np.sort(order), np.arange(len(points)))
    size = np.diff(begin)
    assert size.min() >= 1
    assert size.max() < 120
    # Recursion goes where the points are: a leaf's points lie far closer together than the cloud's.
    assert variation(points, order, begin) < 0.01 * ((points - points.mean(axis=0)) ** 2).sum()


def test_leaves_have_the_moments_of_their_points():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(500, 3))
    log = log_of_points(points, labels=rng.integers(1, 4, 500), intensities=rng.uniform(0, 1, 500))
    found = fit_clusters(chunks_of(log), TopdownParameters(split_points=501))
    assert len(found) == 1
    assert_allclose(found.mean_m[0], log.points().mean(axis=0), atol=1e-12)
    assert_allclose(found.covariance_m2[0], np.cov(log.points().T, ddof=0), atol=1e-12)
    assert log.returns.intensity is not None
    assert_allclose(found.intensity[0], log.returns.intensity.mean(), rtol=1e-6)
    assert_allclose(found.intensity_sigma[0], log.returns.intensity.std(), rtol=1e-6)
    assert log.returns.label is not None
    assert found.label.most_common()[0] == np.bincount(log.returns.label).argmax()


@pytest.mark.parametrize("seed", range(5))
def test_a_settled_split_has_every_point_with_its_nearest_mean(seed):
    points = np.random.default_rng(seed).normal(size=(5000, 3)) * [3, 1, 0.2]
    order, begin = leaves(points, split_points=len(points), seed=seed)
    assert 2 <= len(begin) - 1 <= 10
    mean = np.array([part.mean(axis=0) for part in np.split(points[order], begin[1:-1])])
    distance = np.linalg.norm(points[order][:, None] - mean, axis=2)
    own = np.repeat(np.arange(len(mean)), np.diff(begin))
    # Distances are compared in float32: 1e-6 of some 10 m.
    assert (distance[np.arange(len(points)), own] <= distance.min(axis=1) + 1e-5).all()


@pytest.mark.parametrize("start", [_core.ClusterStart.points, _core.ClusterStart.partition])
def test_restarts_never_worsen_the_criterion_and_iterations_neither(start):
    points = np.random.default_rng(3).normal(size=(3000, 3))
    one_level = {"split_points": 3000, "start": start}
    gained = 0
    for seed in range(5):
        by_restarts = [variation(points, *leaves(points, restarts=r, seed=seed, **one_level)) for r in range(1, 9)]
        assert (np.diff(by_restarts) <= 0).all()
        gained += by_restarts[-1] < by_restarts[0]
    assert gained > 0
    by_rounds = [variation(points, *leaves(points, iterations=i, **one_level)) for i in (1, 2, 4, 8, 16)]
    assert (np.diff(by_rounds) < 0).all()


def test_threads_order_and_partition_of_the_log_change_no_bit():
    log = fired(park(), 150_000, seed=5)
    parameters = TopdownParameters(restarts=2)
    once = fit_clusters(chunks_of(log), parameters, threads=1)
    shuffled = log[np.random.default_rng(0).permutation(len(log))]
    again = fit_clusters(chunks_of(shuffled[:40_000], shuffled[40_000:]), parameters, threads=5)
    assert_array_equal(once.mean_m, again.mean_m)
    assert_array_equal(once.covariance_m2, again.covariance_m2)
    other = fit_clusters(chunks_of(log), TopdownParameters(restarts=2, seed=1))
    assert len(other) != len(once) or (other.mean_m != once.mean_m).any()


def test_cells_too_depend_on_the_points_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log = fired(park(), 40_000, seed=6)
    parameters = TopdownParameters(cell_points=4000, sample_points=2000, restarts=1)
    once = fit_clusters(lambda: (part for _, part in log.iter_sweeps()), parameters, threads=1)
    again = fit_clusters(chunks_of(log[25_000:], log[:25_000]), parameters)
    assert_array_equal(once.mean_m, again.mean_m)
    assert_array_equal(once.covariance_m2, again.covariance_m2)
    assert list(tmp_path.iterdir()) == []


def permeable(elements, log):
    """The scene of the elements, with permeabilities counted from the log."""
    scene = Scene()
    elements.add_to(scene)
    hits, passes = scene.count(log.beams, log.returns.range_m, max_range_m=log.max_range_m)
    counted = replace(elements, stop=(passes / np.maximum(hits + passes, 1)).astype(np.float32))[hits > 0]
    scene = Scene()
    counted.add_to(scene)
    return scene


def scores(scene, log):
    """Share of hits found, and mean range error of those."""
    range_m = scene.fire(log.beams, seed=3, max_range_m=log.max_range_m).range_m
    found = np.isfinite(range_m)
    return found.mean(), np.abs(range_m[found] - log.returns.range_m[found]).mean()


def test_worlds_learned_in_cells_and_in_one_piece_simulate_alike_across_the_seams():
    site = park()
    train, test = fired(site, 200_000, seed=7), fired(site, 200_000, seed=8)
    parameters = TopdownParameters(cell_points=8000, sample_points=5000)
    in_cells = fit_clusters(chunks_of(train), parameters)
    whole = fit_clusters(chunks_of(train), TopdownParameters())
    # Not the same number: with K = 10 the size of leaves swings with the size that the recursion starts from.
    assert abs(len(in_cells) / len(whole) - 1) < 0.3
    # Beams that end within 0.2 m of a border between cells. The cells are those of the learner: same sample, same cuts.
    sample = PointSample(parameters.sample_points)
    sample.add(train.points())

    def split(points, number) -> list[NDArray[np.integer]]:
        order, begin = leaves(points, split_points=len(points), restarts=3, iterations=30, tolerance=1e-4,
                              start=_core.ClusterStart.partition, root=number + 1)  # fmt: skip
        return np.split(order, begin[1:-1])

    tree = CellTree(sample, parameters.cell_points, 200, split)
    assert tree.n_cells > 20
    test = test[test.returns.hit]
    end = test.points()
    cell = tree.cells_of(end)
    around = 0.2 * np.concatenate([np.eye(3), -np.eye(3)])
    seam = np.any([tree.cells_of(end + step) != cell for step in around], axis=0)
    assert seam.sum() > 10_000
    hit_cells, error_cells = scores(permeable(in_cells, train), test[seam])
    hit_whole, error_whole = scores(permeable(whole, train), test[seam])
    # Two draws of 10,000 hits with 0.97 of them found and a range error of 1.2 m spread: 5 sigma are 0.012 and 0.085 m.
    # Other seeds of the clustering in one piece differ by less than half of that.
    assert hit_whole > 0.95
    assert abs(hit_cells - hit_whole) < 0.012
    assert abs(error_cells - error_whole) < 0.085


def test_the_sample_is_fair_and_the_same_however_the_points_come():
    points = np.random.default_rng(4).uniform(0, 1, (20_000, 3))
    whole, first, second = PointSample(1000), PointSample(1000), PointSample(1000)
    for start in range(0, 20_000, 3000):
        whole.add(points[start : start + 3000])
    first.add(points[::2])
    second.add(points[1::2])
    second.merge(first)
    assert_array_equal(whole.position_m(), second.position_m())
    assert whole.n_points == second.n_points == 20_000
    assert whole.position_m().shape == (1000, 3)
    # Mean of 1000 uniform numbers: 5 sigma; false alarm 2e-6.
    assert_allclose(whole.position_m().mean(axis=0), 0.5, atol=5 / np.sqrt(12 * 1000))


@pytest.mark.parametrize("cell_points", [100, 2_000_000])
def test_equal_points_end_in_one_leaf_however_many_they_are(cell_points):
    log = log_of_points(np.ones((1, 3)))[np.zeros(5000, dtype=int)]
    found = fit_clusters(chunks_of(log), TopdownParameters(cell_points=cell_points))
    assert_allclose(found.mean_m, np.ones((1, 3)), atol=1e-6)
    assert_array_equal(found.covariance_m2, np.zeros((1, 3, 3)))
    scene = Scene()
    found.add_to(scene)
    assert scene.n_elements == 1


def test_one_beam_makes_one_element_unless_more_points_are_asked_for():
    one = chunks_of(log_of_points(np.zeros((1, 3))))
    assert len(fit_clusters(one, TopdownParameters())) == 1
    with pytest.raises(InputError, match=r"min_points: none of 1 clusters has 5 points, the fullest has 1"):
        fit_clusters(one, TopdownParameters(min_points=5))


@pytest.mark.parametrize("case", REFUSALS)
def test_a_log_without_anything_to_learn_is_refused(case):
    parts, words = REFUSALS[case]
    with pytest.raises(InputError, match=words):
        fit_clusters(parts, TopdownParameters())


def test_a_full_disk_is_said_so(tmp_path, monkeypatch):
    class Full:
        def __enter__(self):
            raise OSError(28, "No space left on device")

        def __exit__(self, *_):
            return False

    monkeypatch.setattr("pathlib.Path.open", lambda *_: Full())
    log = fired(park(), 3000, seed=1)
    with pytest.raises(FileError, match=r"cannot be written, No space left on device; set TMPDIR"):
        fit_clusters(chunks_of(log), TopdownParameters(cell_points=500, sample_points=1000))


def test_progress_ends_with_all_beams_and_never_goes_back():
    log = fired(park(), 30_000, seed=2)
    for cell_points in (3000, 2_000_000):
        told = []
        parameters = TopdownParameters(cell_points=cell_points, sample_points=2000, restarts=1)
        fit_clusters(chunks_of(log), parameters, progress=told.append)
        assert told[-1] == len(log)
        assert told == sorted(told)


@pytest.mark.parametrize("wrong", [{"k": 10}, {"clusters": 1}, {"split_points": 1}, {"seed": -1}, {"start": "random"}])
def test_unknown_and_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        TopdownParameters(**wrong)


def test_two_clusters_start_on_the_longest_axis_and_split_across_it():
    points = np.random.default_rng(0).normal(size=(4000, 3)) * [1.0, 5.0, 0.5]
    order, begin = leaves(points, clusters=2, split_points=4000, start=_core.ClusterStart.axis)
    side = np.split(points[order][:, 1], begin[1:-1])
    assert len(side) == 2
    # K-means of a Gaussian cuts across the longest axis at the middle; the middle is known to 5 / sqrt(4000) m.
    low, high = sorted(side, key=np.mean)
    assert low.max() - high.min() < 2.0 and abs(np.mean(low) + np.mean(high)) < 0.5
    again = leaves(points, clusters=2, split_points=4000, start=_core.ClusterStart.axis, seed=9, restarts=5)
    assert_array_equal(again[0], order)  # nothing is random


def test_points_in_one_place_have_no_axis_and_stay_together():
    _, begin = leaves(np.ones((300, 3)), clusters=2, start=_core.ClusterStart.axis)
    assert_array_equal(begin, [0, 300])


def test_gaussian_clusters_stay_whole_and_others_are_split():
    rng = np.random.default_rng(1)
    blobs = rng.normal(size=(2, 2000, 3)) * [0.5, 0.2, 0.1] + np.array([[[0.0, 0, 0]], [[20.0, 0, 0]]])
    parameters = TopdownParameters(clusters=2, start="axis", gaussian_level=1e-6)
    found = fit_clusters(chunks_of(log_of_points(blobs.reshape(-1, 3))), parameters)
    # Each is a Gaussian, tested with a false alarm of one in a million; without the test they would be cut small.
    assert len(found) == 2
    assert len(fit_clusters(chunks_of(log_of_points(blobs.reshape(-1, 3))), TopdownParameters(clusters=2))) > 30
    # A full box is none: its fourth moment is 11.4 instead of 15, by 22 standard deviations of 2000 points.
    box = rng.uniform(-1, 1, (2000, 3))
    assert len(fit_clusters(chunks_of(log_of_points(box)), parameters)) > 1


def test_the_test_of_gaussians_refuses_as_often_as_its_level_says():
    rng = np.random.default_rng(2)
    level, n_trials = 0.1, 400
    split = 0
    for _ in range(n_trials):
        parameters = TopdownParameters(clusters=2, start="axis", gaussian_level=level, split_points=2000)
        split += len(fit_clusters(chunks_of(log_of_points(rng.normal(size=(2000, 3)))), parameters)) > 1
    # 40 expected, standard deviation 6; the limits are asymptotic. Five deviations: false alarm below 1e-6.
    assert abs(split - level * n_trials) < 30
