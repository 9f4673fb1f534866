# SPDX-License-Identifier: Apache-2.0
"""A receiver with a link budget and a noisy threshold: closed forms, the slow receiver, and what it must not do."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from beam_reference import ahead, axis, detected, light_cone, wall

from hedgerow import Beams, InputError, Scene
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import RETURN_MODES, Detection
from hedgerow.world.pulsed import PhysicsWorld

DETECTION = Detection(range_m=40.0)
NORMAL = NormalDist()


def sensor_with(detection: Detection | None = DETECTION, mode="strongest", **range_):
    """An OS1-128 that detects like this, with exact ranges."""
    sensor = Sensor.named("os1-128")
    signal = sensor.config.signal.model_copy(update={"detection": detection, "mode": mode, "modes": [mode]})
    limits = sensor.config.range.model_copy(update={"max_m": 400.0, "min_m": 0.5, **range_})
    return replace(sensor, config=sensor.config.model_copy(update={"signal": signal, "range": limits}))


def fire(scene, beams, detection=DETECTION, mode="strongest", seed=0, **more):
    sensor = sensor_with(detection, mode)
    world = PhysicsWorld(scene, BeamSettings(signal="sensor", **more))
    return world.fire_detailed(beams, seed, sensor=sensor, sub_rays=True)


def share_detected(distance_m, reflectance, detection=DETECTION, n=4000):
    log = fire(wall(distance_m, y=(-5000.0, 5000.0), reflectance=reflectance), ahead(n), detection).log
    return float(np.isfinite(log.returns.first_m).mean())


@pytest.mark.parametrize("reflectance", [0.05, 0.1, 0.8])
@pytest.mark.parametrize("distance_m", [20.0, 40.0, 55.0, 113.0])
@pytest.mark.parametrize(
    "detection", [DETECTION, Detection(range_m=70.0, reflectance=0.8, probability=0.9, falloff=3.0, softness=0.3)]
)
def test_the_share_of_walls_detected_is_that_of_the_closed_form(reflectance, distance_m, detection):
    light = reflectance / detection.reflectance * (detection.range_m / distance_m) ** detection.falloff
    at_reference = NORMAL.inv_cdf(detection.probability)
    expected = NORMAL.cdf(at_reference + np.log(light) / detection.softness)
    found = share_detected(distance_m, reflectance, detection)
    # Five standard deviations of a share of 4,000 pulses: a false alarm in 1.7 million; and what ten cells of 1e-4 are.
    assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000) + 1e-3


def test_a_hard_threshold_is_a_range():
    hard = DETECTION.model_copy(update={"softness": 0.0})
    assert [share_detected(distance_m, 0.1, hard, 10) for distance_m in (39.9, 40.1)] == [1.0, 0.0]


def test_intensity_is_the_reflectance_of_a_wall_that_fills_the_spot_at_any_range():
    hard = DETECTION.model_copy(update={"softness": 0.0, "range_m": 200.0})
    for distance_m in (5.0, 50.0):
        returns = fire(wall(distance_m, reflectance=0.4), ahead(), hard).log.returns
        assert returns.intensity is not None
        assert returns.intensity[0] == pytest.approx(0.4, rel=1e-3)
    dim = hard.model_copy(update={"saturation": 0.25})
    returns = fire(wall(5.0, reflectance=0.4), ahead(), dim).log.returns
    assert returns.intensity is not None
    assert returns.intensity[0] == pytest.approx(0.25)


def crowns(rng, n_leaves=6000):
    """Leaves between 20 and 28 m, in front of a wall at 32 m."""
    middle = rng.uniform([20, -6, -6], [28, 6, 6], (n_leaves, 1, 3))
    corners = middle + rng.normal(size=(n_leaves, 3, 3)) * 0.04
    scene = Scene()
    scene.add_mesh(
        corners.reshape(-1, 3), np.arange(3 * n_leaves).reshape(-1, 3), reflectance=rng.uniform(0.2, 0.6, n_leaves)
    )
    return wall(32.0, scene=scene, reflectance=0.3)


def beams_at(rng, n):
    return Beams.from_arrays(
        origins=np.zeros((n, 3)), directions=axis(np.c_[np.ones(n), rng.uniform(-0.15, 0.15, (n, 2))])
    )


@pytest.mark.parametrize("mode", RETURN_MODES)
@pytest.mark.parametrize("softness", [0.0, 0.6])
def test_what_is_reported_is_what_the_slow_receiver_reports(mode, softness):
    rng = np.random.default_rng(3)
    scene, beams = crowns(rng), beams_at(rng, 300)
    detection = DETECTION.model_copy(update={"softness": softness, "range_m": 45.0})
    every = detection.model_copy(
        update={"range_m": 1e4, "second_threshold": 0.0, "second_ratio": 0.0, "separation_m": 0.0}
    )
    # Every peak of the signal, with the light that it has as the others count it, once exact and once with its noise.
    most = {"max_returns": 40, "sub_rays": 37}
    exact = fire(scene, beams, every.model_copy(update={"softness": 0.0}), "all", **most)
    noisy = fire(scene, beams, every, "all", **most)
    assert exact.amplitude is not None and noisy.amplitude is not None
    fired = fire(scene, beams, detection, mode, sub_rays=37)
    assert fired.amplitude is not None
    np.testing.assert_array_equal(exact.log.returns.range_m, noisy.log.returns.range_m)
    scale = (45.0 / 1e4) ** 2
    reported = 0
    for i in range(len(beams)):
        there = np.isfinite(exact.log.returns.range_m[i])
        range_m, light = exact.log.returns.range_m[i, there], exact.amplitude[i, there].astype(float) * scale
        normals = np.log(noisy.amplitude[i, there] / exact.amplitude[i, there]) / max(softness, 1e-9)
        chosen = detected(list(zip(range_m, light, strict=True)), normals, mode, detection)
        found = np.reshape(fired.log.returns.range_m, (len(beams), -1))[i]
        # Light is scaled by a number that is no power of two, so peaks are the same but for rounding.
        np.testing.assert_allclose(found[np.isfinite(found)], range_m[chosen], rtol=3e-6)
        noise = np.exp(softness * normals[chosen])
        np.testing.assert_allclose(fired.amplitude[i, : len(chosen)], light[chosen] * noise, rtol=2e-3)
        reported += len(chosen)
    assert reported > 200  # the case is not trivial


def test_second_returns_may_be_nearer_than_the_strongest_and_are_apart():
    rng = np.random.default_rng(5)
    strong = DETECTION.model_copy(update={"range_m": 150.0})
    fired = fire(crowns(rng), beams_at(rng, 3000), strong, mode="strongest+second", sub_rays=37)
    range_m, amplitude = fired.log.returns.range_m, fired.amplitude
    assert amplitude is not None
    dual = np.isfinite(range_m[:, 1])
    assert 0.05 < dual.mean() < 0.9
    assert (np.diff(range_m[dual], axis=1) >= DETECTION.separation_m).all()
    second_is_nearer = amplitude[dual, 0] < amplitude[dual, 1]
    assert 0.1 < second_is_nearer.mean() < 0.9
    weaker = amplitude[dual].min(axis=1) / amplitude[dual].max(axis=1)
    assert (weaker >= DETECTION.second_ratio).all()
    assert (amplitude[dual].min(axis=1) >= DETECTION.second_threshold * DETECTION.threshold).all()


def test_threads_slices_and_order_do_not_matter():
    rng = np.random.default_rng(7)
    scene, beams = crowns(rng), beams_at(rng, 700)
    sensor = sensor_with(Detection(range_m=30.0, false_alarms=0.2), "strongest+second")
    world = PhysicsWorld(scene, BeamSettings(signal="sensor"))
    whole = world.fire(beams, 9, sensor=sensor)
    order = rng.permutation(len(beams))
    for each, rows in (
        (world.fire(beams, 9, sensor=sensor, threads=3), slice(None)),
        (world.fire(beams[100:350], 9, sensor=sensor), slice(100, 350)),
        (world.fire(beams[order], 9, sensor=sensor), order),
    ):
        np.testing.assert_array_equal(each.returns.range_m, whole.returns.range_m[rows])
        np.testing.assert_array_equal(each.returns.intensity, whole.returns.intensity[rows])  # pyright: ignore


def test_false_alarms_come_from_anywhere_within_the_limits():
    n = 20_000
    beams = Beams.from_arrays(origins=np.zeros((n, 3)), directions=np.tile([1.0, 0, 0], (n, 1)))
    empty = wall(-10.0)  # behind
    detection = Detection(range_m=40.0, false_alarms=0.1)
    found = fire(empty, beams, detection).log.returns.first_m
    hit = np.isfinite(found)
    assert abs(hit.mean() - 0.1) < 5 * np.sqrt(0.09 / n)
    # Kolmogorov-Smirnov against the uniform distribution; 1.95 / sqrt(n) is exceeded once in a thousand.
    place = np.sort((found[hit] - 0.5) / 399.5)
    assert np.abs(place - (np.arange(len(place)) + 0.5) / len(place)).max() < 1.95 / np.sqrt(len(place))
    assert not np.isfinite(fire(empty, beams[:1000]).log.returns.first_m).any()


def test_what_was_learned_is_detected_however_dim():
    for answer, expected in (("pulse", 1.0), ("sub_ray", 0.0)):
        scene = wall(300.0, reflectance=0.01, answer=answer)
        log = fire(scene, ahead(50)).log
        assert np.isfinite(log.returns.first_m).mean() == expected


def test_ideal_sees_everything_however_far():
    sensor = sensor_with()
    log = PhysicsWorld(wall(390.0, reflectance=0.01)).fire(ahead(20), sensor=sensor)
    assert np.isfinite(log.returns.first_m).all()
    assert not np.isfinite(fire(wall(390.0, reflectance=0.01), ahead(20)).log.returns.first_m).any()


def test_a_sensor_that_says_nothing_is_refused():
    world = PhysicsWorld(wall(10.0), BeamSettings(signal="sensor"))
    with pytest.raises(InputError, match=r"no \[signal.detection\]"):
        world.fire(ahead(), sensor=sensor_with(None))
    with pytest.raises(InputError, match="needs a sensor"):
        world.fire(ahead())
    with pytest.raises(InputError, match="processing paper"):
        PhysicsWorld(wall(10.0), BeamSettings(signal="sensor", processing="paper")).fire(ahead(), sensor=sensor_with())


def test_a_wider_beam_loses_light_on_a_thin_thing_alone():
    # A pole of 4 cm at 30 m fills a part of a spot of 9 cm: it is as dim as its share.
    hard = DETECTION.model_copy(update={"softness": 0.0, "range_m": 400.0})
    pole = wall(30.0, y=(-0.02, 0.02), reflectance=0.5)
    returns = fire(pole, ahead(), hard, beam=light_cone("rectangular", 3.0), sub_rays=81).log.returns
    assert returns.intensity is not None
    assert returns.intensity[0] == pytest.approx(0.5 * 0.04 / 0.09, rel=0.26)  # nine columns, of which four or five
