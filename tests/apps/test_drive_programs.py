# SPDX-License-Identifier: Apache-2.0
"""Programs on a drive: ground map, segmentation, cost map and odometry where the answer is known."""

from typing import Any

import numpy as np
import pytest

from hedgerow.apps import open_app
from hedgerow.apps.app import run
from hedgerow.apps.drive import DriveTruth, map_ground, sweep_poses
from hedgerow.apps.odometry import find_normals, match, thin_points
from hedgerow.apps.segmentation import find_obstacles
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log

SLOPE = 0.05
GRID = np.stack(np.meshgrid(np.arange(-20, 20, 0.2), np.arange(-20, 20, 0.2)), axis=-1).reshape(-1, 2)


def yard_points(offset: float = 0.0) -> np.ndarray:
    """A slope with a box of 1 m height on it, seen from above, 2 by 2 m."""
    flat = GRID + offset
    z = SLOPE * flat[:, 0]
    box = (np.abs(flat[:, 0] - 6) < 1) & (np.abs(flat[:, 1]) < 1)
    return np.column_stack([flat, z + box])


def log_of(clouds, origins, labels=None) -> Log:
    """One sweep for each cloud, all points of it seen from one place."""
    rows = np.concatenate([np.full(len(cloud), i) for i, cloud in enumerate(clouds)])
    along = np.concatenate([cloud - origin for cloud, origin in zip(clouds, origins, strict=True)])
    range_m = np.linalg.norm(along, axis=1)
    return Log.from_arrays(
        origins=np.asarray(origins, dtype=float)[rows],
        directions=along / range_m[:, None],
        ranges=range_m,
        times=rows * 0.1,
        sweeps=rows,
        labels=labels,
        max_range_m=100,
    )


def yard_log(n: int = 3) -> Log:
    return log_of([yard_points(0.01 * i) for i in range(n)], [(0.5 * i, 0.0, 2.0) for i in range(n)])


def truth_of(log: Log) -> Any:
    return DriveTruth(sweep_poses(log), map_ground(lambda: (sweep for _, sweep in log.iter_sweeps())))


def test_the_mapped_ground_is_the_slope_and_not_the_box():
    ground = truth_of(yard_log()).ground
    points = yard_points()
    height_m = ground.height_m(points)
    box = points[:, 2] - SLOPE * points[:, 0] > 0.5
    # The lowest point of a cell, and the opening, lie below by at most the rise over a cell and half a window.
    assert np.nanmax(np.abs(height_m[~box])) < SLOPE * (0.5 + 2.0 + 0.5)
    np.testing.assert_allclose(height_m[box], 1, atol=SLOPE * 3)


def test_a_single_point_below_the_ground_does_not_lower_it():
    clouds = [yard_points(0.01 * i) for i in range(5)]
    clouds[2] = np.vstack([clouds[2], [-10.1, -10.1, -8.0]])
    log = log_of(clouds, [(0.5 * i, 0.0, 2.0) for i in range(5)])
    height_m = truth_of(log).ground.height_m(np.array([[-10.1, -10.1, SLOPE * -10.1]]))
    assert abs(height_m[0]) < 0.2


def test_the_ground_is_where_labels_say_so():
    points = yard_points()
    labels = np.where(points[:, 1] > 0, 40, 50)  # the southern half is a building's roof
    ground = truth_of(log_of([points], [(0, 0, 2.0)], labels)).ground
    height_m = ground.height_m(points)
    assert np.isnan(height_m[points[:, 1] < -0.5]).all()
    assert np.isfinite(height_m[points[:, 1] > 0.5]).all()


def test_segmentation_finds_the_box_and_nothing_else():
    log = yard_log()
    app = open_app("segmentation")
    sums = run(app, log, app.space.start({"height_m": 0.5, "window": 3}), truth_of(log)).sums
    assert sums["fp"] == sums["fn"] == 0
    assert sums["tp"] > 200  # 100 points of the box in each of three sweeps
    blind = run(app, log, app.space.start({"window": 0, "cell_m": 0.2}), truth_of(log)).sums
    assert blind["tp"] == 0  # a cell of one point has no height


def test_obstacles_need_not_stand_in_the_lowest_cell():
    points = np.array([[0, 0, 0.0], [0.1, 0, 0.4], [5, 5, 3.0], [5.1, 5, 3.1]])
    found = find_obstacles(points, cell_m=1.0, height_m=0.3, window=0, low_share=0.0)
    np.testing.assert_array_equal(found, [False, True, False, False])
    assert len(find_obstacles(np.zeros((0, 3)), cell_m=1, height_m=1, window=0, low_share=0)) == 0


def test_the_cost_map_of_the_whole_drive_agrees_with_its_map():
    log = yard_log()
    app = open_app("cost-map")
    whole = {"cell_m": 0.5, "window_m": 2.0, "fewest_points": 1, "ceiling_m": 3.0}
    values = {name: np.array(each) for name, each in run(app, log, whole, truth_of(log)).sums.items()}
    assert app.objectives["wrong"].reduce(values) < 0.01  # the rim of the box
    narrow = run(app, log, {**whole, "window_m": 0.5}, truth_of(log)).sums
    assert narrow["difference"] < values["difference"] / 2  # on a slope a wide window finds heights that are none


def room_points(n: int = 4000, seed: int = 0) -> np.ndarray:
    """Points on floor and walls of a room with a pillar."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-5, 5, n), rng.uniform(0, 3, n)
    faces = [(u, 0 * u - 4, v), (u, 0 * u + 6, v), (0 * u - 5, u, v), (0 * u + 5, u, v), (u, rng.permutation(u), 0 * u)]
    return np.concatenate([np.column_stack(face)[i::5] for i, face in enumerate(faces)])


@pytest.mark.parametrize("to_planes", [True, False])
def test_matching_finds_a_known_motion(to_planes):
    earlier = room_points()
    motion = Pose.from_xyz_rpy([0.08, -0.05, 0.02], [0.01, -0.01, 0.02])
    later = motion.inverse().transform(earlier)
    found = match(earlier, later, np.eye(4), distance_m=1.0, iterations=40, step_m=1e-9, to_planes=to_planes)
    np.testing.assert_allclose(found, motion.matrix(), atol=1e-6)


def test_normals_of_a_plane_are_its_own():
    from scipy.spatial import cKDTree

    plane = np.column_stack([GRID, 0.5 * GRID[:, 0]])
    normals = find_normals(plane, cKDTree(plane))
    np.testing.assert_allclose(np.abs(normals @ [-0.5, 0, 1]) / np.sqrt(1.25), 1, atol=1e-9)


def test_thinning_keeps_the_mean_of_each_voxel():
    points = np.array([[0.1, 0.1, 0.1], [0.3, 0.1, 0.1], [1.5, 0, 0], [-0.5, 0, 0]])
    thin = thin_points(points, 1.0)
    assert sorted(map(tuple, thin.round(9))) == [(-0.5, 0, 0), (0.2, 0.1, 0.1), (1.5, 0, 0)]


def moving_room(step: Pose, n: int = 4) -> tuple[Log, Trajectory]:
    """The same room, other points of it in each sweep, from a sensor that moves on."""
    poses = [Pose.from_xyz_rpy([0, 0, 1.5])]
    for _ in range(n - 1):
        poses.append(poses[-1] @ step)
    log = log_of([room_points(20_000, seed) for seed in range(n)], [pose.position_m for pose in poses])
    return log, Trajectory.from_poses(np.arange(n) * 0.1, poses)


def test_odometry_follows_a_sensor_through_a_room():
    log, trajectory = moving_room(Pose.from_xyz_rpy([0.1, 0.02, 0], [0, 0, 0.01]))
    app = open_app("odometry")
    truth = DriveTruth(sweep_poses(log, trajectory))
    found = run(app, log, app.space.start({"voxel_m": 0.3}), truth)
    values = {name: np.array(each) for name, each in found.sums.items()}
    errors = {name: float(objective.reduce(values)) for name, objective in app.objectives.items()}
    assert errors["relative_m"] < 0.02  # means of voxels differ by the points that fell into them
    assert errors["relative_rad"] < 0.005
    assert values["steps"] == 3


def test_odometry_without_enough_points_is_lost():
    log, trajectory = moving_room(Pose.from_xyz_rpy([0.1, 0, 0]))
    app = open_app("odometry")
    far = run(app, log[::2000], app.space.start(), DriveTruth(sweep_poses(log, trajectory)))
    assert far.failure.startswith("lost: ")


def test_frames_without_a_trajectory_look_along_the_path():
    angle = np.linspace(0, np.pi / 2, 50)
    path = np.column_stack([10 * np.sin(angle), 10 - 10 * np.cos(angle), np.ones(50)])
    poses = sweep_poses(log_of([path[i : i + 1] + np.array([0, 0, 5]) for i in range(50)], path))
    yaw = 2 * np.arctan2(poses.quaternion_xyzw[:, 2], poses.quaternion_xyzw[:, 3])
    np.testing.assert_allclose(yaw[1:-1], angle[1:-1], atol=1e-3)
    np.testing.assert_allclose(poses.position_m, path)


def test_a_scene_without_what_a_program_needs_fails():
    log = yard_log()
    for name in ("segmentation", "cost-map", "odometry"):
        app = open_app(name)
        assert run(app, log, app.space.start(), None).failure.startswith("lost: the scene has no")
