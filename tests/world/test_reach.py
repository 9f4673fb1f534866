# SPDX-License-Identifier: Apache-2.0
"""Frames that do not fit: a trajectory or a log that is nowhere near the world is told, with both places."""

import warnings

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.base.box import Box, distance_text
from hedgerow.errors import HedgerowWarning, InputError
from hedgerow.world.elements import Gaussians, Points, Triangles
from hedgerow.world.pulsed import PhysicsWorld

SENSOR = hr.Sensor.named("vlp-16")  # reaches 100 m
CORNERS = np.array([[-10.0, -10, 0], [10, -10, 0], [10, 10, 0], [-10, 10, 0]])
UTM = np.array([385_000.0, 5_400_000.0, 100.0])


def scene_at(place=(0.0, 0.0, 0.0), **settings) -> hr.Scene:
    scene = hr.Scene(**settings)
    scene.add_mesh(CORNERS + place, [[0, 1, 2], [0, 2, 3]])
    return scene


def gaussians_at(place) -> Gaussians:
    return Gaussians.plain(np.array([place], dtype=float), np.array([np.eye(3) * 0.01]))


def drive(start_m, end_m=None) -> hr.Trajectory:
    start = np.asarray(start_m, dtype=float)
    return hr.Trajectory.line(start, start + np.array([1.0, 0, 0]) if end_m is None else end_m, 1.0)


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_distances_from_a_box_are_those_of_its_faces_edges_and_corners():
    box = Box(np.zeros(3), np.array([2.0, 2, 2]))
    points = np.array([[1.0, 1, 1], [5, 1, 1], [5, 6, 1], [-1, -2, -2]])
    assert box.distance_m(points) == pytest.approx([0, 3, 5, 3])
    assert box.distance_m(points[1:2], np.array([[-9.0, 1, 1]])) == pytest.approx([0])  # passes through
    assert np.array_equal(box.middle_m, [1, 1, 1])
    assert box.text() == "x 0 to 2, y 0 to 2, z 0 to 2 m"
    assert Box.joined([None]) is None
    assert [distance_text(each) for each in (12.4, 9_999.0, 5_414_000.0)] == ["12 m", "9,999 m", "5,414 km"]


def test_a_trajectory_in_utm_into_a_local_site_is_refused_naming_both_places():
    world = hr.SceneWorld(scene_at())
    with pytest.raises(InputError) as refused:
        hr.simulate(world, SENSOR, drive(UTM))
    said = str(refused.value)
    for part in ("5,414 km from the site", "385000 5400000 100", "x -10 to 10", "map's origin is 0 0 0", "100 m"):
        assert part in said
    assert len(said) <= 300 and "\n" not in said


def test_anyway_fires_and_warns():
    with pytest.warns(HedgerowWarning, match="5,414 km from the site.* nothing can be met"):
        simulation = hr.simulate(hr.SceneWorld(scene_at()), SENSOR, drive(UTM), sweeps=1, anyway=True)
    assert not np.isfinite(simulation.sweep(0).returns.range_m).any()


def test_the_maps_origin_is_named_where_subtracting_it_would_do():
    world = hr.LearnedWorld(gaussians_at((0, 0, 0)), kind="voxel", map_origin_m=UTM)
    with pytest.raises(InputError, match="subtract the map's origin from its poses, which brings them there"):
        hr.simulate(world, SENSOR, drive(UTM))
    assert len(quiet(lambda: hr.simulate(world, SENSOR, drive((0, 0, 0)))))


def test_a_drive_that_begins_outside_passes_and_one_that_stays_out_of_reach_warns():
    world = hr.SceneWorld(scene_at())
    quiet(lambda: hr.simulate(world, SENSOR, drive((100, 0, 0))))  # 90 m away
    with pytest.warns(HedgerowWarning, match="190 m from the site.*reaches 100 m: nothing can be met"):
        hr.simulate(world, SENSOR, drive((200, 0, 0)))
    with pytest.warns(HedgerowWarning, match="1 of 2 poses are farther .* up to 490 m"):
        hr.simulate(world, SENSOR, drive((0, 0, 0), (500, 0, 0)))


def test_a_drive_across_the_site_between_two_far_poses_is_not_refused():
    with pytest.warns(HedgerowWarning, match="2 of 2 poses are farther"):
        hr.simulate(hr.SceneWorld(scene_at()), SENSOR, drive((-5000, 0, 1), (5000, 0, 1)), sweeps=1)


def test_only_the_part_that_is_driven_counts():
    world = hr.SceneWorld(scene_at())
    there = hr.Trajectory([0.0, 1.0, 2.0, 3.0], [[0, 0, 0], [1, 0, 0], [5e5, 0, 0], [5e5, 1, 0]], [[0, 0, 0, 1]] * 4)  # pyright: ignore[reportArgumentType]
    quiet(lambda: hr.simulate(world, SENSOR, there, sweeps=5))
    with pytest.raises(InputError, match="500 km from the site"):
        hr.simulate(world, SENSOR, there, at_s=[2.5])


def test_the_mount_counts():
    world, far = hr.SceneWorld(scene_at()), hr.Pose.from_xyz_rpy((5e5, 0, 0))
    with pytest.raises(InputError, match="500 km from the site"):
        hr.simulate(world, SENSOR, drive((0, 0, 0)), mount=far)


def test_every_kind_of_world_knows_where_it_reaches(tmp_path):
    local = np.array([1000.0, 2000.0, 3.0])
    assert np.array_equal(hr.SceneWorld(scene_at(local)).box.low_m, [990, 1990, 3])  # pyright: ignore[reportOptionalMemberAccess]
    assert np.array_equal(PhysicsWorld(scene_at(local)).box.high_m, [1010, 2010, 3])  # pyright: ignore[reportOptionalMemberAccess]
    tables = {
        "triangles": Triangles.plain(CORNERS[:3][None] + local),
        "gaussians": gaussians_at(local),
        "points": Points.plain(local[None], np.array([[0, 0, 1]], dtype=np.float32)),
    }
    for name, table in tables.items():
        world = hr.LearnedWorld(table, kind="voxel")
        world.save(tmp_path / name)
        for each in (world, hr.load_world(tmp_path / name), hr.load_world(tmp_path / name, resident_tiles=1)):
            assert each.box is not None
            assert each.box.distance_m(local[None])[0] == 0, name
            with pytest.raises(InputError, match=r"trajectory: it is .* from the site"):
                hr.simulate(each, SENSOR, drive(UTM))
    assert hr.SceneWorld(hr.Scene()).box is None
    assert hr.LearnedWorld(kind="voxel").box is None
    quiet(lambda: hr.simulate(hr.LearnedWorld(kind="voxel"), SENSOR, drive(UTM)))  # empty space has no place


def test_the_box_of_placed_scenes_is_around_all_copies():
    tree, forest = hr.Scene(), hr.Scene()
    tree.add_mesh([[0, 0, 0], [1, 0, 0], [0, 0, 4]], [[0, 1, 2]])
    turn = np.eye(4)
    turn[:3, :3] = [[0, -2, 0], [2, 0, 0], [0, 0, 2]]  # a quarter turn, twice as large
    turn[:3, 3] = [10, 20, 0]
    forest.place(tree, np.stack([np.eye(4), turn]))
    assert forest.box is not None
    assert np.allclose(forest.box.low_m, [0, 0, 0]) and np.allclose(forest.box.high_m, [10, 22, 8])


def log_at(place, **settings) -> hr.Log:
    return hr.Log.from_arrays(
        origins=place, directions=[[0, 0, -1.0], [0, 0, 1.0]], ranges=[5, np.inf], max_range_m=100, **settings
    )


def test_a_log_fired_at_a_world_of_another_place_is_refused():
    world, log = hr.SceneWorld(scene_at()), log_at(UTM + np.array([0, 0, 5]))
    with pytest.raises(InputError, match="world: the log is 5,414 km from the site: it begins at 385000 5400000 105"):
        hr.replay(world, log)
    with pytest.raises(InputError, match="simulated: the log is 5,414 km"):
        hr.compare(log, world)
    assert np.isfinite(quiet(lambda: hr.replay(world, log_at((0, 0, 5)))).returns.range_m[0])


def test_a_log_in_its_own_map_and_a_world_in_utm_are_told_apart_by_the_maps_origin():
    world, log = hr.SceneWorld(scene_at(UTM)), log_at((0, 0, 5), map_origin_m=UTM)
    with pytest.raises(InputError, match="add its map_origin_m to its beams, which brings them there"):
        hr.replay(world, log)


def test_a_comparison_with_a_world_that_was_never_in_reach_warns():
    with pytest.warns(HedgerowWarning, match=r"simulated: no beam of the log could reach this world, which is 4,990 m"):
        hr.compare(log_at((5000, 0, 0)), hr.SceneWorld(scene_at()))
