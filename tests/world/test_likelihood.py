# SPDX-License-Identifier: Apache-2.0
"""The mixture density of measured ranges: it is a density, and it is the density of what `fire` draws."""

from typing import Any

import numpy as np
import pytest
from random_scenes import beams_of, fan, mixed_scene
from scipy.stats import chi2, norm

from hedgerow import InputError, Log
from hedgerow.log import Beams
from hedgerow.world import Scene, SceneWorld, SurfaceNoise

FALSE_ALARM = 1e-6
LIMITS: dict[str, Any] = {"min_range_m": 2.0, "max_range_m": 9.0}


def along_one_ray(scene, direction, range_m, **more):
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to(direction, (len(range_m), 3)))
    return scene.log_likelihood(beams, np.asarray(range_m, dtype=np.float32), **(LIMITS | more))


@pytest.mark.parametrize("seed", range(4))
def test_density_over_the_range_plus_no_return_is_1(seed):
    scene, _ = mixed_scene(seed)
    # 0.7 mm steps: the sharpest element is a triangle with sigma 15 mm, where the midpoint rule is exact to 1e-9.
    edges = np.linspace(LIMITS["min_range_m"], LIMITS["max_range_m"], 10_001)
    middle = (edges[1:] + edges[:-1]) / 2
    for direction in fan(20, np.random.default_rng(seed)):
        log_density = along_one_ray(scene, direction, np.append(middle, np.inf))
        density, none = np.exp(log_density[:-1]), np.exp(log_density[-1])
        # float32 means and limits move mass by parts in 1e6.
        assert density.sum() * (edges[1] - edges[0]) + none == pytest.approx(1, abs=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_likelihood_matches_histograms_of_fire(seed):
    scene, _ = mixed_scene(seed)
    n, edges = 100_000, np.linspace(2.0, 9.0, 71)
    fine = np.linspace(2.0, 9.0, 7001)
    for direction in fan(5, np.random.default_rng(seed + 50)):
        beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to(direction, (n, 3)))
        range_m = scene.fire(beams, seed=seed, **LIMITS).range_m
        observed = np.append(np.histogram(range_m, edges)[0], np.isinf(range_m).sum())
        log_density = along_one_ray(scene, direction, np.append((fine[1:] + fine[:-1]) / 2, np.inf))
        probability = np.append(np.exp(log_density[:-1]).reshape(70, 100).sum(1) * 0.001, np.exp(log_density[-1]))
        expected = probability / probability.sum() * n
        used = expected > 10
        statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
        assert chi2.sf(statistic, max(used.sum() - 1, 1)) > FALSE_ALARM


def test_two_permeable_elements_have_the_closed_form():
    scene = Scene()
    scene.add_gaussians([[4.0, 0, 0], [6.0, 0, 0]], [np.eye(3) * 0.04, np.eye(3) * 0.09], permeability=[0.25, 0.5])
    world = SceneWorld(scene)
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]] * 3, ranges=[4.1, 6.2, np.inf], max_range_m=50.0)
    expected = [
        0.75 * norm.pdf(4.1, 4, 0.2) + 0.25 * 0.5 * norm.pdf(4.1, 6, 0.3),
        0.75 * norm.pdf(6.2, 4, 0.2) + 0.25 * 0.5 * norm.pdf(6.2, 6, 0.3),
        0.25 * 0.5,
    ]
    # float32 ranges: 4.1 and 6.2 are off by up to 2e-7 m, in units of sigma 1e-6.
    np.testing.assert_allclose(world.log_likelihood(log), np.log(expected), atol=1e-5)


def test_mass_outside_the_limits_is_no_return():
    scene = Scene()
    scene.add_gaussians([[4.0, 0, 0]], [np.eye(3)])
    log_density = along_one_ray(scene, [1.0, 0, 0], [np.inf], min_range_m=3.0, max_range_m=5.0)
    assert np.exp(log_density[0]) == pytest.approx(2 * norm.sf(1), abs=1e-6)


def test_what_cannot_be_has_a_log_density_of_minus_infinity():
    scene = Scene()
    scene.add_mesh([[5, -9, -9], [5, 9, -9], [5, 0, 9]], [[0, 1, 2]], noise=SurfaceNoise(0.01))
    log_density = along_one_ray(scene, [1.0, 0, 0], [5.0, 8.0, np.inf])
    assert np.isfinite(log_density[0])
    assert log_density[1:].tolist() == [-np.inf, -np.inf]


def test_a_return_several_sigmas_in_front_of_a_noisy_wall_has_its_density():
    scene = Scene()
    scene.add_mesh([[5, -9, -9], [5, 9, -9], [5, 0, 9]], [[0, 1, 2]], noise=SurfaceNoise(0.05))
    log_density = along_one_ray(scene, [1.0, 0, 0], [4.8, 5.2])
    np.testing.assert_allclose(log_density, norm.logpdf([-0.2, 0.2], 0, 0.05), atol=1e-3)  # 4 sigmas off


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_noise_that_grows_with_the_range_reaches_as_far_as_it_must(share):
    # At a share of 1/8 and above, a wall at any range may have returned anywhere.
    scene = Scene()
    scene.add_mesh([[5, -9, -9], [5, 9, -9], [5, 0, 9]], [[0, 1, 2]], noise=SurfaceNoise(0.03, sigma_per_m=share))
    sigma_m = np.hypot(0.03, 5 * share)
    ranges = 5 + sigma_m * np.array([-2.5, 0.0, 3.0])
    np.testing.assert_allclose(along_one_ray(scene, [1.0, 0, 0], ranges), norm.logpdf(ranges, 5, sigma_m), atol=1e-3)


def test_a_noiseless_triangle_counts_as_wide_as_asked():
    scene = Scene()
    scene.add_mesh([[5, -9, -9], [5, 9, -9], [5, 0, 9]], [[0, 1, 2]])
    log_density = along_one_ray(scene, [1.0, 0, 0], [5.0], min_sigma_m=0.02)
    assert log_density[0] == pytest.approx(norm.logpdf(0, 0, 0.02), abs=1e-4)


def test_a_grazing_element_behind_the_return_still_counts():
    # Its tau-ellipsoid begins behind r, but its density at r is a sixth of its peak.
    scene = Scene()
    scene.add_gaussians([[6.0, 3.4, 0]], [np.eye(3)], tau=3.5, permeability=0.5)
    log_density = along_one_ray(scene, [1.0, 0, 0], [4.1])
    assert np.exp(log_density[0]) == pytest.approx(0.5 * norm.pdf(4.1, 6, 1), rel=1e-5)


def test_missing_returns_without_a_maximal_range_are_refused():
    world = SceneWorld(Scene())
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[np.inf])
    with pytest.raises(InputError, match="max_range_m"):
        world.log_likelihood(log)


def test_likelihood_asks_for_one_range_per_beam():
    with pytest.raises(InputError, match="range_m"):
        Scene().log_likelihood(beams_of((0, 0, 0), [[1, 0, 0]]), np.zeros(2, dtype=np.float32))
