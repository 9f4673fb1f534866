# SPDX-License-Identifier: Apache-2.0
"""Passes: trajectories of the sensor from the few figures of a scene file."""

import numpy as np

from hedgerow import rotation
from hedgerow.arrays import Array
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.physics.scene_file.paths import Polyline
from hedgerow.physics.scene_file.routes import PassSpec
from hedgerow.physics.terrain import Terrain

_STEP_M = 0.5
_WHEELBASE_M = 3.0
"""The vehicle evens out the ground over this length."""


def make_pass(spec: PassSpec, terrain: Terrain, trail: Polyline | None) -> Trajectory:
    """Make the trajectory of a pass.

    Raises:
        InputError: it leaves the terrain or has no length; names the field.
    """
    if spec.standing_m is not None:
        xy = np.array([spec.standing_m, spec.standing_m])
        yaw = np.full(2, np.radians(spec.yaw_deg))
        return _trajectory(np.array([0.0, spec.duration_s]), xy, yaw, spec, terrain)
    if spec.arc is not None:
        arc = spec.arc
        bearing = np.radians(np.linspace(arc.from_deg, arc.to_deg, arc.n_poses))
        xy = arc.centre_m + arc.radius_m * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
        step_s = arc.radius_m * abs(bearing[1] - bearing[0]) / spec.speed_mps
        if step_s == 0:
            raise InputError("arc", "from_deg and to_deg are the same; expected an angle between them")
        return _trajectory(step_s * np.arange(len(xy)), xy, bearing + np.pi, spec, terrain)
    line = trail if spec.waypoints_m is None else Polyline(spec.waypoints_m, smooth=spec.smooth)
    if line is None:
        raise InputError("along_trail", "the scene has no trail")
    end_m = min(line.length_m, spec.to_m or np.inf)
    if end_m <= spec.from_m:
        raise InputError("from_m", f"the way is only {line.length_m:.1f} m long")
    way = np.linspace(spec.from_m, end_m, max(2, int(np.ceil((end_m - spec.from_m) / _STEP_M)) + 1))
    yaw = np.unwrap(line.heading_rad(way))
    xy = line.at(way) + spec.offset_m * np.stack([-np.sin(yaw), np.cos(yaw)], axis=1)
    return _trajectory((way - way[0]) / spec.speed_mps, xy, yaw, spec, terrain)


def _trajectory(time_s: Array, xy: Array, yaw: Array, spec: PassSpec, terrain: Terrain) -> Trajectory:
    z, pitch = np.full(len(xy), spec.height_m), np.zeros(len(xy))
    if spec.follow_terrain:
        outside = ~terrain.contains(*xy.T)
        if outside.any():
            x, y = xy[np.flatnonzero(outside)[0]]
            raise InputError("follow_terrain", f"the way leaves the terrain at ({x:.1f}, {y:.1f})")
        ground, slope = _under_wheels(terrain, xy, yaw)
        z = z + ground
        pitch = -np.arctan(slope) if spec.pitch else pitch  # REP 103: a positive pitch looks down
    half_yaw, half_pitch, zero = yaw / 2, pitch / 2, np.zeros(len(xy))
    turn = np.stack([zero, zero, np.sin(half_yaw), np.cos(half_yaw)], axis=1)
    nod = np.stack([zero, np.sin(half_pitch), zero, np.cos(half_pitch)], axis=1)
    time_ns = np.rint(time_s * 1e9).astype(np.int64)
    return Trajectory(time_ns, np.column_stack([xy, z]), rotation.multiply(turn, nod))


def _under_wheels(terrain: Terrain, xy: Array, yaw: Array) -> tuple[Array, Array]:
    """Mean height of the ground along the wheelbase [m], and how much it rises along it [m/m]."""
    along = np.linspace(-_WHEELBASE_M / 2, _WHEELBASE_M / 2, 7)
    x = xy[:, :1] + along * np.cos(yaw)[:, None]
    y = xy[:, 1:] + along * np.sin(yaw)[:, None]
    low_x, low_y, high_x, high_y = terrain.bounds_m
    z = terrain.height_m(np.clip(x, low_x, high_x), np.clip(y, low_y, high_y))
    return z.mean(axis=1), z @ along / (along @ along)
