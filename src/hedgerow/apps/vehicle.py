# SPDX-License-Identifier: Apache-2.0
"""A skid-steered vehicle: how it follows a path, moves, and stands on the ground (the robot of 003 §3.5.3).

Two sides with one speed each: v = (right + left) / 2, yaw rate = (right - left) / track, no side faster than the
vehicle's maximum; so it slows down in turns and can turn on the spot. It steers by pure pursuit (Coulter 1992): along
the arc that meets the path a given distance ahead. Slip is left out.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays
from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.errors import InputError
from hedgerow.frames import Pose

Ground = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]
"""Height of the ground [m] at arrays of x and y, map frame [m]."""


class VehicleSettings(StrictParameters):
    """A passenger-sized vehicle; 003 gives only its speed."""

    max_speed_mps: Positive = 2.0
    """Speed of the faster side at most."""
    max_yaw_rate_radps: Positive = 1.0
    """Fastest turn."""
    track_m: Positive = 1.5
    """Between the wheels of the two sides."""
    wheelbase_m: Positive = 2.0
    """Between the foremost and the hindmost wheels."""
    lookahead_m: Positive = 2.0
    """How far ahead it meets the path."""
    spot_turn_deg: Positive = 60.0
    """If the path lies further aside than this, it turns on the spot first."""


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
