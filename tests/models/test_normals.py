# SPDX-License-Identifier: Apache-2.0
"""Normals and local shape: closed forms, a NumPy oracle, orientation, threads and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow import _core
from hedgerow.errors import InputError
from hedgerow.models.steps.normals import estimate_normals, local_spectra

UP = np.array([0.0, 0.0, 1.0])


def toward(position, sensor):
    ray = np.asarray(sensor) - position
    return (ray / np.linalg.norm(ray, axis=1, keepdims=True)).astype(np.float32)


def patch(rng, n=4000, size=2.0, sigma=0.0):
    return np.c_[rng.uniform(-size, size, (n, 2)), sigma * rng.normal(size=n)]


def angle_deg(normal, truth):
    return np.degrees(np.arccos(np.clip(np.abs(normal @ truth), 0, 1)))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_normals_of_any_plane_are_its_own_and_face_the_sensor(seed):
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    position = patch(rng, n=1500, size=1.0) @ turn.T + rng.uniform(-50, 50, 3)
    truth = turn[:, 2]
    sensor = position.mean(axis=0) + truth * 5 + turn[:, 0] * rng.uniform(-5, 5)
    normal = estimate_normals(position, toward(position, sensor))
    assert_allclose(normal @ truth, 1, atol=2e-6)  # float32 positions within a cell: 1e-7 m over 0.4 m
    assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-6)


def test_normals_face_the_sensor_that_saw_the_point_from_either_side():
    rng = np.random.default_rng(1)
    position = patch(rng)
    side = np.where(rng.random(len(position)) < 0.5, 1.0, -1.0)
    sensor = np.c_[np.zeros((len(position), 2)), 5 * side]
    normal = estimate_normals(position, toward(position, sensor))
    assert_array_equal(np.sign(normal[:, 2]), side)


def test_range_noise_tilts_normals_as_little_as_averaging_allows():
    rng = np.random.default_rng(2)
    position = patch(rng, n=20_000, sigma=0.02)
    normal = estimate_normals(position, toward(position, 5 * UP))
    inner = (np.abs(position[:, :2]) < 1.5).all(axis=1)
    # The kernel (1 - r²/h²)⁴ counts 628 points in the disc as 226, over a spread of h / sqrt(12): so each of the two
    # tilts has a standard deviation of 0.02 / 0.115 / sqrt(226) rad. Tukey's weights cost 2.5 % of that, chance 10 %.
    expected_deg = np.degrees(np.sqrt(2) * 0.02 / 0.115 / np.sqrt(226))
    assert np.sqrt((angle_deg(normal[inner], UP) ** 2).mean()) < 1.15 * expected_deg


def test_a_post_on_the_ground_does_not_tilt_the_ground_beside_it():
    rng = np.random.default_rng(3)
    ground = patch(rng, n=8000, sigma=0.003)
    post = np.c_[rng.normal(scale=0.02, size=(60, 2)), rng.uniform(0.05, 0.4, 60)]
    position = np.concatenate([ground, post])
    normal = estimate_normals(position, toward(position, [3, 0, 3]))[: len(ground)]
    beside = np.linalg.norm(ground[:, :2], axis=1)
    ring = (beside > 0.15) & (beside < 0.35)
    plain = [
        np.linalg.eigh(np.cov(position[np.linalg.norm(position - p, axis=1) < 0.4].T))[1][:, 0] for p in ground[ring]
    ]
    assert np.median(angle_deg(np.array(plain), UP)) > 5  # what a fit without reweighting makes of it
    assert angle_deg(normal[ring], UP).max() < 2


def test_sphere_normals_point_out_from_its_centre():
    rng = np.random.default_rng(4)
    out = rng.normal(size=(30_000, 3))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    centre = np.array([500_000.0, 5_400_000.0, 300.0])
    normal = estimate_normals(centre + 2 * out, out.astype(np.float32))
    assert angle_deg(normal, UP).shape == (30_000,)
    # Points share the fit of their voxel, whose middle is up to 0.043 m away: 1.2 degrees on this sphere.
    assert np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", normal, out), -1, 1))).max() < 2.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_points_get_a_normal_that_faces_the_sensor(n):
    position = np.array([[0.0, 0, 0], [0.1, 0, 0], [0.2, 0, 0]])[:n]
    to_sensor = toward(position, [0.1, 3, 4])
    normal = estimate_normals(position, to_sensor)
    assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-6)
    assert (np.einsum("ij,ij->i", normal, to_sensor) > 0).all()
    if n > 1:
        assert_allclose(normal[:, 0], 0, atol=1e-4)  # square to the line


def test_eigenvalues_are_those_of_numpy():
    rng = np.random.default_rng(5)
    position = rng.normal(size=(600, 3)) * [1.0, 0.6, 0.2] + [4e5, 5e6, 100]
    value, count = local_spectra(position, 0.7)
    for i in range(0, 600, 7):
        near = position[np.linalg.norm(position - position[i], axis=1) <= 0.7]
        assert count[i] == len(near)
        expected = np.linalg.eigvalsh(np.cov((near - position[i]).T, bias=True)) if len(near) > 1 else np.zeros(3)
        assert_allclose(value[i], expected, atol=2e-6)  # float32 sums of squares below 0.5


def test_normals_and_eigenvalues_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(6)
    position = patch(rng, n=30_000, size=5, sigma=0.02)
    to_sensor = toward(position, 5 * UP)
    one = estimate_normals(position, to_sensor, threads=1)
    spread, _ = local_spectra(position, 0.3, threads=1)
    for threads in (2, 8):
        assert_array_equal(estimate_normals(position, to_sensor, threads=threads), one)
        assert_array_equal(local_spectra(position, 0.3, threads=threads)[0], spread)


def test_normals_do_not_depend_on_the_order_of_the_points():
    rng = np.random.default_rng(7)
    position = patch(rng, sigma=0.02)
    to_sensor = toward(position, 5 * UP)
    order = rng.permutation(len(position))
    assert_array_equal(
        estimate_normals(position[order], to_sensor[order]), estimate_normals(position, to_sensor)[order]
    )


def test_no_points_have_no_normals():
    assert estimate_normals(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.float32)).shape == (0, 3)


def test_wrong_shapes_and_values_are_refused_by_name():
    good, to_sensor = np.zeros((2, 3)), np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(InputError, match="toward"):
        estimate_normals(good, to_sensor[:1])
    with pytest.raises(InputError, match="position_m"):
        estimate_normals(np.full((2, 3), np.nan), to_sensor)
    with pytest.raises(InputError, match="span"):
        estimate_normals(np.array([[0.0, 0, 0], [1e7, 0, 0]]), to_sensor)
    with pytest.raises(TypeError, match="weight"):
        _core.fit_normals(good, np.ones(2), to_sensor, _core.PlaneFit(kernel_m=0.4, min_scale_m=0.005, rounds=3), 0)
