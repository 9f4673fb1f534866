# SPDX-License-Identifier: Apache-2.0
"""Forecasts along the beam: against closed forms, a slow integral in NumPy, and many draws."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.models.steps.permeability import scene_of
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.world.elements import Gaussians
from hedgerow.world.forecast import forecast_by_draws

LIMITS: Any = {"min_range_m": 2.0, "max_range_m": 40.0}


def beams_along_x(n=1):
    return hr.Beams.from_arrays(origins=np.zeros((n, 3)), directions=np.tile([1.0, 0, 0], (n, 1)))


def row(mean_m, sigma_m, permeability, intensity: Any = 0.5):
    """Gaussians in a row along x, which a beam along x pierces through their middles."""
    n = len(mean_m)
    mean = np.c_[mean_m, np.zeros(n), np.zeros(n)]
    covariance = np.array([np.diag([s**2, 1.0, 1.0]) for s in sigma_m])
    settings: Any = {"stop": np.array(permeability, dtype=np.float32), "tau": 3.5}
    settings["intensity"] = np.broadcast_to(np.float32(intensity), n).copy()
    return scene_of((Gaussians.plain(mean, covariance, **settings),))


def slow_forecast(mean_m, sigma_m, permeability, y_m):
    """P(return), conditional median, E|X - y| and E|X - X'| from the distribution function on a fine grid."""
    low, high = LIMITS["min_range_m"], LIMITS["max_range_m"]
    reaching = np.concatenate([[1], np.cumprod(permeability)])[:-1]
    weight = reaching * (1 - np.array(permeability))
    r = np.linspace(low, high, 400_001)
    parts = zip(weight, mean_m, sigma_m, strict=True)
    below: Any = sum(w * (stats.norm.cdf(r, m, s) - stats.norm.cdf(low, m, s)) for w, m, s in parts)
    returns = below[-1]
    median = r[np.searchsorted(below, returns / 2)]
    error = integrate.trapezoid(np.where(r < y_m, below, 1 - below), r)  # |X - y| = integral of F below y, 1 - F above
    spread = 2 * integrate.trapezoid(below * (1 - below), r)
    return returns, median, error, spread


@pytest.mark.parametrize(
    ("mean_m", "sigma_m", "permeability"),
    [
        ([10.0], [0.5], [0.0]),
        ([10.0], [0.5], [0.3]),
        ([10.0, 10.8, 25.0], [0.5, 0.4, 0.02], [0.6, 0.2, 0.5]),
        ([5.0, 20.0], [0.001, 0.001], [0.45, 0.0]),
        ([2.3, 39.5], [0.4, 0.6], [0.5, 0.2]),  # cut off by both limits
    ],
)
@pytest.mark.parametrize("y_m", [3.0, 10.1, 24.9, np.inf])
def test_a_forecast_is_that_of_the_mixture(mean_m, sigma_m, permeability, y_m):
    scene = row(mean_m, sigma_m, permeability)
    found: Any = scene.forecast(beams_along_x(), np.array([y_m], dtype=np.float32), **LIMITS)
    returns, median, error, spread = slow_forecast(mean_m, sigma_m, permeability, min(y_m, 40.0))
    assert_allclose(found.returns[0], returns, atol=2e-6)
    assert_allclose(found.median_m[0], median, atol=2e-3)
    assert_allclose(found.error_m[0], error, atol=2e-4)
    # Ranges that a limit cuts off count in the spread as normal ones of the same mean and width.
    assert_allclose(found.spread_m[0], spread, atol=5e-4 if max(mean_m) < 30 else 0.01)


def test_the_mean_intensity_weighs_elements_by_what_they_return():
    scene = row([5.0, 10.0, 20.0], [0.1, 0.1, 0.1], [0.5, 0.5, 0.0], intensity=[0.2, 0.6, np.nan])
    found = scene.forecast(beams_along_x(), **LIMITS)
    assert_allclose(found.intensity[0], (0.5 * 0.2 + 0.25 * 0.6) / 0.75, rtol=1e-6)
    assert found.error_m is None and found.spread_m is None


def test_a_beam_that_meets_nothing_is_forecast_to_be_lost():
    scene = row([5.0], [0.1], [0.0])
    away = hr.Beams.from_arrays(origins=np.zeros((1, 3)), directions=[[0.0, 0, 1.0]])
    found: Any = scene.forecast(away, np.array([np.inf], dtype=np.float32), **LIMITS)
    assert (found.returns[0], found.median_m[0], found.error_m[0], found.spread_m[0]) == (0, np.inf, 0, 0)
    assert np.isnan(found.intensity[0]) and found.answer_m[0] == np.inf


def some_world():
    rng = np.random.default_rng(8)
    mean = np.c_[rng.uniform(4, 30, (60, 1)), rng.uniform(-2, 2, (60, 2))]
    scene = hr.Scene()
    scene.add_gaussians(mean, np.tile(0.2 * np.eye(3), (60, 1, 1)), extinction_per_m=rng.uniform(0.2, 2, 60))
    wall = np.array([[35.0, -9, -9], [35, 9, -9], [35, 9, 9], [35, -9, 9]])
    scene.add_mesh(wall, [[0, 1, 2], [0, 2, 3]], permeability=0.4, noise=hr.SurfaceNoise(sigma0_m=0.1))
    return hr.SceneWorld(scene, **LIMITS)


def some_beams(n):
    direction = np.random.default_rng(2).normal([1, 0, 0], [0, 0.05, 0.05], (n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return hr.Beams.from_arrays(origins=np.zeros((n, 3)), directions=direction)


def test_a_forecast_is_what_many_draws_show():
    """600 draws of 300 beams; each mean of 300 differs by less than four of its standard errors (1 in 16,000)."""
    world, beams = some_world(), some_beams(300)
    log = world.fire(beams, 77)
    exact = world.forecast(log)
    by_draws = hr.World._forecast(world, beams, world._shot(5, None, (2.0, 40.0), 0, None), log.returns.first_m, 600)
    assert exact.draws is None and by_draws.draws == 600
    assert abs((exact.returns - by_draws.returns).mean()) < 4 * 0.5 / np.sqrt(300 * 600)
    for name in ("error_m", "spread_m"):
        off = getattr(exact, name) - getattr(by_draws, name)
        assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))
    drawn = np.stack([world.fire(beams, seed).returns.first_m for seed in range(400)])
    n_hits = np.isfinite(drawn).sum(axis=0)
    nearer = (drawn <= exact.median_m).sum(axis=0)
    off = (nearer - n_hits / 2) / np.sqrt(n_hits / 4)
    assert np.abs(off).max() < 4.5  # of 300 beams, 1 in 500 chances
    assert 0.8 < off.std() < 1.2


def test_a_world_that_draws_from_its_forecast_has_a_spread_of_one():
    """A calibrated forecast: E|X - X'| = E|X - y| over beams whose y is drawn from it, within four standard errors."""
    world, beams = some_world(), some_beams(20_000)
    found: Any = world.forecast(world.fire(beams, 3))
    off = found.spread_m - found.error_m
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))


def test_expected_answers_the_same_every_time_and_on_any_number_of_threads():
    world, beams = some_world(), some_beams(5000)
    one, two = world.expected(beams, threads=1), world.expected(beams, threads=2)
    for name in ("returns", "median_m", "intensity"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
    part = world.expected(beams[100:200])
    assert np.array_equal(part.median_m, one.median_m[100:200])


def test_worlds_that_do_not_know_their_distribution_draw():
    shot = VegetationSettings(labels=(1,), mean_m=0.1, sigma_m=0.2)
    world = some_world().with_vegetation(shot)
    found = world.expected(some_beams(50), draws=4)
    assert found.draws == 4 and set(np.unique(found.returns * 4)) <= set(range(5))
    with pytest.raises(InputError, match="draws"):
        world.expected(some_beams(5), draws=1)


def test_a_forecast_without_a_far_limit_is_refused():
    world = hr.SceneWorld(row([5.0], [0.1], [0.0]))
    with pytest.raises(InputError, match=r"max_range_m.*finite range limit"):
        world.expected(beams_along_x())


def test_medians_of_draws_leave_out_what_did_not_return():
    drawn = np.array([[5.0, np.inf, np.inf], [7.0, np.inf, 3.0], [6.0, np.inf, np.inf], [np.inf, np.inf, 4.0]])
    found = forecast_by_draws(lambda k: hr.Returns(drawn[k].astype(np.float32)), 4, 10.0)
    assert found.median_m.tolist() == [6.0, np.inf, 3.5]
    assert found.returns.tolist() == [0.75, 0.0, 0.5]
