# SPDX-License-Identifier: Apache-2.0
"""Surface or volume: closed forms, a NumPy oracle, tiles, the trained defaults on sites not trained on, tuning."""

import tomllib
from importlib import resources

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError

from hedgerow import Log, Sensor
from hedgerow.demo import VEGETATION, lane_trajectory, lane_world
from hedgerow.errors import InputError
from hedgerow.learn.classify import ClassifierParameters, classify, classify_parts, scores
from hedgerow.learn.tune import LabelledPoints, balanced_accuracy, tune_classifier

PLAIN = ClassifierParameters(
    radius_m=0.4,
    min_neighbours=8,
    default_score=0.2,
    filter_neighbours=10,
    filter_radius_m=0.3,
    distance_weight=2.0,
    score_weight=3.0,
    threshold=0.1,
)


def ground(rng, n=6000, size=3.0):
    return np.c_[rng.uniform(-size, size, (n, 2)), 0.01 * rng.normal(size=n)]


def bush(rng, n=3000, centre=(0.0, 0.0, 1.5)):
    return np.asarray(centre) + 0.8 * rng.random((n, 1)) ** (1 / 3) * unit(rng, n)


def unit(rng, n):
    out = rng.normal(size=(n, 3))
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def lane(sensor, every, seed):
    model = Sensor.named(sensor)
    beams = model.drive(lane_trajectory())
    return lane_world(seed).fire(beams[beams.sweep % every == 0], seed=seed, sensor=model)


def test_a_plane_scores_zero_and_a_ball_nearly_a_third():
    rng = np.random.default_rng(0)
    flat = np.c_[rng.uniform(-2, 2, (4000, 2)), np.zeros(4000)]
    assert_allclose(scores(flat, PLAIN), 0, atol=1e-4)
    ball = rng.uniform(-2, 2, (40_000, 3))
    inner = (np.abs(ball) < 1.2).all(axis=1)
    # 170 points around each: eigenvalues scatter by a tenth, so the smallest lies a tenth below a third of their sum.
    found = scores(ball, PLAIN)[inner]
    assert found.mean() == pytest.approx(0.9 / 3, abs=0.015)
    assert found.min() > 0.2
    assert found.max() < 1 / 3


def test_scores_are_those_of_a_slow_filter():
    rng = np.random.default_rng(1)
    position = np.concatenate([rng.normal(size=(300, 3)) * [0.5, 0.5, 0.3], rng.uniform(-6, 6, (40, 3))])
    assert_allclose(scores(position, PLAIN), slow_scores(position, PLAIN), atol=2e-5)  # float32 sums


def slow_scores(position, parameters):
    distance = np.linalg.norm(position[:, None] - position[None], axis=2)
    raw = np.full(len(position), parameters.default_score)
    for i, row in enumerate(distance):
        near = position[row <= parameters.radius_m]
        if len(near) >= parameters.min_neighbours:
            value = np.linalg.eigvalsh(np.cov(near.T, bias=True))
            raw[i] = value[0] / value.sum()
    out = np.zeros(len(position))
    for i, row in enumerate(distance):
        near = np.argsort(row)[: parameters.filter_neighbours]
        near = near[row[near] <= parameters.filter_radius_m]
        by_distance = parameters.distance_weight * (row[near] / parameters.filter_radius_m) ** 2
        by_score = parameters.score_weight * ((raw[near] - raw[i]) * 3) ** 2
        weight = np.exp(-by_distance - by_score)
        out[i] = (weight * raw[near]).sum() / weight.sum()
    return out


def test_bush_is_a_volume_and_ground_a_surface():
    rng = np.random.default_rng(2)
    position = np.concatenate([ground(rng), bush(rng)])
    is_volume = classify(position)
    assert is_volume[:6000].mean() < 0.02
    assert is_volume[6000:].mean() > 0.9


def test_repeated_points_and_their_order_do_not_change_the_classes():
    rng = np.random.default_rng(3)
    position = np.concatenate([ground(rng, n=2000), bush(rng, n=1000)])
    once = classify(position)
    # Shifted by micrometres: repeats of a still sensor.
    often = np.concatenate([position + 1e-6 * rng.normal(size=position.shape) for _ in range(20)])
    order = rng.permutation(len(often))
    agree = classify(often[order])[np.argsort(order)].reshape(20, -1) == once
    assert agree.mean() > 0.999


def test_classes_do_not_depend_on_threads_tiles_or_partitions():
    rng = np.random.default_rng(4)
    position = np.concatenate([ground(rng, n=10_000, size=12.0), bush(rng, centre=(8.0, 8.0, 1.5)), bush(rng)])
    origin = np.array([0.0, 0.0, 4.0])
    ray = position - origin
    range_m = np.linalg.norm(ray, axis=1)
    log = Log.from_arrays(origins=origin, directions=ray / range_m[:, None], ranges=range_m)
    one = classify(log.points(), threads=1)
    assert_array_equal(classify(log.points(), threads=8), one)
    for tile_m in (3.0, 8.0, np.inf):
        classes = classify_parts(lambda: [log[1::2], log[::2]], tile_m=tile_m)
        assert_array_equal(classes.is_volume(log.points()), one)
        assert_array_equal(classes.is_surface(log.points()), ~one)


def test_points_in_voxels_never_seen_are_surface():
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[5.0])
    classes = classify_parts(lambda: [log])
    far = np.array([[5.0, 9.0, 0.0], [-1e6, 0.0, 0.0], [1e9, 0.0, 0.0]])
    assert_array_equal(classes.is_volume(far), False)


def test_no_points_have_no_classes():
    assert classify(np.zeros((0, 3))).shape == (0,)
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[np.inf], max_range_m=9)
    assert len(classify_parts(lambda: [log])) == 0


def test_utm_coordinates_do_not_change_the_classes():
    rng = np.random.default_rng(5)
    position = np.concatenate([ground(rng), bush(rng)])
    moved = classify(np.add(position, [468_000.0, 5_460_000.0, 300.0]))
    assert (moved == classify(position)).mean() > 0.999  # a point in a thousand changes its voxel by rounding


def test_trained_defaults_do_as_well_on_a_log_not_trained_on_as_their_file_says():
    points = LabelledPoints.of_log(lane("hdl-64e", 30, seed=7), [VEGETATION])
    text = resources.files("hedgerow.learn").joinpath("classifier_defaults.toml").read_text(encoding="utf-8")
    stated = tomllib.loads(text)["provenance"]["held_out"]["hdl-64e, every 30th sweep"]
    assert balanced_accuracy(points, ClassifierParameters.default()) == pytest.approx(stated, abs=0.01)


def test_defaults_say_what_they_were_trained_on():
    text = resources.files("hedgerow.learn").joinpath("classifier_defaults.toml").read_text(encoding="utf-8")
    provenance = tomllib.loads(text)["provenance"]
    assert set(provenance) >= {"trained_on", "score", "held_out", "seed"}
    assert 0.85 < provenance["score"] <= 1


def test_tuning_learns_to_tell_a_bush_from_the_ground_and_repeats_itself():
    rng = np.random.default_rng(6)
    position = np.concatenate([ground(rng, n=3000), bush(rng, n=1500)])
    label = np.repeat([72, 70], [3000, 1500])
    ray = position - [0, 0, 9]
    range_m = np.linalg.norm(ray, axis=1)
    log = Log.from_arrays(origins=(0, 0, 9), directions=ray / range_m[:, None], ranges=range_m, labels=label)
    seen: list[int] = []
    found, score = tune_classifier(log, [70], seed=3, generations=2, population=2, progress=seen.append)
    assert score > 0.97
    assert seen == [1, 2]
    assert balanced_accuracy(LabelledPoints.of_log(log, [70]), found) == pytest.approx(score, abs=1e-3)
    assert tune_classifier(log, [70], seed=3, generations=2, population=2) == (found, score)


def test_tuning_refuses_logs_without_labels_or_with_one_class():
    bare = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[5.0])
    with pytest.raises(InputError, match="no labels"):
        tune_classifier(bare, [70])
    one = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[5.0], labels=[70])
    with pytest.raises(InputError, match="one class"):
        tune_classifier(one, [70])


@pytest.mark.parametrize(
    "wrong", [{"radius": 0.4}, {"threshold": 0.5}, {"radius_m": 0.0}, {"filter_neighbours": 0}, {"score_weight": -1.0}]
)
def test_wrong_parameters_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        ClassifierParameters(**(PLAIN.model_dump() | wrong))
