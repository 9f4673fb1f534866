# SPDX-License-Identifier: Apache-2.0
"""Sites: scenes built from files are the same for a seed, hold what they say, and the shipped ones load."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scene_texts import GOOD, write_scene

from hedgerow.log import Beams
from hedgerow.scenes.file.read import scene_names
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians

FEW = {
    "courtyard": {"blades_per_m2": 0.05, "trees": 3, "plants.tree.parameters.detail": 0.05},
    "root": {"tussocks": 50, "trees": 3, "root_spacing_m": 0.02, "plants.tree.parameters.detail": 0.05},
}
FEW["trail"] = {"meadow_per_m2": 0.5, "verge_per_m2": 0.5, "floor_per_m2": 0.5, "ferns_per_m2": 0.002}
FEW["trail"] |= {"trees_per_m2": 0.002, "terrain.spacing_m": 1.0, "trail.rut_depth_m": 0.0, "scatter.spruces.count": 2}
FEW["trail"] |= {f"plants.{name}.variants": 1 for name in ("oak", "spruce", "young-tree", "bush", "low-bush")}
FEW["trail"] |= {f"plants.{name}.variants": 1 for name in ("meadow", "short", "reed", "fern")}
FEW["trail"] |= {
    f"plants.{name}.parameters.detail": 0.1 for name in ("oak", "spruce", "young-tree", "bush", "low-bush")
}
FEW["static-targets"] = {"plants.mown-grass.parameters.density_per_m2": 50}


def returns(site, seed=0):
    beams = Sensor.named("vlp-16").sweep(site.trajectories["here"].pose_at(0))
    return site.world().fire(beams, seed, sensor=Sensor.named("vlp-16"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return load_site(write_scene(tmp_path_factory.mktemp("scene")))


def test_same_seed_same_scene_another_seed_another(tmp_path, site):
    path = write_scene(tmp_path)
    again, first, other = load_site(path), returns(site), load_site(path, seed=5)
    assert returns(again).beams.equal(first.beams) and returns(again).returns.equal(first.returns)
    assert not returns(other).returns.equal(first.returns)
    assert other.n_copies["bushes"] == site.n_copies["bushes"] == 12


def test_a_rule_keeps_its_places_when_another_comes(tmp_path, site):
    more = "[scatter.pebbles]\nwhat = 'crate'\ncount = 1\nbox_m = [-29, -19, -28, -18]\n\n[scatter.bushes]"
    changed = load_site(write_scene(tmp_path, GOOD.replace("[scatter.bushes]", more)))
    log, other = returns(site), returns(changed)
    assert (log.returns.range_m == other.returns.range_m).mean() > 0.99  # only one far crate is new


def test_a_site_holds_what_its_file_says(site):
    assert site.name == "own"
    assert site.n_copies["crates"] == 3
    assert site.labels["oddity"] == 2000 and 2000 in site.vegetation_labels
    assert site.n_triangles == site.scene.n_elements
    first = site.trajectories["first"]
    assert_allclose(first.length_m, 45, rtol=0.01)  # heights and chords change it by less than 1 %
    ground = site.terrain.height_m(*first.position_m[:, :2].T)
    assert np.abs(first.position_m[:, 2] - ground - 2).max() < 0.1  # the ground is evened out over 3 m
    assert site.file.sensor == "vlp-16"


def test_materials_and_labels_reach_the_returns(site):
    z = float(site.terrain.height_m(5, -10))
    beams = Beams.from_arrays(origins=[[5, -10, z + 5]], directions=[[0, 0, -1]])
    hits = site.scene.fire(beams)
    assert_allclose(hits.range_m, 4, atol=1e-3)
    assert hits.label[0] == 2000
    assert_allclose(hits.intensity, 0.2, atol=1e-5)


def test_wavelength_changes_the_reflectance(tmp_path):
    scene = "terrain = { size_m = [10, 10], material = 'grass' }"
    beams = Beams.from_arrays(origins=[[0, 0, 2]], directions=[[0, 0, -1]])
    bright = [
        load_site(write_scene(tmp_path, scene), wavelength_nm=nm).scene.fire(beams).intensity[0] for nm in (905, 1550)
    ]
    assert_allclose(bright, [0.509, 0.243], atol=1e-5)


def test_a_fence_lets_its_share_pass(site):
    n = 20_000
    eye = [0.13, 9.0, float(site.terrain.height_m(0.13, 10)) + 0.9]  # not where two triangles meet, with two coins
    beams = Beams.from_arrays(origins=[eye] * n, directions=[[0, 1, 0]] * n)
    passed = (site.scene.fire(beams).label != site.labels["fence"]).mean()
    assert abs(passed - 0.7) < 5 * np.sqrt(0.21 / n)  # binomial: a false alarm in two million seeds


def test_a_wall_stands_on_the_ground_and_has_two_sides(tmp_path):
    scene = """terrain = { size_m = [40, 40] }
    [walls.w]
    path_m = [[-5, 10], [5, 10]]
    height_m = 3
    thickness_m = 0.4"""
    built = load_site(write_scene(tmp_path, scene.replace("    [", "[")))
    origins = [[0, 0, 1], [0, 20, 1], [0, 0, 3.5], [0, 10, 9], [-9, 10, 1]]
    ways = [[0, 1, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [1, 0, 0]]
    found = built.scene.fire(Beams.from_arrays(origins=origins, directions=ways)).range_m
    assert_allclose(found, [9.8, 9.8, np.inf, 6, 3.8], atol=0.02)  # concrete: 2 mm noise


def test_shapes_have_the_size_they_say(tmp_path):
    scene = """terrain = { size_m = [40, 40] }
shapes.tube = { kind = "cylinder", radius_m = 0.5, height_m = 2, sides = 200 }
shapes.ball = { kind = "ellipsoid", size_m = [2, 1, 3], sides = 200, material = "plain" }
shapes.sheet = { kind = "panel", width_m = 4, height_m = 1 }
objects.a = { what = "tube", at_m = [0, 0] }
objects.b = { what = "ball", at_m = [0, 8] }
objects.c = { what = "sheet", at_m = [0, -8, 0.5], yaw_deg = 90 }
shapes.log = { kind = "cylinder", radius_m = 0.3, height_m = 4, sides = 200, lying = true }
objects.e = { what = "log", at_m = [-12, 0] }
objects.d = { what = "tube", at_m = [10, 0, 1], pitch_deg = 90, scale = 2 }"""
    built = load_site(write_scene(tmp_path, scene))
    down = [[0, 0, 9], [0, 8, 9], [11, 0, 9], [-12.5, 0.01, 9]]
    level = [[-9, 0, 1], [-9, 8, 1.5], [1, -9, 1], [-9, -8.1, 1]]
    ways = [[0, 0, -1]] * 4 + [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
    found = built.scene.fire(Beams.from_arrays(origins=down + level, directions=ways)).range_m
    # lying at z = 1, twice as large: its top is at 2; the sheet turned by 90 degrees is seen from y only
    assert_allclose(found, [7, 6, 7, 8.4, 8.5, 8, 1, np.inf], atol=2e-3)  # 200 sides: sagitta below 0.3 mm


def test_learned_gaussians_stand_beside_meshes(tmp_path):
    mean = np.array([[5.0, 5.0, 1.0]])
    table = Gaussians.plain(mean, np.eye(3)[None] * 0.01, label=np.full(1, 70, dtype=np.uint16))
    LearnedWorld(table, kind="voxel").save(tmp_path / "hedge.world")
    scene = """terrain = { size_m = [40, 40] }
worlds.hedge = { file = "hedge.world", pivot_m = [5, 5, 0] }
objects.a = { what = "hedge", at_m = [-10, 0], repeat = { count = 2, step_m = [20, 0] } }"""
    built = load_site(write_scene(tmp_path, scene))
    assert (built.n_triangles, built.n_gaussians) == (2, 2)
    beams = Beams.from_arrays(origins=[[10, -9, 1], [0, -9, 1]], directions=[[0, 1, 0]] * 2)
    hits = built.scene.fire(beams)
    assert hits.label[0] == 70 and abs(hits.range_m[0] - 9) < 0.6  # sigma 0.1 m
    assert np.isinf(hits.range_m[1])


@pytest.fixture(scope="module")
def small():
    return {name: load_site(name, set=FEW.get(name, {})) for name in scene_names()}


@pytest.mark.parametrize("name", scene_names())
def test_shipped_scenes_load_small(name, small):
    built = small[name]
    for trajectory in built.trajectories.values():
        beams = Sensor.named("vlp-16").sweep(trajectory.pose_at(int(trajectory.start_ns)))
        assert np.isfinite(built.scene.fire(beams, max_range_m=100).range_m).mean() > 0.3


def test_the_trail_has_two_trajectories_side_by_side(small):
    built = small["trail"]
    first, second = built.trajectories["first"], built.trajectories["second"]
    apart = np.linalg.norm(first.position_m[:, :2] - second.position_m[:, :2], axis=1)
    assert_allclose(apart, 0.6, atol=1e-6)
    assert first.length_m > 150


def test_static_targets_stand_8_m_ahead_of_their_trajectories(small):
    built = small["static-targets"]
    assert len(built.trajectories) == 6
    for name, trajectory in built.trajectories.items():
        ahead = trajectory.pose_at(0).transform([8.0, 0, 0])[:2]
        places = {"plane": [8, 0]} | {key: spec.at_m[:2] for key, spec in built.file.objects.items()}
        assert_allclose(ahead, places[name], atol=1e-3)


def test_the_background_of_the_rods_is_a_parameter():
    for distance in (0.6, 2.0):
        built = load_site("rods", set={"background_m": distance})
        eye = built.trajectories["sensor"].position_m[0]
        beams = Beams.from_arrays(origins=[eye] * 2, directions=[[1, 0, 0], [np.cos(0.08), np.sin(0.08), 0]])
        found = built.scene.fire(beams).range_m
        assert_allclose(found, [0.8 - 0.0125, (0.8 + distance) / np.cos(0.08)], atol=0.012)  # wood: sigma 2 mm


def test_the_shrub_is_scanned_from_91_places_8_m_away(small):
    quarter = small["shrub"].trajectories["quarter-circle"]
    assert len(quarter) == 91
    assert_allclose(np.linalg.norm(quarter.position_m[:, :2], axis=1), 8)
    for time_ns in quarter.time_ns[::30]:
        assert_allclose(quarter.pose_at(int(time_ns)).transform([8.0, 0, 0])[:2], [0, 0], atol=1e-9)
