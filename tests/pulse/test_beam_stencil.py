# SPDX-License-Identifier: Apache-2.0
"""Stencils stand for the whole spot."""

import numpy as np
import pytest
from beam_reference import ahead, light_cone

from hedgerow import Scene
from hedgerow.errors import InputError
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.stencil import make_stencil
from hedgerow.world.pulsed import PhysicsWorld

EVERY_N = range(1, 82)
SHAPES = ("circular", "rectangular", "elliptical")
FLOAT32 = 1e-6  # points are stored in float32


def inside(shape, points):
    return np.abs(points).max(axis=1) <= 1 if shape == "rectangular" else np.hypot(*points.T) <= 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", EVERY_N)
def test_a_fixed_stencil_has_centre_and_size_of_the_uniform_spot(shape, n):
    stencil = make_stencil(shape, n)
    points = stencil.points.astype(float)
    assert points.shape == (n, 2)
    assert inside(shape, points).all()
    assert stencil.share.sum() == pytest.approx(1, abs=FLOAT32)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=FLOAT32)
    if n > 2:  # fewer cannot have a size in both directions
        moment = 1 / 3 if shape == "rectangular" else 1 / 4
        np.testing.assert_allclose(points.T @ points / n, moment * np.eye(2), atol=FLOAT32)


def test_nine_sub_rays_are_a_centre_and_a_ring_or_three_rows_of_three():
    radius = np.hypot(*make_stencil("circular", 9).points.T)
    np.testing.assert_allclose(np.sort(radius), [0] + [0.75] * 8, atol=FLOAT32)
    rows = {tuple(np.round(point, 5) + 0.0) for point in make_stencil("rectangular", 9).points.astype(float)}
    ticks = (-0.70711, 0.0, 0.70711)
    assert rows == {(a, b) for a in ticks for b in ticks}


def test_the_papers_nine_lie_on_its_circle():
    points = make_stencil("circular", 9, "paper").points
    np.testing.assert_allclose(np.sort(np.hypot(*points.T)), [0] + [np.sqrt(2) / 4] * 8, atol=FLOAT32)
    # That is why it is not the default: the circle of Goodin 2018 has 2/9 of the second moments of the spot.
    assert (points**2).sum() / 9 == pytest.approx(2 / 9 * 0.5, abs=FLOAT32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 9, 16, 25, 40, 81])
def test_cells_cover_the_spot_once_and_are_equally_large(shape, n):
    cells = make_stencil(shape, n, "stratified").cells.astype(float)
    points = np.random.default_rng(n).uniform(-1, 1, (4000, 2))
    points = points[inside(shape, points)]
    if shape == "rectangular":
        a, b = points.T
        area = (cells[:, 1] - cells[:, 0]) * (cells[:, 3] - cells[:, 2]) / 4
        holds = (b[:, None] >= cells[:, 2]) & (b[:, None] < cells[:, 3])
    else:
        a = (points**2).sum(axis=1)
        turns = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi)
        area = (cells[:, 1] - cells[:, 0]) * (cells[:, 3] - cells[:, 2])
        holds = (turns[:, None] - cells[:, 2]) % 1 < cells[:, 3] - cells[:, 2]
    holds &= (a[:, None] >= cells[:, 0]) & (a[:, None] < cells[:, 1])
    np.testing.assert_allclose(area, 1 / n, rtol=1e-5)
    # A point on a border, to within float32, may be in none or in two.
    assert np.mean(holds.sum(axis=1) == 1) > 0.999


@pytest.mark.parametrize("spot", SHAPES)
def test_drawn_sub_rays_fill_the_spot_evenly_up_to_the_rim(spot):
    # The wall is a grid of narrow strips, so that the element tells where a sub-ray went.
    edges = np.linspace(-0.1, 0.1, 201)
    beam = light_cone(spot, 20.0, 20.0 if spot == "circular" else 10.0)
    n, found = 2000, []
    for turned in (False, True):
        vertices = np.array([[10.0, e, z] for e in edges for z in (-1.0, 1.0)])[:, [0, 2, 1] if turned else [0, 1, 2]]
        first = 2 * np.arange(len(edges) - 1)
        triangles = np.stack([[first, first + 1, first + 2], [first + 1, first + 3, first + 2]]).transpose(2, 0, 1)
        scene = Scene()
        scene.add_mesh(vertices, triangles.reshape(-1, 3))
        world = PhysicsWorld(scene, BeamSettings(beam=beam, sampling="stratified"))
        traced = world.fire_detailed(ahead(n), seed=3, sub_rays=True).sub_rays
        assert traced is not None
        strip = traced.element // 2
        found.append(((edges[strip] + edges[strip + 1]) / 2).ravel())
    half = 10 * np.tan([beam.divergence_horizontal_mrad * 5e-4, beam.divergence_vertical_mrad * 5e-4])
    moment = 1 / 3 if spot == "rectangular" else 1 / 4
    for values, size_m in zip(found, half, strict=True):
        scaled = values / size_m
        # 18,000 stratified draws: the error of both is below 1 / sqrt(18000) = 0.0075; strips are 1 mm of 50.
        assert np.mean(scaled) == pytest.approx(0, abs=0.02)
        assert np.mean(scaled**2) == pytest.approx(moment, abs=0.02)
        assert 0.97 < np.abs(scaled).max() < 1.02


def test_stencils_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="sub_rays: expected 1 to 81, found 82"):
        make_stencil("circular", 82)
    with pytest.raises(InputError, match="sampling: Goodin 2018 gives numbers for 9 sub-rays of a round spot"):
        make_stencil("rectangular", 9, "paper")
