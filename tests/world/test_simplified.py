# SPDX-License-Identifier: Apache-2.0
"""Meshes with shared corners: their size in closed form, and simplification that keeps the shape."""

import sys

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.world.elements import Triangles
from hedgerow.world.simplified import SharedMesh, simplify_triangles

pytest.importorskip("fast_simplification")


def sheet(n=40, bend_m=0.0, shift_m=0.0, **columns):
    """2 n² triangles over 4 by 4 m, bent up at one half; intensity and label are 0.2 and 1 on the left, 0.8 and 2."""
    place = np.linspace(-2, 2, n + 1) + shift_m
    x, y = np.meshgrid(place, place, indexing="ij")
    node = np.stack([x, y, bend_m * np.maximum(x - shift_m, 0)], axis=2)
    a, b, c, d = node[:-1, :-1], node[1:, :-1], node[1:, 1:], node[:-1, 1:]
    corners = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3, 3)
    right = corners.mean(axis=1)[:, 0] > shift_m
    looks = {"intensity": np.where(right, 0.8, 0.2).astype(np.float32), "label": np.where(right, 2, 1)}
    return Triangles.plain(corners, **(looks | columns))


def area_m2(triangles):
    a, b, c = triangles.corners_m.transpose(1, 0, 2)
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)


def test_a_sheet_has_as_many_corners_as_nodes():
    mesh = SharedMesh.of(sheet(10).corners_m)
    assert len(mesh.vertices_m) == 11**2 and len(mesh.triangles) == 200
    np.testing.assert_allclose(mesh.vertices_m[mesh.triangles], sheet(10).corners_m)
    assert mesh.n_parameters(permeable=False) == 363 and mesh.n_parameters(permeable=True) == 563
    assert mesh.n_bytes(permeable=False) == 4 * (363 + 600)


@pytest.mark.parametrize("bend_m", [0.0, 0.7])
@pytest.mark.parametrize("shift_m", [0.0, 5e6])
def test_flat_parts_lose_their_triangles_and_keep_their_shape(bend_m, shift_m):
    before = sheet(bend_m=bend_m, shift_m=shift_m)
    after = simplify_triangles(before, len(before) // 20)
    assert len(after) <= 0.06 * len(before)
    assert area_m2(after) == pytest.approx(area_m2(before), rel=0.02)  # the corners of the sheet are cut a little
    corners = after.corners_m.reshape(-1, 3)
    height = bend_m * np.maximum(corners[:, 0] - shift_m, 0)
    assert np.abs(corners[:, 2] - height).max() < 0.02
    # Facing up, as before.
    a, b, c = after.corners_m.transpose(1, 0, 2)
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()


def test_intensity_and_labels_are_those_of_the_triangles_around():
    after = simplify_triangles(sheet(bend_m=0.7), 320)
    x = after.centre_m()[:, 0]
    left, right = x < -0.7, x > 0.7
    np.testing.assert_allclose(after.intensity[left], 0.2, atol=1e-6)
    np.testing.assert_allclose(after.intensity[right], 0.8, atol=1e-6)
    assert set(after.label.most_common()[left]) == {1} and set(after.label.most_common()[right]) == {2}
    assert after.label.count.sum() >= 3200  # every triangle says what it saw


def test_nothing_is_taken_away_unless_asked_for():
    before = sheet(5)
    assert simplify_triangles(before, len(before)) is before
    assert len(simplify_triangles(before[:0], 0)) == 0


def test_permeability_is_counted_anew_on_the_simplified_mesh():
    rng = np.random.default_rng(0)
    n = 120_000
    target = np.c_[np.full(n, 8.0), rng.uniform(-3, 3, (n, 2))]
    direction = target / np.linalg.norm(target, axis=1, keepdims=True)
    range_m = np.where(rng.random(n) < 0.4, np.inf, np.linalg.norm(target, axis=1))
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=direction, ranges=range_m, max_range_m=50)
    fine, coarse = (hr.learn(log, "permeable-surface", simplify=share).tables["triangles"] for share in (0.0, 0.8))
    assert isinstance(fine, Triangles) and isinstance(coarse, Triangles)
    assert len(coarse) < 0.3 * len(fine)
    # A large triangle is met by some 1000 beams: five deviations are 0.08. Small ones at the rim are left out.
    a, b, c = coarse.corners_m.transpose(1, 0, 2)
    large = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2 > 0.3
    assert large.sum() > 5
    np.testing.assert_allclose(coarse.permeability[large], 0.4, atol=0.08)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_simplification", None)
    with pytest.raises(hr.InputError, match=r"simplify: fewer triangles need the package.*hedgerow\[simplify\]"):
        simplify_triangles(sheet(5), 25, asked_by="simplify")
