# SPDX-License-Identifier: Apache-2.0
"""Risk in closed loop, in small: a robot crosses a meadow in reality and in worlds learned from it."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.apps.app import run as run_app
from hedgerow.apps.closed_loop import Navigation, Task
from hedgerow.errors import InputError
from hedgerow.reproduce import closed_loop
from hedgerow.reproduce.yard import collision_check
from hedgerow.sensor import Sensor
from hedgerow.sensor.pose_errors import PoseErrors


@pytest.fixture
def place(yard, monkeypatch):
    monkeypatch.setattr(closed_loop, "TASK_M", 15.0)
    monkeypatch.setattr(closed_loop, "ASIDE_M", 2.0)
    return closed_loop.survey(yard, 2, 1)


def test_tasks_are_as_long_as_told_and_begin_and_end_clear_of_trees(place, yard):
    assert place.tasks.shape == (2, 2, 2)
    along_m = np.abs(np.diff(place.tasks[:, :, 0], axis=1))
    assert along_m == pytest.approx(15.0)
    assert np.abs(place.tasks[:, :, 1]).max() <= 2.0
    for x, y in ((10.0, -6.0), (2.0, 14.0)):
        assert np.hypot(*(place.tasks.reshape(-1, 2) - (x, y)).T).min() > closed_loop._CLEAR_M


def test_a_yard_without_a_clear_place_is_refused(yard, monkeypatch):
    monkeypatch.setattr(closed_loop, "_CLEAR_M", 100.0)
    monkeypatch.setattr(closed_loop, "_DRAWS", 10)
    with pytest.raises(InputError, match="has no 2 tasks"):
        closed_loop.survey(yard, 2, 1)


def test_the_program_tells_time_way_and_collisions_of_its_drive(place):
    app = Navigation()
    task = closed_loop.task_in(place.yard.world, place, 0, PoseErrors(), 1)
    outcome = run_app(app, closed_loop._NOTHING, app.space.start(), task)
    assert not outcome.failed
    assert outcome.sums["way_m"] >= 15.0 - task.robot.goal_radius_m - 0.5
    assert outcome.sums["time_s"] > outcome.sums["way_m"] / 2.0  # two metres a second at most
    assert outcome.sums["collisions"] == 0
    slower = run_app(app, closed_loop._NOTHING, app.space.start({"max_speed_mps": 1.0}), task)
    assert slower.sums["time_s"] > 1.5 * outcome.sums["time_s"]


def test_a_robot_that_is_late_is_lost_and_a_log_alone_is_no_task(place, yard):
    app = Navigation()
    task = closed_loop.task_in(yard.world, place, 0, PoseErrors(), 1)
    late = replace(task, robot=task.robot.model_copy(update={"max_time_s": 2.0}))
    assert app.run(closed_loop._NOTHING, app.space.start(), late).failure == "lost: not at the goal after 2 s"
    assert app.run(closed_loop._NOTHING, app.space.start(), None).failed


def test_collisions_are_counted_where_things_truly_stand(yard, place):
    # A robot that sees an empty world drives straight at the trunk at (10, -6).
    from hedgerow.world import Scene, SceneWorld

    nothing = SceneWorld(Scene())
    through = Task(
        nothing,
        Sensor.named("vlp-16"),
        (4.0, -6.0),
        (15.0, -6.0),
        yard.ground,
        collision_check(yard),
        closed_loop.task_in(nothing, place, 0, PoseErrors(), 1).robot,
    )
    assert Navigation().drive(through, Navigation().space.start()).n_collisions == 1


def test_the_experiment_tells_every_source_with_and_without_pose_errors(yard, tmp_path, monkeypatch):
    monkeypatch.setattr(closed_loop, "TASK_M", 15.0)
    monkeypatch.setattr(closed_loop, "ASIDE_M", 2.0)
    found = closed_loop.run(tmp_path, 2, 1, lambda _: None, yard=yard, models=("voxel",), n_settings=2)
    assert (tmp_path / "closed-loop-risk.png").stat().st_size > 10_000
    rows = [line.split("|")[1].strip() for line in found.text.splitlines() if line.startswith(("| real", "| voxel"))]
    assert rows == ["real", "voxel"] * 2
    assert "With GPS and compass of Browning 2012" in found.text
    assert "floor of reality against itself" in found.text
    with pytest.raises(InputError, match="--size"):
        closed_loop.run(tmp_path, 0)
