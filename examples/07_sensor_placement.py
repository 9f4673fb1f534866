# SPDX-License-Identifier: Apache-2.0
"""Where to mount the lidar? Three mounts on the same vehicle, compared by how well a program does with each.

A program, here the shipped segmentation of ground and obstacles, is run on simulated drives with each mount, with the
same settings of its parameters. J is minus the intersection over union: low is good. All are judged by one map, made
from the drives of all three together.

    python examples/07_sensor_placement.py
"""

import numpy as np

import hedgerow as hr
from hedgerow.apps import open_app
from hedgerow.apps.app import run
from hedgerow.apps.drive import DriveTruth, map_ground, sweep_poses

MOUNTS = {
    "bumper, 0.6 m": hr.Pose.from_xyz_rpy([2.0, 0, 0.6]),
    "roof, 2.0 m": hr.Pose.from_xyz_rpy([0, 0, 2.0]),
    "roof, 2.0 m, 10 deg down": hr.Pose.from_xyz_rpy([0, 0, 2.0], [0, np.radians(10), 0]),
}
N_SWEEPS, N_SETTINGS = 4, 8


def make_world() -> hr.World:
    """Level ground and forty boxes beside the way."""
    scene = hr.Scene()
    ground = np.array([[-60, -60, 0], [60, -60, 0], [60, 60, 0], [-60, 60, 0]], dtype=float)
    scene.add_mesh(ground, [[0, 1, 2], [0, 2, 3]])
    rng = np.random.default_rng(1)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (0, 2)], dtype=float)
    faces = [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [1, 5, 7],
        [1, 7, 3],
    ]
    for _ in range(40):
        size = rng.uniform([0.2, 0.2, 0.15], [1.0, 1.0, 0.8])
        place = [rng.uniform(-30, 30), rng.choice([-1, 1]) * rng.uniform(4, 15), 0]
        scene.add_mesh(corners * size + place, faces)
    return hr.SceneWorld(scene)


def main() -> None:
    world, sensor = make_world(), hr.Sensor.named("vlp-16")
    drive = hr.Trajectory.line([-10, 0, 0], [10, 0, 0], speed_mps=5)
    logs = {
        name: hr.Log.concatenate(list(hr.simulate(world, sensor, drive, sweeps=N_SWEEPS, mount=mount)))
        for name, mount in MOUNTS.items()
    }
    ground = map_ground(lambda: (sweep for log in logs.values() for _, sweep in log.iter_sweeps()))
    app = open_app("segmentation")
    settings = app.space.sample(N_SETTINGS, seed=1)
    print(f"{'mount':28}{'best J':>8}{'mean J':>8}   J = -IoU of obstacle points, {N_SETTINGS} settings")
    for name, log in logs.items():
        truth = DriveTruth(sweep_poses(log), ground)
        sums = [run(app, log, setting, truth).sums for setting in settings]
        table = {key: np.array([each[key] for each in sums]) for key in sums[0]}
        j = app.objectives["iou"].reduce(table)
        print(f"{name:28}{j.min():8.3f}{j.mean():8.3f}")


if __name__ == "__main__":
    main()
