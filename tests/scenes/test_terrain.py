# SPDX-License-Identifier: Apache-2.0
"""Terrain: its heights are those of its mesh, its slopes those of its triangles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.scenes.mesh import Mesh
from hedgerow.scenes.terrain import Terrain, fractal_noise
from hedgerow.world import Scene

ROUGH = Terrain.from_noise(7, (12, 8), relief_m=3, wavelength_m=4, spacing_m=0.7)


def height_by_triangles(mesh, x, y):
    """Slow: the height of the triangle above (x, y), by barycentric coordinates of all of them."""
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    u = ((x - a[:, 0]) * (c[:, 1] - a[:, 1]) - (y - a[:, 1]) * (c[:, 0] - a[:, 0])) / area
    v = ((b[:, 0] - a[:, 0]) * (y - a[:, 1]) - (b[:, 1] - a[:, 1]) * (x - a[:, 0])) / area
    inside = (u >= -1e-12) & (v >= -1e-12) & (u + v <= 1 + 1e-12)
    return (a[:, 2] + u * (b[:, 2] - a[:, 2]) + v * (c[:, 2] - a[:, 2]))[inside]


@given(st.floats(-6, 6), st.floats(-4, 4))
@settings(max_examples=200, deadline=None)
def test_the_height_is_that_of_the_triangle_there(x, y):
    heights = height_by_triangles(ROUGH.mesh(), x, y)
    assert len(heights) >= 1
    # Several on an edge; all agree up to rounding in float64 of numbers of size 10.
    np.testing.assert_allclose(heights, ROUGH.height_m(x, y), atol=1e-11)


def test_beams_from_above_hit_the_ground_at_its_height():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-6, 6, 5000), rng.uniform(-4, 4, 5000)
    scene = Scene()
    scene.add_mesh(*ROUGH.mesh())
    down = Beams.from_arrays(
        origins=np.stack([x, y, np.full(5000, 10.0)], axis=1), directions=np.tile([0, 0, -1], (5000, 1))
    )
    found = 10 - scene.fire(down).range_m
    np.testing.assert_allclose(found, ROUGH.height_m(x, y), atol=1e-5)  # float32 steps at 10 m: 1e-6


def test_grid_points_have_the_height_of_the_function():
    ground = Terrain.from_function(lambda x, y: np.sin(x) + y**2, (5, 4), spacing_m=0.5, middle_m=(100, -3))
    x, y = np.meshgrid(ground.x_m, ground.y_m)
    np.testing.assert_allclose(ground.height_m(x, y), np.sin(x) + y**2, atol=1e-12)
    assert ground.bounds_m == (97.5, -5, 102.5, -1)
    assert ground.spacing_m == (0.5, 0.5)


def test_a_plane_has_its_slope_everywhere():
    plane = Terrain.from_function(lambda x, y: 0.3 * x - 0.4 * y, (10, 10), spacing_m=1)
    x, y = np.random.default_rng(1).uniform(-5, 5, (2, 100))
    np.testing.assert_allclose(plane.slope_rad(x, y), np.arctan(0.5), atol=1e-12)
    np.testing.assert_allclose(plane.gradient(x, y), np.broadcast_to([[0.3], [-0.4]], (2, 100)), atol=1e-12)


def test_flat_ground_is_two_triangles():
    ground = Terrain.flat((30, 20), height_m=1.5)
    assert len(ground.mesh().triangles) == 2
    assert ground.height_m([-15, 3, 15], [-10, 2, 10]).tolist() == [1.5] * 3
    assert [(part.material, part.label) for part in ground.parts()] == [("soil", "ground")]


def test_a_spacing_that_does_not_fit_is_made_narrower():
    ground = Terrain.flat((10, 1))
    assert ground.resampled(3.0).spacing_m == (2.5, 1.0)


def test_resampled_ground_keeps_the_heights_at_the_old_grid_points():
    fine = ROUGH.resampled(ROUGH.spacing_m[0] / 2)
    x, y = np.meshgrid(ROUGH.x_m[1:-1], ROUGH.y_m[1:-1])
    assert fine.spacing_m[0] == pytest.approx(ROUGH.spacing_m[0] / 2)
    np.testing.assert_allclose(fine.z_m[2:-2:2, 2:-2:2], ROUGH.height_m(x, y), atol=1e-9)


def test_a_draped_mesh_lies_on_the_ground():
    x, y = np.random.default_rng(2).uniform(-4, 4, (2, 30))
    mesh = ROUGH.draped(Mesh(np.stack([x, y, np.linspace(0, 1, 30)], axis=1), np.arange(30).reshape(10, 3)))
    np.testing.assert_allclose(mesh.vertices_m[:, 2] - ROUGH.height_m(x, y), np.linspace(0, 1, 30), atol=1e-12)


def test_moved_ground_has_its_heights_elsewhere():
    moved = ROUGH.moved((1000, -500, 7))
    assert moved.height_m(1001, -499) == pytest.approx(ROUGH.height_m(1, 1) + 7)


def test_noise_has_the_relief_asked_for_and_depends_on_the_seed_alone():
    again = Terrain.from_noise(7, (12, 8), relief_m=3, wavelength_m=4, spacing_m=0.7)
    other = Terrain.from_noise(8, (12, 8), relief_m=3, wavelength_m=4, spacing_m=0.7)
    assert np.ptp(ROUGH.z_m) == pytest.approx(3)
    np.testing.assert_array_equal(again.z_m, ROUGH.z_m)
    assert np.abs(other.z_m - ROUGH.z_m).max() > 0.5


def test_one_octave_of_noise_is_zero_on_its_lattice_and_smooth_between():
    lattice_m = np.arange(-100.0, 101.0, 5.0)
    x, y = (each.ravel() for each in np.meshgrid(lattice_m, lattice_m))
    np.testing.assert_allclose(fractal_noise(x, y, 3, wavelength_m=5, octaves=1), 0, atol=1e-12)
    x = np.linspace(-50, 50, 20001)
    values = fractal_noise(x, np.full_like(x, 1.7), 3, wavelength_m=5, octaves=1)
    assert values.std() > 0.1
    # The fade's slope is at most 1.875, a corner's pull at most 1: |d/dx| < 5 per wavelength; steps are 5 mm of 5 m.
    assert np.abs(np.diff(values)).max() < 5 * 0.005 / 5


def test_noise_varies_over_the_wavelength_asked_for():
    x = np.linspace(0, 4000, 40001)
    for wavelength_m in (5.0, 20.0):
        values = fractal_noise(x, np.full_like(x, 0.37 * wavelength_m), 11, wavelength_m=wavelength_m, octaves=1)
        crossings = np.count_nonzero(np.diff(np.sign(values)))
        assert 0.5 < crossings * wavelength_m / 4000 < 2  # about one per lattice cell


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Terrain.flat((0, 5)), "size_m: the extent in x"),
        (lambda: Terrain.flat((5, np.nan)), "size_m: the extent in y"),
        (lambda: Terrain.from_function(lambda x, y: x, (5, 5), spacing_m=0), "spacing_m"),
        (lambda: Terrain.from_function(lambda x, y: x, (1e6, 1e6), spacing_m=0.01), "spacing_m"),
        (lambda: Terrain.from_function(lambda x, y: np.log(x), (5, 5), spacing_m=1), "z_m"),
        (lambda: Terrain.from_noise(-1, (5, 5)), "seed"),
        (lambda: Terrain.from_noise(1, (5, 5), relief_m=-1), "relief_m"),
        (lambda: Terrain.from_noise(1, (5, 5), wavelength_m=0), "wavelength_m"),
        (lambda: Terrain(np.array([0.0, 1, 3]), np.array([0.0, 1]), np.zeros((2, 3))), "x_m: is not ascending"),
        (lambda: Terrain(np.array([0.0, 1]), np.array([0.0, 1]), np.zeros((3, 2))), "z_m"),
        (lambda: ROUGH.height_m([0, 6.1], [0, 0]), r"\(6.1, 0\) lies outside the terrain"),
        (lambda: ROUGH.height_m(np.nan, 0), "outside"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_ground_is_refused_with_the_name_of_what_is_wrong(make, words):
    with pytest.raises(InputError, match=words):
        make()
