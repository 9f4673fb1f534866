# SPDX-License-Identifier: Apache-2.0
"""The ground under a cloud: known ground is found again under grass and plants, and as terrain of a scene."""

import numpy as np
import pytest
from plant_clouds import ball, ground_points, log_of, shrub

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.scenes.ground_fit import GroundSettings, fit_ground, ground_of
from hedgerow.scenes.site import load_site
from hedgerow.scenes.terrain import Terrain
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.learned import LearnedWorld


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def inner(ground, margin_m=1.0):
    """Grid points away from the border, where no data lies beyond."""
    x, y = np.meshgrid(ground.x_m, ground.y_m)
    inside = (x > ground.x_m[0] + margin_m) & (x < ground.x_m[-1] - margin_m)
    return x, y, inside & (y > ground.y_m[0] + margin_m) & (y < ground.y_m[-1] - margin_m)


def errors_of(ground, true_height, margin_m=1.0):
    x, y, inside = inner(ground, margin_m)
    return (ground.z_m - true_height(x, y))[inside]


def test_a_plane_is_found_to_a_centimetre(rng):
    ground = fit_ground(ground_points(rng, slope=(0.2, -0.1)))
    error = errors_of(ground, lambda x, y: 0.2 * x - 0.1 * y)
    # 15 points of 1 cm each in a column; the layers leave ripples of some millimetres on a slope.
    assert np.abs(error).max() < 0.02
    assert ground.known.all()


def test_a_steep_slope_is_still_ground(rng):
    ground = fit_ground(ground_points(rng, slope=(0.7, 0.0)))
    assert np.abs(errors_of(ground, lambda x, y: 0.7 * x)).max() < 0.06


def test_hills_are_found_under_grass_and_shrubs(rng):
    hills = Terrain.from_noise(3, (60, 40), relief_m=5, wavelength_m=30)
    xy = rng.uniform([-30, -20], [30, 20], (150_000, 2))
    z = hills.height_m(*xy.T) + rng.normal(0, 0.012, len(xy))
    in_grass = rng.random(len(xy)) < 0.5
    z[in_grass] += rng.uniform(0, 0.5, in_grass.sum())
    under = np.hypot(xy[:, 0] % 10 - 5, xy[:, 1] % 10 - 5) < 1.5  # shrubs that hide nearly all of the ground
    raised = under & (rng.random(len(xy)) < 0.97)
    z[raised] += rng.uniform(0.2, 3, raised.sum())
    error = errors_of(fit_ground(np.column_stack([xy, z])), lambda x, y: hills.height_m(x, y))
    assert np.sqrt(np.mean(error**2)) < 0.05
    # Grass pulls up by less than a tenth of its height.
    assert abs(np.median(error)) < 0.03


def test_points_far_below_the_ground_do_not_pull_it_down(rng):
    cloud = ground_points(rng)
    low = rng.choice(len(cloud), 40, replace=False)
    cloud[low, 2] -= rng.uniform(1, 6, 40)
    assert np.abs(errors_of(fit_ground(cloud), lambda x, y: 0 * x)).max() < 0.03


def test_a_crown_without_ground_below_does_not_become_a_hill(rng):
    cloud = ground_points(rng)
    cloud = cloud[np.hypot(cloud[:, 0], cloud[:, 1]) > 2.0]
    crown = ball(rng, (0, 0, 7), 2.5)
    ground = fit_ground(np.concatenate([cloud, crown]))
    assert abs(float(ground.height_m(0, 0))) < 0.1


def test_wide_gaps_are_holes_and_narrow_ones_are_closed(rng):
    cloud = ground_points(rng, (60.0, 20.0))
    x = cloud[:, 0]
    cloud = cloud[~((x > -12) & (x < -7)) & ~((x > 5) & (x < 20))]  # 5 m and 15 m wide
    ground = fit_ground(cloud)
    assert ground.is_known(-9.5, 0.0)
    assert not ground.is_known(12.5, 0.0)
    assert not ground.is_known(100.0, 0.0)
    corners = ground.triangles()
    assert not ((corners[:, :, 0] > 6) & (corners[:, :, 0] < 19)).any()
    assert abs(float(ground.height_m(12.5, 0.0))) < 0.5  # filled smoothly in the terrain
    assert ground.terrain().contains(12.5, 0.0)


def test_map_coordinates_of_a_million_metres_change_nothing(rng):
    cloud = ground_points(rng, slope=(0.1, 0.0))
    offset = np.array([500_000.0, 5_400_000.0, 300.0])
    near, far = fit_ground(cloud), fit_ground(cloud + offset)
    # Whole cells are shifted; what is left is the rounding of float64 at five million metres.
    assert np.allclose(far.z_m - 300.0, near.z_m, atol=1e-3)


def test_weights_count_like_repeated_points(rng):
    cloud = ground_points(rng, (10.0, 10.0), per_m2=20)
    weight = rng.integers(1, 4, len(cloud)).astype(float)
    repeated = np.repeat(cloud, weight.astype(int), axis=0)
    # Sums are rounded differently, and the solver stops at a thousandth of what it started from, here a centimetre.
    assert np.allclose(fit_ground(cloud, weight=weight).z_m, fit_ground(repeated).z_m, atol=3e-4)


def test_the_ground_of_a_world_comes_from_its_elements(rng):
    x, y = np.meshgrid(np.arange(-10.0, 10.0), np.arange(-8.0, 8.0))
    corner = np.stack([x, y, 0.1 * x], axis=-1).reshape(-1, 1, 3)
    lower = corner + np.array([[0, 0, 0], [1, 0, 0.1], [0, 1, 0.0]])
    upper = corner + np.array([[1, 1, 0.1], [0, 1, 0.0], [1, 0, 0.1]])
    leaves = shrub(rng, 0, 0)[:50]
    world = LearnedWorld(
        Triangles.plain(np.concatenate([lower, upper])),
        Gaussians.plain(leaves, np.tile(0.01 * np.eye(3), (len(leaves), 1, 1))),
        kind="hybrid",
    )
    assert np.abs(errors_of(ground_of(world), lambda x, y: 0.1 * x)).max() < 0.03


def test_too_few_points_are_refused():
    with pytest.raises(InputError, match="too few"):
        fit_ground([[0, 0, 0], [50, 0, 0]])
    with pytest.raises(InputError, match="points_m"):
        fit_ground([[0, 0, np.nan]])


def test_points_over_half_the_world_are_refused(rng):
    some = ground_points(rng, (5.0, 5.0))
    cloud = np.concatenate([some, some + np.array([1e5, 0, 0]), some + np.array([0, 1e5, 0])])
    with pytest.raises(InputError, match="spacing_m"):
        fit_ground(cloud)


def test_terrain_of_a_log_stands_where_the_log_says(rng, tmp_path):
    cloud = np.concatenate([ground_points(rng, slope=(0.1, 0.0)), shrub(rng, 3, 2)])
    hr.write_log(log_of(cloud, n_sweeps=6), tmp_path / "drive.parquet")
    scene = tmp_path / "scene.toml"
    scene.write_text('sensor = "vlp-16"\n[terrain]\nkind = "log"\nfile = "drive.parquet"\n', encoding="utf-8")
    terrain = load_site(scene).terrain
    assert np.allclose(terrain.bounds_m, (-15, -10, 15, 10), atol=0.5)
    assert float(terrain.height_m(5.0, 0.0)) == pytest.approx(0.5, abs=0.03)
    thinned = 'sensor = "vlp-16"\n[terrain]\nkind = "log"\nfile = "drive.parquet"\nthin = 3\nspacing_m = 1.0\n'
    scene.write_text(thinned + "size_m = [10, 8]\nmiddle_m = [2, 0]\nheight_m = 1.0\n", encoding="utf-8")
    terrain = load_site(scene).terrain
    assert terrain.bounds_m == (-3, -4, 7, 4)
    assert terrain.spacing_m == (1.0, 1.0)
    assert float(terrain.height_m(5.0, 0.0)) == pytest.approx(1.5, abs=0.04)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('kind = "log"', "file"),
        ('kind = "log"\nfile = "missing.parquet"', "there is no file"),
        ('kind = "log"\nfile = "scene.toml"', "terrain.file"),
        (
            'kind = "log"\nfile = "drive.parquet"\nsize_m = [4, 4]\nmiddle_m = [900, 0]',
            "nothing of the ground lies there",
        ),
        ('kind = "log"\nfile = "few.parquet"', "too few"),
        ('kind = "log"\nfile = "drive.parquet"\nthin = 0', "thin"),
        ('kind = "noise"\nsize_m = [9, 9]\nthin = 2', "thin"),
        ('kind = "flat"\nsize_m = [9, 9]\nfile = "drive.parquet"', "only a raster or a log"),
    ],
)
def test_wrong_terrain_of_a_log_is_refused_in_one_sentence(lines, said, rng, tmp_path):
    hr.write_log(log_of(ground_points(rng, (6.0, 6.0))), tmp_path / "drive.parquet")
    hr.write_log(log_of(np.array([[0.0, 0.0, 0.0]])), tmp_path / "few.parquet")
    scene = tmp_path / "scene.toml"
    scene.write_text(f'sensor = "vlp-16"\n[terrain]\n{lines}\n', encoding="utf-8")
    with pytest.raises(FileError, match=said):
        load_site(scene)


def test_settings_have_bounds():
    with pytest.raises(InputError, match="radius_m"):
        GroundSettings.parse({"radius_m": 0}, "ground")
