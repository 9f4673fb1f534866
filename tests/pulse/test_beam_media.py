# SPDX-License-Identifier: Apache-2.0
"""Light through media: transmission is exp(-k L) whatever they are made of, and sub-rays throw coins of their own."""

import numpy as np
import pytest
from beam_reference import ahead, light_cone, sub_ray_directions, wall
from scipy.stats import binom, chi2

from hedgerow import Beams, Scene
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.stencil import make_stencil
from hedgerow.world.pulsed import PhysicsWorld

FALSE_ALARM = 1e-6  # per test; every seed is fixed, so a pass stays a pass
DEPTH = 1.2  # k L of every medium here
SLAB = (10.0, 11.0)


def passing(scene, beams, seed=0, **settings):
    """Which sub-rays (N, S) get past the slab."""
    world = PhysicsWorld(scene, BeamSettings(**settings), max_range_m=SLAB[1] + 1.0)
    traced = world.fire_detailed(beams, seed, sub_rays=True).sub_rays
    assert traced is not None
    return ~(traced.element >= 0)


def scattered(n, rng, half_m=2.0):
    """Pulses along x that cross the slab at random places."""
    origins = np.c_[np.zeros(n), rng.uniform(-half_m, half_m, (n, 2))]
    return Beams.from_arrays(origins=origins, directions=np.tile([1.0, 0.0, 0.0], (n, 1)))


def discs(rng, radius_m, half_m=2.5, sides=12):
    """Random discs, as polygons of the same area, of optical depth DEPTH: density x area / 2 is k (random normals)."""
    area = np.pi * radius_m**2
    volume = (2 * half_m) ** 2 * (SLAB[1] - SLAB[0])
    n = rng.poisson(DEPTH / (SLAB[1] - SLAB[0]) * 2 / area * volume)
    centre = rng.uniform([SLAB[0], -half_m, -half_m], [SLAB[1], half_m, half_m], (n, 3))
    first = rng.normal(size=(n, 3))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(first, rng.normal(size=(n, 3)))
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    angle = 2 * np.pi * np.arange(sides) / sides
    rim_m = np.sqrt(area / (0.5 * sides * np.sin(2 * np.pi / sides)))
    rim = rim_m * (np.cos(angle)[:, None, None] * first + np.sin(angle)[:, None, None] * second) + centre
    corner = np.arange(sides)[:, None] * n + np.arange(n)
    fan = [np.stack([corner[0], corner[i], corner[i + 1]], axis=1) for i in range(1, sides - 1)]
    scene = Scene()
    scene.add_mesh(rim.reshape(-1, 3), np.concatenate(fan))
    return scene


@pytest.mark.parametrize("radius_m", [0.02, 0.05])
def test_a_slab_of_random_discs_passes_what_beer_and_lambert_say(radius_m):
    rng = np.random.default_rng(1)
    beam = light_cone("circular", 30.0)  # 0.3 m wide at the slab
    shares = []
    for _ in range(3):
        passed = passing(discs(rng, radius_m), scattered(600, rng), beam=beam)
        # Pulses share discs: 4 m by 4 m in 0.4 m squares are independent.
        shares += np.array_split(passed.mean(axis=1), 30)
    means = np.array([share.mean() for share in shares])
    error = means.std() / np.sqrt(len(means))
    assert error < 0.01
    assert means.mean() == pytest.approx(np.exp(-DEPTH), abs=5 * error)


@pytest.mark.parametrize("n_planes", [1, 4, 16, 64])
def test_permeable_planes_pass_the_same_light_at_any_spacing(n_planes):
    scene = Scene()
    for x in np.linspace(*SLAB, n_planes):
        wall(x, scene=scene, permeability=np.exp(-DEPTH / n_planes))
    n = 4000
    passed = passing(scene, ahead(n), beam=light_cone("circular", 10.0)).sum()
    low, high = binom.interval(1 - FALSE_ALARM, 9 * n, np.exp(-DEPTH))
    assert low <= passed <= high


@pytest.mark.parametrize("sigma_m", [0.03, 0.06, 0.12])
def test_gaussians_pass_the_same_light_at_any_size(sigma_m):
    # Along a ray of distance b the optical depth of a Gaussian is k sigma exp(-b^2 / 2 sigma^2); over all b that is
    # 2 pi k sigma^3, so density 1 / (2 pi k sigma^3) is an optical depth of 1 per metre as long as each is thin.
    rng, half_m, each = np.random.default_rng(2), 1.5, 0.05
    extinction = each / sigma_m
    tau = 3.5
    b = np.linspace(0, tau, 2000)
    lost = np.trapezoid((1 - np.exp(-each * np.exp(-(b**2) / 2))) * 2 * np.pi * b, b) * sigma_m**2
    volume = (2 * half_m) ** 2 * (SLAB[1] - SLAB[0])
    n = round(volume * DEPTH / (SLAB[1] - SLAB[0]) / (2 * np.pi * extinction * sigma_m**3))
    mean = rng.uniform([SLAB[0], -half_m, -half_m], [SLAB[1], half_m, half_m], (n, 3))
    scene = Scene()
    scene.add_gaussians(mean, np.tile(np.eye(3) * sigma_m**2, (n, 1, 1)), extinction_per_m=extinction, tau=tau)
    beams = scattered(2000, rng, half_m - tau * sigma_m - 0.1)
    passed = passing(scene, beams, seed=5, beam=light_cone("circular", 5.0))
    expected = np.exp(-n / volume * lost)
    assert expected == pytest.approx(np.exp(-DEPTH), rel=0.03)  # thin elements: the size has cancelled
    # The number of Gaussians on a ray varies: its deviation is that of a Poisson medium, seen in squares of 6 sigma.
    squares = ((half_m / sigma_m) / 3) ** 2
    deviation = np.hypot(expected * np.sqrt(DEPTH * each / squares) * 2, np.sqrt(expected / passed.size))
    assert passed.mean() == pytest.approx(expected, abs=5 * deviation)


def test_sub_rays_throw_their_coins_independently():
    n, pass_share = 20_000, 0.35
    scene = wall(10.0, permeability=pass_share)
    passed = passing(scene, ahead(n), seed=8, beam=light_cone("circular", 10.0))
    counts = np.bincount(passed.sum(axis=1), minlength=10)
    expected = n * binom.pmf(np.arange(10), 9, pass_share)
    common = expected >= 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert chi2.sf(statistic, common.sum() - 1) > FALSE_ALARM
    # The median return is the wall's, its light what was not passed.
    returns = PhysicsWorld(scene, BeamSettings(beam=light_cone("circular", 10.0))).fire(ahead(n), 8).returns
    assert returns.intensity is not None
    assert np.nanmean(np.nan_to_num(returns.intensity)) == pytest.approx(0.5 * (1 - pass_share), abs=0.01)


def test_each_sub_ray_ends_where_the_elements_on_its_way_say():
    # Permeable triangles, Gaussians of both laws: shares of the elements on every sub-ray by `Scene.pierced`.
    rng, n = np.random.default_rng(4), 20_000
    scene = Scene()
    corners = rng.normal([8, 0, 0], 0.4, (6, 1, 3)) + rng.normal(size=(6, 3, 3)) * 0.8
    scene.add_mesh(corners.reshape(-1, 3), np.arange(18).reshape(6, 3), permeability=rng.uniform(0.2, 0.9, 6))
    mean, covariance = rng.normal([8, 0, 0], 0.3, (12, 3)), np.tile(np.eye(3) * 0.05, (12, 1, 1))
    scene.add_gaussians(mean[:6], covariance[:6], permeability=0.6)
    scene.add_gaussians(mean[6:], covariance[6:], extinction_per_m=3.0)
    beam = light_cone("rectangular", 80.0)
    world = PhysicsWorld(scene, BeamSettings(beam=beam))
    hits = world.fire_detailed(ahead(n), 6, sub_rays=True).sub_rays
    directions, _ = sub_ray_directions([1, 0, 0], make_stencil("rectangular", 9).points.astype(float), beam)
    found = scene.pierced(Beams.from_arrays(origins=(0, 0, 0), directions=directions))
    for s in range(9):
        rows = slice(found.begin[s], found.begin[s + 1])
        reach = np.cumprod(np.r_[1.0, found.permeability[rows]])
        probability = np.zeros(scene.n_elements + 1)
        np.add.at(probability, np.r_[found.element[rows], scene.n_elements], np.r_[-np.diff(reach), reach[-1]])
        assert hits is not None
        element = np.where(hits.element[:, s] < 0, scene.n_elements, hits.element[:, s])
        counts, expected = np.bincount(element, minlength=len(probability)), n * probability
        assert counts[expected == 0].sum() == 0
        common = expected >= 5
        statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
        assert chi2.sf(statistic, common.sum() - 1) > FALSE_ALARM


def test_every_sub_ray_draws_its_own_range_in_a_gaussian():
    scene = Scene()
    scene.add_gaussians([[10.0, 0, 0]], [np.diag([0.04, 25.0, 25.0])])
    n = 4000
    world = PhysicsWorld(scene, BeamSettings(beam=light_cone("circular", 1.0), cutoff_m=10.0))
    fired = world.fire_detailed(ahead(n), 3, sub_rays=True)
    assert fired.sub_rays is not None
    variance = ((fired.sub_rays.range_m - 10) ** 2).sum() / 0.04
    assert chi2.ppf(FALSE_ALARM, 9 * n) < variance < chi2.isf(FALSE_ALARM, 9 * n)
    # The return is the mean of nine: geometry, not electronics.
    mean = ((fired.log.returns.range_m - 10) ** 2).sum() / (0.04 / 9)
    assert chi2.ppf(FALSE_ALARM, n) < mean < chi2.isf(FALSE_ALARM, n)
