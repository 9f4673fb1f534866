# SPDX-License-Identifier: Apache-2.0
"""Logs and sites that the tests of the volume models share."""

import numpy as np

from hedgerow.log import Beams, Log
from hedgerow.world import Scene, SceneWorld

NOWHERE = {"origins": (0, 0, 0), "directions": [[1.0, 0, 0]], "ranges": [np.inf]}


def log_of_points(points, *, seed=0, **more):
    """A log whose returns are these points (to float32 rounding of beams 5 m long), seen from all around."""
    direction = np.random.default_rng(seed).normal(size=(len(points), 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    direction = direction.astype(np.float32).astype(np.float64)
    return Log.from_arrays(
        origins=points - 5.0 * direction, directions=direction, ranges=np.full(len(points), 5.0), **more
    )


def random_log(rng, n, n_returns=2, spread_m=1.5):
    """Beams with up to two returns each, known and unknown intensities, labels, and no-returns."""
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    ranges = np.sort(rng.uniform(0.1, spread_m, (n, n_returns)), axis=1)
    ranges[rng.random(n) < 0.3, 1:] = np.inf
    ranges[rng.random(n) < 0.1] = np.inf
    intensity = np.where(rng.random(ranges.shape) < 0.1, np.nan, rng.uniform(0, 1, ranges.shape))
    return Log.from_arrays(
        origins=rng.uniform(-0.5, 0.5, (n, 3)),
        directions=direction,
        ranges=ranges,
        intensities=intensity,
        labels=rng.integers(0, 4, ranges.shape),
        sweeps=rng.integers(0, 5, n),
    )


def chunks_of(*logs):
    """A log source of these partitions."""
    return lambda: iter(logs)


NONE = np.zeros((0, 3))
REFUSALS = {
    "no parts": (chunks_of(), "log: has no beams.*select"),
    "no beams": (chunks_of(Log.from_arrays(origins=NONE, directions=NONE, ranges=[])), "log: has no beams.*select"),
    "no returns": (chunks_of(Log.from_arrays(**NOWHERE)), "log: none of its 1 beams has a return.*range limits"),
    "two maps": (
        chunks_of(log_of_points(np.zeros((9, 3))), log_of_points(np.ones((9, 3)), map_origin_m=(1, 0, 0))),
        "map_origin_m: differs",
    ),
}
"""Logs that no model can learn from, and the words of the refusal."""


def park(half_m=12.0, seed=0):
    """Ground with permeable bushes on it."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    n = 25
    x, y = np.meshgrid(*[np.linspace(-half_m, half_m, n)] * 2)
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    triangles = np.concatenate([np.c_[corner, corner + 1, corner + n], np.c_[corner + 1, corner + n + 1, corner + n]])
    scene.add_mesh(np.c_[x.ravel(), y.ravel(), 0.3 * np.sin(x.ravel() / 3)], triangles)
    bush = np.c_[rng.uniform(-half_m, half_m, (30, 2)), rng.uniform(0.4, 1.5, 30)]
    leaf = np.repeat(bush, 60, axis=0) + rng.normal(size=(1800, 3)) * 0.4
    scene.add_gaussians(leaf, np.eye(3) * rng.uniform(0.03, 0.12, 1800)[:, None, None] ** 2, permeability=0.6)
    return scene


def fired(scene, n, seed, max_range_m=30.0, half_m=10.0):
    """A log of n beams into all directions from random places 1.8 m above a park."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n, 3)) * [1, 1, 0.25] - [0, 0, 0.1]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    origin = np.c_[rng.uniform(-half_m, half_m, (n, 2)), np.full(n, 1.8)]
    beams = Beams.from_arrays(origins=origin, directions=direction, sweeps=np.arange(n) * 10 // n)
    return SceneWorld(scene, max_range_m=max_range_m).fire(beams, seed)
