# SPDX-License-Identifier: Apache-2.0
"""Primitives cut out of a learned world: elements in frames of their own, seen sides, and back at their places."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import InputError, Log
from hedgerow.base.labels import LABELS
from hedgerow.compose.primitives import extract_primitives
from hedgerow.compose.segmentation import segment
from hedgerow.scenes.primitive import SECTORS, facts_of
from hedgerow.world import Gaussians, LearnedWorld, Triangles

FEET = np.array([[8.0, 5.0], [-7.0, -6.0], [14.0, -9.0]])
HEIGHTS = (2.2, 9.0, 1.0)


def bush(foot, height_m, seed):
    """Gaussians that fill an ellipsoid over a foot."""
    rng = np.random.default_rng(seed)
    n = 300
    place = rng.normal(size=(n, 3))
    place *= (rng.uniform(0, 1, n) ** (1 / 3) / np.linalg.norm(place, axis=1))[:, None]
    return place * [0.35 * height_m, 0.25 * height_m, height_m / 2] + [*foot, height_m / 2]


def site():
    """Level ground of small triangles, and three plants of solid Gaussians."""
    x, y = (each.ravel() for each in np.meshgrid(np.arange(-25, 25, 0.5), np.arange(-25, 25, 0.5)))
    corner = np.stack([x, y, 0 * x], axis=1)
    corners = corner[:, None] + np.array([[0.0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]])
    mean = np.concatenate([bush(foot, high, k) for k, (foot, high) in enumerate(zip(FEET, HEIGHTS, strict=True))])
    volumes = Gaussians.plain(mean, np.tile(0.003 * np.eye(3), (len(mean), 1, 1)), label=LABELS["vegetation"].number)
    ground = Triangles.plain(corners, label=LABELS["terrain"].number)
    return LearnedWorld(ground, volumes, kind="test", max_range_m=60.0)


@pytest.fixture(scope="module")
def world():
    return site()


@pytest.fixture(scope="module")
def log(world):
    """A drive along y = 0: each plant is seen from one side."""
    path = hr.Trajectory.line((-15, 0, 1.8), (15, 0, 1.8), speed_mps=30)
    drive = hr.simulate(world, hr.Sensor.named("vlp-16"), path, seed=1)
    return Log.concatenate(list(drive))


@pytest.fixture(scope="module")
def library(world, log):
    return extract_primitives(world, segment(world), log=log)


def test_each_plant_becomes_a_primitive_with_its_foot_at_the_origin(library):
    facts = [facts_of(asset.name, asset.about) for asset in library.assets]
    assert sorted(each.class_name for each in facts) == ["low-shrub", "medium-tree", "small-shrub"]
    for asset, each in zip(library.assets, facts, strict=True):
        nearest = np.argmin(np.linalg.norm(FEET - each.foot_m[:2], axis=1))
        assert np.linalg.norm(FEET[nearest] - each.foot_m[:2]) < 0.3
        assert each.height_m == pytest.approx(
            HEIGHTS[nearest], abs=0.3 + 0.1 * HEIGHTS[nearest]
        )  # few reach the very top
        middle = np.concatenate([part.centre_m() for part in asset.parts]).mean(axis=0)
        assert np.abs(middle[:2]).max() < 0.3
        assert middle[2] == pytest.approx(HEIGHTS[nearest] / 2, abs=0.6)
        assert each.length_m > each.width_m * 0.9  # x is the principal axis nearest the driving direction


def test_a_plant_seen_from_the_path_alone_is_half_seen_and_says_from_where(library):
    for asset in library.assets:
        facts = facts_of(asset.name, asset.about)
        assert facts.seen_from is not None
        assert len(facts.seen_from) == SECTORS
        assert facts.n_beams > 20
        assert facts.is_half_seen
        towards_path = -np.sign(facts.foot_m[1]) * np.pi / 2
        found = facts.seen_side_rad + facts.yaw_rad
        assert abs(np.angle(np.exp(1j * (found - towards_path)))) < np.radians(45)


def test_primitives_back_at_their_places_answer_as_the_world_did(world, library, log):
    from hedgerow.world.assets import instances_of

    facts = [facts_of(asset.name, asset.about) for asset in library.assets]
    places = np.tile(np.eye(4), (len(facts), 1, 1))
    for place, each in zip(places, facts, strict=True):
        c, s = np.cos(each.yaw_rad), np.sin(each.yaw_rad)
        place[:2, :2], place[:3, 3] = [[c, -s], [s, c]], each.foot_m
    copies = instances_of(library.assets, np.arange(len(facts)), places, object=1 + np.arange(len(facts)))
    ground = world.tables["triangles"]
    again = LearnedWorld(ground, copies, kind="composed", assets=library.assets, max_range_m=60.0)
    one, other = hr.replay(world, log), hr.replay(again, log)
    # Both are solid; the few elements below half a metre that are no part of a plant are gone.
    same = np.isclose(one.returns.range_m, other.returns.range_m, atol=0.5) | ~(one.returns.hit | other.returns.hit)
    assert same.mean() > 0.97
    assert other.returns.object is not None
    assert set(np.unique(other.returns.object).tolist()) == {0, 1, 2, 3}


def test_elements_of_a_library_are_no_objects_and_keep_labels(library):
    for asset in library.assets:
        for part in asset.parts:
            assert not part.object.any()
            if isinstance(part, Gaussians):
                assert (part.label.most_common() == LABELS["vegetation"].number).all()


# refusals


def test_a_segmentation_of_another_world_is_refused(world):
    other = LearnedWorld(Gaussians.plain(np.zeros((3, 3)), np.tile(np.eye(3), (3, 1, 1))), kind="test")
    with pytest.raises(InputError, match="belongs to another world"):
        extract_primitives(other, segment(world))


def test_nothing_left_is_told_with_what_there_is(world):
    with pytest.raises(InputError, match=r"no primitive of large-tree is left; the world has .*medium-tree"):
        extract_primitives(world, segment(world), classes=["large-tree"])
