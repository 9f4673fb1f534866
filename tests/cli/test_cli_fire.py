# SPDX-License-Identifier: Apache-2.0
"""hedgerow fire, scenes, plants and materials, each in a process of its own."""

import numpy as np
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.errors import HedgerowError
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians

SCENE = """
sensor = "vlp-16"
terrain = { size_m = [60, 60] }
parameters = { crate_m = 10.0 }
shapes.crate = { kind = "box", size_m = [2, 2, 4], material = "plain" }
objects.crate = { what = "crate", at_m = ["$crate_m", 0] }
trajectories.here = { standing_m = [0, 0], duration_s = 1 }
"""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(SCENE)
    return path


def test_fire_writes_what_the_python_interface_gives(tmp_path, scene):
    done = run("fire", scene, "-o", "out.parquet", "--sweeps", 2, "--no-noise", "--seed", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "own: 14 triangles" in done.stdout
    sensor = Sensor.named("vlp-16")
    site = load_site(scene, wavelength_nm=sensor.config.beam.wavelength_nm)
    here, written = site.trajectories["here"], hr.read_log(tmp_path / "out.parquet")
    simulation = hr.simulate(site.world(), sensor, here, seed=3, sweeps=2, noise=False)
    assert written.equal(hr.Log.concatenate(list(simulation)))
    fired = site.world().fire(sensor.drive(here, n_sweeps=2), 3, sensor=sensor)  # knows of no trajectory to note down
    assert written.beams.equal(fired.beams) and written.returns.equal(fired.returns)


def test_fire_takes_settings_modes_files_and_draws(tmp_path, scene):
    hr.write_trajectory(hr.Trajectory.line((0, 0, 2), (4, 0, 2), 4.0), tmp_path / "poses.tum")
    words = ["fire", scene, "-o", "out.parquet", "--sensor", "vlp-32c", "--trajectory", "poses.tum", "--sweeps", 1]
    words += ["--mode", "strongest+last", "--sub-rays", 5, "--set", "crate_m=5", "--picture", "a.png"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    log = hr.read_log(tmp_path / "out.parquet")
    assert log.sensor == "vlp-32c" and log.returns.n_per_pulse == 2
    points = log.points()
    near = points[(np.abs(points[:, 1]) < 0.5) & (points[:, 2] > 0.5) & (points[:, 0] > 0)]
    assert np.abs(near[:, 0] - 4).max() < 0.2  # the crate's face, 1 m before its middle; noise of 3 cm
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_fire_scatters_what_a_calibration_says_is_vegetation(tmp_path, scene):
    (tmp_path / "veg.toml").write_text("[vegetation]\nlabels = [99]\nmean_m = 0.0\nsigma_m = 0.4\n")
    words = ["fire", scene, "--sweeps", 1, "--no-noise", "-o"]
    for name, more in (("plain.parquet", []), ("veg.parquet", ["--response", "veg.toml"])):
        done = run(*words, name, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    plain, scattered = (hr.read_log(tmp_path / name).returns for name in ("plain.parquet", "veg.parquet"))
    crate = plain.label == 99  # other-object
    assert crate.sum() > 100
    assert np.array_equal(scattered.range_m[~crate], plain.range_m[~crate])
    assert np.std(scattered.range_m[crate] - plain.range_m[crate]) == pytest.approx(0.4, rel=0.2)  # over 100 draws
    assert_refused(run(*words, "x.parquet", "--response", "none.toml", cwd=tmp_path), "none.toml")


def test_fire_goes_through_a_learned_world_too(tmp_path):
    wall = np.stack(np.meshgrid([8.0], np.linspace(-4, 4, 40), np.linspace(0, 4, 20)), axis=-1).reshape(-1, 3)
    world = LearnedWorld(Gaussians.plain(wall, np.tile(np.eye(3) * 0.01, (len(wall), 1, 1))), kind="voxel")
    world.save(tmp_path / "wall.world")
    hr.write_trajectory(hr.Trajectory.line((0, 0, 2), (4, 0, 2), 4.0), tmp_path / "poses.tum")
    words = ["fire", "wall.world", "-o", "out.log", "--trajectory", "poses.tum", "--sweeps", 1]
    assert_refused(run(*words, cwd=tmp_path), "--sensor: a learned world names none")
    done = run(*words, "--sensor", "vlp-16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sensor = hr.Sensor.named("vlp-16")
    exact = hr.load_world(tmp_path / "wall.world").fire(
        sensor.drive(hr.read_trajectory(tmp_path / "poses.tum"), n_sweeps=1), sensor=sensor
    )
    assert exact.returns.hit.any()
    # It was learned with the noise of a sensor: no more of it, unless that is asked for.
    assert np.array_equal(hr.read_log(tmp_path / "out.log").returns.range_m, exact.returns.range_m)
    done = run(*words, "--sensor", "vlp-16", "--noise", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    noisy = sensor.degrade(exact).returns.range_m
    assert np.array_equal(hr.read_log(tmp_path / "out.log").returns.range_m, noisy)
    assert_refused(run(*words, "--sensor", "vlp-16", "--sub-rays", 3, cwd=tmp_path), "only for scenes")


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--mode", "loud"], "mode: input should be 'first'"),
        (["--sub-rays", "82"], "sub_rays: input should be less than or equal to 81"),
        (["--set", "crate=1"], "set: the scene has no parameter 'crate'; it has crate_m"),
        (["--set", "crate_m=x"], "own.toml, line 6: objects.crate.at_m[0]"),
        (["--sensor", "hdl-65e"], "did you mean hdl-64e"),
        (
            ["--trajectory", "there"],
            "--trajectory there: give a trajectory of the scene or a file of poses; the scene has h",
        ),
        (["--sweeps", "99"], "sweeps: 99 asked for"),
    ],
)
def test_fire_refuses_in_one_sentence_and_writes_nothing(tmp_path, scene, more, part):
    output = tmp_path / "out.parquet"
    with pytest.raises(HedgerowError) as caught:  # in this process: seven more would take a minute
        app(["fire", str(scene), "-o", str(output), *more], exit_on_error=False, print_error=False)
    assert part in str(caught.value) and "\n" not in str(caught.value)
    assert not output.exists()


def test_fire_of_an_unknown_scene_exits_with_2():
    assert_refused(
        run("fire", "moon", "-o", "out.parquet"), "moon: no such file or folder, nor the name of a scene or sensor"
    )


def test_scenes_are_listed_shown_and_drawn(tmp_path, scene):
    listed = run("scenes")
    assert listed.returncode == 0, listed.stderr
    for name in ("courtyard", "trail", "static-targets", "rods", "shrub"):
        assert name in listed.stdout
    shown = run("scenes", scene, "-o", "own.png", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for part in ("60 by 60 m", "14 with all copies counted", "1 crate", "crate_m = 10.0"):
        assert part in shown.stdout
    assert (tmp_path / "own.png").stat().st_size > 10_000


def test_plants_and_materials_are_listed():
    assert "shrub" in run("plants").stdout
    assert "leaf_area_index" in run("plants", "shrub").stdout
    assert_refused(run("plants", "cactus"), "cactus: there is no such plant")
    table = run("materials", "--wavelength-nm", 1550).stdout
    assert "0.243" in table and "JHU, grass.txt" in table


def test_fire_says_how_much_it_wrote_and_what_the_format_left_out(tmp_path, scene):
    done = run("fire", scene, "-o", "out.parquet", "--sweeps", 1, cwd=tmp_path)
    log = hr.read_log(tmp_path / "out.parquet")
    n_returns = int(log.returns.hit.sum())
    assert "fired 1 sweep of vlp-16 (0.1 s)" in done.stdout
    assert f"out.parquet: {len(log):,} beams, {n_returns:,} returns, {len(log) - n_returns:,} misses" in done.stdout
    assert done.stderr == ""
    done = run("fire", scene, "-o", "out.ply", "--sweeps", 1, cwd=tmp_path)
    assert f"out.ply: {n_returns:,} beams, {n_returns:,} returns, 0 misses" in done.stdout
    assert done.stderr.startswith(
        f"hedgerow: warning: out.ply: {len(log) - n_returns:,} of {len(log):,} beams left out"
    )


FAR_POSES = {
    "0 385000 5400000 2 0 0 0 1\n1 385001 5400000 2 0 0 0 1": ("trajectory: it is 5,414 km from the site", "--anyway"),
    "0 1e12 0 2 0 0 0 1\n1 1e12 0 2 0 0 0 1": ("far.tum, line 1: position_m", "farther than 100,000,000 m"),
    "0 1e19 0 2 0 0 0 1\n1 1e19 0 2 0 0 0 1": ("far.tum, line 1: position_m", "farther than 100,000,000 m"),
    "1718000000000000000 0 0 2 0 0 0 1": (
        "line 1: the time stamp",
        "looks like nanoseconds",
        "divide the times by 1e9",
    ),
    "1718000000000 0 0 2 0 0 0 1": ("looks like milliseconds", "divide the times by 1000"),
}


@pytest.mark.parametrize("poses", FAR_POSES)
def test_a_trajectory_of_another_frame_or_clock_is_refused_in_one_sentence(tmp_path, scene, poses):
    (tmp_path / "far.tum").write_text(poses)
    done = run("fire", scene, "-o", "out.parquet", "--trajectory", "far.tum", cwd=tmp_path)
    assert_refused(done, *FAR_POSES[poses])
    assert not (tmp_path / "out.parquet").exists()


def test_anyway_fires_along_a_trajectory_elsewhere_with_a_warning(tmp_path, scene):
    (tmp_path / "far.tum").write_text(next(iter(FAR_POSES)))
    words = ["fire", scene, "-o", "out.parquet", "--trajectory", "far.tum", "--sweeps", 1, "--anyway"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("hedgerow: warning: trajectory: it is 5,414 km") and done.stderr.count("\n") == 1
    assert " 0 returns, " in done.stdout


def test_fire_hands_options_to_the_writer_and_refuses_those_it_does_not_take(tmp_path, scene):
    done = run("fire", scene, "-o", "x.parquet", "--set", "organised=true", cwd=tmp_path)
    assert_refused(done, "organised: writing parquet does not take this option")
    words = ["fire", str(scene), "--sweeps", "1", "-o"]
    for name, more in (("plain.mcap", []), ("grid.mcap", ["--set", "organised=true"])):
        app([*words, str(tmp_path / name), *more], result_action="return_value")
    assert (tmp_path / "grid.mcap").read_bytes() != (tmp_path / "plain.mcap").read_bytes()
