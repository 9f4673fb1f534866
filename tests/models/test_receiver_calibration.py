# SPDX-License-Identifier: Apache-2.0
"""Calibration of a receiver: what is put into a simulated sensor comes back from its log."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.models.receiver_calibration import ReceiverCalibrationSettings, calibrate_receiver
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.sensor.config import Detection
from hedgerow.world.pulsed import PhysicsWorld


def sensor_with(detection):
    sensor = hr.Sensor.named("os1-128")
    signal = sensor.config.signal.model_copy(update={"detection": detection})
    return replace(sensor, config=sensor.config.model_copy(update={"signal": signal}))


def site(slope=0.02, **finish):
    """Sloping ground, and a few walls on it that are no ground."""
    scene = hr.Scene()
    corners = np.array([[-300.0, -300, 0], [300, -300, 0], [300, 300, 0], [-300, 300, 0]])
    corners[:, 2] = slope * corners[:, 0]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], **finish)
    for x, y in ((12, 5), (-9, -14), (25, -20), (-30, 18)):
        box = np.array([[x, y - 3, -2], [x, y + 3, -2], [x, y + 3, 4], [x, y - 3, 4.0]])
        scene.add_mesh(box, [[0, 1, 2], [0, 2, 3]], reflectance=0.3)
    return scene


def record(detection, n_sweeps=1, **finish):
    sensor = sensor_with(detection)
    trajectory = hr.Trajectory.line((0, 0, 1.8), (3, 0, 1.8), speed_mps=10)
    world = PhysicsWorld(site(**finish), BeamSettings(signal="sensor"))
    sweeps = [hr.simulate(world, sensor, trajectory, seed=5).sweep(k) for k in range(n_sweeps)]
    return hr.Log.concatenate(sweeps), sensor


@pytest.mark.parametrize(("range_m", "softness"), [(40.0, 0.6), (25.0, 0.9)])
def test_threshold_and_softness_come_back(range_m, softness):
    log, sensor = record(Detection(range_m=range_m, softness=softness), reflectance=0.08, lambertian=False)
    found = calibrate_receiver(log, ReceiverCalibrationSettings(reflectance=0.08), sensor=sensor)
    assert found.range_m.value == pytest.approx(range_m, rel=0.08)  # a Gaussian echo stands for the spot on the ground
    assert found.softness.value == pytest.approx(softness, rel=0.2)
    assert found.lost.value < 0.01
    assert found.range_m.low < found.range_m.value < found.range_m.high
    for band in found.bands:
        assert band.fitted == pytest.approx(band.detected, abs=0.05)


def test_lambertian_ground_needs_its_exponent():
    log, sensor = record(Detection(range_m=60.0), reflectance=0.3)
    found = calibrate_receiver(log, ReceiverCalibrationSettings(reflectance=0.3, grazing=1.0), sensor=sensor)
    assert found.range_m.value == pytest.approx(60, rel=0.1)
    wrong = calibrate_receiver(log, ReceiverCalibrationSettings(reflectance=0.3), sensor=sensor)
    assert wrong.range_m.value < 0.7 * found.range_m.value


def test_what_is_lost_whatever_its_light_is_not_softness():
    log, sensor = record(Detection(range_m=40.0), reflectance=0.08, lambertian=False)
    lossy = sensor.degrade(log, 3, noise=False, quantise=False, dropout=0.1)
    found = calibrate_receiver(lossy, ReceiverCalibrationSettings(reflectance=0.08), sensor=sensor)
    assert found.lost.value == pytest.approx(0.1, abs=0.02)
    assert found.range_m.value == pytest.approx(40, rel=0.1)
    assert found.softness.value == pytest.approx(0.6, rel=0.25)


def test_intensity_is_told_where_it_is_one():
    log, sensor = record(Detection(range_m=80.0, softness=0.05), reflectance=0.08, lambertian=False)
    assert log.returns.intensity is not None
    scaled = log.returns.columns() | {"intensity": log.returns.intensity * np.float32(200)}
    brighter = log.with_returns(hr.Returns.without_checks(scaled))
    found = calibrate_receiver(brighter, ReceiverCalibrationSettings(reflectance=0.08), sensor=sensor)
    assert found.intensity is not None
    assert found.intensity.value == pytest.approx(200, rel=0.1)


def test_a_world_says_where_the_ground_is_too():
    log, sensor = record(Detection(range_m=30.0), reflectance=0.08, lambertian=False)
    settings = ReceiverCalibrationSettings(reflectance=0.08)
    world = hr.SceneWorld(site(slope=0.02), max_range_m=120.0)
    plane, known = (calibrate_receiver(log, settings, sensor=sensor, world=each) for each in (None, world))
    assert known.range_m.value == pytest.approx(plane.range_m.value, rel=0.1)


def test_the_sensor_file_has_what_was_found(tmp_path):
    log, sensor = record(Detection(range_m=40.0, separation_m=1.25), reflectance=0.08, lambertian=False)
    found = calibrate_receiver(log, ReceiverCalibrationSettings(reflectance=0.08), sensor=sensor)
    found.save(tmp_path / "mine.toml", source="drive")
    detection = hr.Sensor.load(tmp_path / "mine.toml").config.signal.detection
    assert detection is not None
    assert detection.range_m == pytest.approx(found.range_m.value, abs=0.01)
    assert detection.separation_m == 1.25  # what was not fitted stays
    assert "drive" in hr.Sensor.load(tmp_path / "mine.toml").config.sources[-1]


def test_logs_that_tell_nothing_are_refused():
    log, sensor = record(Detection(range_m=40.0), reflectance=0.08, lambertian=False)
    there = log[np.isfinite(log.returns.first_m)]
    with pytest.raises(InputError, match=r"all of the .* missing returns"):
        calibrate_receiver(there, sensor=sensor)
    with pytest.raises(InputError, match="too few returns"):
        calibrate_receiver(log[~np.isfinite(log.returns.first_m)], sensor=sensor)
    with pytest.raises(InputError, match="does not say its sensor"):
        calibrate_receiver(replace(log, sensor="unknown", metadata={}))
