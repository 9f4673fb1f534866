# SPDX-License-Identifier: Apache-2.0
"""Calibration of the vegetation response: slow oracle, closed forms, recovery of what was put in."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.models.vegetation_calibration import Selection, calibrate, scatter_of
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.scenes import mesh
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world import Scene, SceneWorld
from hedgerow.world.pulsed import PhysicsWorld

GRASS, WALL = 70, 50
ONE_DEGREE = float(np.radians(1.0))
PICK = Selection(labels=(GRASS,))


def scan(n_rings=8, n_azimuths=300, step_deg=0.2, sweeps=2):
    """Beams of a spinning lidar towards +x, ring by ring, without times."""
    azimuth = np.radians(step_deg * (np.arange(n_azimuths) - n_azimuths / 2))
    elevation = np.radians(np.linspace(-8, 8, n_rings))
    sweep, ring, column = (
        a.ravel() for a in np.meshgrid(range(sweeps), range(n_rings), range(n_azimuths), indexing="ij")
    )
    e, a = elevation[ring], azimuth[column]
    directions = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=1)
    return hr.Beams.from_arrays(origins=(0, 0, 0), directions=directions, rings=ring, sweeps=sweep)


def noisy_log(sigma_m=0.5, mean_m=0.0, seed=0, **more):
    beams = scan(**more)
    range_m = np.random.default_rng(seed).normal(20 + mean_m, sigma_m, len(beams)).astype(np.float32)
    returns = hr.Returns(range_m, label=np.full(len(beams), GRASS, np.uint16))
    return hr.Log(beams, returns, max_range_m=100.0)


def bushes(seed=0):
    """A rough row of leaves 20 m ahead and a wall well behind it."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    place = np.stack([rng.normal(20, 0.4, 20_000), rng.uniform(-12, 12, 20_000), rng.uniform(-4, 4, 20_000)], axis=1)
    scene.add_mesh(*mesh.leaves(place, 0.25, rng), label=GRASS)
    scene.add_mesh(*mesh.rectangle((60, -60, -30), (0, 120, 0), (0, 0, 60)), label=WALL)
    return SceneWorld(scene, max_range_m=100.0)


def slow_scatter(log, rows, window_rad):
    """Every pair of returns, straight from the words of Mattes 2021."""
    differences, scaled, pairs = [], [], 0
    for i in rows:
        near = [
            j
            for j in rows
            if j != i
            and log.beams.ring[j] == log.beams.ring[i]
            and np.arccos(np.clip(np.dot(*log.beams.direction[[i, j]].astype(float)), -1, 1)) <= window_rad
        ]
        if near:
            difference = float(log.returns.first_m[i]) - log.returns.first_m[near].astype(float).mean()
            differences.append(difference)
            scaled.append(difference / np.sqrt(1 + 1 / len(near)))
            pairs += len(near)
    return len(differences), pairs, np.mean(differences), np.var(differences), np.var(scaled)


@pytest.mark.parametrize("order", ["by ring", "shuffled", "back and forth"])
def test_scatter_is_what_the_slow_way_finds(order):
    rng = np.random.default_rng(1)
    log = noisy_log(n_rings=3, n_azimuths=60, sweeps=1)
    if order == "shuffled":  # as logs without order and times are
        log = log[rng.permutation(len(log))]
    if order == "back and forth":  # the end of a ring looks where the next one starts, half a degree higher
        column = np.tile(np.arange(60), 3)
        time_ns = np.where(log.beams.ring == 1, 59 - column, column)
        direction = log.beams.direction * np.array([1, 1, 0.06], np.float32)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        beams = hr.Beams.without_checks(log.beams.columns() | {"time_ns": time_ns, "direction": direction})
        log = hr.Log(beams, log.returns)
    rows = np.flatnonzero(rng.random(len(log)) < 0.4)
    window_rad = float(np.radians(0.7))  # between two multiples of the step
    found = scatter_of(log, rows, window_rad)
    n, pairs, mean_m, variance_m2, own_m2 = slow_scatter(log, rows, window_rad)
    assert (found.n, found.n_neighbours, found.n_selected) == (n, pairs, len(rows))
    assert n < len(rows)  # some stand alone
    assert_allclose([found.mean_m, found.variance_m2, found.own_variance_m2], [mean_m, variance_m2, own_m2], atol=1e-9)


def test_ranges_that_alternate_have_the_variance_that_arithmetic_says():
    beams = scan(n_rings=2, n_azimuths=100, sweeps=1)
    range_m = np.where(np.arange(200) % 2 == 0, 10, 12).astype(np.float32)
    log = hr.Log(beams, hr.Returns(range_m, label=np.full(200, GRASS, np.uint16)))
    found = calibrate(log, PICK, window_rad=float(np.radians(0.25))).measured
    # Both neighbours, or the one at an end, are 2 m off: differences are 2 and -2.
    assert found.n == 200 and found.n_neighbours == 2 * 196 + 4
    assert_allclose([found.mean_m, found.variance_m2], [0, 4], atol=1e-9)
    # Of 98 with two neighbours 4 / (1 + 1/2), of 2 with one 4 / (1 + 1), in each ring.
    assert_allclose(found.own_variance_m2, (98 * 4 / 1.5 + 2 * 2) / 100, rtol=1e-6)


def test_white_noise_is_recovered_whatever_the_window():
    log = noisy_log(sigma_m=0.5, n_azimuths=600)
    n = len(log)
    for degrees in (0.3, 1.0, 3.0):
        found = calibrate(log, PICK, window_rad=float(np.radians(degrees)))
        # A deviation of n independent numbers has the standard error s / sqrt(2 n); neighbours share some: twice that.
        assert_allclose(found.sigma_m, 0.5, atol=5 * 2 * 0.5 / np.sqrt(2 * n))
    narrow = calibrate(log, PICK, window_rad=float(np.radians(0.3))).measured
    # as Mattes 2021 measures, with two neighbours: half again
    assert_allclose(narrow.variance_m2, 0.25 * 1.5, rtol=0.05)


def test_what_was_put_into_a_rough_scene_comes_out_again():
    world = bushes()
    beams = scan(n_rings=16, n_azimuths=250, sweeps=4)
    settings = VegetationSettings(labels=(GRASS,), mean_m=0.4, sigma_m=0.7)
    log = world.with_vegetation(settings).fire(beams, seed=5)
    found = calibrate(log, PICK, simulated=world, seed=5)
    assert found.simulated is not None
    assert found.simulated.own_variance_m2 > 0.1  # rough by itself
    n = found.measured.n
    assert n > 8000
    assert_allclose(found.mean_m, 0.4, atol=5 * 0.7 / np.sqrt(n))  # five standard errors
    # Of the variance: sqrt(2 / n) of each of the two, and again as much for neighbours that share noise.
    assert_allclose(found.sigma_m**2, 0.49, atol=5 * 2 * np.sqrt(2 / n) * (found.measured.own_variance_m2))
    without = calibrate(log, PICK)
    assert without.sigma_m**2 > 0.49 + 0.1  # the roughness is still in it
    assert any("nothing was simulated" in note for note in without.notes)


@pytest.fixture(scope="module")
def pulses():
    """Pulses of a VLP-32C at the rough row of leaves: the world, and beams of three sweeps."""
    sensor = Sensor.named("vlp-32c")
    standing = hr.Trajectory.standing(hr.Pose.from_xyz_rpy((0, 0, 0), (0, 0, 0)), 1.0)
    beams = sensor.drive(standing, n_sweeps=3)
    return PhysicsWorld(bushes().scene, source={"scene": "bushes"}), sensor, beams[beams.direction[:, 0] > 0.9]


@pytest.mark.parametrize("sigma_m", [0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("seed", [None, 6])
def test_what_was_put_into_pulses_comes_out_again(pulses, sigma_m, seed):
    world, sensor, beams = pulses
    response = world.with_vegetation(VegetationSettings(labels=(GRASS,), sigma_m=sigma_m))
    log = response.fire(beams, seed=5, sensor=sensor, noise=True)
    found = calibrate(log, PICK, simulated=world, seed=seed)
    n, own_m2 = found.measured.n, found.measured.own_variance_m2
    assert n > 10_000 and own_m2 - sigma_m**2 > 0.05  # far rougher by itself than what was put in, for the first three
    # Five standard errors of the variance, as above. Its own part is the same in both: what is left is what the draws
    # have to do with it, 2 cov(own, noise), and their own error. Other seeds: sensor noise of 3 cm differs.
    error_m2 = 2 * np.sqrt((4 * own_m2 * (sigma_m**2 + 0.03**2) + 2 * sigma_m**4) / n)
    assert_allclose(found.sigma_m**2, sigma_m**2, atol=5 * error_m2)
    assert abs(found.sigma_m - sigma_m) < 0.03
    assert found.own_scene == (seed is None)
    if found.own_scene:  # beam by beam: five standard errors, and the sensor's steps of 4 mm
        assert abs(found.sigma_m - sigma_m) < 5 * sigma_m / np.sqrt(2 * n) + 0.001


@pytest.mark.slow
def test_centimetres_are_found_again_on_the_trail_where_neighbours_are_metres_apart():
    sensor = Sensor.named("vlp-16")
    site = load_site("trail", wavelength_nm=sensor.config.beam.wavelength_nm)
    world = site.world()
    for sigma_m, tolerance in ((0.05, 0.02), (0.1, 0.02), (0.2, 0.02), (0.5, 0.05)):  # the ground holds 0.5 m back
        response = world.with_vegetation(VegetationSettings(sigma_m=sigma_m))
        drive = hr.simulate(response, sensor, site.trajectories["first"], seed=3, at_s=[14.0, 18.0, 24.0])
        found = calibrate(hr.Log.concatenate(list(drive)), PICK, simulated=world)
        assert found.own_scene and found.measured.own_variance_m2 > 10
        assert_allclose(found.sigma_m, sigma_m, rtol=tolerance)


def test_rays_without_width_would_find_too_little(pulses):
    world, sensor, beams = pulses
    response = world.with_vegetation(VegetationSettings(labels=(GRASS,), sigma_m=0.2))
    log = response.fire(beams, seed=5, sensor=sensor, noise=True)
    assert calibrate(log, PICK, simulated=SceneWorld(world.scene)).sigma_m < 0.17  # the test can tell


def test_a_label_picks_the_finer_ones_that_fold_into_it():
    log = noisy_log(sweeps=1)
    finer = np.where(np.arange(len(log)) % 2, 101, 103).astype(np.uint16)
    other = log.with_returns(hr.Returns(log.returns.range_m, label=finer))
    assert calibrate(other, PICK).measured == calibrate(log, PICK).measured


def test_a_simulated_log_serves_like_the_scene_and_other_beams_give_no_offset():
    world = bushes()
    beams = scan(sweeps=3)
    log = world.with_vegetation(VegetationSettings(labels=(GRASS,), mean_m=0.4, sigma_m=0.5)).fire(beams, seed=1)
    by_scene = calibrate(log, PICK, simulated=world)
    by_log = calibrate(log, PICK, simulated=world.fire(beams, seed=1))
    assert by_log == by_scene
    other = hr.Beams.without_checks(beams.columns() | {"origin_m": beams.origin_m + np.array([0.5, 0, 0])})
    elsewhere = calibrate(log, PICK, simulated=world.fire(other))
    assert elsewhere.offset is None and abs(elsewhere.mean_m) < 0.1  # the mean of Mattes 2021 cannot see the 0.4
    assert any("always near 0" in note for note in elsewhere.notes)
    longer = calibrate(log.select(sweep=0), PICK, simulated=world.fire(other))
    assert longer.simulated == elsewhere.simulated


def test_a_rougher_simulation_clips_at_zero_and_says_so():
    found = calibrate(noisy_log(sigma_m=0.2), PICK, simulated=noisy_log(sigma_m=0.5, seed=1))
    assert found.sigma_m == 0
    assert any("clipped to 0" in note for note in found.notes)


def test_a_log_on_the_disk_gives_the_same_as_in_memory_sweep_by_sweep(tmp_path):
    log = noisy_log(sweeps=5)
    hr.write_log(log, tmp_path / "drive.parquet")
    done = []
    found = calibrate(hr.open_log(tmp_path / "drive.parquet"), PICK, progress=done.append)
    assert found == calibrate(log, PICK)
    assert done == [len(log) // 5 * k for k in range(1, 6)]
    parts = [scatter_of(log.select(sweep=k), np.arange(len(log) // 5), ONE_DEGREE) for k in range(5)]
    assert sum(parts[1:], parts[0]) == found.measured


def test_a_box_picks_what_lies_in_it():
    log = noisy_log(sigma_m=0.1)
    box = (0.0, 0.0, -100.0, 30.0, 100.0, 100.0)
    found = calibrate(log, Selection(box_m=box))
    assert found.measured.n_selected == (log.points()[:, 1] >= 0).sum()
    assert found.settings().labels == VegetationSettings().labels
    both = calibrate(log, Selection(box_m=box, labels=(GRASS,)))
    assert both.measured == found.measured


def test_only_first_returns_count():
    log = noisy_log()
    second = log.returns.range_m + np.float32(5)
    assert log.returns.label is not None
    label = np.stack([log.returns.label, np.full(len(log), WALL, np.uint16)], axis=1)
    dual = log.with_returns(hr.Returns(np.stack([log.returns.range_m, second], axis=1), label=label))
    assert calibrate(dual, PICK) == calibrate(log, PICK)


def test_the_settings_written_are_those_read_back(tmp_path):
    found = calibrate(noisy_log(), Selection((0, -50, -50, 50, 50, 50), (GRASS,)), simulated=noisy_log(0.1, seed=4))
    found.save(tmp_path / "bushes.toml", source="drive.parquet")
    assert VegetationSettings.load(tmp_path / "bushes.toml") == found.settings()


def test_what_cannot_be_measured_is_refused():
    log = noisy_log()
    with pytest.raises(InputError, match="box or a label"):
        Selection()
    for box in ((0, 0, 0, 1, 1, np.nan), (0, 0, 0, 1, 1, np.inf), (0, 0, 2, 1, 1, 1), (0, 0, 0, 1, 1)):
        with pytest.raises(InputError, match="box"):
            Selection(box_m=box)  # pyright: ignore[reportArgumentType]  # one is too short on purpose
    with pytest.raises(InputError, match="label: expected 0 to 65535, found -3"):
        Selection(labels=(GRASS, -3))
    with pytest.raises(InputError, match="label among 99"):
        calibrate(log, Selection(labels=(99,)))
    with pytest.raises(InputError, match="box 0, 0, 0, 1, 1, 1 m"):
        calibrate(log, Selection(box_m=(0, 0, 0, 1, 1, 1)))
    with pytest.raises(InputError, match="log: has no labels"):
        calibrate(log.with_returns(hr.Returns(log.returns.range_m)), PICK)
    with pytest.raises(InputError, match="simulation: has no labels"):
        calibrate(log, PICK, simulated=log.with_returns(hr.Returns(log.returns.range_m)))
    with pytest.raises(InputError, match="simulation: no first return"):
        calibrate(log, PICK, simulated=SceneWorld(Scene()))
    with pytest.raises(InputError, match=r"has another within 0\.1° on its ring"):
        calibrate(log, PICK, window_rad=float(np.radians(0.1)))
    for degrees in (0.0, -1.0, 90.0, np.nan):
        with pytest.raises(InputError, match="window"):
            calibrate(log, PICK, window_rad=float(np.radians(degrees)))


def test_a_scene_of_another_map_is_refused():
    class Elsewhere(SceneWorld):
        @property
        def map_origin_m(self):
            return np.array([1000.0, 0, 0])

    with pytest.raises(InputError, match="the world's map begins at"):
        calibrate(noisy_log(), PICK, simulated=Elsewhere(bushes().scene))
