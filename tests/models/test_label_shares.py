# SPDX-License-Identifier: Apache-2.0
"""Labels from log to element to return: what was counted is kept whole, and comes back in the same shares."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chisquare
from volume_clouds import log_of_points, random_log

import hedgerow as hr
from hedgerow.models.bottomup import BottomupParameters, fit_regions
from hedgerow.models.steps import thinning
from hedgerow.models.steps.moments import VoxelStatistics
from hedgerow.models.surface import SurfaceParameters, make_surface
from hedgerow.models.topdown import TopdownParameters, fit_clusters
from hedgerow.models.voxel import VoxelParameters, fit_voxels
from hedgerow.world.elements import Gaussians, Triangles

FALSE_ALARM = 1e-6  # per test; every seed below is fixed, so a pass stays a pass

VOLUMES = {
    "voxel": lambda parts: fit_voxels(parts, VoxelParameters(min_points=1)),
    "topdown": lambda parts: fit_clusters(parts, TopdownParameters(split_points=40)),
    "topdown in cells": lambda parts: fit_clusters(parts, TopdownParameters(split_points=40, cell_points=500)),
    "bottomup": lambda parts: fit_regions(parts, BottomupParameters(min_points=1)),
}


def totals(counts):
    """How many points of each label, over all elements."""
    return np.bincount(counts.label, weights=counts.count, minlength=80)


def test_shares_in_one_voxel_come_back_from_log_to_world_to_file_to_returns(tmp_path):
    label = np.repeat([4, 9, 70, 0], [600, 300, 100, 50])
    points = 1.0 + np.random.default_rng(0).normal(scale=0.1, size=(len(label), 3))
    learned = hr.learn(log_of_points(points, labels=label), "voxel", side_m=2.0)
    learned.save(tmp_path / "x.world")
    world = hr.load_world(tmp_path / "x.world")
    table = world.tables["gaussians"]
    assert list(world.tables) == ["gaussians"] and isinstance(table, Gaussians)
    counts = table.label
    assert_array_equal(counts.first, [0, 3])
    assert_array_equal(counts.label, [4, 9, 70])
    assert_array_equal(counts.count, [600, 300, 100])
    fired = world.fire(hr.Beams.from_arrays(origins=(-5, 1, 1), directions=np.tile([1.0, 0, 0], (100_000, 1))), seed=1)
    assert fired.returns.label is not None
    drawn = fired.returns.label[fired.returns.hit]
    assert len(drawn) > 50_000
    found = [np.sum(drawn == each) for each in (4, 9, 70)]
    assert sum(found) == len(drawn)
    assert chisquare(found, len(drawn) * np.array([0.6, 0.3, 0.1])).pvalue > FALSE_ALARM


@pytest.mark.parametrize("model", VOLUMES)
def test_no_labelled_point_is_lost_however_the_log_is_cut(model):
    log = random_log(np.random.default_rng(1), 1500)
    assert log.returns.label is not None
    labels = log.returns.label[log.returns.hit]
    whole = VOLUMES[model](lambda: [log])
    assert whole.label.mixed().any()
    assert_array_equal(totals(whole.label)[1:], np.bincount(labels, minlength=80)[1:])
    pieces = [log[log.beams.sweep == sweep] for sweep in (3, 0, 4, 1, 2)]
    cut = VOLUMES[model](lambda: pieces)
    assert cut.label.equal(whole.label)


def test_histograms_of_merged_statistics_are_those_of_the_whole():
    log = random_log(np.random.default_rng(2), 800)
    whole, first, second = VoxelStatistics(0.4), VoxelStatistics(0.4), VoxelStatistics(0.4)
    whole.add(log)
    first.add(log[300:])
    second.add(log[:300])
    first.merge(second)
    assert first.gaussians(min_points=3).label.equal(whole.gaussians(min_points=3).label)


def test_triangles_count_the_labels_of_the_points_near_their_middles():
    rng = np.random.default_rng(3)
    points = np.c_[rng.uniform(-1.5, 1.5, (3000, 2)), rng.normal(scale=0.01, size=3000)]
    label = rng.choice([0, 40, 48, 70], 3000, p=[0.2, 0.5, 0.2, 0.1]).astype(np.uint16)
    label[points[:, 0] < -1] = 0
    parameters = SurfaceParameters()
    up = np.tile(np.array([0, 0, 1], np.float32), (3000, 1))
    thinned, _ = thinning.thin(points, up, voxel_m=parameters.thinning_voxel_m, label=label)
    mesh = make_surface(thinned, parameters)
    place = thinning.positions_m(thinned, parameters.thinning_voxel_m)
    compared = 0
    for row in range(len(mesh)):
        apart = np.linalg.norm(place - mesh.corners_m[row].mean(axis=0), axis=1)
        # The core measures in float32 from the middle of a cell, to 1e-7 m or so: leave out what lies on the border.
        if np.abs(apart - parameters.largest_gap_m).min() < 1e-6:
            continue
        compared += 1
        near = thinned[apart < parameters.largest_gap_m]
        expected = np.bincount(near["label"], weights=near["count"], minlength=80)
        expected[0] = 0
        assert_array_equal(totals(mesh[row : row + 1].label), expected)
    assert compared > 100
    assert compared > 0.9 * len(mesh)
    assert 0 < (np.diff(mesh.label.first) == 0).sum() < len(mesh)  # some have unlabelled points alone
    assert (np.diff(mesh.label.first) == 3).any()


def test_a_hybrid_world_of_a_labelled_lane_carries_histograms_in_both_tables():
    rng = np.random.default_rng(4)
    ground = np.c_[rng.uniform(-3, 3, (6000, 2)), rng.normal(scale=0.01, size=6000)]
    bush = np.c_[rng.uniform(-0.6, 0.6, (3000, 2)), rng.uniform(0.4, 1.6, 3000)]
    label = np.r_[rng.choice([72, 40], 6000, p=[0.7, 0.3]), rng.choice([70, 71], 3000, p=[0.8, 0.2])]
    points = np.r_[ground, bush]
    ray = points - [0, 0, 4.0]
    range_m = np.linalg.norm(ray, axis=1)
    log = hr.Log.from_arrays(
        origins=(0, 0, 4), directions=ray / range_m[:, None], ranges=range_m, labels=label, max_range_m=50.0
    )
    tables = hr.learn(log, "hybrid").tables
    for name, (often, seldom), share in (("triangles", (72, 40), 0.7), ("gaussians", (70, 71), 0.8)):
        table = tables[name]
        assert isinstance(table, Triangles | Gaussians)
        total = totals(table.label)
        assert table.label.mixed().mean() > 0.5
        # The two kinds of elements take few points of each other; 0.05 is ten standard errors of 3000 points.
        assert abs(total[often] / (total[often] + total[seldom]) - share) < 0.05
        assert (total[often] + total[seldom]) / total.sum() > 0.8
