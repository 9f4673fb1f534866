# SPDX-License-Identifier: Apache-2.0
"""Recipes and parameters of the models."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.models.refined.model import RefinedParameters
from hedgerow.models.registry import MODELS

SENSOR = hr.Sensor.named("hdl-64e")


def street(n_with_van, n_without):
    """Sweeps of level ground and a wall at 12 m; a van stands 6 m ahead in the first of them only."""
    ground = np.array([[-200.0, -200, -2], [200, -200, -2], [0, 300, -2]])
    wall = np.array([[12.0, -40, -2], [12, 40, -2], [12, 0, 40]])
    van = np.array([[6.0, -1.5, -2], [6, 1.5, -2], [6, 1.5, 0], [6, -1.5, 0]])
    sweeps = []
    for number in range(n_with_van + n_without):
        scene = hr.Scene()
        for corners in (ground, wall):
            scene.add_mesh(corners, [[0, 1, 2]], noise=hr.SurfaceNoise(0.01))
        if number < n_with_van:
            scene.add_mesh(van, [[0, 1, 2], [0, 2, 3]], noise=hr.SurfaceNoise(0.01))
        beams = SENSOR.sweep(hr.Pose.from_xyz_rpy((0, 0, 0)))
        beams = beams[beams.direction[:, 0] > 0.8]
        sweeps.append(hr.SceneWorld(scene).fire(beams, number, sensor=SENSOR))
    return hr.Log.concatenate(sweeps)


def share_ahead_stopped_by_the_van(world):
    # Every beam aims at the van, 0.3 m and more from its edges.
    aim = np.random.default_rng(0).uniform([6, -1.2, -1.5], [6, 1.2, -0.3], (2000, 3))
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=aim / np.linalg.norm(aim, axis=1, keepdims=True))
    range_m = world.fire(beams).returns.first_m
    return np.mean(np.abs(range_m - np.linalg.norm(aim, axis=1)) < 0.3), np.mean(np.isfinite(range_m))


@pytest.mark.parametrize(
    ("n_with_van", "max_passed", "stands"), [(1, 0.5, False), (1, 1.0, True), (4, 0.5, True), (4, 0.1, False)]
)
def test_a_solid_surface_keeps_only_what_stopped_enough_beams(n_with_van, max_passed, stands):
    log = street(n_with_van, 5 - n_with_van)
    by_van, by_anything = share_ahead_stopped_by_the_van(hr.learn(log, "surface", max_passed=max_passed))
    assert by_van == pytest.approx(float(stands), abs=0.01)  # slivers between the rings may stay
    assert by_anything > 0.99  # the ground and the wall behind have no holes


def test_a_share_above_one_is_refused():
    with pytest.raises(InputError, match="max_passed"):
        hr.learn(street(1, 0), "surface", max_passed=1.5)


def test_a_dotted_name_changes_one_value_of_a_group_and_leaves_the_others():
    given = {"voxel.side_m": 0.2, "voxel.tau": 3.0, "rounds": 2}
    own = MODELS["refined"].parse(given)
    assert isinstance(own, RefinedParameters)
    assert (own.voxel.side_m, own.voxel.tau, own.voxel.min_points) == (0.2, 3.0, RefinedParameters().voxel.min_points)
    assert own.rounds == 2
    assert given == {"voxel.side_m": 0.2, "voxel.tau": 3.0, "rounds": 2}


def test_counting_parameters_inside_a_group_of_hybrid_are_refused_since_all_is_counted_together():
    with pytest.raises(InputError, match=r"topdown\.prior_hits: .*set prior_hits of the hybrid model"):
        MODELS["hybrid"].parse({"topdown.prior_hits": 1.0})
    assert MODELS["hybrid"].parse({"prior_hits": 1.0, "topdown.tau": 3.0}).model_dump()["prior_hits"] == 1.0


def test_a_dotted_name_adds_to_a_group_that_is_given():
    group = {"count": 3.0}
    own = MODELS["refined"].parse({"prior.width": 2.0, "prior": group})
    assert isinstance(own, RefinedParameters)
    assert own.prior is not None
    assert (own.prior.count, own.prior.width) == (3.0, 2.0)
    assert group == {"count": 3.0}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prior.nope": 1}, r"prior\.nope: model refined has no such parameter; it has reach_m, count"),
        ({"nope.a": 1}, r"nope: model refined has no such parameter; it has start"),
        ({"prior.width": -1}, r"prior\.width: .*greater than or equal to 0"),
        ({"tau.a": 1}, r"tau: "),
        ({"prior": None, "prior.width": 1}, r"prior\.width: prior is set as a whole too"),
    ],
)
def test_a_wrong_dotted_name_is_refused_in_one_sentence(values, message):
    with pytest.raises(InputError, match=message):
        MODELS["refined"].parse(values)
