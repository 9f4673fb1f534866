# SPDX-License-Identifier: Apache-2.0
"""Every model from end to end: learned, fired, scored, saved and loaded; and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lane import lane_trajectory, lane_world

import hedgerow as hr
from hedgerow.models.registry import MODELS
from hedgerow.world.elements import Gaussians


@pytest.fixture(scope="module")
def lane():
    """Two sweeps of a VLP-16 in the lane: labels, intensities, no-returns."""
    sensor = hr.Sensor.named("vlp-16")
    return lane_world().fire(sensor.drive(lane_trajectory(), n_sweeps=6), seed=3, sensor=sensor)


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_learns_fires_scores_and_comes_back_from_the_disk(model, lane, tmp_path):
    stages = []
    size: dict[str, Any] = {"budget": 4000} if model == "refined" else {}  # it may leave half of that unused
    world = hr.learn(lane, model, **size, progress=lambda stage, done, total: stages.append((stage, done, total)))
    assert world.kind == model
    assert world.size().elements > 1000
    fired = world.fire(lane.beams, seed=5)
    both = np.isfinite(fired.returns.range_m) & np.isfinite(lane.returns.range_m)
    assert both.mean() > 0.4
    # The bare lane is what any model must manage. Through hedges a beam may stop here or there.
    y = lane.beams.origin_m[:, 1] + lane.beams.direction[:, 1] * np.where(both, lane.returns.range_m, 0)
    ground = both & (lane.returns.label == 72) & (lane.returns.range_m < 10) & (np.abs(y) < 2)
    assert np.median(np.abs(fired.returns.range_m[ground] - lane.returns.range_m[ground])) < 0.15
    assert fired.returns.label is not None
    assert set(np.unique(fired.returns.label)) <= {0, 50, 51, 70, 71, 72}
    assert np.isfinite(np.maximum(world.log_likelihood(lane), -20)).all()
    assert stages[-1][1] == stages[-1][2] == len(lane)
    world.save(tmp_path / "lane.world")
    again = hr.load_world(tmp_path / "lane.world").fire(lane.beams, seed=5)
    assert again.returns.equal(fired.returns)


def test_a_learned_world_knows_where_it_comes_from(lane, tmp_path):
    hr.write_log(lane, tmp_path / "lane.parquet")
    world = hr.learn(tmp_path / "lane.parquet", "voxel", side_m=0.5)
    origin = world.header.provenance
    assert (origin.log, origin.sensor, origin.n_beams) == ("lane.parquet", "vlp-16", len(lane))
    assert world.header.parameters["side_m"] == 0.5


def test_a_log_in_pieces_gives_the_same_voxel_world(lane):
    whole = hr.learn(lane, "voxel").tables["gaussians"]
    pieces = [lane[lane.beams.sweep % 3 == k] for k in (2, 0, 1)]
    cut = hr.learn(lambda: iter(pieces), "voxel").tables["gaussians"]
    assert isinstance(whole, Gaussians) and isinstance(cut, Gaussians)
    assert whole.label.mixed().any()
    assert cut.label.equal(whole.label)
    for name in whole.columns().keys() - {"label"}:
        mine, theirs = getattr(whole, name), getattr(cut, name)
        np.testing.assert_allclose(theirs, mine, rtol=1e-6, atol=1e-9, err_msg=name)


def test_utm_coordinates_give_the_same_world_elsewhere(lane):
    offset = np.array([448_262.0, 5_412_876.0, 312.0])
    far = hr.Log.from_arrays(
        origins=lane.beams.origin_m + offset,
        directions=lane.beams.direction,
        ranges=lane.returns.range_m,
        rings=lane.beams.ring,
        sweeps=lane.beams.sweep,
        max_range_m=lane.max_range_m,
    )
    here, there = hr.learn(lane, "topdown"), hr.learn(far, "topdown")
    a = here.fire(lane.beams, seed=1).returns.range_m
    b = there.fire(far.beams, seed=1).returns.range_m
    # Clusters may fall otherwise where distances tie; the distribution of ranges must not move.
    quantiles = np.linspace(0.05, 0.85, 17)  # the far tail rests on few clusters
    finite = [np.quantile(r[np.isfinite(r)], quantiles) for r in (a, b)]
    np.testing.assert_allclose(*finite, rtol=0.02, atol=0.05)
    assert abs(np.isfinite(a).mean() - np.isfinite(b).mean()) < 0.01


@pytest.mark.parametrize("model", [name for name in MODELS if name != "points"])
def test_one_beam_and_duplicate_points_are_handled_or_refused_in_one_sentence(model):
    for n in (1, 400):
        log = hr.Log.from_arrays(
            origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (n, 3)), ranges=np.full(n, 5.0), max_range_m=50
        )
        try:
            world = hr.learn(log, model)
        except hr.InputError as error:
            assert "\n" not in str(error)
            continue
        range_m = world.fire(log.beams).returns.range_m
        assert (np.isinf(range_m) | (np.abs(range_m - 5) < 0.5)).all()


@pytest.mark.parametrize("model", list(MODELS))
def test_logs_that_teach_nothing_are_refused_by_every_model(model):
    nothing = hr.Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]] * 9, ranges=[np.inf] * 9, max_range_m=50)
    with pytest.raises(hr.InputError, match="none of its 9 beams returned"):
        hr.learn(nothing, model)
    with pytest.raises(hr.InputError, match="is empty"):
        hr.learn(nothing[:0], model)


def test_unknown_models_and_parameters_are_refused_with_what_there_is(lane):
    with pytest.raises(hr.InputError, match=r"no 'voxels'.*topdown"):
        hr.learn(lane, "voxels")
    with pytest.raises(hr.InputError, match=r"sides: model voxel has no such parameter.*side_m"):
        hr.learn(lane, "voxel", sides=0.3)
    with pytest.raises(hr.InputError, match="side_m"):
        hr.learn(lane, "voxel", side_m=-1.0)


def test_names_of_classes_travel_from_a_log_to_its_world(lane):
    named = replace(lane, metadata={"classes": {"bramble": 2001, "wrong": "x", "far": 70000}})
    world = hr.learn(named, "voxel")
    assert world.classes == {"bramble": 2001}
    assert world.fire(lane.beams, 1).metadata["classes"] == {"bramble": 2001}
