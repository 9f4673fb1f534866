# SPDX-License-Identifier: Apache-2.0
"""hedgerow calibrate, in a process of its own."""

import numpy as np
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.world import LearnedWorld, Triangles


@pytest.fixture
def drive(tmp_path):
    """A hedge 20 m ahead that scatters by 0.5 m, seen by four rings."""
    ring, column = (a.ravel() for a in np.meshgrid(range(4), range(200), indexing="ij"))
    azimuth = np.radians(0.2 * (column - 100))
    directions = np.stack([np.cos(azimuth), np.sin(azimuth), 0.05 * (ring - 1.5)], axis=1)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    log = hr.Log.from_arrays(
        origins=(0, 0, 0),
        directions=directions,
        ranges=np.random.default_rng(0).normal(20, 0.5, len(ring)),
        rings=ring,
        labels=np.full(len(ring), 70),
        max_range_m=100,
    )
    hr.write_log(log, tmp_path / "drive.parquet")
    return tmp_path / "drive.parquet"


def test_calibrate_prints_a_table_and_writes_settings(drive, tmp_path):
    done = run("calibrate", "vegetation", drive, "--label", 70, "-o", tmp_path / "hedge.toml")
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout and "800" in done.stdout and "nothing was simulated" in done.stdout
    settings = VegetationSettings.load(tmp_path / "hedge.toml")
    assert settings.labels == (70,)
    assert isinstance(settings.sigma_m, float)
    assert abs(settings.sigma_m - 0.5) < 0.08  # five standard errors of 800 returns, 0.5 / sqrt(1600) each, and a bit


def test_calibrate_takes_a_box_and_subtracts_a_scene(drive, tmp_path):
    wall = np.array([[[19.5, -90, -90], [19.5, 90, -90], [19.5, 0, 200]]])
    LearnedWorld(Triangles.plain(wall), kind="wall", max_range_m=100.0).save(tmp_path / "hedge.world")
    done = run("calibrate", "vegetation", drive, "--box", 0, -9, -5, 30, 9, 5, "--scene", tmp_path / "hedge.world")
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout and "beam by beam" in done.stdout


def test_calibrate_refuses_bad_input_with_one_sentence(drive, tmp_path):
    command = ("calibrate", "vegetation")
    assert_refused(run(*command, tmp_path / "none.parquet", "--label", 70), "none.parquet", "no such file")
    assert_refused(run(*command, drive), "--box, --label")
    assert_refused(run(*command, drive, "--box", 0, 0, 0, 1, 1, "nan"), "box")
    assert_refused(run(*command, drive, "--label", 70, "--scene", tmp_path), "no scene file", ".toml")
    assert_refused(run(*command, drive, "--label", 70, "--scene", tmp_path, "--simulated", drive), "not both")
    refused = run(*command, drive, "--label", 99, "-o", tmp_path / "out.toml")
    assert_refused(refused, "no first return has a label among 99")
    assert not (tmp_path / "out.toml").exists()


HEDGE = """
about = "A hedge of shrubs on level ground."
sensor = "vlp-16"

[parameters]
bushes = 12

[terrain]
kind = "flat"
size_m = [60, 60]
material = "soil"

[plants.bush]
kind = "shrub"
variants = 1
parameters = { height_m = 2.6, crown_diameter_m = 1.6 }

[scatter.hedge]
what = "bush"
count = "$bushes"
box_m = [9, -6, 11, 6]
spacing_m = 0.5

[trajectories.stand]
standing_m = [0, 0]
height_m = 1.6
"""


def test_what_fire_was_given_is_found_again_in_the_scene_as_it_was_fired(tmp_path):
    (tmp_path / "hedge.toml").write_text(HEDGE)
    (tmp_path / "response.toml").write_text("[vegetation]\nlabels = [70]\nsigma_m = 0.2\n")
    log, found = tmp_path / "drive.parquet", tmp_path / "found.toml"
    fired = ["--sweeps", 2, "--set", "bushes=20", "--scene-seed", 5, "--sub-rays", 16, "--seed", 3]
    done = run("fire", tmp_path / "hedge.toml", "-o", log, "--response", tmp_path / "response.toml", *fired)
    assert done.returncode == 0, done.stderr
    done = run("calibrate", "vegetation", log, "--label", 70, "--scene", tmp_path / "hedge.toml", "-o", found)
    assert done.returncode == 0, done.stderr
    # The shrubs are labelled finer than 70, and their own scatter is ten times what was put in.
    settings = VegetationSettings.load(found)
    assert isinstance(settings.sigma_m, float)
    assert abs(settings.sigma_m - 0.2) < 0.03  # five standard errors of some 3,000 returns


def test_a_scene_needs_the_sensor_of_the_log(drive, tmp_path):
    (tmp_path / "hedge.toml").write_text(HEDGE)
    command = ("calibrate", "vegetation", drive, "--label", 70, "--scene", tmp_path / "hedge.toml")
    assert_refused(run(*command), "--sensor", "does not say its sensor")


@pytest.fixture
def road(tmp_path):
    """Ground 1.8 m below, of which half of the pulses return from 30 m."""
    turns, falls = np.meshgrid(np.linspace(-np.pi, np.pi, 200), np.linspace(0.03, 0.3, 60))
    directions = np.stack([np.cos(turns), np.sin(turns), -falls], axis=-1).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    range_m = -1.8 / directions[:, 2]
    light = 2 * np.log(30 / range_m) + 0.5 * np.random.default_rng(1).normal(size=len(range_m))
    log = hr.Log.from_arrays(
        origins=(0, 0, 1.8), directions=directions, ranges=np.where(light > 0, range_m, np.inf), max_range_m=100
    )
    hr.write_log(log, tmp_path / "road.parquet")
    return tmp_path / "road.parquet"


def test_calibrate_receiver_prints_what_it_rests_on_and_writes_a_sensor_file(road, tmp_path):
    done = run("calibrate", "receiver", road, "--sensor", "os1-128", "-o", tmp_path / "mine.toml")
    assert done.returncode == 0, done.stderr
    assert "20 to 30" in done.stdout and "softness" in done.stdout and "95 % intervals" in done.stdout
    detection = hr.Sensor.load(tmp_path / "mine.toml").config.signal.detection
    assert detection is not None
    # Roughly: this log does not know that echoes grow longer with the range. tests/models has the recovery.
    assert 25 < detection.range_m < 60
    assert 0.3 < detection.softness < 1.0


def test_calibrate_receiver_refuses_bad_input_with_one_sentence(road, tmp_path):
    assert_refused(run("calibrate", "receiver", road), "does not say its sensor")
    assert_refused(run("calibrate", "receiver", road, "--sensor", "os1-128", "--reflectance", 2), "reflectance")
    log = hr.read_log(road)
    hr.write_log(log[np.isfinite(log.returns.first_m)], tmp_path / "there.parquet")
    assert_refused(run("calibrate", "receiver", tmp_path / "there.parquet", "--sensor", "os1-128"), "missing returns")
