# SPDX-License-Identifier: Apache-2.0
"""`hedgerow compare` as a user runs it: floors, reality again, logs of other programs."""

import json

import numpy as np
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr


def wall(x_m=9.0):
    scene = hr.Scene()
    corners = [[x_m, -40, -20], [x_m, 40, -20], [x_m, 40, 20], [x_m, -40, 20]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], permeability=0.2, label=50, noise=hr.SurfaceNoise(0.02, 0.0))
    return hr.SceneWorld(scene)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A drive before a wall, a second recording of it, the same from a KITTI folder, and a world learned from it."""
    folder = tmp_path_factory.mktemp("compare")
    sensor = hr.Sensor.named("vlp-16")
    poses = hr.Trajectory(
        np.array([0, 10**9]), np.array([[0.0, 0, 2], [2.0, 0, 2]]), np.array([[0, 0, 0, 1.0], [0, 0, 0, 1.0]])
    )
    for name, seed in (("real", 1), ("second", 2)):
        hr.write_log(wall().fire(sensor.drive(poses, n_sweeps=4), seed, sensor=sensor), folder / f"{name}.parquet")
    half = np.radians(0.07) / 2  # turned by less than a step of the sensor: no beam is the same
    turned = hr.Trajectory(poses.time_ns, poses.position_m, np.tile([0, 0, np.sin(half), np.cos(half)], (2, 1)))
    theirs = wall().fire(sensor.drive(turned, n_sweeps=4), 3, sensor=sensor)
    hr.write_log(theirs, folder / "theirs", format="kitti", trajectory=turned)
    hr.learn(folder / "real.parquet", "voxel", side_m=1.0).save(folder / "site.world")
    hr.learn(folder / "real.parquet", "voxel", side_m=4.0).save(folder / "coarse.world")
    return folder


def columns(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_climatology_stands_beside_worlds_unless_switched_off(folder, tmp_path):
    done = run("compare", folder / "real.parquet", folder / "site.world", "--json", tmp_path / "a.json")
    assert done.returncode == 0, done.stderr
    assert "climatology" in done.stdout and "CRPS of the range [m]" in done.stdout
    found = columns(tmp_path / "a.json")
    assert list(found) == ["site", "climatology"]
    assert found["site"]["metrics"]["crps_m"]["value"] < found["climatology"]["metrics"]["crps_m"]["value"]
    bare = run("compare", folder / "real.parquet", folder / "site.world", "--no-floors", "--json", tmp_path / "b.json")
    assert "  climatology" not in bare.stdout
    assert list(columns(tmp_path / "b.json")) == ["site"]


def test_a_second_recording_is_reality_again(folder, tmp_path):
    worlds = (folder / "site.world", folder / "coarse.world")
    out = ("--again", folder / "second.parquet", "--json", tmp_path / "a.json")
    done = run("compare", folder / "real.parquet", *worlds, *out)
    assert done.returncode == 0, done.stderr
    found = columns(tmp_path / "a.json")
    assert list(found) == ["site", "coarse", "climatology", "reality again"]
    # Two draws of a wall that stops four beams of five: (1 - 0.8) 0.8 is what the truth itself scores.
    hits = found["reality again"]["metrics"]["hits_found"]["value"]
    assert hits == pytest.approx(0.8, abs=0.02)
    assert "CRPS of the range [m], less that of coarse: site +" in done.stdout


def test_a_folder_of_another_program_is_matched_beam_by_beam(folder, tmp_path):
    done = run("compare", folder / "real.parquet", folder / "theirs", "--json", tmp_path / "a.json", "--from", "kitti",
               "--sensor", "vlp-16")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "have a partner within 0.1 degrees" in done.stdout
    found = columns(tmp_path / "a.json")["theirs"]["metrics"]
    # The wall is at one place, with noise of 2 cm in each: |difference| has mean 0.04 / sqrt(pi). Beams that graze it
    # meet it up to 22 cm farther on for 0.07 degrees (41 m away, 77 degrees off its normal), 1 cm straight ahead.
    assert found["beam_error_median_m"]["value"] == pytest.approx(0.0135 * np.sqrt(2), abs=0.012)
    assert found["f1"]["n"] > 0.99 * 4 * 28_928
    assert found["hits_found"]["value"] == pytest.approx(0.8, abs=0.02)
    assert found["cloud_distance_m"]["value"] < 0.1


def test_hits_are_told_by_distance_to_what_was_learned_and_forecasts_judged(folder, tmp_path):
    log, world = folder / "real.parquet", folder / "site.world"
    done = run("compare", log, world, "--learned", folder / "second.parquet", "--json", tmp_path / "a.json")
    assert done.returncode == 0, done.stderr
    assert "By distance to what was learned" in done.stdout and "Hits found, 0 to 0.1 m off" in done.stdout
    found = columns(tmp_path / "a.json")["site"]
    assert sum(found["by_distance_to_learned"]["beams"]) == found["metrics"]["hits_found"]["n"]
    verdict = found["calibration"]["verdict"]
    assert f"site is {verdict}: " in " ".join(done.stdout.split())
    assert found["labels"]["by_label"][0]["label"] == 50


def test_workers_give_the_same_numbers(folder, tmp_path):
    pytest.importorskip("distributed")
    given = ("compare", folder / "real.parquet", folder / "site.world", "--again", folder / "second.parquet",
             "--learned", folder / "second.parquet")  # fmt: skip
    run(*given, "--json", tmp_path / "here.json")
    done = run(*given, "--json", tmp_path / "there.json", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert columns(tmp_path / "here.json") == columns(tmp_path / "there.json")


def test_what_cannot_be_compared_is_refused(folder, tmp_path):
    log, world = folder / "real.parquet", folder / "site.world"
    assert_refused(run("compare", log, world, "--set", "match=1"), "match", "no such parameter")
    assert_refused(run("compare", log, world, "--set", "match_deg=-1"), "match_deg")
    assert_refused(run("compare", log, world, "--again", tmp_path / "none.parquet"), "none.parquet")
    assert_refused(run("compare", log, world, "--learned", tmp_path / "none.parquet"), "none.parquet")
    assert_refused(run("compare", log, world, "--learned", world), "site.world")
    assert_refused(run("compare", log, folder / "theirs", "--from", "kity"), "kity")
    assert_refused(run("compare", log, folder / "theirs", "--from", "kitti", "--workers", "2"), "not with workers")
