# SPDX-License-Identifier: Apache-2.0
"""The voxel model: a known world comes back, and bad logs are refused."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError
from volume_clouds import REFUSALS, chunks_of, log_of_points, random_log

from hedgerow import InputError, learn
from hedgerow.errors import HedgerowWarning
from hedgerow.log import Beams, Log
from hedgerow.models.voxel import VoxelParameters, fit_voxels
from hedgerow.world import Gaussians, Scene, SceneWorld

UTM_M = np.array([300_000.0, 5_400_000.0, 300.0])


def known_world(rng, n):
    """Gaussians in the middle of voxels of 0.3 m, one voxel in four, small enough not to reach the next voxel."""
    mean_m = np.c_[np.full(n, 20.25), 1.2 * np.arange(n) + 0.15, np.full(n, 1.05)]
    axes = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    sigma = rng.uniform(0.005, 0.025, (n, 3))
    return mean_m, np.einsum("nij,nj,nkj->nik", axes, sigma**2, axes)


def aimed_log(rng, mean_m, covariance_m2, n_each):
    """A log of beams through points drawn from each Gaussian: then what comes back is distributed as the Gaussian."""
    target = np.concatenate([rng.multivariate_normal(m, c, n_each) for m, c in zip(mean_m, covariance_m2, strict=True)])
    direction = np.c_[np.ones(len(target)), rng.uniform(-0.1, 0.1, (len(target), 2))]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    scene = Scene(mean_m.mean(axis=0).round())
    scene.add_gaussians(mean_m, covariance_m2, tau=6.0, intensity=np.linspace(0.1, 0.9, len(mean_m)), label=3)
    beams = Beams.from_arrays(origins=target - 5 * direction, directions=direction)
    return SceneWorld(scene, max_range_m=20.0).fire(beams, seed=11)


@pytest.mark.parametrize("farthest_m", [np.zeros(3), UTM_M], ids=["local", "utm"])
def test_a_known_world_comes_back_within_statistical_error(farthest_m):
    rng = np.random.default_rng(7)
    n, n_each = 27, 4000
    mean_m, covariance_m2 = known_world(rng, n)
    log = aimed_log(rng, mean_m + farthest_m, covariance_m2, n_each)
    found = fit_voxels(chunks_of(log[::2], log[1::2]), VoxelParameters())
    assert len(found) == n
    order = np.argsort(found.mean_m[:, 1])
    # Standard errors of a mean and of a covariance from n_each points; 5 sigma: false alarm 243 * 6e-7 = 1.4e-4.
    variance = np.einsum("nii->ni", covariance_m2)
    mean_error = (found.mean_m[order] - mean_m - farthest_m) / np.sqrt(variance / n_each)
    assert np.abs(mean_error).max() < 5
    spread = np.sqrt((covariance_m2**2 + variance[:, :, None] * variance[:, None, :]) / n_each)
    assert np.abs((found.covariance_m2[order] - covariance_m2) / spread).max() < 5
    assert_allclose(found.intensity[order], np.linspace(0.1, 0.9, n), rtol=1e-6)
    assert (found.label.most_common() == 3).all()


def test_voxels_with_too_few_points_are_left_out():
    points = np.repeat([[0.1, 0.1, 0.1], [0.4, 0.1, 0.1]], [4, 5], axis=0)
    found = fit_voxels(chunks_of(log_of_points(points)), VoxelParameters())
    assert_allclose(found.mean_m, [[0.4, 0.1, 0.1]], atol=1e-6)
    assert len(fit_voxels(chunks_of(log_of_points(points)), VoxelParameters(min_points=4))) == 2


def test_every_return_of_a_pulse_is_a_point():
    log = Log.from_arrays(
        origins=(0, 0, 0), directions=[[1.0, 0, 0]] * 3, ranges=[[1.05, 2.05], [1.15, 2.05], [1.1, np.inf]]
    )
    found = fit_voxels(chunks_of(log), VoxelParameters(min_points=1))
    assert_allclose(found.mean_m[:, 0], [1.1, 2.05], atol=1e-6)


def test_settings_go_into_the_world_and_elements_are_solid():
    log = random_log(np.random.default_rng(0), 500)
    found = fit_voxels(chunks_of(log), VoxelParameters(tau=2.0, min_sigma_m=0.01))
    assert (found.tau, found.min_sigma_m, found.law) == (2.0, 0.01, "permeability")
    assert_array_equal(found.stop, np.zeros(len(found)))


def test_progress_counts_beams():
    log = random_log(np.random.default_rng(0), 500)
    told = []
    fit_voxels(chunks_of(log[:200], log[200:]), VoxelParameters(), progress=told.append)
    assert told == [200, 500]


@pytest.mark.parametrize("case", REFUSALS)
def test_a_log_without_anything_to_learn_is_refused(case):
    parts, words = REFUSALS[case]
    with pytest.raises(InputError, match=words):
        fit_voxels(parts, VoxelParameters())


def test_one_beam_is_too_few_for_a_voxel_and_the_error_says_what_to_change():
    one = log_of_points(np.zeros((1, 3)))
    with pytest.raises(
        InputError, match=r"none of 1 voxels of 0.3 m has 5 points, the fullest has 1; take more sweeps"
    ):
        fit_voxels(chunks_of(one), VoxelParameters())
    assert len(fit_voxels(chunks_of(one), VoxelParameters(min_points=1))) == 1


@pytest.mark.parametrize("wrong", [{"side": 1.0}, {"side_m": 0.0}, {"min_points": 0}, {"tau": np.nan}])
def test_unknown_and_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        VoxelParameters(**wrong)


def test_counting_through_the_voxel_leaves_out_beams_that_pass_beside_it():
    rng = np.random.default_rng(3)
    # A blob in the corner of a voxel, so that its ellipsoid reaches out of it; half of the beams that pass it go
    # through the voxel, half beside it.
    points_m = rng.uniform(0.2, 0.299, (400, 3)) + np.array([5.1, 0.0, 0.0])
    y = np.where(np.arange(400) % 2 == 0, 0.25, 0.31)
    origin_m = np.concatenate([np.c_[np.zeros(400), y, np.full(400, 0.25)], points_m - np.array([5, 0, 0])])
    range_m = np.repeat([np.inf, 5.0], 400)
    log = Log.from_arrays(origins=origin_m, directions=[[1.0, 0, 0]] * 800, ranges=range_m, max_range_m=50.0)
    loose, strict = (learn(log, "voxel", through_voxel=through).tables["gaussians"] for through in (False, True))
    assert isinstance(loose, Gaussians) and isinstance(strict, Gaussians)
    assert len(loose) == len(strict) == 1
    assert_allclose([loose.stop[0], strict.stop[0]], [400 / 800, 200 / 600], atol=0.01)


def test_a_world_that_leaves_out_most_returns_says_so():
    spread = np.random.default_rng(3).uniform(-20, 20, (2000, 3))
    dense = np.random.default_rng(4).normal([5.0, 5.0, 5.0], 0.02, (400, 3))
    with pytest.warns(HedgerowWarning, match=r"only 16\.\d% of 2,400 returns lie in voxels of 0\.3 m.*side_m"):
        learn(log_of_points(np.concatenate([spread, dense])), "voxel")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(log_of_points(dense), "voxel")
