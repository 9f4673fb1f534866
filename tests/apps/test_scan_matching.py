# SPDX-License-Identifier: Apache-2.0
"""Scan matching with small_gicp, where the motion is known."""

import sys

import numpy as np
import pytest

from hedgerow.apps import open_app
from hedgerow.apps.app import run
from hedgerow.apps.drive import DriveTruth, sweep_poses
from hedgerow.apps.odometry import LostError
from hedgerow.apps.scan_matching import KINDS, Cloud, ScanMatching, match
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log

MOTION = Pose.from_xyz_rpy([0.2, -0.1, 0.05], [0.01, -0.01, 0.03])
EXACT = {"iterations": 50, "step_m": 1e-4, "step_rad": 1e-5, "change": 1e-7}


def room_points(n: int = 20_000, seed: int = 0) -> np.ndarray:
    """Points on floor and walls of a room with a bench along a wall; no face lies on the border of a voxel."""
    rng = np.random.default_rng(seed)
    u, v, w = rng.uniform(-5.3, 5.3, n), rng.uniform(-0.2, 2.8, n), rng.uniform(-5.3, 5.3, n)
    same = np.zeros(n)
    faces = [(u, same - 4.3, v), (u, same + 6.3, v), (same - 5.3, u, v), (same + 5.3, u, v), (u, w, same - 0.2)]
    faces += [(u / 3 + 1.1, w / 6 - 3.2, same + 0.6), (u / 3 + 1.1, same - 2.3, v / 4)]
    return np.concatenate([np.column_stack(face)[i :: len(faces)] for i, face in enumerate(faces)])


def setting(**values: object) -> dict[str, object]:
    return ScanMatching().space.start(EXACT | values)


def error_of(found: np.ndarray, true: Pose = MOTION) -> tuple[float, float]:
    off = np.linalg.inv(true.matrix()) @ found
    angle = np.arccos(np.clip((np.trace(off[:3, :3]) - 1) / 2, -1, 1))
    return float(np.linalg.norm(off[:3, 3])), float(angle)


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_motion_is_found(kind: str):
    earlier = Cloud.of(room_points(seed=0), 0.2)
    later = Cloud.of(MOTION.inverse().transform(room_points(seed=1)), 0.2)
    off_m, off_rad = error_of(match(earlier, later, setting(kind=kind)).transform)
    # Other points of the same walls, 0.2 m apart: ICP pulls every point to one of them, the others to planes.
    assert off_m < (0.1 if kind == "ICP" else 0.02)
    assert off_rad < (0.02 if kind == "ICP" else 0.005)


def test_the_same_points_moved_are_brought_back():
    cloud = room_points()
    later = Cloud.of(MOTION.inverse().transform(cloud))
    off_m, off_rad = error_of(match(Cloud.of(cloud), later, setting(kind="ICP", distance_m=1.0)).transform)
    assert off_m < 1e-3  # where steps of 0.1 mm end
    assert off_rad < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_settings_give_the_same_bytes(kind: str):
    found = []
    for _ in range(2):
        earlier, later = Cloud.of(room_points(seed=0), 0.3), Cloud.of(room_points(seed=1) + 0.1, 0.3)
        found.append(match(earlier, later, setting(kind=kind, ransac_iterations=2), seed=3).transform.tobytes())
    assert found[0] == found[1]


def test_each_limit_ends_a_match_sooner():
    earlier = Cloud.of(room_points(seed=0), 0.2)
    later = Cloud.of(MOTION.inverse().transform(room_points(seed=1)), 0.2)

    def iterations(**values: object) -> int:
        return match(earlier, later, setting(kind="ICP", **values)).iterations

    whole = iterations()
    assert iterations(iterations=1) == 1
    assert 1 < iterations(change=0.1) < whole
    assert 1 <= iterations(step_m=0.3, step_rad=0.03) < whole
    assert iterations(step_m=0.3) > iterations(step_m=0.3, step_rad=0.03)  # both have to be small


def test_ransac_leaves_out_what_moved_on_its_own():
    board = np.random.default_rng(5).uniform(-1, 1, (6000, 3)) * (1.5, 0.0, 1.0) + np.array([0, 2, 1.4])
    moved = board + np.array([0, 0.3, 0])
    earlier = Cloud.of(np.concatenate([room_points(seed=0), board]), 0.2)
    later = Cloud.of(np.concatenate([room_points(seed=1), moved]), 0.2)
    rest = Pose.from_xyz_rpy([0, 0, 0])
    plain, robust = (
        error_of(match(earlier, later, setting(kind="PLANE_ICP", ransac_iterations=n, ransac_m=0.2)).transform, rest)
        for n in (0, 4)
    )
    assert plain[0] > 0.02  # the board pulls by its share of the points that see motion along y
    assert robust[0] < plain[0] / 3


def log_of(clouds: list[np.ndarray], poses: list[Pose]) -> tuple[Log, DriveTruth]:
    rows = np.concatenate([np.full(len(cloud), i) for i, cloud in enumerate(clouds)])
    origins = np.array([pose.position_m for pose in poses])[rows]
    along = np.concatenate(clouds) - origins
    range_m = np.linalg.norm(along, axis=1)
    log = Log.from_arrays(
        origins=origins,
        directions=along / range_m[:, None],
        ranges=range_m,
        times=rows * 0.1,
        sweeps=rows,
        max_range_m=100,
    )
    return log, DriveTruth(sweep_poses(log, Trajectory.from_poses(np.arange(len(poses)) * 0.1, poses)))


def drive(n: int = 3) -> tuple[Log, DriveTruth]:
    poses = [Pose.from_xyz_rpy([0, 0, 1.5])]
    for _ in range(n - 1):
        poses.append(poses[-1] @ MOTION)
    return log_of([room_points(seed=seed) for seed in range(n)], poses)


def test_the_program_gives_errors_of_position_and_angle_apart():
    app = open_app("scan-matching")
    log, truth = drive()
    outcome = run(app, log, app.space.start({"voxel_m": 0.2}), truth)
    values = {name: np.array(each) for name, each in outcome.sums.items()}
    assert values["pairs"] == 2
    assert float(app.objectives["position"].reduce(values)) < 0.02
    assert float(app.objectives["angle"].reduce(values)) < 0.005
    rest = run(app, log, app.space.start({"voxel_m": 0.2, "distance_m": 0.5, "iterations": 1, "kind": "ICP"}), truth)
    assert rest.sums["position"] > 10 * outcome.sums["position"]


def test_every_drawn_setting_gives_an_outcome_and_twice_the_same():
    app = open_app("scan-matching")
    log, truth = drive(2)
    for drawn in app.space.sample(6, seed=2):
        first, again = run(app, log, drawn, truth), run(app, log, drawn, truth)
        assert first == again
        assert not first.failed or first.failure.startswith("lost: ")


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (np.zeros((3, 500)), r"expected.*\(N, 3\)"),
        (np.zeros((500, 2)), r"expected.*\(N, 3\)"),
        (np.zeros(500), r"expected.*\(N, 3\)"),
        (np.full((500, 3), np.nan), "finite"),
    ],
)
def test_points_of_another_shape_are_refused(points: np.ndarray, said: str):
    with pytest.raises(InputError, match=said):
        Cloud.of(points, 0.3)


def test_too_few_points_are_lost():
    with pytest.raises(LostError, match="5 points"):
        Cloud.of(np.zeros((5, 3)))
    with pytest.raises(LostError, match="1 points left"):
        Cloud.of(np.zeros((500, 3)) + 0.1, 1.0)
    near, far = Cloud.of(room_points(), 0.3), Cloud.of(room_points() + 100, 0.3)
    with pytest.raises(LostError, match="0 pairs"):
        match(near, far, setting())
    app = open_app("scan-matching")
    log, truth = drive(2)
    assert run(app, log[::2000], app.space.start(), truth).failure.startswith("lost: ")
    assert run(app, log, app.space.start(), None).failure.startswith("lost: the scene has no poses")
    alone, one = log_of([room_points()], [Pose.from_xyz_rpy([0, 0, 1.5])])
    assert "fewer than two sweeps" in run(app, alone, app.space.start(), one).failure


def test_without_small_gicp_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "small_gicp", None)
    with pytest.raises(InputError, match=r"pip install 'hedgerow\[matching\]'"):
        open_app("scan-matching")
