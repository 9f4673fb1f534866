# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow.apps.navigation import NavigationSettings, navigate
from hedgerow.apps.planner import GridSettings
from hedgerow.errors import InputError
from hedgerow.frames import Pose
from hedgerow.log import Log
from hedgerow.scenes import mesh
from hedgerow.sensor import Sensor
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.world import Scene, SceneWorld

WALL = (8.0, 8.6, -6.0, 6.0)
"""West, east, south and north of a wall across the way."""
START, GOAL = (0.0, 0.0), (18.0, 0.0)
SENSOR = Sensor.named("vlp-16", 5)
SETTINGS = NavigationSettings(grid=GridSettings(n_cells=80), max_time_s=40.0, sweep_stride=2, snapshot_s=5.0)


def flat(x, y):
    return np.zeros_like(x)


def sloping(x, y):
    return 0.1 * y


def toy(ground=flat, *, wall: bool = True, ring: bool = False) -> SceneWorld:
    scene = Scene()
    axis = np.linspace(-60, 60, 121)
    scene.add_mesh(*mesh.height_field(axis, axis, ground(*np.meshgrid(axis, axis))))
    if wall:
        scene.add_mesh(*mesh.box((WALL[0], WALL[2], -2), (WALL[1], WALL[3], 3)))
    if ring:
        scene.add_mesh(*mesh.cylinder((*GOAL, -1), 4.0, 4.0, sides=48))
    return SceneWorld(scene)


def hits_the_wall(pose):
    x, y, _ = pose.position_m
    return WALL[0] - 0.9 < x < WALL[1] + 0.9 and WALL[2] - 0.9 < y < WALL[3] + 0.9


@pytest.fixture(scope="module")
def around():
    return navigate(toy(), SENSOR, START, GOAL, terrain_height=flat, settings=SETTINGS, seed=4, collides=hits_the_wall)


def test_it_drives_around_a_wall(around):
    assert around.reached
    assert around.n_collisions == 0
    assert around.trajectory.length_m > 2 * np.hypot(8, 6)  # the wall's end is a detour
    passed = np.abs(around.trajectory.position_m[:, 0] - 8.3).argmin()
    assert np.abs(around.trajectory.position_m[passed, 1]) > 6.9
    end = around.trajectory.position_m[-1, :2]
    assert np.hypot(*(end - GOAL)) < SETTINGS.goal_radius_m


def test_the_wall_is_in_the_map_and_the_ground_is_free(around):
    cost = around.grid.cost()
    row, column = around.grid.cell_of("wall", (8.1, 0.1))
    assert cost[row, column] == 100
    centre_x, centre_y = around.grid.centre_m(np.argwhere(cost >= 20)).T
    off_m = np.hypot(np.clip(centre_x, *WALL[:2]) - centre_x, np.clip(centre_y, *WALL[2:]) - centre_y)
    assert off_m.max() < 0.5  # only the wall is high, give and take a cell


def test_it_keeps_to_its_limits_and_counts_its_steps(around):
    speed = around.steps.speed_mps
    assert speed[0] == 0  # it has seen nothing yet
    assert speed.max() <= 2
    assert around.time_s == pytest.approx(0.1 * len(speed))
    assert len(around.trajectory) == len(speed) + 1
    driven_m = np.hypot(*np.diff(around.trajectory.position_m[:, :2], axis=0).T)
    assert (driven_m <= 0.1 * speed + 1e-9).all()
    assert (np.diff(around.steps.n_known) >= 0).all()
    assert around.steps.n_points.sum() == around.grid.count.sum()


def test_plans_are_made_once_a_second_and_grow_longer_when_the_wall_is_seen(around):
    times = np.array([each.time_s for each in around.plans])
    np.testing.assert_allclose(np.diff(times), 1.0, atol=1e-9)
    np.testing.assert_allclose([each.xy_m[-1] for each in around.plans], [GOAL] * len(times), atol=0.36)
    assert around.plans[0].cost == pytest.approx(18, abs=0.8)  # nothing known: straight ahead
    assert around.plans[1].cost > 1.15 * np.hypot(8, 6) * 2


def test_the_snapshot_is_the_map_at_its_time(around):
    known = int(around.snapshot.known.sum())
    assert known == around.steps.n_known[np.isclose(around.steps.time_s, 5.0)][0]
    assert 0 < known < around.grid.known.sum()


def test_same_seed_same_drive_and_another_seed_another(around):
    def drive(seed):
        return navigate(toy(), SENSOR, START, GOAL, terrain_height=flat, settings=SETTINGS, seed=seed)

    again, other = drive(4), drive(5)
    assert again.trajectory.equal(around.trajectory)
    np.testing.assert_array_equal(again.grid.highest_m, around.grid.highest_m)
    assert not np.array_equal(other.grid.highest_m, around.grid.highest_m)


def test_the_robot_believes_the_reported_pose(around):
    # A compass that is 5 degrees off: the robot steers along a straight line of its map, which truly bends away.
    errors = PoseErrors(heading_sigma_deg=5, heading_correlation_s=1e9, position_sigma_m=0.3, seed=3)
    settings = SETTINGS.model_copy(update={"pose_errors": errors})
    logs: list[Log] = []
    run = navigate(
        toy(wall=False), SENSOR, START, GOAL, terrain_height=flat, settings=settings, seed=4, observe=logs.append
    )
    assert run.reached
    believed = errors.displace(run.trajectory, Pose.from_xyz_rpy((0, 0, 2.0)))
    end = believed.at(run.trajectory.time_ns[-1:])[0][0, :2]
    assert np.hypot(*(end - GOAL)) < SETTINGS.goal_radius_m  # where it believes to be
    last = logs[-1]
    origin_m = believed.at(last.beams.time_ns)[0]
    assert np.abs(last.beams.origin_m[:, :2] - origin_m[:, :2]).max() < 1e-3  # small turns along a SLERP
    true_m = run.trajectory.at(last.beams.time_ns)[0]
    assert np.abs(last.beams.origin_m[:, :2] - true_m[:, :2]).max() > 0.01
    ideal = SETTINGS.model_copy(update={"pose_errors": PoseErrors(seed=8)})
    same = navigate(toy(), SENSOR, START, GOAL, terrain_height=flat, settings=ideal, seed=4)
    assert same.trajectory.equal(around.trajectory)


def test_without_a_wall_the_drive_is_straight():
    run = navigate(toy(wall=False), SENSOR, START, GOAL, terrain_height=flat, settings=SETTINGS)
    assert run.reached
    assert np.abs(run.trajectory.position_m[:, 1]).max() < 0.5
    assert run.time_s == pytest.approx(16 / 2.0, abs=0.7)  # 16 m to the goal's circle at 2 m/s


def test_a_walled_in_goal_is_not_reached_and_not_crashed_into():
    settings = SETTINGS.model_copy(update={"max_time_s": 6.0})
    seen_from_the_start = navigate(toy(ring=True), SENSOR, START, GOAL, terrain_height=flat, settings=settings)
    assert not seen_from_the_start.reached
    assert seen_from_the_start.time_s == pytest.approx(6.0)
    away_m = np.hypot(*(seen_from_the_start.trajectory.position_m[:, :2] - GOAL).T)
    assert away_m.min() > 4


def test_the_vehicle_stands_on_sloping_ground_and_the_lidar_two_metres_above_it():
    logs: list[Log] = []
    settings = SETTINGS.model_copy(update={"max_time_s": 3.0, "noise": False})
    run = navigate(
        toy(sloping, wall=False),
        SENSOR,
        (0, 5),
        (18, 5),
        terrain_height=sloping,
        settings=settings,
        observe=logs.append,
    )
    _, y, z = run.trajectory.position_m.T
    np.testing.assert_allclose(z, 0.1 * y, atol=1e-9)
    normal = np.array([0, -0.1, 1]) / np.sqrt(1.01)
    for log in logs:
        above_m = log.beams.origin_m @ normal
        # 2 m, and what the lasers sit above and below the middle (11 mm); poses in between lie on the plane too.
        np.testing.assert_allclose(above_m, 2.0, atol=0.012)
    np.testing.assert_allclose(np.concatenate([log.points() for log in logs]) @ normal, 0, atol=1e-4)


def test_every_pulse_has_the_pose_of_its_own_instant_and_an_id_of_its_own():
    logs: list[Log] = []
    settings = SETTINGS.model_copy(update={"max_time_s": 2.0, "sweep_stride": 1})
    run = navigate(toy(wall=False), SENSOR, START, GOAL, terrain_height=flat, settings=settings, observe=logs.append)
    whole = Log.concatenate(logs)
    assert len(np.unique(whole.beams.pulse)) == len(whole) == 10 * SENSOR.pulses_per_sweep
    position_m, _ = run.trajectory.at(whole.beams.time_ns)
    # The lasers sit within 12 mm of the sensor's axis height and on its axis.
    np.testing.assert_allclose(whole.beams.origin_m, position_m + np.array([0, 0, 2]), atol=0.012)


def test_a_fast_planar_sensor_fires_several_sweeps_a_step():
    logs: list[Log] = []
    settings = SETTINGS.model_copy(update={"max_time_s": 1.0, "sweep_stride": 1})
    navigate(toy(), Sensor.named("lms-291"), START, GOAL, terrain_height=flat, settings=settings, observe=logs.append)
    assert sum(len(log) for log in logs) == 37 * 361  # 75 turns, two of which make a sweep; the last half is not over
    heights = np.concatenate([log.points()[:, 2] for log in logs])
    np.testing.assert_allclose(heights, 2.0, atol=1e-3)  # a level slice: the wall, never the ground


@pytest.mark.parametrize(("start", "goal", "name"), [((0, np.nan), GOAL, "start"), (START, (300, 0), "goal")])
def test_bad_places_are_refused_by_name(start, goal, name):
    with pytest.raises(InputError, match=name):
        navigate(toy(), SENSOR, start, goal, terrain_height=flat, settings=SETTINGS)


@pytest.mark.parametrize("wrong", [{"step_s": 0.0}, {"replan_s": -1.0}, {"sweep_stride": 0}, {"goal_m": 2.0}])
def test_bad_settings_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        NavigationSettings(**wrong)
