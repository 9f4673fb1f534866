# SPDX-License-Identifier: Apache-2.0
"""The terrain model: known ground and shrubs come back, priors and dropped triangles as Tallavajhula 2018 has them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.models.registry import MODELS
from hedgerow.models.steps.moments import POINT
from hedgerow.models.steps.share_clusters import ShareParameters, blocks, cluster_share, split_most_varied
from hedgerow.scenes import mesh
from hedgerow.world.elements import Gaussians, Triangles

PRESET = "tallavajhula-2018"
TERRAIN, PLANTS = 72, 70


def ground_m(x, y):
    return 0.4 * np.sin(np.asarray(x) / 8) * np.cos(np.asarray(y) / 7)


def site(height_m: float, n: int) -> hr.SceneWorld:
    """Rolling ground with n plants of about this height beside a path along y = 0."""
    rng = np.random.default_rng(0)
    scene = hr.Scene()
    x, y = np.arange(-50, 50.5, 0.5), np.arange(-40, 40.5, 0.5)
    ground = mesh.height_field(x, y, ground_m(*np.meshgrid(x, y)))
    scene.add_mesh(*ground, label=TERRAIN, reflectance=0.25, noise=hr.SurfaceNoise(0.02))
    foot = rng.uniform([-25, 2.5], [25, 18], (n, 2)) * np.stack([np.ones(n), rng.choice([-1, 1], n)], axis=1)
    size = height_m * rng.uniform(0.7, 1.3, n)
    middle = np.c_[foot, ground_m(*foot.T) + size / 2]
    leaf = np.repeat(middle, 400, axis=0) + rng.normal(size=(400 * n, 3)) * np.repeat(size, 400)[:, None] * 0.2
    leaf = leaf[leaf[:, 2] > ground_m(leaf[:, 0], leaf[:, 1]) + 0.2]
    covariance = np.tile(np.eye(3) * 0.05**2, (len(leaf), 1, 1))
    scene.add_gaussians(leaf, covariance, extinction_per_m=np.full(len(leaf), 4.0), label=PLANTS, intensity=0.6)
    return hr.SceneWorld(scene)


def drive(world: hr.SceneWorld, n_sweeps: int = 8, sensor: str = "vlp-16") -> hr.Log:
    device = hr.Sensor.named(sensor)
    x = np.linspace(-10, 10, 21)
    poses = [hr.Pose.from_xyz_rpy([each, 0, float(ground_m(each, 0)) + 2.0], [0, 0, 0]) for each in x.tolist()]
    way = hr.Trajectory.from_poses(np.linspace(0, 0.1 * n_sweeps + 0.2, 21), poses)
    return world.fire(device.drive(way, n_sweeps=n_sweeps), seed=1, sensor=device, limits_m=(0.5, 30.0))


def halves(log: hr.Log) -> tuple[hr.Log, hr.Log]:
    return log[log.beams.sweep % 2 == 0], log[log.beams.sweep % 2 == 1]


@pytest.fixture(scope="module")
def shrubs():
    return halves(drive(site(1.5, 25)))


@pytest.fixture(scope="module")
def woods():
    return halves(drive(site(7.0, 40), 10, "hdl-32e"))


@pytest.fixture(scope="module")
def shrub_world(shrubs):
    return hr.learn(shrubs[0], "terrain")


def heights_off_m(world: hr.World, log: hr.Log) -> np.ndarray:
    """How far the learned ground is from the true one, up to 20 m away, where a beam saw it within half a metre."""
    assert log.returns.label is not None
    seen = log.points()[log.returns.label[log.returns.hit] == TERRAIN]
    corners = tables_of(world)[0].corners_m.reshape(-1, 3)
    away_m = np.asarray(cKDTree(seen[:, :2]).query(corners[:, :2])[0])
    near = (away_m < 0.5) & (np.abs(corners[:, 0]) < 20) & (np.abs(corners[:, 1]) < 20)
    return np.abs(corners[near, 2] - ground_m(corners[near, 0], corners[near, 1]))


def tables_of(world: hr.World) -> tuple[Triangles, Gaussians]:
    assert isinstance(world, hr.LearnedWorld)
    triangles, gaussians = world.tables["triangles"], world.tables["gaussians"]
    assert isinstance(triangles, Triangles) and isinstance(gaussians, Gaussians)
    return triangles, gaussians


def test_known_ground_comes_back_within_centimetres(shrubs, shrub_world):
    off_m = heights_off_m(shrub_world, shrubs[0])
    assert len(off_m) > 5000  # it covers the place
    assert np.median(off_m) < 0.01  # ranges spread by 2 cm
    assert np.quantile(off_m, 0.9) < 0.05  # the rest lies under and behind shrubs


def test_hits_and_misses_of_other_sweeps_are_found(shrubs, shrub_world):
    scores = hr.compare(shrubs[1], shrub_world)
    assert scores["hits_found"] > 0.94
    assert scores["misses_found"] > 0.9
    assert scores["beam_error_median_m"] < 0.05


def test_ground_and_plants_keep_their_labels_and_intensities(shrub_world):
    for table, label in zip(tables_of(shrub_world), (TERRAIN, PLANTS), strict=True):
        first = table.label.first
        known = np.flatnonzero(np.diff(first) > 0)
        assert len(known) > 0.9 * len(table)
        assert (table.label.label[first[known]] == label).mean() > 0.9
    triangles, gaussians = tables_of(shrub_world)
    assert np.nanmedian(gaussians.intensity) == pytest.approx(0.6, abs=0.05)
    assert 0 < np.nanmedian(triangles.intensity) < 0.25  # seen at a slant


def test_the_preset_finds_ground_and_trees(woods):
    world = hr.learn(woods[0], "terrain", preset=PRESET)
    triangles, gaussians = tables_of(world)
    assert np.median(heights_off_m(world, woods[0])) < 0.05
    assert len(gaussians) > 100
    above = gaussians.mean_m[:, 2] - ground_m(gaussians.mean_m[:, 0], gaussians.mean_m[:, 1])
    assert (above > 1).sum() > 100  # within 5 m of a tree the ground is no ground by its shape: many lie lower
    assert triangles.noise.sigma0_m == pytest.approx(np.sqrt(0.07), abs=1e-4) and triangles.noise.sigma_a_m == 0
    scores = hr.compare(woods[1], world)
    assert (scores["recall"] or 0) > 0.8 and (scores["f1"] or 0) > 0.8


def test_priors_are_those_of_the_preset_and_what_was_never_hit_is_gone(woods):
    world = hr.learn(woods[0], "terrain", preset=PRESET)
    bare = hr.learn(woods[0], "terrain", preset=PRESET, triangle_prior_hits=0, triangle_prior_passes=0)
    with_prior, without = tables_of(world)[0].permeability, tables_of(bare)[0].permeability
    assert len(with_prior) == len(without)  # the prior keeps nothing that raw counts drop
    assert without.max() < 1  # everything left was hit
    # h hits and no pass become 2 / (h + 3): at most a half, and above 0.
    solid = without == 0
    assert solid.any() and (with_prior[solid] > 0).all() and (with_prior[solid] <= 0.5).all()
    h = 2 / with_prior[solid].astype(float) - 3
    np.testing.assert_allclose(h, np.rint(h), atol=1e-3 * np.maximum(h, 1).max())
    kept = hr.learn(woods[0], "terrain", preset=PRESET, keep_unhit="all")
    assert len(tables_of(kept)[0]) > len(with_prior)


def test_unbiased_covariances_are_larger_by_m_over_m_less_one(woods):
    biased, unbiased = (
        tables_of(hr.learn(woods[0], "terrain", unbiased=each, plants={"min_points": 5}))[1] for each in (False, True)
    )
    ratio = np.trace(unbiased.covariance_m2, axis1=1, axis2=2) / np.trace(biased.covariance_m2, axis1=1, axis2=2)
    m = ratio / (ratio - 1)
    np.testing.assert_allclose(m, np.rint(m), rtol=1e-6)
    assert np.rint(m).min() >= 5


def test_the_same_log_gives_the_same_bytes(shrubs, shrub_world):
    for mine, theirs in zip(tables_of(shrub_world), tables_of(hr.learn(shrubs[0], "terrain")), strict=True):
        for name, column in mine.columns().items():
            if isinstance(column, np.ndarray):
                assert column.tobytes() == getattr(theirs, name).tobytes(), name


def test_a_log_in_pieces_gives_the_same_ground(shrubs, shrub_world):
    sweeps = [log for _, log in shrubs[0].iter_sweeps()]
    again = hr.learn(lambda: iter(sweeps), "terrain", keep_unhit="all")
    whole = hr.learn(shrubs[0], "terrain", keep_unhit="all")
    mine, theirs = tables_of(whole)[0].corners_m, tables_of(again)[0].corners_m
    np.testing.assert_allclose(mine, theirs, atol=1e-3)  # sums in another order, and a solver that stops at 0.1 %


def test_a_log_without_plants_is_ground_alone():
    world = hr.learn(drive(site(1.0, 0), 2), "terrain")
    assert list(world.tables) == ["triangles"]


def test_what_shows_no_ground_is_refused():
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=[(0.0, 0.0, 1.0)], ranges=[5.0], max_range_m=10)
    with pytest.raises(InputError, match="fit a ground"):
        hr.learn(log, "terrain")
    with pytest.raises(InputError, match=r"plants\.clusters_per_point"):
        MODELS["terrain"].parse({"plants.clusters_per_point": 2})


def cloud(n: int = 3000) -> np.ndarray:
    """A dense ball and a sparse one as large."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(size=(n * 9 // 10, 3)), rng.normal(size=(n // 10, 3)) + np.array([20, 0, 0])])


def test_there_are_as_many_clusters_as_the_share_asks_for():
    points = cloud()
    for share in (0.01, 0.042, 0.1):
        order, begin = cluster_share(points, ShareParameters(clusters_per_point=share))
        assert share * 3000 <= len(begin) - 1 < share * 3000 + 10  # the last split makes up to ten of one
        assert sorted(order.tolist()) == list(range(3000))
        assert (np.diff(begin) > 0).all()


def test_clusters_are_as_large_where_points_are_sparse():
    points = cloud()
    order, begin = cluster_share(points, ShareParameters(clusters_per_point=0.042))
    groups = [points[order[a:b]] for a, b in pairwise(begin.tolist())]
    sparse = [len(each) for each in groups if each[:, 0].mean() > 10]
    dense = [len(each) for each in groups if each[:, 0].mean() < 10]
    assert np.mean(dense) > 2 * np.mean(sparse)
    varied = [((each - each.mean(axis=0)) ** 2).sum() for each in groups if len(each) >= 10]
    assert max(varied) < 0.05 * ((points - points.mean(axis=0)) ** 2).sum()


def test_threads_do_not_change_clusters_and_seeds_do():
    points = cloud()
    first, again = (cluster_share(points, ShareParameters(), threads=threads) for threads in (1, 2))
    assert first[0].tobytes() == again[0].tobytes() and first[1].tobytes() == again[1].tobytes()
    assert cluster_share(points, ShareParameters(seed=1))[0].tobytes() != first[0].tobytes()


def test_the_most_varied_cluster_is_split_first():
    points = np.zeros((8, 3))
    points[:, 0] = [0, 1, 10, 11, 100, 140, 200, 240]

    def halve(some) -> Any:
        order = np.argsort(some[:, 0])
        return [order[: len(order) // 2], order[len(order) // 2 :]]

    groups = split_most_varied(points, 3, 2, halve)
    assert sorted(sorted(points[each, 0].tolist()) for each in groups) == [[0, 1, 10, 11], [100, 140], [200, 240]]


def test_points_in_one_place_are_one_cluster():
    order, begin = cluster_share(np.ones((500, 3)), ShareParameters(clusters_per_point=0.5))
    assert begin.tolist() == [0, 500] and len(order) == 500
    assert cluster_share(np.ones((1, 3)), ShareParameters())[1].tolist() == [0, 1]


def test_blocks_are_clustered_apart():
    records = np.zeros(400, dtype=POINT)
    records["position_m"] = np.random.default_rng(0).uniform(-10, 10, (400, 3))
    with blocks(10.0) as waiting:
        for part in np.array_split(records, 3):
            waiting.add(part)
        found = list(waiting.moments(ShareParameters()))
    assert sum(n for _, n in found) == 400
    assert len(found) == 4  # the quarters of the square
    for moments, n in found:
        assert moments.count.sum() == n
        assert (np.ptp(np.sign(moments.mean_m[:, :2]), axis=0) == 0).all()
