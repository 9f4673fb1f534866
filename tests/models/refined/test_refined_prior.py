# SPDX-License-Identifier: Apache-2.0
"""The prior of refined elements against places whose shape is known."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import ArrayLike

import hedgerow as hr
from hedgerow.models.refined.prior import Neighbourhoods, PriorParameters, pool_covariance
from hedgerow.world.elements import Gaussians

WIDTH_M = 0.05
FINE = {"split_points": 40}


def elements(mean_m, sigma_m: ArrayLike = WIDTH_M):
    sigmas_m = np.broadcast_to(np.asarray(sigma_m, dtype=np.float64), (len(mean_m), 3))
    return Gaussians.plain(mean_m, np.einsum("ni,ij->nij", sigmas_m**2, np.eye(3)))


def sheet(thickness_m=0.01):
    """Elements a metre around on level ground, thinner than wide."""
    x, y = np.meshgrid(np.arange(-1, 1.01, 0.1), np.arange(-1, 1.01, 0.1))
    mean_m = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    return elements(mean_m, (WIDTH_M, WIDTH_M, thickness_m))


def bush():
    return elements(np.random.default_rng(5).uniform(-1, 1, (2000, 3)))


def middle(gaussians):
    return np.flatnonzero((np.abs(gaussians.mean_m) < 0.3).all(axis=1))


def asked(gaussians, **parameters):
    """Standard deviations, thinnest first, that the prior asks the middle ones for."""
    prior = Neighbourhoods(gaussians, PriorParameters(**parameters)).prior(gaussians, np.ones(len(gaussians)))
    return np.sqrt(np.linalg.eigvalsh(prior.covariance_m2[middle(gaussians)]))


def test_a_bush_asks_for_the_width_of_its_place_and_a_sheet_for_more():
    assert_allclose(asked(bush(), width=1.5, flat_width=5.0)[:, 1:], 1.5 * WIDTH_M, rtol=1e-6)
    assert_allclose(asked(sheet(1e-4), width=1.5, flat_width=5.0)[:, 1:], 5.0 * WIDTH_M, rtol=0.02)


def test_a_sheet_is_not_asked_to_grow_thick():
    assert_allclose(asked(sheet(0.01))[:, 0], 0.01, rtol=1e-6)


def test_between_a_sheet_and_a_bush_the_width_is_between():
    found = [float(asked(sheet(each_m), flat_width=5.0)[:, 1:].mean()) / WIDTH_M for each_m in (0.001, 0.02, 0.04)]
    assert 5 > found[0] > 4.5 > found[1] > 3.5 > found[2] > 2


def test_nothing_is_asked_to_shrink():
    large = elements(sheet().mean_m, 0.5)
    start = Neighbourhoods(sheet(), PriorParameters())
    prior = start.prior(large, np.ones(len(large)))
    assert np.linalg.eigvalsh(prior.covariance_m2)[:, 1].min() >= 0.3**2


def test_width_is_that_of_the_start_at_the_same_place():
    near, far = sheet(), elements(sheet().mean_m + np.array([50.0, 0, 0]), (0.2, 0.2, 0.01))
    start = Neighbourhoods(Gaussians.join([near, far]), PriorParameters())
    assert_allclose(start.widths_m(np.array([[0.0, 0, 0], [50.0, 0, 0]])), [WIDTH_M, 0.2])


@pytest.mark.parametrize("n", [1, 3])
def test_a_few_elements_have_neighbourhoods_too(n):
    few = elements(np.eye(3)[:n] * 100)
    prior = Neighbourhoods(few, PriorParameters()).prior(few, np.ones(n))
    assert_allclose(prior.covariance_m2, few.covariance_m2, rtol=1e-6)


def test_pooled_covariance_is_that_of_the_points_of_all_neighbours():
    rng = np.random.default_rng(2)
    cloud = elements(rng.normal(0, 0.05, (30, 3)), 0.03)
    hits = rng.uniform(1, 40, 30)
    (found, *_) = pool_covariance(cloud, hits, reach_m=10.0)
    away = cloud.mean_m - np.average(cloud.mean_m, axis=0, weights=hits)
    assert_allclose(found, np.einsum("n,ni,nj->ij", hits / hits.sum(), away, away) + 0.03**2 * np.eye(3), rtol=1e-9)


def rings_on_ground(shift_deg=0.0):
    """What a sensor 1.7 m above level ground sees in rings 1.5 degrees apart, five sweeps over half a metre."""
    sweep, down, turn = np.meshgrid(
        np.arange(5), np.radians(np.arange(8, 30, 1.5) + shift_deg), np.radians(np.arange(-30, 30, 0.4)), indexing="ij"
    )
    directions = np.stack([np.cos(down) * np.cos(turn), np.cos(down) * np.sin(turn), -np.sin(down)], axis=-1)
    origins = np.zeros_like(directions)
    origins[..., 0], origins[..., 2] = 0.125 * sweep, 1.7
    beams = hr.Beams.from_arrays(
        origins=origins.reshape(-1, 3), directions=directions.reshape(-1, 3), sweeps=sweep.ravel()
    )
    ground = hr.Scene()
    corners_m = np.array([[-5, -20, 0], [30, -20, 0], [30, 20, 0], [-5, 20, 0]], dtype=np.float64)
    ground.add_mesh(corners_m, [[0, 1, 2], [0, 2, 3]], noise=hr.SurfaceNoise(0.02))
    return hr.SceneWorld(ground, max_range_m=30.0).fire(beams, 1)


def test_ground_between_rings_is_found():
    """The rings of five sweeps do not cover the ground; beams half way between them find it all the same."""
    log, between = rings_on_ground(), rings_on_ground(0.75).select(sweep=0)
    found = []
    for flat_width in (1.0, 4.0):
        own: dict[str, Any] = {"virtual": None, "widths": [0], "epochs": 4}  # nothing else closes the gaps
        world = hr.learn(log, "refined", prior={"flat_width": flat_width}, topdown=FINE, **own)
        found.append(world.fire(between.beams, 1).returns.hit.mean())
    assert found[1] > found[0] + 0.03, found  # 4 sigma of 2,250 coins


def test_neighbourhoods_do_not_depend_on_the_blocks_they_are_pooled_in(monkeypatch):
    rng = np.random.default_rng(5)
    cloud = elements(rng.uniform(0, 2, (500, 3)), 0.03)
    hits = rng.uniform(0, 80, 500)
    whole = pool_covariance(cloud, hits, reach_m=0.6)
    monkeypatch.setattr("hedgerow.models.refined.prior._PAIRS_AT_ONCE", 50)
    np.testing.assert_array_equal(pool_covariance(cloud, hits, reach_m=0.6), whole)
