# SPDX-License-Identifier: Apache-2.0
"""The spacing of returns of different sweeps on a plane, and flat elements that become as wide."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.models.refined.rounds import RayCounter
from hedgerow.models.refined.score import RayModel
from hedgerow.models.refined.spacing import measure_spacing, refit_thickness, widen
from hedgerow.parallel.log_parts import cut_log
from hedgerow.world.elements import Gaussians


def lines_on_the_ground(spacing_m, n_sweeps=4):
    """Sweeps of returns in dense lines along x, each sweep's line `spacing_m` beside the last one's."""
    x = np.arange(-4, 4, 0.01)
    logs = []
    for number in range(n_sweeps):
        target = np.c_[x, np.full_like(x, number * spacing_m), np.zeros_like(x)]
        away = target - [0, 0, 2.0]
        length = np.linalg.norm(away, axis=1)
        logs.append(
            hr.Log.from_arrays(
                origins=np.tile([0, 0, 2.0], (len(x), 1)),
                directions=away / length[:, None],
                ranges=length,
                sweeps=np.full(len(x), number),
                max_range_m=50,
            )
        )
    return hr.Log.concatenate(logs)


def sheet(sigma_m=0.03):
    mean = np.stack(np.meshgrid(np.arange(-3, 3.1, 0.5), [0.0, 0.3], [0.0]), axis=-1).reshape(-1, 3)
    return Gaussians.plain(mean, np.tile(np.diag([sigma_m, sigma_m, 0.002]) ** 2, (len(mean), 1, 1)))


@pytest.mark.parametrize("spacing_m", [0.1, 0.25])
def test_the_spacing_is_that_of_the_lines(spacing_m):
    found = measure_spacing(sheet(), cut_log(lines_on_the_ground(spacing_m)))
    assert_allclose(found, spacing_m, rtol=0.01)


def test_a_single_sweep_tells_nothing():
    found = measure_spacing(sheet(), cut_log(lines_on_the_ground(0.2, n_sweeps=1)))
    assert_array_equal(found, 0)


def test_distances_across_the_plane_do_not_count():
    log = lines_on_the_ground(0.0, n_sweeps=2)
    moved = log.beams.origin_m + np.where(log.beams.sweep == 1, 0.1, 0.0)[:, None] * [0, 0, 1.0]
    beams = hr.Beams.without_checks(log.beams.columns() | {"origin_m": moved})
    found = measure_spacing(sheet(), cut_log(hr.Log(beams, log.returns, max_range_m=50)))
    assert (found < 0.01).all()  # one sweep lies 10 cm above the other, in the same lines


def test_flat_elements_become_as_wide_and_others_stay():
    round_one = np.diag([0.05, 0.05, 0.05]) ** 2
    flat = np.diag([0.05, 0.5, 0.005]) ** 2
    gaussians = Gaussians.plain(np.zeros((2, 3)), np.stack([round_one, flat]))
    wider = widen(gaussians, np.array([0.1, 0.1]), 2.0)
    assert_array_equal(wider.covariance_m2[0], round_one)
    assert_allclose(wider.covariance_m2[1], np.diag([0.2, 0.5, 0.005]) ** 2, atol=1e-12)
    assert_array_equal(widen(gaussians, np.array([0.1, 0.1]), 0.0).covariance_m2, gaussians.covariance_m2)


def test_a_refit_finds_thickness_place_and_stop_of_a_disc_and_leaves_its_width():
    # One disc, truly 4 cm thick, at 2 cm, of depth 1.5; it is thought to be 1 cm thick, at 0, of depth 0.7.
    covariance = np.diag([0.5, 0.5, 0.04]) ** 2
    true = Gaussians.plain(np.array([[0, 0, 0.02]]), covariance[None], stop=np.array([1.5], np.float32), law="depth")
    rng = np.random.default_rng(4)
    n = 40_000
    origin = np.c_[rng.uniform(-1, 1, (n, 2)), np.full(n, 5.0)]
    beams = hr.Beams.from_arrays(origins=origin, directions=np.tile([0, 0, -1.0], (n, 1)))
    log = hr.LearnedWorld(true, kind="known", max_range_m=10.0).fire(beams, seed=1)
    thought = np.diag([0.5, 0.5, 0.01]) ** 2
    disc = Gaussians.plain(np.zeros((1, 3)), thought[None], stop=np.array([0.7], np.float32), law="depth")
    for _ in range(8):  # each is one step of expectation maximisation
        disc = refit_thickness(disc, RayCounter((disc,), RayModel(0.0, 10.0, 0.001)).sums(log))
    sigma_m = np.sqrt(np.diagonal(disc.covariance_m2[0]))
    assert_allclose(sigma_m[:2], 0.5, rtol=1e-6)
    # Some 15,000 returns: the sigma is known to 0.6 %, the mean to 0.3 mm, the depth to about 2 %; five times that.
    assert_allclose(sigma_m[2], 0.04, rtol=0.03)
    assert_allclose(disc.mean_m[0, 2], 0.02, atol=0.0015)
    assert_allclose(disc.stop[0], 1.5, rtol=0.1)


def test_elements_that_are_wide_enough_are_the_same_object():
    gaussians = sheet(0.5)
    assert widen(gaussians, np.full(len(gaussians), 0.1), 2.0) is gaussians
