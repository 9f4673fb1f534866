# SPDX-License-Identifier: Apache-2.0
"""Shapes have the areas and extents that they should."""

import numpy as np
import pytest

from hedgerow.scenes import mesh as shapes


def area(mesh):
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2


def extent(mesh):
    return mesh.vertices_m.min(axis=0), mesh.vertices_m.max(axis=0)


def test_a_box_has_the_area_of_its_six_faces():
    mesh = shapes.box((0, 0, 0), (1, 2, 3))
    assert area(mesh) == pytest.approx(2 * (2 + 3 + 6))
    np.testing.assert_array_equal(extent(mesh), [(0, 0, 0), (1, 2, 3)])


def test_a_cylinder_has_the_area_of_its_faces():
    mesh = shapes.cylinder((1, 2, 0), 3.0, 0.5, sides=64)
    # 64 flat faces instead of a circle: the perimeter is 64 chords.
    assert area(mesh) == pytest.approx(3.0 * 64 * 2 * 0.5 * np.sin(np.pi / 64))


def test_a_flat_height_field_covers_its_rectangle():
    x, y = np.linspace(0, 4, 9), np.linspace(0, 3, 4)
    mesh = shapes.height_field(x, y, np.full((4, 9), 2.0))
    assert area(mesh) == pytest.approx(12)
    assert (mesh.vertices_m[:, 2] == 2).all()


def test_leaves_have_half_the_area_of_their_bounding_rectangles():
    rng = np.random.default_rng(0)
    mesh = shapes.leaves(np.zeros((5000, 3)), 0.1, rng)
    # Rhombus of diagonals l and l/2: l²/4; l = 0.1 u with u uniform on 0.6 to 1.4, E[u²] = 1.0533. 5 sigma of the mean.
    assert area(mesh) / 5000 == pytest.approx(0.01 / 4 * (1 + 0.64 / 12), rel=5 * 0.46 / np.sqrt(5000))


def test_blades_stand_on_their_feet_and_do_not_rise_above_their_height():
    rng = np.random.default_rng(0)
    feet = rng.uniform(0, 1, (100, 3)) * [1, 1, 0]
    height = rng.uniform(0.2, 0.4, 100)
    mesh = shapes.blades(feet, height, 0.01, rng)
    blades = mesh.vertices_m.reshape(100, -1, 3)
    np.testing.assert_allclose(blades[:, :2].mean(axis=1), feet, atol=1e-12)
    assert (blades[:, :, 2].max(axis=1) <= height).all()
    assert (blades[:, :, 2].max(axis=1) > 0.7 * height).all()


def test_joined_meshes_keep_their_triangles():
    one, two = shapes.box((0, 0, 0), (1, 1, 1)), shapes.rectangle((5, 0, 0), (1, 0, 0), (0, 2, 0))
    both = shapes.join_meshes(one, two.moved((0, 0, 7)))
    assert area(both) == pytest.approx(8)
    assert both.vertices_m[both.triangles[-1], 2].tolist() == [7, 7, 7]
