# SPDX-License-Identifier: Apache-2.0
"""The main loop: the same scene, sensor, trajectory and seed give the same bytes on every path."""

from pathlib import Path

import numpy as np
import pytest
from small_scenes import small_scene

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.live.client import Client
from hedgerow.live.points import make_points
from hedgerow.live.publisher import Address
from hedgerow.live.server import SweepServer
from hedgerow.live.stream import stream_drive
from hedgerow.scenes.site import load_site
from hedgerow.sensor.drive import Aim
from hedgerow.simulate import fire_sweep
from hedgerow.view.web.session import open_session
from hedgerow.world.elements import Gaussians

SENSOR = "vlp-16"


@pytest.fixture(scope="module")
def scene_file(tmp_path_factory) -> Path:
    return small_scene(tmp_path_factory.mktemp("scene") / "meadow.toml", sensor=SENSOR)


@pytest.fixture(scope="module")
def simulation(scene_file):
    sensor = hr.Sensor.named(SENSOR)
    site = load_site(scene_file, wavelength_nm=sensor.config.beam.wavelength_nm)
    return hr.simulate(site.world(), sensor, site.trajectories["drive"], seed=5)


def same(a: hr.Log, b: hr.Log) -> bool:
    return a.beams.equal(b.beams) and a.returns.equal(b.returns)


def test_a_sweep_alone_is_the_sweep_in_turn_and_on_another_machine(simulation, scene_file):
    in_turn = list(simulation)
    assert len(in_turn) == len(simulation) == 4
    assert same(simulation.sweep(2), in_turn[2])
    sensor = hr.Sensor.named(SENSOR)
    site = load_site(scene_file, wavelength_nm=sensor.config.beam.wavelength_nm)  # as another machine would
    again = hr.simulate(site.world(), sensor, site.trajectories["drive"], seed=5)
    assert again.sweep(1).equal(in_turn[1])


def test_fire_writes_the_same_bytes(simulation, scene_file, tmp_path):
    app(["fire", str(scene_file), "--seed", "5", "-o", str(tmp_path / "a.parquet")], result_action="return_value")
    written = hr.read_log(tmp_path / "a.parquet")
    for number, sweep in enumerate(simulation):
        assert same(written.select(sweep=number), sweep)


def test_the_live_stream_records_the_same_bytes(simulation, tmp_path):
    last, _ = stream_drive(simulation, address=Address(port=0), output=tmp_path / "a.parquet")
    assert same(last, simulation.sweep(3))
    assert same(hr.read_log(tmp_path / "a.parquet").select(sweep=1), simulation.sweep(1))


def test_the_viewer_shows_the_same_bytes(simulation, scene_file):
    shown = open_session([scene_file], seed=5).sweep(0, 1)
    assert shown is not None and same(shown, simulation.sweep(1))


def test_the_server_answers_with_the_same_points(simulation):
    start_ns = int(simulation.start_ns[1])
    trajectory, sensor = simulation.trajectory, simulation.sensor
    end = trajectory.pose_at(start_ns + round(sensor.sweep_s * 1e9))
    standing = hr.Trajectory.from_poses(
        [start_ns, start_ns + round(sensor.sweep_s * 1e9)], [trajectory.pose_at(start_ns), end]
    )
    direct = fire_sweep(simulation.world, sensor, standing, 1, start_ns, seed=5)
    with SweepServer(simulation.world, sensor, Address(port=0)) as server, Client(server.url) as client:
        answer = client.sweep(trajectory.pose_at(start_ns), end=end, stamp_ns=start_ns, seed=5, number=1)
    assert answer.points.tobytes() == make_points(sensor, direct, start_ns).tobytes()


def test_replaying_a_simulation_without_noise_gives_the_same_returns(simulation):
    quiet = hr.simulate(simulation.world, simulation.sensor, simulation.trajectory, seed=5, noise=False).sweep(1)
    again = hr.replay(simulation.world, quiet, seed=5)
    assert same(again, quiet)
    assert again.sensor == SENSOR and again.max_range_m == quiet.max_range_m


def test_compare_judges_a_scene_by_the_pulses_that_it_would_be_fired_with(simulation):
    quiet = hr.simulate(simulation.world, simulation.sensor, simulation.trajectory, seed=5, noise=False)
    log = hr.Log.concatenate(list(quiet))
    scores = hr.compare(log, simulation.world, seed=5)
    assert scores["beam_error_mean_m"] == 0.0 and scores["hits_found"] == 1.0


def test_replay_stays_within_the_limits_of_the_log(simulation):
    near = hr.simulate(simulation.world, simulation.sensor, simulation.trajectory, noise=False).sweep(0)
    ranges = np.where(near.returns.first_m < 4, near.returns.first_m, np.inf)
    log = hr.Log(near.beams, hr.Returns.from_arrays(ranges=ranges), sensor=SENSOR, max_range_m=4.0)
    answer = hr.replay(simulation.world, log)
    assert answer.max_range_m == 4.0
    assert answer.returns.first_m[answer.returns.hit].max() <= 4.0


def test_replay_refuses_a_world_of_another_map():
    world = hr.LearnedWorld(
        Gaussians.plain(np.array([[5.0, 0, 0]]), np.eye(3)[None] * 0.1), kind="voxel", map_origin_m=(1000.0, 0, 0)
    )
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[5.0], max_range_m=50)
    with pytest.raises(hr.InputError, match="map begins at"):
        hr.replay(world, log)


@pytest.mark.parametrize("path", ["in turn", "at given times", "viewer", "serve", "looped"])
def test_a_mid_360_never_repeats_its_pattern(path, scene_file):
    """Its scan does not repeat from sweep to sweep, so no two sweeps may point in the same directions."""
    sensor = hr.Sensor.named("mid-360")
    standing = hr.Trajectory.standing(hr.Pose.from_xyz_rpy((0, 0, 1)), 0.45)
    world = hr.SceneWorld(hr.Scene())
    match path:
        case "at given times":
            sweeps = list(hr.simulate(world, sensor, standing, at_s=[0.0, 0.1, 0.25]))
        case "viewer":
            other = small_scene(scene_file.with_name("livox.toml"), sensor="mid-360")
            session = open_session([other])
            sweeps = [session.layers[0].read(number) for number in range(3)]
        case "serve":
            sweeps = [fire_sweep(world, sensor, standing, number, 0) for number in range(3)]
        case "looped":
            simulation = hr.simulate(world, sensor, standing, sweeps=1)
            sweeps = [simulation.sweep(number) for number in range(3)]
        case _:
            sweeps = list(hr.simulate(world, sensor, standing, sweeps=3))
    first, second, third = (sweep.beams.direction for sweep in sweeps if sweep is not None)
    for a, b in ((first, second), (second, third), (first, third)):
        assert np.mean(np.all(np.isclose(a, b, atol=1e-3), axis=1)) < 0.01


def test_the_log_keeps_nominal_directions_while_the_true_ones_are_fired():
    scene = hr.Scene()
    scene.add_mesh([[0.5, 5, -9], [0.5, 5, 9], [3, 5, 9], [3, 5, -9]], [[0, 1, 2], [0, 2, 3]])  # an edge at x = 0.5
    world, sensor = hr.SceneWorld(scene), hr.Sensor.named(SENSOR)
    standing = hr.Trajectory.standing(hr.Pose(), 0.3)
    ideal = hr.simulate(world, sensor, standing, noise=False).sweep(0)
    wobbling = hr.simulate(world, sensor, standing, noise=False, aim=Aim("uniform", seed=3)).sweep(0)
    assert wobbling.beams.equal(ideal.beams)
    assert not wobbling.returns.equal(ideal.returns)


def test_noise_is_added_unless_the_world_has_it():
    sensor = hr.Sensor.named(SENSOR)
    standing = hr.Trajectory.standing(hr.Pose(), 0.3)
    scene = hr.Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.eye(3)])
    learned = hr.LearnedWorld(Gaussians.plain(np.array([[5.0, 0, 0]]), np.eye(3)[None]), kind="voxel")
    for world, expected in ((hr.SceneWorld(scene), True), (learned, False)):
        assert hr.simulate(world, sensor, standing).sweep(0).metadata["noise"] is expected
        for noise in (True, False):
            log = hr.simulate(world, sensor, standing, noise=noise).sweep(0)
            assert log.metadata["noise"] is noise
        noisy = hr.simulate(world, sensor, standing, noise=True).sweep(0)
        assert same(noisy, sensor.degrade(hr.simulate(world, sensor, standing, noise=False).sweep(0), 0))


def test_a_fired_log_says_what_it_takes_to_fire_it_again(simulation, scene_file, tmp_path):
    hr.write_log(simulation.sweep(1), tmp_path / "a.parquet")
    log = hr.read_log(tmp_path / "a.parquet")
    said = log.metadata
    assert said["world"]["scene"] == str(scene_file) and said["seed"] == 5 and said["noise"] is True
    assert said["trajectory"]["source"] == "meadow: drive" and said["hedgerow"] == hr.__version__
    site = load_site(said["world"]["scene"], wavelength_nm=said["world"]["wavelength_nm"], seed=said["world"]["seed"])
    sensor = hr.Sensor.of(log)
    assert sensor is not None
    again = site.world().fire(log.beams, said["seed"], sensor=sensor, noise=said["noise"])
    assert same(again, log)


def test_the_figures_of_a_sensor_that_is_not_shipped_are_kept(tmp_path):
    own = hr.Sensor.named(SENSOR).with_range(sigma_m=0.5)
    log = hr.simulate(hr.SceneWorld(hr.Scene()), own, hr.Trajectory.standing(hr.Pose(), 0.3)).sweep(0)
    hr.write_log(log, tmp_path / "a.parquet")
    found = hr.Sensor.of(hr.open_log(tmp_path / "a.parquet"))
    assert found is not None and found.config == own.config


def test_times_that_do_not_fit_are_refused():
    world, sensor = hr.SceneWorld(hr.Scene()), hr.Sensor.named(SENSOR)
    standing = hr.Trajectory.standing(hr.Pose(), 0.3)
    for at_s, part in (([0.0, 0.25], "left to fire in"), ([], "at_s"), ([np.nan], "at_s"), ([-1.0], "start_s")):
        with pytest.raises(hr.InputError, match=part):
            hr.simulate(world, sensor, standing, at_s=at_s)
    with pytest.raises(hr.InputError, match="at_s: give either"):
        hr.simulate(world, sensor, standing, at_s=[0.0], sweeps=1)
    with pytest.raises(hr.InputError, match="seed"):
        hr.simulate(world, sensor, standing, seed=-1)
    with pytest.raises(hr.InputError, match="noise: is that of a sensor"):
        world.fire(sensor.sweep(), noise=True)


class Ground(hr.World):
    """The world of one's own that the docstring of `hr.World` shows."""

    def returns(self, beams, shot):
        down = -beams.direction[:, 2]
        range_m = np.where(down > 0, beams.origin_m[:, 2] / np.maximum(down, 1e-9), np.inf)
        seen = (range_m >= shot.min_range_m) & (range_m <= shot.max_range_m)
        return hr.Returns(np.where(seen, range_m, np.inf).astype(np.float32))


def test_a_world_of_ones_own_is_driven_through():
    sensor = hr.Sensor.named("vlp-16")
    standing = hr.Trajectory.standing(hr.Pose.from_xyz_rpy((0, 0, 1.5)), 0.25)
    sweeps = list(hr.simulate(Ground(), sensor, standing, noise=False))
    assert len(sweeps) == 2
    points = np.concatenate([sweep.points() for sweep in sweeps])
    assert len(points) == sum(int((sweep.beams.direction[:, 2] < 0).sum()) for sweep in sweeps)
    np.testing.assert_allclose(points[:, 2], 0, atol=1e-5)  # float32 near 86 m steps by 8e-6 m, at 1 degree
