# SPDX-License-Identifier: Apache-2.0
"""Small logs and worlds with known answers, for the viewer's tests."""

import numpy as np

from hedgerow import Log
from hedgerow.view.web.session import Layer, Session, make_replay_layer, tell_apart
from hedgerow.world import Gaussians, LearnedWorld, Triangles

WALL_X_M = 10.0


def fan(n=200, sweeps=3, wall_x_m=WALL_X_M, every=0, max_range_m=50.0, **settings):
    """Sweeps of beams towards a wall at x = wall_x_m; of every so many beams one does not return."""
    azimuth = np.tile(np.linspace(-0.5, 0.5, n), sweeps)
    sweep = np.repeat(np.arange(sweeps), n)
    directions = np.c_[np.cos(azimuth), np.sin(azimuth), np.zeros_like(azimuth)]
    ranges = wall_x_m / np.cos(azimuth)
    if every:
        ranges[::every] = np.inf
    columns = {"intensities": np.linspace(0, 1, n * sweeps), "labels": sweep + 50, "rings": np.arange(n * sweeps) % 4}
    return Log.from_arrays(
        origins=np.c_[np.zeros(n * sweeps), 0.1 * sweep, np.zeros(n * sweeps)],
        directions=directions, ranges=ranges, times=sweep * 0.1, sweeps=sweep, max_range_m=max_range_m,
        **(columns | settings),
    )  # fmt: skip


def layer(log, name="real"):
    return Layer(name, log.sweeps, lambda number: log.select(sweep=number))


def session_of(*logs, world=None, seed=0):
    layers = [layer(log, f"log{i}") for i, log in enumerate(logs)]
    if world is not None:
        layers.append(make_replay_layer("world", world, layers[0], seed))
    return Session(tell_apart(layers))


def wall_world(x_m=WALL_X_M, permeability=0.0, max_range_m=50.0):
    """A wall across the fan, of two triangles."""
    y = 40.0
    corners = np.array([[[x_m, -y, -y], [x_m, y, -y], [x_m, y, y]], [[x_m, -y, -y], [x_m, y, y], [x_m, -y, y]]])
    share = np.full(2, permeability, dtype=np.float32)
    return LearnedWorld(Triangles.plain(corners, permeability=share), kind="test", max_range_m=max_range_m)


def bush_world(sigma_m=0.5, permeability=0.25, x_m=WALL_X_M, max_range_m=50.0):
    """One round Gaussian on the axis."""
    table = Gaussians.plain(
        np.array([[x_m, 0.0, 0.0]]), sigma_m**2 * np.eye(3)[None], stop=np.array([permeability], dtype=np.float32)
    )
    return LearnedWorld(table, kind="test", max_range_m=max_range_m)
