# SPDX-License-Identifier: Apache-2.0
"""A robot that finds its way by a simulated lidar alone: the vehicle, and the closed loop of Goodin 2018 §3.5.3.

Step after step the vehicle drives, the sensor's sweeps that ended meanwhile are fired from the poses of their pulses
(rolling shutter), their points go into the cost grid, and now and then A* plans anew over all that is known by then.
What the sensor sees decides where it drives, and where it drives decides what the sensor sees. The paper registers the
points by "a simulated GPS and compass" and gives no errors; `pose_errors` are none unless they are asked for. With them
the robot believes the reported pose: points, plans and steering follow from it, while pulses and collisions are where
the vehicle truly is. Points count their height from the ground under the vehicle.

The vehicle is skid-steered. Its left and right wheels have one speed each: v = (right + left) / 2, yaw rate = (right -
left) / track, neither faster than the vehicle's maximum; so it slows down in turns and can turn on the spot. It steers
by pure pursuit (Coulter 1992): along the arc that meets the path a given distance ahead. Slip is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from hedgerow.apps.planner import CostGrid, GridSettings, plan
from hedgerow.base import arrays, rotation
from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Log
from hedgerow.sensor import Sensor
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.simulate import fire_sweep
from hedgerow.world import World

Ground = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]
"""Height of the ground [m] at arrays of x and y, map frame [m]."""


class VehicleSettings(StrictParameters):
    """A passenger-sized vehicle; Goodin 2018 gives only its speed."""

    max_speed_mps: Positive = 2.0
    """Maximum speed of the faster side."""
    max_yaw_rate_radps: Positive = 1.0
    """Maximum yaw rate."""
    track_m: Positive = 1.5
    """Distance between left and right wheels."""
    wheelbase_m: Positive = 2.0
    """Distance between front and rear wheels."""
    lookahead_m: Positive = 2.0
    """Lookahead distance of the path follower."""
    spot_turn_deg: Positive = 60.0
    """Heading error above which the vehicle turns on the spot."""


class Motion(NamedTuple):
    """Position and heading, map frame."""

    x_m: float
    y_m: float
    yaw_rad: float


class Command(NamedTuple):
    """What the vehicle is told to do."""

    speed_mps: float
    yaw_rate_radps: float


STAND = Command(0.0, 0.0)
_AHEAD = np.array([1.0, 0.0, 0.0])


def follow(at: Motion, path_m: ArrayLike, settings: VehicleSettings) -> Command:
    """Steer towards a path.

    Args:
        at: where the vehicle is.
        path_m: (K, 2) points, map frame, in driving order, closer together than the look-ahead [m].
        settings: the vehicle.

    Returns:
        Speed and yaw rate within the vehicle's limits.

    Raises:
        InputError: the path has no point.
    """
    path: NDArray[np.float64] = arrays.as_floats("path_m", path_m, ("K", 2))
    if len(path) == 0:
        raise InputError("path_m", "has no point; expected at least one")
    away = path - (at.x_m, at.y_m)
    distance_m = np.hypot(*away.T)
    nearest = int(distance_m.argmin())
    ahead = np.flatnonzero(distance_m[nearest:] >= settings.lookahead_m)
    target = nearest + int(ahead[0]) if len(ahead) else len(path) - 1
    aside_rad = float(np.arctan2(away[target, 1], away[target, 0])) - at.yaw_rad
    aside_rad = (aside_rad + np.pi) % (2 * np.pi) - np.pi
    if abs(aside_rad) > np.deg2rad(settings.spot_turn_deg):
        rate_radps = min(settings.max_yaw_rate_radps, 2 * settings.max_speed_mps / settings.track_m)
        return Command(0.0, float(np.copysign(rate_radps, aside_rad)))
    if distance_m[target] == 0:
        return STAND
    return within_limits(2 * np.sin(aside_rad) / float(distance_m[target]), settings)


def within_limits(curvature_per_m: float, settings: VehicleSettings) -> Command:
    """Drive an arc as fast as the vehicle's sides and its yaw rate allow."""
    bend = abs(curvature_per_m)
    speed_mps = settings.max_speed_mps / (1 + bend * settings.track_m / 2)
    if bend > 0:
        speed_mps = min(speed_mps, settings.max_yaw_rate_radps / bend)
    return Command(float(speed_mps), float(speed_mps * curvature_per_m))


def move(at: Motion, command: Command, duration_s: float) -> Motion:
    """Return where a vehicle is after driving so for a while: a circular arc, exactly."""
    turn_rad = command.yaw_rate_radps * duration_s
    # The chord of the arc; np.sinc(x) is sin(pi x) / (pi x), so 1 where it goes straight on.
    chord_m = command.speed_mps * duration_s * float(np.sinc(turn_rad / 2 / np.pi))
    heading_rad = at.yaw_rad + turn_rad / 2
    x_m, y_m = at.x_m + chord_m * np.cos(heading_rad), at.y_m + chord_m * np.sin(heading_rad)
    return Motion(float(x_m), float(y_m), at.yaw_rad + turn_rad)


def stand_on(ground: Ground, at: Motion, settings: VehicleSettings) -> Pose:
    """Return T_map_base of a vehicle on the ground, base on the ground below its middle, tilted as its wheels stand.

    Raises:
        InputError: the ground has no finite height there.
    """
    forward, left = settings.wheelbase_m / 2, settings.track_m / 2
    wheels = np.array([[forward, left], [forward, -left], [-forward, left], [-forward, -left]])
    cos, sin = np.cos(at.yaw_rad), np.sin(at.yaw_rad)
    xy = np.array([at.x_m, at.y_m]) + wheels @ np.array([[cos, sin], [-sin, cos]])
    z = np.asarray(ground(xy[:, 0], xy[:, 1]), dtype=np.float64)
    if z.shape != (4,) or not np.isfinite(z).all():
        raise InputError(
            "terrain_height", f"gave {z.tolist()} at {xy.tolist()}; expected a finite height for each point"
        )
    foot = np.column_stack([xy, z])
    x_axis = _unit(foot[:2].mean(axis=0) - foot[2:].mean(axis=0))
    leftwards = foot[::2].mean(axis=0) - foot[1::2].mean(axis=0)
    y_axis = _unit(leftwards - (leftwards @ x_axis) * x_axis)
    matrix = np.column_stack([x_axis, y_axis, np.cross(x_axis, y_axis), foot.mean(axis=0)])
    return Pose.from_matrix(matrix)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / np.linalg.norm(vector)


class NavigationSettings(StrictParameters):
    """The robot and its task; defaults as in Goodin 2018 where it says."""

    grid: GridSettings = GridSettings()
    """The cost grid."""
    vehicle: VehicleSettings = VehicleSettings()
    """The vehicle."""
    sensor_height_m: Positive = 2.0
    """Height of the sensor above the ground; it is mounted level."""
    step_s: Positive = 0.1
    """Time between commands to the vehicle."""
    replan_s: Positive = 1.0
    """Time between plans."""
    goal_radius_m: Positive = 2.0
    """The goal is reached within this distance."""
    max_time_s: Positive = 300.0
    """Time limit of a run."""
    sweep_stride: int = Field(default=1, ge=1)
    """Use only every n-th sweep, for speed."""
    noise: bool = True
    """Whether sensor noise is added."""
    pose_errors: PoseErrors = PoseErrors()
    """Errors of the pose that the robot believes: GPS, compass, mount."""
    snapshot_s: Positive | None = 10.0
    """Time at which a copy of the grid is kept (Goodin 2018 Fig. 10: 10 s). None: no copy."""


@dataclass(frozen=True, eq=False)
class PlannedPath:
    """One result of the planner."""

    time_s: float
    """When it was planned."""
    xy_m: NDArray[np.float64]
    """(K, 2) map frame [m]; no rows if there was no path."""
    cost: float
    """Length in metres, each metre counted 1 plus the mean cost it crosses; inf if there was no path."""


@dataclass(frozen=True, eq=False)
class Steps:
    """What happened in each of N steps."""

    time_s: NDArray[np.float64]
    """(N,) at its end."""
    speed_mps: NDArray[np.float64]
    """(N,) of the vehicle."""
    n_points: NDArray[np.int64]
    """(N,) points put into the grid."""
    n_known: NDArray[np.int64]
    """(N,) cells with a point."""
    collided: NDArray[np.bool_]
    """(N,) whether the vehicle touched something; False if nobody told."""


@dataclass(frozen=True, eq=False)
class Run:
    """One drive."""

    trajectory: Trajectory
    """T_map_base, one pose per step and the first."""
    reached: bool
    """Whether it came to the goal in time."""
    plans: tuple[PlannedPath, ...]
    grid: CostGrid
    """At the end."""
    snapshot: CostGrid | None
    """At `snapshot_s`; None if the drive was over before."""
    steps: Steps

    @property
    def time_s(self) -> float:
        """Time of the drive."""
        return float(self.steps.time_s[-1]) if len(self.steps.time_s) else 0.0

    @property
    def n_collisions(self) -> int:
        """Times that the vehicle began to touch something."""
        touching = self.steps.collided
        return int((touching & ~np.concatenate([[False], touching[:-1]])).sum())


def navigate(
    world: World,
    sensor: Sensor,
    start: ArrayLike,
    goal: ArrayLike,
    *,
    terrain_height: Ground,
    settings: NavigationSettings | None = None,
    seed: int = 0,
    collides: Callable[[Pose], bool] | None = None,
    observe: Callable[[Log], object] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Run:
    """Drive from start to goal on what the sensor sees.

    Args:
        world: what there is to see.
        sensor: mounted level above the vehicle's middle.
        start: (2,) x, y, map frame [m]; the vehicle looks towards the goal.
        goal: (2,) x, y [m].
        terrain_height: height of the ground at arrays of x and y [m]; the vehicle stands on it, the planner does not
            know it.
        settings: robot and task.
        seed: for world and sensor; same seed, same drive.
        collides: whether a vehicle at this T_map_base touches something; counted, not prevented.
        observe: is given every step's log, as it goes into the grid.
        progress: called after each step with the simulated milliseconds.

    Returns:
        The drive.

    Raises:
        InputError: start or goal is not finite or lies outside the grid (around the middle between them).
    """
    ends = [arrays.as_floats(name, point, (2,)) for name, point in (("start", start), ("goal", goal))]
    chosen = settings or NavigationSettings()
    robot = _Robot(world, sensor, ends[0], ends[1], terrain_height, chosen, seed)
    for number in range(1, int(chosen.max_time_s / chosen.step_s + 1e-9) + 1):
        if robot.reached:
            break
        log = robot.step(number)
        if observe is not None and log is not None:
            observe(log)
        robot.collided.append(collides is not None and collides(robot.pose))
        if progress is not None:
            progress(round(1000 * number * chosen.step_s))
    return robot.run()


class _Robot:
    """The state of one drive."""

    def __init__(
        self,
        world: World,
        sensor: Sensor,
        start_m: NDArray[np.float64],
        goal_m: NDArray[np.float64],
        ground: Ground,
        settings: NavigationSettings,
        seed: int,
    ) -> None:
        for name, point in (("start", start_m), ("goal", goal_m)):
            if not np.isfinite(point).all():
                raise InputError(name, f"is {point.tolist()}; expected finite coordinates")
        self.world, self.sensor, self.goal_m = world, sensor, goal_m
        self.ground, self.settings, self.seed = ground, settings, seed
        self.grid = CostGrid.around((start_m + goal_m) / 2, settings.grid)
        self.goal_cell = self.grid.cell_of("goal", goal_m)
        self.grid.cell_of("start", start_m)
        towards = goal_m - start_m
        self.at = Motion(float(start_m[0]), float(start_m[1]), float(np.arctan2(towards[1], towards[0])))
        self.pose = stand_on(ground, self.at, settings.vehicle)
        self.times_ns, self.poses = [0], [self.pose]
        self.mount = Pose.from_xyz_rpy((0, 0, settings.sensor_height_m))
        self.believed_pose, self.believed = self._locate()
        self.next_sweep = 0
        self.snapshot: CostGrid | None = None
        self.plans: list[PlannedPath] = []
        self.steps: list[tuple[float, float, int, int]] = []
        self.collided: list[bool] = []

    @property
    def reached(self) -> bool:
        """Whether the vehicle believes to be at the goal."""
        aside_m = np.hypot(self.believed.x_m - self.goal_m[0], self.believed.y_m - self.goal_m[1])
        return bool(aside_m < self.settings.goal_radius_m)

    def step(self, number: int) -> Log | None:
        """Drive, see and plan for one step; give what was seen."""
        settings = self.settings
        time_s = number * settings.step_s
        command = self._command()
        self.at = move(self.at, command, settings.step_s)
        self.pose = stand_on(self.ground, self.at, settings.vehicle)
        self.times_ns.append(round(time_s * 1e9))
        self.poses.append(self.pose)
        self.believed_pose, self.believed = self._locate()
        log = self._see()
        n_points = 0 if log is None else self.grid.add(log.points(), self.believed_pose.position_m[2])
        if not self.plans or time_s - self.plans[-1].time_s > settings.replan_s - 1e-6:
            self._plan(time_s)
        if settings.snapshot_s is not None and self.snapshot is None and time_s > settings.snapshot_s - 1e-6:
            self.snapshot = self.grid.copy()
        self.steps.append((time_s, command.speed_mps, n_points, int(self.grid.known.sum())))
        return log

    def run(self) -> Run:
        """Give what happened so far."""
        columns = np.array(self.steps, dtype=np.float64).reshape(-1, 4).T
        counts = columns[2:].astype(np.int64)
        steps = Steps(columns[0], columns[1], counts[0], counts[1], np.array(self.collided, dtype=np.bool_))
        trajectory = Trajectory.from_poses(self.times_ns, self.poses)
        return Run(trajectory, self.reached, tuple(self.plans), self.grid, self.snapshot, steps)

    def _command(self) -> Command:
        if not self.plans or len(self.plans[-1].xy_m) == 0:
            return STAND
        return follow(self.believed, self.plans[-1].xy_m, self.settings.vehicle)

    def _plan(self, time_s: float) -> None:
        start = self.grid.cell_of("vehicle", (self.believed.x_m, self.believed.y_m))
        found = plan(self.grid.weight(), start, self.goal_cell)
        if found is None:
            self.plans.append(PlannedPath(time_s, np.zeros((0, 2)), float("inf")))
        else:
            cost = found.cost * self.settings.grid.cell_m
            self.plans.append(PlannedPath(time_s, self.grid.centre_m(found.cells), cost))

    def _locate(self) -> tuple[Pose, Motion]:
        """Return what GPS and compass say of the vehicle now."""
        errors = self.settings.pose_errors
        if errors.is_ideal:
            return self.pose, self.at
        seems = errors.displace(Trajectory.from_poses(self.times_ns[-1:], [self.pose]), self.mount)
        (x_m, y_m, _), (ahead_x, ahead_y, _) = seems.position_m[0], rotation.rotate(seems.quaternion_xyzw[0], _AHEAD)
        pose = Pose(seems.position_m[0], seems.quaternion_xyzw[0])
        return pose, Motion(float(x_m), float(y_m), float(np.arctan2(ahead_y, ahead_x)))

    def _see(self) -> Log | None:
        """Fire the sweeps that ended within this step, each pulse from the pose of its own instant."""
        sweeps: list[Log] = []
        # Only the last poses matter; a sweep may have begun some steps ago.
        n_poses = int(np.ceil(self.sensor.sweep_s / self.settings.step_s)) + 3
        recent = Trajectory.from_poses(self.times_ns[-n_poses:], self.poses[-n_poses:])
        while (self.next_sweep + 1) * self.sensor.sweep_s <= self.times_ns[-1] * 1e-9 + 1e-6:
            if self.next_sweep % self.settings.sweep_stride == 0:
                reported = self.settings.pose_errors.displace(recent, self.mount)
                sweeps.append(
                    fire_sweep(
                        self.world,
                        self.sensor,
                        recent,
                        self.next_sweep,
                        self.sensor.pattern.start_ns(self.next_sweep),
                        seed=self.seed,
                        noise=self.settings.noise,
                        mount=self.mount,
                        reported=reported,
                    )
                )
            self.next_sweep += 1
        return Log.concatenate(sweeps) if sweeps else None
