# SPDX-License-Identifier: Apache-2.0
"""Navigation as a program whose risk can be measured: what it sees depends on where it drove.

Other programs run on logs, so reality and simulation can be given the same beams. A robot in closed loop makes its own
beams. So its scene is no log but a task in a world: from here to there, seen through that world. Reality and simulators
have the same tasks. Collisions are counted against what truly stands there, whatever the robot was shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hedgerow.apps.app import Objective, Outcome, fail, ratio
from hedgerow.apps.navigation import Ground, NavigationSettings, Run, navigate
from hedgerow.apps.space import Setting, Space, number
from hedgerow.frames import Pose
from hedgerow.log import Log
from hedgerow.sensor import Sensor
from hedgerow.world import World


@dataclass(frozen=True)
class Task:
    """A drive to be made."""

    world: World
    """What the robot sees."""
    sensor: Sensor
    start_m: tuple[float, float]
    goal_m: tuple[float, float]
    ground: Ground
    """Height of the ground that the vehicle stands on [m]."""
    collides: Callable[[Pose], bool]
    """Whether a vehicle at T_map_base truly touches something."""
    robot: NavigationSettings = field(default_factory=NavigationSettings)
    """All that the program's parameters leave as it is."""
    seed: int = 0


@dataclass(frozen=True)
class Navigation:
    """The robot of navigation.py; its parameters are those that a developer would tune."""

    name: str = "navigation"
    space: Space = field(
        default_factory=lambda: Space.of(
            max_height_m=number(0.5, 2.5, 1.5, "highest vegetation that the vehicle crosses"),
            keep_off_m=number(0.0, 3.0, 1.5, "safety distance from what it does not cross"),
            lookahead_m=number(1.0, 5.0, 2.0, "distance ahead that it steers for"),
            replan_s=number(0.5, 3.0, 1.0, "time between plans"),
            max_speed_mps=number(1.0, 4.0, 2.0, "speed of the faster side"),
        )
    )
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {
            "time": ratio("time_s", "n", "s", "mean time to the goal"),
            "way": ratio("way_m", "n", "m", "mean way to the goal"),
            "collisions": ratio("collisions", "n", "", "mean number of collisions"),
        }
    )

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Drive; the log is not looked at. A robot that is not at its goal in time is lost."""
        if not isinstance(truth, Task):
            return fail("lost", "the scene is no task in a world")
        done = self.drive(truth, parameters)
        if not done.reached:
            return fail("lost", f"not at the goal after {done.time_s:.0f} s")
        way_m, touched = done.trajectory.length_m, float(done.n_collisions)
        return Outcome({"time_s": done.time_s, "way_m": way_m, "collisions": touched, "n": 1.0})

    def drive(self, task: Task, parameters: Setting) -> Run:
        """Return the drive itself."""
        return navigate(
            task.world,
            task.sensor,
            task.start_m,
            task.goal_m,
            terrain_height=task.ground,
            settings=_tuned(task.robot, parameters),
            seed=task.seed,
            collides=task.collides,
        )


def _tuned(robot: NavigationSettings, parameters: Setting) -> NavigationSettings:
    """Give a robot the values of a setting: those of its grid, of its vehicle, and its own."""
    grid = robot.grid.model_copy(update={name: parameters[name] for name in ("max_height_m", "keep_off_m")})
    vehicle = robot.vehicle.model_copy(update={name: parameters[name] for name in ("lookahead_m", "max_speed_mps")})
    return robot.model_copy(update={"grid": grid, "vehicle": vehicle, "replan_s": parameters["replan_s"]})
