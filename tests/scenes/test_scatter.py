# SPDX-License-Identifier: Apache-2.0
"""Scatter rules: density, limits and spacing by statistics; merged patches have the rule's density and stay inside."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial import KDTree

from hedgerow.errors import InputError
from hedgerow.scenes.file.cover import LARGEST_M, cover, grow_patch, merge_patch
from hedgerow.scenes.file.scatter import Region, draw_places, random_transforms
from hedgerow.scenes.file.schema import ScatterSpec
from hedgerow.scenes.mesh import MeshPart, box
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.plants.cereal import CerealParameters
from hedgerow.scenes.plants.grass import BladeGrassParameters
from hedgerow.scenes.terrain import Terrain
from hedgerow.scenes.trail import Polyline, polygon_distance_m

FLAT = Terrain.flat((100, 80))
HILLS = Terrain.from_noise(3, (100, 80), relief_m=8, wavelength_m=30, octaves=3)
TRAIL = Polyline([[-50, -10], [0, 10], [50, -10]], smooth=True)
TRIANGLE = [[-40.0, -30.0], [40.0, -30.0], [0.0, 30.0]]
BLADES = PLANTS["blade-grass"]


def region(terrain=FLAT, trail=None, others=(), **fields):
    fields.setdefault("density_per_m2", 1.0)
    return Region(ScatterSpec(what="x", **fields), terrain, trail, others)


def make_error(field, said):
    return InputError(field, f"{said}")


def drawn(seed=1, **fields):
    return draw_places(region(**fields), np.random.default_rng(seed), make_error)


def test_density_holds_on_the_allowed_ground_only():
    xy = drawn(density_per_m2=2.0, polygon_m=TRIANGLE)
    area = 80 * 60 / 2
    # Poisson with mean 4800; five standard deviations: a false alarm in two million seeds
    assert abs(len(xy) - 2 * area) < 5 * np.sqrt(2 * area)
    assert (polygon_distance_m(TRIANGLE, xy) >= 0).all()


def test_places_are_uniform():
    xy = drawn(density_per_m2=1.0)
    counts, _, _ = np.histogram2d(*xy.T, bins=(10, 8), range=((-50, 50), (-40, 40)))
    chi2 = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert 30 < chi2 < 160  # chi-square of 79 degrees: outside this once in a million seeds


def test_count_is_met_and_spacing_kept():
    xy = drawn(density_per_m2=None, count=400, spacing_m=2.5, box_m=[-40, -30, 40, 30])
    assert len(xy) == 400
    assert np.asarray(KDTree(xy).query(xy, k=2)[0])[:, 1].min() >= 2.5
    assert (np.abs(xy) <= [40, 30]).all()


def test_spacing_does_not_thin_a_density():
    xy = drawn(density_per_m2=0.05, spacing_m=2.0)
    assert abs(len(xy) - 400) < 5 * np.sqrt(400)  # Poisson, a false alarm in two million seeds
    assert np.asarray(KDTree(xy).query(xy, k=2)[0])[:, 1].min() >= 2.0


def test_slope_trail_and_distance_limits_are_kept():
    others = [(np.array([[0.0, 0.0], [20.0, 5.0]]), 6.0)]
    fields = {"slope_deg": [5, 20], "trail_distance_m": [4, 12], "terrain": HILLS, "trail": TRAIL, "others": others}
    xy = drawn(**fields)
    slope = np.degrees(HILLS.slope_rad(*xy.T))
    assert len(xy) > 100
    assert (slope >= 5).all() and (slope <= 20).all()
    fine = TRAIL.at(np.linspace(0, TRAIL.length_m, 20001))
    distance = np.asarray(KDTree(fine).query(xy)[0])  # points 5 mm apart: at most 1 micrometre too far here
    assert distance.min() >= 4 - 1e-6 and distance.max() <= 12 + 1e-6
    assert np.asarray(KDTree(others[0][0]).query(xy)[0]).min() >= 6


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="box_m: lies outside the terrain"):
        drawn(box_m=[200, 200, 300, 300])
    with pytest.raises(InputError, match=r"spacing_m: only \d+ of 70 fit"):
        drawn(density_per_m2=None, count=70, spacing_m=10.0, box_m=[-40, -30, 40, 30])


def test_polygon_distance_in_closed_form():
    square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    found = polygon_distance_m(square, np.array([[2, 2], [1, 2], [5, 2], [7, 8], [4, 2.0]]))
    assert_allclose(found, [2, 1, -1, -5, 0], atol=1e-12)


def test_copies_are_turned_scaled_and_tilted_within_the_rule():
    rule = ScatterSpec(what="x", count=1, scale=[0.5, 2], tilt_deg=10, yaw_deg=[0, 90], sink_m=0.1)
    places = random_transforms(np.ones((2000, 3)), rule, np.random.default_rng(0))
    scale = np.cbrt(np.linalg.det(places[:, :3, :3]))
    assert 0.5 <= scale.min() < 0.51 and 1.99 < scale.max() <= 2  # 2000 draws: as near to the ends for sure
    up = places[:, :3, 2] / scale[:, None]
    assert_allclose(np.linalg.norm(up, axis=1), 1, atol=1e-12)
    lean = np.degrees(np.arccos(np.clip(up[:, 2], -1, 1)))
    assert 9.9 < lean.max() <= 10 + 1e-6
    assert_allclose(places[:, :3, 3], [[1, 1, 0.9]] * 2000)


def covered(seed=2, density=30.0, terrain=FLAT, trail=None, others=(), variants=3, **fields):
    area = region(terrain, trail, others, density_per_m2=density, **fields)
    parameters = BladeGrassParameters(segments=1, tuft_blades=1)
    grow = lambda side, rng: grow_patch(BLADES, parameters, side, density, rng)  # noqa: E731
    return area, cover(area, density, variants, grow, np.random.default_rng(seed))


def feet(done):
    """(N, 3) feet of all plants, copies counted, found again from the meshes: every blade has 4 vertices, 2 below."""
    found = [np.zeros((0, 3))]
    for patch, places in done.placed:
        low = patch.parts[0].mesh.vertices_m.reshape(-1, 4, 3)[:, :2].mean(axis=1)
        found += [low @ place[:3, :3].T + place[:3, 3] for place in places]
    found += [part.mesh.vertices_m.reshape(-1, 4, 3)[:, :2].mean(axis=1) for part in done.cut_parts]
    return np.concatenate(found)


def test_merged_patches_have_the_rule_s_density():
    _, done = covered(density=30.0, variants=20)
    foot = feet(done)
    assert len(foot) == done.n_plants
    # 80 squares of 10 m from 20 patches of Poisson(3000) blades each, a patch used about 4 times: the total's variance
    # is at most 3000 times the sum of squared uses; five deviations, a false alarm in two million seeds.
    uses = np.array([len(places) for _, places in done.placed])
    assert uses.sum() == 80
    assert abs(len(foot) - 30 * 8000) < 5 * np.sqrt(3000 * (uses**2).sum())
    assert done.cut_parts == [] and done.largest_gap_m == 0


def test_a_border_cuts_blade_by_blade():
    _, done = covered(density=40.0, polygon_m=TRIANGLE, others=[(np.array([[0.0, 0.0]]), 3.0)], variants=20)
    foot = feet(done)
    assert (polygon_distance_m(TRIANGLE, foot[:, :2]) >= -1e-9).all()
    assert np.linalg.norm(foot[:, :2], axis=1).min() >= 3 - 1e-9
    assert done.cut_parts
    # Within a metre of the border nothing but cut patches grows, in places of 1.25 m with variants used again: their
    # number has more than Poisson's variance. 20 variants x 4 for about 300 places: 300 x (300 / 80) x 62.5.
    distance = polygon_distance_m(TRIANGLE, foot[:, :2])
    edge = (distance < 1) & (distance >= 0)
    length = 80 + 2 * np.hypot(40, 60)
    assert abs(edge.sum() - 40 * length) < 5 * np.sqrt(300 * 300 / 80 * 62.5)


def test_every_square_of_the_field_is_covered():
    _, done = covered(density=60.0, terrain=HILLS, trail=TRAIL, trail_distance_m=[2, 200], max_gap_m=0.04)
    foot = feet(done)
    counts, x, y = np.histogram2d(*foot[:, :2].T, bins=(50, 40), range=((-50, 50), (-40, 40)))
    middle = np.stack(np.meshgrid((x[1:] + x[:-1]) / 2, (y[1:] + y[:-1]) / 2, indexing="ij"), axis=-1)
    inside = TRAIL.distance_m(middle.reshape(-1, 2)).reshape(counts.shape) > 2 + np.sqrt(2)
    # Each full square of 4 m² holds Poisson(240): below 120 or above 360 not once in a billion squares.
    assert counts[inside].min() > 120 and counts[inside].max() < 360
    assert TRAIL.distance_m(foot[:, :2]).min() >= 2 - 1e-9


@pytest.mark.parametrize("max_gap_m", [0.02, 0.1])
def test_feet_stand_on_rough_ground_within_the_gap(max_gap_m):
    _, done = covered(density=5.0, terrain=HILLS, max_gap_m=max_gap_m)
    foot = feet(done)
    off = np.abs(foot[:, 2] - HILLS.height_m(*foot[:, :2].T))
    # The gap is taken where grid lines and sides of a square cross; where a side crosses the diagonal of a cell it can
    # be larger by what the cell is folded, which on these hills is below a millimetre.
    assert off.max() <= max_gap_m + 1e-3
    assert 0 < done.largest_gap_m <= max_gap_m
    assert done.placed


def test_patches_stay_off_steep_ground():
    _, done = covered(density=20.0, terrain=HILLS, slope_deg=[0, 14], max_gap_m=0.2)
    slope = np.degrees(HILLS.slope_rad(*feet(done)[:, :2].T))
    assert done.placed and done.cut_parts
    # Where a square cuts through a cell, a corner of a triangle may be missed: one blade in a thousand, not more.
    assert (slope > 14).mean() < 1e-3


def test_a_wider_gap_needs_fewer_patches():
    n = [sum(len(p) for _, p in covered(density=5.0, terrain=HILLS, max_gap_m=gap)[1].placed) for gap in (0.02, 0.3)]
    assert n[0] > 2 * n[1]


def test_patches_turn_by_quarters_and_stay_upright():
    _, done = covered(density=2.0, terrain=HILLS, max_gap_m=0.3)
    places = np.concatenate([each for _, each in done.placed])
    assert set(np.unique(np.abs(places[:, :2, :2]))) == {0.0, 1.0}
    assert_allclose(places[:, :3, 2], [[0, 0, 1]] * len(places))  # what is upright stays upright
    assert_allclose(np.linalg.det(places[:, :3, :3]), 1)
    assert len({tuple(place[0, :2]) for place in places}) == 4


def test_dense_meshes_of_the_user_s_own_are_merged_too():
    crate = (MeshPart(box((-0.1, -0.1, 0), (0.1, 0.1, 0.2)), "wood", "pole"),)
    rule = ScatterSpec(what="x", density_per_m2=3, scale=[0.5, 1])
    patch = merge_patch([crate, crate], rule, LARGEST_M, 3.0, np.random.default_rng(0))
    n = len(patch.foot_m)
    assert abs(n - 300) < 5 * np.sqrt(300)  # Poisson
    assert len(patch.parts[0].mesh.triangles) == 12 * n
    # every copy's vertices lie round its own foot: half a diagonal of the crate is 0.15 m
    vertices, owner = patch.parts[0].mesh.vertices_m, patch.plant[0]
    assert np.linalg.norm(vertices[:, :2] - patch.foot_m[owner], axis=1).max() < 0.15
    assert_allclose(vertices[:, 2].min(), 0, atol=1e-12)


def test_leaves_and_ears_go_with_their_stem():
    plant = PLANTS["cereal"]
    patch = grow_patch(plant, CerealParameters(), 2.0, 50.0, np.random.default_rng(0))
    assert abs(len(patch.foot_m) - 200) < 5 * np.sqrt(200)  # stems, not leaves; Poisson
    for part, owner in zip(patch.parts, patch.plant, strict=True):
        assert owner.min() >= 0 and owner.max() < len(patch.foot_m)
        away = np.linalg.norm(part.mesh.vertices_m[:, :2] - patch.foot_m[owner], axis=1)
        assert away.max() < 1.0  # a stem is one metre long
