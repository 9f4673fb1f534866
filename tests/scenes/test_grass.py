# SPDX-License-Identifier: Apache-2.0
"""Grass: Poisson placed, as dense, wide and high as asked for, and as opaque as theory says."""

import numpy as np
import pytest

from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.plants.leaves import areas_m2
from hedgerow.world import Scene


def patch(name, seed=0, **values):
    [piece] = PLANTS[name].grow(seed, **values)
    assert (piece.material, piece.label) == ("grass", "grass")
    return piece.mesh


def stems(mesh, triangles_per_stem):
    n = len(mesh.triangles) // triangles_per_stem
    return mesh.vertices_m.reshape(n, -1, 3)


def test_the_number_of_stems_is_poisson_distributed():
    # 400 patches with a mean of 50: mean within 5 sigma = 5 sqrt(50/400); the variance of a Poisson sample has
    # a relative error of sqrt(2/399 + 1/(50*400)) = 0.071, 5 of it. Both false alarms below 1e-6, seeds fixed anyway.
    counts = [len(patch("cylinder-grass", seed, side_m=1.0).triangles) / 16 for seed in range(400)]
    assert np.mean(counts) == pytest.approx(50, abs=5 * np.sqrt(50 / 400))
    assert np.var(counts, ddof=1) == pytest.approx(50, rel=5 * 0.071)


def test_stems_stand_anywhere_in_the_patch_with_the_same_probability():
    feet = stems(patch("cylinder-grass", side_m=10.0, side_y_m=5.0, density_per_m2=100), 16).mean(axis=1)
    counts, _, _ = np.histogram2d(feet[:, 0], feet[:, 1], bins=(10, 5), range=((-5, 5), (-2.5, 2.5)))
    chi2 = ((counts - len(feet) / 50) ** 2 / (len(feet) / 50)).sum()
    assert counts.sum() == len(feet)
    assert chi2 < 98  # 49 degrees of freedom, exceeded once in 30,000


@pytest.mark.parametrize("sides", [3, 8, 20])
def test_a_stem_is_as_wide_as_its_diameter_on_average_over_all_directions(sides):
    mesh = patch("cylinder-grass", side_m=1.0, density_per_m2=20, sides=sides, diameter_m=0.02, seed=3)
    ring = stems(mesh, 2 * sides)[0, :sides]
    angle = np.linspace(0, 2 * np.pi, 3600, endpoint=False)
    across = ring[:, :2] @ np.stack([np.cos(angle), np.sin(angle)])
    assert np.ptp(across, axis=0).mean() == pytest.approx(0.02, rel=1e-5)  # 3600 directions


def test_beams_pass_cylinder_grass_as_beer_and_lambert_say():
    # The share that passes a depth L is exp(-lambda d L). One patch of 20 m by 5 m; each beam looks along y, so beams
    # further apart than d are independent: 400 of them, standard deviation below 0.025, 4 of it.
    scene = Scene()
    scene.add_mesh(*patch("cylinder-grass", seed=5, side_m=20.0, side_y_m=2.0, density_per_m2=50, diameter_m=0.01))
    x = np.linspace(-9.9, 9.9, 400)
    origins = np.stack([x, np.full(400, -5.0), np.full(400, 0.25)], axis=1)
    hits = scene.fire(Beams.from_arrays(origins=origins, directions=np.tile([0.0, 1, 0], (400, 1))))
    assert np.isinf(hits.range_m).mean() == pytest.approx(np.exp(-50 * 0.01 * 2), abs=0.1)


def test_all_cylinders_are_upright_and_equally_high():
    mesh = patch("cylinder-grass", side_m=2.0, height_m=0.7)
    z = mesh.vertices_m[:, 2]
    assert set(z.tolist()) == {0.0, 0.7}


def test_blades_are_as_high_as_asked_for():
    mesh = patch("blade-grass", side_m=5.0, density_per_m2=400, height_m=0.4, height_spread=0.2, segments=4)
    top = stems(mesh, 8)[..., 2].max(axis=1)
    assert top.min() >= 0.4 * 0.6 - 1e-9 and top.max() <= 0.4 * 1.4 + 1e-9
    # A normal cut off at two sigma has 0.880 of its deviation; 10,000 blades: 5 sigma of mean and deviation.
    assert top.mean() == pytest.approx(0.4, abs=5 * 0.08 / 100)
    assert top.std() == pytest.approx(0.880 * 0.08, rel=5 * 0.01)


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("bend_deg", [0.0, 60.0, 120.0])
def test_the_leaf_area_of_grass_is_the_index_times_the_ground(folded, bend_deg):
    mesh = patch("blade-grass", side_m=2.0, leaf_area_index=1.7, folded=folded, bend_deg=bend_deg)
    assert areas_m2(mesh).sum() == pytest.approx(1.7 * 4, rel=1e-6)


def test_tufts_do_not_change_the_density_and_stay_in_the_patch():
    mesh = patch("blade-grass", side_m=3.0, density_per_m2=500, tuft_blades=10, tuft_radius_m=0.02)
    feet = stems(mesh, 8)[:, :2].mean(axis=1)
    assert len(feet) == pytest.approx(4500, abs=5 * np.sqrt(4500))
    assert np.abs(feet).max() <= 1.5
    cells = np.histogram2d(feet[:, 0], feet[:, 1], bins=30)[0]
    assert cells.var() > 3 * cells.mean()  # gathered: without tufts the two are equal


def test_the_parameters_of_the_courtyard_give_its_triangles():
    # Goodin 2018 §3.5.1: nearly 2 million blades on 300 m by 300 m and 191 M triangles in all.
    mesh = patch("blade-grass", density_per_m2=22, segments=22, folded=True)
    blades = len(mesh.triangles) / 88
    assert blades == pytest.approx(2200, abs=5 * np.sqrt(2200))
    assert 900 * len(mesh.triangles) == pytest.approx(174e6, rel=0.1)


def test_an_empty_patch_has_no_triangles():
    for name in ("cylinder-grass", "blade-grass", "cereal"):
        [piece] = PLANTS[name].grow(0, density_per_m2=0.0)
        assert piece.mesh.triangles.shape == (0, 3) and piece.mesh.vertices_m.shape == (0, 3)


def test_cereals_have_the_leaf_area_and_height_asked_for():
    green, ears = PLANTS["cereal"].grow(0, side_m=2.0, leaf_area_index=2.5, height_m=1.2)
    n = (len(green.mesh.triangles)) / (5 * 6 + 4 * 10)  # a stem is 5 segments of 3 sides, a leaf 5 segments
    leaves = areas_m2(green.mesh)[round(n) * 30 :]
    assert leaves.sum() == pytest.approx(2.5 * 4, rel=1e-6)
    top = max(piece.mesh.vertices_m[:, 2].max() for piece in (green, ears))
    assert 1.2 < top <= 1.2 * 1.16 + 0.01  # two deviations of 8 %, and the thickness of the stem
    assert min(piece.mesh.vertices_m[:, 2].min() for piece in (green, ears)) > -0.01


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("cylinder-grass", {"diameter_m": 0}, "diameter_m"),
        ("cylinder-grass", {"sides": 2}, "sides"),
        (
            "cylinder-grass",
            {"diametre_m": 1},
            "diametre_m: cylinder-grass has no such parameter; did you mean diameter_m\\? it has side_m",
        ),
        ("blade-grass", {"density_per_m2": -1}, "density_per_m2"),
        ("blade-grass", {"density_per_m2": 90_000, "side_m": 100}, "density_per_m2: gives 9e\\+08 stems"),
        ("blade-grass", {"height_m": float("nan")}, "height_m"),
    ],
)
def test_impossible_grass_is_refused_with_the_name_of_the_parameter(name, values, words):
    with pytest.raises(InputError, match=words):
        PLANTS[name].grow(0, **values)
