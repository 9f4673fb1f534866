# SPDX-License-Identifier: Apache-2.0
"""Planar robot programs: line targets, registration in a filter, particle filter, against known answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import hedgerow as hr
from hedgerow.apps import registration
from hedgerow.apps.line_detection import LineDetection, TargetTruth, detect
from hedgerow.apps.particle_filter import ParticleFilter, WalkTruth, mean_pose, move, resample
from hedgerow.apps.registration import DriveTruth, Registration, Walls, register
from hedgerow.planar.parametric import BeamMixture, GaussianModel
from hedgerow.planar.regression import Scale
from hedgerow.planar.site import PlanarSite, nominal_states, scan_beams
from hedgerow.planar.tabulated import TabulatedModel
from hedgerow.planar.world import PlanarWorld
from hedgerow.world import SceneWorld

BEARINGS = np.deg2rad(np.arange(360))
SCALE = Scale(high_m=8.0, step_m=0.01)
WALLS = {"points_m": [[-2, -2], [2, -2], [2, 2], [-2, 2]], "closed": True}
TARGET = {"kind": "target", "points_m": [[-0.305, 0], [0.305, 0]], "pose": {"x_m": 1.2, "heading_deg": 80}}
OBSTACLE = {"kind": "obstacle", "points_m": [[-0.6, 0], [0.6, 0]], "pose": {"y_m": 1.2, "heading_deg": 5}}


def scan(site, pose=(0.0, 0.0, 0.0), sweep=0):
    return SceneWorld(site.scene(), max_range_m=8.0).fire(scan_beams(pose, BEARINGS, sweep=sweep))


def lab(*objects):
    return PlanarSite.parse({"object": list(objects)}, "lab")


def test_a_clean_target_is_found_and_the_checks_refuse_the_rest():
    site, app = lab(WALLS, TARGET, OBSTACLE), LineDetection()
    truth = TargetTruth(site.segments("target"))
    loose = app.space.start()
    strict = loose | {"length_m": 0.1, "free": "on"}
    assert app.run(scan(site), strict, truth).sums == {"tp": 1, "fp": 0, "fn": 0}
    outcome = app.run(scan(site), loose, truth)
    assert outcome.sums["tp"] == 1 and outcome.sums["fp"] >= 4  # walls and obstacle are lines, too
    (line,) = detect(scan(site), strict)
    assert_allclose(line.centre, [1.2, 0.0], atol=0.02)
    assert line.length_m == pytest.approx(0.61, abs=0.05)  # beams 2 cm apart there


def test_a_scan_without_returns_has_no_lines():
    site = lab({"points_m": [[50, 0], [50, 1]]})
    app = LineDetection()
    assert app.run(scan(site), app.space.start(), TargetTruth(np.zeros((0, 2, 2)))).sums["fp"] == 0


def test_smoothing_mends_a_lone_wrong_reading():
    site = lab(WALLS, TARGET)
    log = scan(site)
    range_m = log.returns.range_m.copy()
    beam = int(np.flatnonzero(log.returns.label == 115)[5])
    range_m[beam] = np.inf
    broken = log.with_returns(hr.Returns(range_m))
    setting = LineDetection().space.start() | {"length_m": 0.1}
    assert len(detect(broken, setting | {"smooth": "on"})) >= 1


def test_the_error_of_a_pose_is_the_sum_of_distances_to_the_walls():
    wall = np.array([[[1.0, -5.0], [1.0, 5.0]]])
    points = np.array([[1.0, 0.0], [1.0, 0.5]])
    poses = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [-0.2, 0.3, 0.0]])
    assert_allclose(Walls(wall).error(points, poses), [0.0, 0.2, 0.4], atol=1e-12)


def test_registration_finds_the_pose_of_a_clean_scan():
    site = lab(WALLS)
    true = np.array([0.5, -0.3, 0.2])
    points = registration.scan_points(scan(site, tuple(true)), true, 90)
    found, used = register(points, site.segments(), true + np.array([0.08, -0.06, 0.05]), 100)
    assert_allclose(found, true, atol=0.005)
    assert 5 < used <= 100


def test_a_linear_filter_is_consistent():
    """NEES of a Kalman filter on what it assumes: chi-square of 3 degrees, mean over 400 runs within 99.9 %."""
    random = np.random.default_rng(5)
    nees = []
    for _ in range(400):
        mean, covariance = np.zeros(3), registration.START_COVARIANCE
        true = random.multivariate_normal(mean, covariance)
        for _ in range(5):
            step = 0.2 * registration.R1 + 0.1 * registration.R2
            true = true + random.multivariate_normal(np.zeros(3), step)
            covariance = covariance + step
            observed = true + random.multivariate_normal(np.zeros(3), registration.REGISTRATION_COVARIANCE)
            mean, covariance = registration.update(mean, covariance, observed)
        error = true - mean
        nees.append(error @ np.linalg.solve(covariance, error))
    low, high = (float(stats.chi2.ppf(level, 3 * 400)) / 400 for level in (0.0005, 0.9995))
    assert low < np.mean(nees) < high


def test_more_iterations_are_more_exact_and_the_delay_costs():
    site = lab(WALLS)
    time_s = np.linspace(0.0, 1.0, 6)
    pose = np.column_stack([0.3 * time_s, 0 * time_s, 0.1 * time_s])
    log = hr.Log.concatenate([scan(site, tuple(each), i) for i, each in enumerate(pose)])
    truth = DriveTruth(site.segments(), time_s, pose, np.full(6, 0.3), np.full(6, 0.1), pose[0] + [0.05, 0.05, 0.02])
    one = Registration().run(log, {"iterations": 1}, truth)
    many = Registration().run(log, {"iterations": 40}, truth)
    assert many.sums["position"] < one.sums["position"]
    assert many.sums["n"] == 6 and one.sums["iterations"] == 6


def test_low_variance_resampling_keeps_shares_to_one_particle():
    weight = np.array([0.5, 0.25, 0.25])
    particles = np.array([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    many = np.repeat(particles, 100, axis=0)
    drawn = resample(many, np.repeat(weight, 100) / 100, np.random.default_rng(1))
    assert_allclose(np.bincount(drawn[:, 0].astype(int)), [150, 75, 75], atol=1)


def test_particles_move_in_their_own_frames():
    turned = np.array([[1.0, 2.0, np.pi / 2]])
    moved = move(turned, np.array([0.5, 0.1, 0.2]), np.zeros(3), np.random.default_rng(0))
    assert_allclose(moved, [[0.9, 2.5, np.pi / 2 + 0.2]], atol=1e-12)
    assert_allclose(mean_pose(np.array([[0, 0, 3.1], [0, 0, -3.1]]), np.array([0.5, 0.5]))[2], np.pi, atol=1e-9)


def test_weights_of_particles_are_those_of_a_grid_filter():
    """On the poses of a grid, weights equal the product of densities, computed one by one."""
    site = lab(WALLS)
    model = BeamMixture(SCALE, eta=0.8, sigma_m=0.1, rate_per_m=1.0, null=0.02)
    true = np.array([0.3, 0.2, 0.1])
    log = PlanarWorld(site.scene(), model, 360).fire(scan_beams(true, BEARINGS), 3)
    grid = np.array([[x, y, 0.1] for x in (0.2, 0.3, 0.4) for y in (0.1, 0.2, 0.3)])
    weight = ParticleFilter(model, 360, every=30).weigh(log, true, grid, site.scene(), 1.0)
    expected = []
    for pose in grid:
        states = nominal_states(site.scene(), scan_beams(pose, BEARINGS), 360, 8.0)
        density = model.density(states, log.returns.first_m.astype(float))[::30]
        expected.append(np.prod(np.maximum(density, 1e-3)))
    assert_allclose(weight, np.array(expected) / np.sum(expected), rtol=1e-3)  # beams are float32
    assert weight.argmax() == 4


def test_a_filter_finds_its_way_in_an_empty_room():
    site = lab({"points_m": [[0, 0], [4, 0], [4, 3], [0, 3]], "closed": True})
    model = GaussianModel(SCALE, 1e-3)
    pose = np.column_stack([np.linspace(1.0, 1.7, 8), np.full(8, 1.0), np.zeros(8)])
    world = PlanarWorld(site.scene(), GaussianModel(SCALE, 1e-4), 360)
    log = hr.Log.concatenate([world.fire(scan_beams(each, BEARINGS, sweep=i), 2) for i, each in enumerate(pose)])
    truth = WalkTruth(site.scene(), pose, np.tile([0.1, 0.0, 0.0], (7, 1)), seed=4)
    app = ParticleFilter(model, 360, every=12)
    found = app.estimate(log, app.space.start(), truth)
    # Particles start 1 m around and move with 1 cm of noise; a model of 3 to 12 cm spread and 30 bearings weighs them.
    assert np.hypot(*(found - pose)[-1, :2]) < 0.1


def test_a_table_has_the_densities_and_draws_of_its_model():
    model = BeamMixture(SCALE, eta=0.6, sigma_m=0.3, rate_per_m=0.5, null=0.1)
    table = TabulatedModel(model, range_step_m=0.05)
    site = lab(WALLS)
    beams = scan_beams((0.3, 0.2, 0.0), BEARINGS)
    states = nominal_states(site.scene(), beams, 360, 8.0)
    reading = model.sample(states, seed=2)
    error = np.abs(table.density(states, reading) / model.density(states, reading) - 1)
    # A normal of 0.3 m mixed with itself 2.5 cm to both sides differs by (0.025 / 0.3)²; only where the exponential
    # part ends, within a step of the nominal range, the difference is larger.
    assert np.median(error) < 0.007 and error.max() < 0.1 and np.quantile(error, 0.97) < 0.03
    n = 4000
    one = states[np.full(n, 17)]
    drawn = table.sample(one, seed=5)
    expected = model.sample(one, seed=6)
    assert stats.ks_2samp(np.minimum(drawn, 9), np.minimum(expected, 9)).pvalue > 1e-4  # fixed seeds; one in 10,000
