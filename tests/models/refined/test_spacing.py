# SPDX-License-Identifier: Apache-2.0
"""The spacing of returns of different sweeps on a plane, and flat elements that become as wide."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.models.refined.spacing import measure_spacing, widen
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
