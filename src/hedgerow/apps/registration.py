# SPDX-License-Identifier: Apache-2.0
"""Localisation by registration in an extended Kalman filter (Tallavajhula 2018 §3.5.2).

The motion update leaves the pose as it is and adds uncertainty, by how far the robot drove and turned. The observation
update registers the scan to the map: gradient descent on the sum of the distances of all points to the nearest wall,
with gradients by finite differences, for at most so many iterations. The estimate is there after its computing time, a
constant for each iteration, and the robot has moved on by then: more iterations are more exact, and later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, ratio
from hedgerow.apps.space import Setting, Space, whole
from hedgerow.log import Log

Floats = NDArray[np.float64]

R1 = 1e-4 * np.array([[1.8, -0.56, 2.2], [-0.56, 1.2, -1.8], [2.2, -1.8, 5.9]])
R2 = 1e-4 * np.array([[0.62, -0.072, 0.038], [-0.072, 0.79, 0.57], [0.038, 0.57, 5.7]])
"""Covariance per metre driven and per radian turned (Tallavajhula 2018 §3.5.2)."""
START_COVARIANCE = np.diag([0.28e-3, 0.28e-3, 3.4e-3])
REGISTRATION_COVARIANCE = np.diag([0.002**2, 0.002**2, 0.002**2])
"""Of a registered pose [m², rad²]; the paper does not give one. 90 readings that spread by 5 to 10 mm tell a pose to
about 2 mm. The motion update predicts no motion, so a filter that trusts a registration less lags behind the robot."""
SECONDS_PER_ITERATION = 0.001
"""100 iterations take 0.1 s, as in the paper."""
_STEPS = np.array([1e-3, 1e-3, 1e-3])
"""Of the finite differences [m, m, rad]."""
_FIRST_STEP, _LEAST_STEP = 0.05, 1e-4
"""Of the descent: the first step, and the one at which it has converged [m or rad]."""


class DriveTruth(NamedTuple):
    """A run of a robot along a corridor."""

    segments: Floats
    """(S, 2, 2) map [m]."""
    time_s: Floats
    """(T,) when scans were taken."""
    pose: Floats
    """(T, 3) true poses: x, y [m] and heading [rad]."""
    speed_mps: Floats
    """(T,) commanded, from each scan to the next."""
    turn_rate: Floats
    """(T,) commanded [rad/s]."""
    start: Floats
    """(3,) where the filter believes it starts."""


@dataclass(frozen=True)
class Registration:
    """The filter; its parameter is the number of refining iterations."""

    name: str = "registration"
    space: Space = field(
        default_factory=lambda: Space.of(iterations=whole(1, 100, 20, "most refining iterations of a registration"))
    )
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {
            "position": ratio("position", "n", "m", "mean distance of the estimate when it is there"),
            "heading": ratio("heading", "n", "rad", "mean error of the heading"),
            "iterations": ratio("iterations", "n", "", "mean iterations until convergence"),
        }
    )
    n_points: int = 90
    """Readings of a scan that are registered, evenly spread."""

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Run the filter over all scans of a log."""
        if not isinstance(truth, DriveTruth):
            return fail("lost", "the scene has no map and poses")
        sums = {"position": 0.0, "heading": 0.0, "iterations": 0.0, "n": 0.0}
        mean, covariance = truth.start.copy(), START_COVARIANCE.copy()
        for place, (_, scan) in enumerate(log.iter_sweeps()):
            points = scan_points(scan, truth.pose[place], self.n_points)
            if place:
                covariance = covariance + motion_covariance(truth, place - 1)
            registered, used = register(points, truth.segments, mean, int(parameters["iterations"]))
            mean, covariance = update(mean, covariance, registered)
            error = mean - pose_at(truth, truth.time_s[place] + used * SECONDS_PER_ITERATION)
            sums["position"] += float(np.hypot(error[0], error[1]))
            sums["heading"] += abs(float((error[2] + np.pi) % (2 * np.pi) - np.pi))
            sums["iterations"] += used
            sums["n"] += 1
        return Outcome(sums) if sums["n"] else fail("lost", "the log has no scan")


def scan_points(scan: Log, pose: Floats, n_points: int) -> Floats:
    """Return the (P, 2) points of some readings in the frame of the robot [m].

    A log has its beams in the map; the pose that they were placed with takes them back.
    """
    step = max(1, len(scan) // n_points)
    points = scan[::step].points()[:, :2] - pose[:2]
    cosine, sine = np.cos(pose[2]), np.sin(pose[2])
    return points @ np.array([[cosine, -sine], [sine, cosine]])


def motion_covariance(truth: DriveTruth, place: int) -> Floats:
    """Return what the way from a scan to the next adds: R = |V| dt R1 + |w| dt R2."""
    seconds = truth.time_s[place + 1] - truth.time_s[place]
    return seconds * (abs(truth.speed_mps[place]) * R1 + abs(truth.turn_rate[place]) * R2)


def update(mean: Floats, covariance: Floats, observed: Floats) -> tuple[Floats, Floats]:
    """Return pose and covariance after a pose was observed directly."""
    gain = covariance @ np.linalg.inv(covariance + REGISTRATION_COVARIANCE)
    difference = observed - mean
    difference[2] = (difference[2] + np.pi) % (2 * np.pi) - np.pi
    return mean + gain @ difference, (np.eye(3) - gain) @ covariance


def register(points_m: Floats, segments: Floats, start: Floats, iterations: int) -> tuple[Floats, int]:
    """Descend from a start pose; return the pose and the iterations that it took.

    Args:
        points_m: (P, 2) in the frame of the robot.
        segments: (S, 2, 2) map.
        start: (3,) pose.
        iterations: most of them.
    """
    pose, step, used = start.copy(), _FIRST_STEP, 0
    if len(points_m) == 0:
        return pose, used
    walls = Walls(segments)
    error, gradient = walls.descent(points_m, pose)
    while used < iterations and step > _LEAST_STEP:
        used += 1
        length = np.linalg.norm(gradient)
        if length == 0:
            break
        trial = pose - step * gradient / length
        reached, next_gradient = walls.descent(points_m, trial)
        if reached < error:
            pose, error, gradient, step = trial, reached, next_gradient, 1.2 * step
        else:
            step /= 2
    return pose, used


class Walls:
    """A map of segments, prepared for distances to it."""

    def __init__(self, segments: Floats) -> None:
        """Take (S, 2, 2) segments [m]."""
        way = segments[:, 1] - segments[:, 0]
        self._start = segments[:, 0, :, None]
        self._length = np.linalg.norm(way, axis=1)[:, None]
        self._x, self._y = (way / self._length).T[:, :, None]

    def error(self, points_m: Floats, poses: Floats) -> Floats:
        """Return for each of (K, 3) poses the sum of the distances of (P, 2) points to the nearest segment [m]."""
        cosine, sine = np.cos(poses[:, 2, None]), np.sin(poses[:, 2, None])
        x = (poses[:, 0, None] + cosine * points_m[:, 0] - sine * points_m[:, 1]).ravel()
        y = (poses[:, 1, None] + sine * points_m[:, 0] + cosine * points_m[:, 1]).ravel()
        right, up = x - self._start[:, 0], y - self._start[:, 1]
        along = right * self._x + up * self._y
        aside = right * self._y - up * self._x
        beyond = along - np.minimum(np.maximum(along, 0.0), self._length)
        nearest = (aside * aside + beyond * beyond).min(axis=0)
        return np.sqrt(nearest).reshape(len(poses), -1).sum(axis=1)

    def descent(self, points_m: Floats, pose: Floats) -> tuple[float, Floats]:
        """Return the error at a pose and its (3,) gradient, by central differences."""
        errors = self.error(points_m, np.concatenate([pose[None], pose + np.diag(_STEPS), pose - np.diag(_STEPS)]))
        return float(errors[0]), (errors[1:4] - errors[4:]) / (2 * _STEPS)


def pose_at(truth: DriveTruth, time_s: float) -> Floats:
    """Return the true pose at a time, between scans on a straight line, headings unwrapped."""
    heading = np.unwrap(truth.pose[:, 2])
    columns = (truth.pose[:, 0], truth.pose[:, 1], heading)
    return np.array([np.interp(time_s, truth.time_s, column) for column in columns])
