# SPDX-License-Identifier: Apache-2.0
"""The two constants of the range noise come back, on a known surface and on one learned from the same recording."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.models.steps.surface_noise import Residuals, fit_noise, is_flat
from hedgerow.models.surface import fit_surface
from hedgerow.parallel.log_parts import cut_log
from hedgerow.scenes import mesh
from hedgerow.world.elements import Triangles

# Ground, seen at 65 degrees of incidence and more, and a wall 6 m to the left, seen face on.
GROUND = np.array([[[-200.0, -200, 0], [200, -200, 0], [0, 300, 0]], [[-200, 6, 0], [200, 6, 0], [0, 6, 90]]])


def recorded(noise, seed=3, offset=(0.0, 0.0, 0.0)):
    scene = hr.Scene(offset)
    scene.add_mesh((GROUND + offset).reshape(-1, 3), [[0, 1, 2], [3, 4, 5]], noise=noise)
    sensor = hr.Sensor.named("hdl-64e")
    beams = sensor.sweep(hr.Pose.from_xyz_rpy(np.add(offset, (0, 0, 2))))
    return hr.SceneWorld(scene).fire(beams, seed, sensor=sensor)


@pytest.mark.parametrize(("sigma0_m", "sigma_a_m"), [(0.015, 0.0014), (0.03, 0.0003), (0.005, 0.004)])
def test_both_constants_come_back(sigma0_m, sigma_a_m):
    log = recorded(hr.SurfaceNoise(sigma0_m, sigma_a_m))
    found = fit_noise(cut_log(log), Triangles.plain(GROUND))
    # A spread by quartiles of n residuals is known to 0.82 / sqrt(n): of 90,000 spread over 40 bins about 2 % each;
    # four standard errors of the fit stay within 5 % and 0.2 mm.
    assert found.sigma0_m == pytest.approx(sigma0_m, rel=0.05)
    assert found.sigma_a_m == pytest.approx(sigma_a_m, rel=0.05, abs=0.0002)


def test_vegetation_on_the_surface_hardly_disturbs_the_fit():
    log = recorded(hr.SurfaceNoise(0.015, 0.0014))
    rng = np.random.default_rng(0)
    grass = rng.random(len(log)) < 0.1
    shorter = np.where(grass, log.returns.range_m - rng.exponential(0.2, len(log)), log.returns.range_m)
    shorter = np.where(shorter > 1, shorter, np.inf).astype(np.float32)
    mixed = hr.Log.from_arrays(
        origins=log.beams.origin_m, directions=log.beams.direction, ranges=shorter, max_range_m=log.max_range_m
    )
    found = fit_noise(cut_log(mixed), Triangles.plain(GROUND))
    assert found.sigma0_m == pytest.approx(0.015, rel=0.25)


def test_residuals_add_up_over_partitions():
    log = recorded(hr.SurfaceNoise(0.015, 0.0014))
    whole = fit_noise(cut_log(log), Triangles.plain(GROUND))
    cut = fit_noise(lambda: iter([log[50_000:], log[:50_000]]), Triangles.plain(GROUND))
    assert cut.sigma0_m == pytest.approx(whole.sigma0_m, rel=1e-9)
    assert cut.sigma_a_m == pytest.approx(whole.sigma_a_m, rel=1e-9)
    one, other = Residuals(), Residuals()
    one.add(np.array([0.1, 3.0]), np.array([0.01, -0.02]))
    other.merge(one)
    np.testing.assert_array_equal(one.counts, other.counts)


def test_utm_coordinates_do_not_change_the_answer():
    offset = np.array([448_262.0, 5_412_876.0, 312.0])
    here = fit_noise(cut_log(recorded(hr.SurfaceNoise(0.015, 0.0014))), Triangles.plain(GROUND))
    log = recorded(hr.SurfaceNoise(0.015, 0.0014), offset=offset)
    there = fit_noise(cut_log(log), Triangles.plain(GROUND + offset))
    assert there.sigma0_m == pytest.approx(here.sigma0_m, rel=0.01)


def test_too_few_residuals_mean_exact_ranges():
    log = recorded(hr.SurfaceNoise(0.015, 0.0014))[:50]
    assert fit_noise(cut_log(log), Triangles.plain(GROUND)) == hr.SurfaceNoise()


def street_log(noise):
    """What lies within 25 m of four places 2 m apart: level ground, a wall, and a row of steps full of edges."""
    scene = hr.Scene()
    scene.add_mesh(GROUND.reshape(-1, 3), [[0, 1, 2], [3, 4, 5]], noise=noise)
    for x in np.arange(-12, 12, 0.9):
        scene.add_mesh(*mesh.box((x, -4, 0), (x + 0.3, -1.5, 0.25)), noise=noise)
    sensor = hr.Sensor.named("hdl-64e")
    sweeps = []
    for number in range(4):
        beams = sensor.sweep(hr.Pose.from_xyz_rpy((2.0 * number - 3, 1, 2)))
        sweep = hr.SceneWorld(scene).fire(beams, number, sensor=sensor)
        sweeps.append(sweep[sweep.returns.first_m < 25])
    return hr.Log.concatenate(sweeps)


@pytest.mark.parametrize(("sigma0_m", "sigma_a_m"), [(0.015, 0.0014), (0.03, 0.0005), (0.008, 0.004)])
def test_both_constants_come_back_from_a_learned_mesh(sigma0_m, sigma_a_m):
    log = street_log(hr.SurfaceNoise(sigma0_m, sigma_a_m))
    triangles = fit_surface(cut_log(log))
    found = fit_noise(cut_log(log), triangles)
    everywhere = fit_noise(cut_log(log), triangles, max_bend_rad=np.pi)
    # The mesh follows some of the noise and adds errors of its own; measured: 1 % and up to 10 %.
    assert found.sigma0_m == pytest.approx(sigma0_m, rel=0.03)
    assert found.sigma_a_m == pytest.approx(sigma_a_m, rel=0.15)
    assert everywhere.sigma0_m > 1.05 * sigma0_m  # edges would spoil it


def test_triangles_are_flat_where_all_that_meet_are_level():
    vertices, triangles = mesh.box((0, 0, 0), (1, 1, 1))
    box = Triangles.plain(np.asarray(vertices)[np.asarray(triangles)])
    assert not is_flat(box, np.radians(10)).any()
    assert is_flat(box, np.pi).all()
    x = np.arange(5.0)
    vertices, triangles = mesh.height_field(x, x, np.maximum(x, 2)[None].repeat(5, axis=0))
    bent = np.asarray(vertices)[np.asarray(triangles)]
    far = np.abs(bent[..., 0] - 2).min(axis=1) > 0.5  # the ground bends along x = 2
    np.testing.assert_array_equal(is_flat(Triangles.plain(bent), np.radians(10)), far)
    assert len(is_flat(Triangles.plain(np.zeros((0, 3, 3))), 0.1)) == 0
