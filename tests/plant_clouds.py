# SPDX-License-Identifier: Apache-2.0
"""Clouds of points of which everything is known: ground, shrubs, trees, hedges, walls and posts."""

import numpy as np

from hedgerow.log import Log


def ground_points(rng, size_m=(30.0, 20.0), per_m2=60, slope=(0.0, 0.0), noise_m=0.01):
    n = int(size_m[0] * size_m[1] * per_m2)
    xy = rng.uniform(-0.5, 0.5, (n, 2)) * size_m
    return np.column_stack([xy, xy @ np.asarray(slope) + rng.normal(0, noise_m, n)])


def ball(rng, centre_m, radius_m, per_m3=150):
    """Points all through an ellipsoid: leaves."""
    radius = np.broadcast_to(np.asarray(radius_m, dtype=float), (3,))
    n = int(per_m3 * 4.19 * radius.prod())
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(centre_m) + radius * direction * rng.random((n, 1)) ** (1 / 3)


def stem(rng, x, y, height_m, radius_m=0.1, n=400):
    turn = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([x + radius_m * np.cos(turn), y + radius_m * np.sin(turn), rng.uniform(0, height_m, n)])


def tree(rng, x, y, height_m=9.0, crown_m=4.0):
    """A stem and a round crown that begins at a third of the height."""
    middle, half = 0.66 * height_m, 0.34 * height_m
    crown = ball(rng, (x, y, middle), (crown_m / 2, crown_m / 2, half))
    return np.concatenate([stem(rng, x, y, middle), crown])


def shrub(rng, x, y, height_m=2.0, width_m=2.0):
    """Half an ellipsoid on the ground."""
    points = ball(rng, (x, y, 0.0), (width_m / 2, width_m / 2, height_m))
    return points[points[:, 2] > 0]


def wall(rng, start, end, height_m=2.5, per_m2=150):
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    n = int(per_m2 * height_m * np.linalg.norm(end - start))
    along = start + rng.random((n, 1)) * (end - start)
    return np.column_stack([along + rng.normal(0, 0.005, (n, 2)), rng.uniform(0, height_m, n)])


def log_of(points_m, labels=None, n_sweeps=1):
    """A log of points alone: each is seen from a metre above it."""
    n = len(points_m)
    return Log.from_arrays(
        origins=points_m + np.array([0.0, 0.0, 1.0]),
        directions=np.tile([0.0, 0.0, -1.0], (n, 1)),
        ranges=np.ones(n),
        sweeps=np.arange(n) * n_sweeps // max(n, 1),
        labels=labels,
    )
