# SPDX-License-Identifier: Apache-2.0
"""Plants of the synthetic sites, leaf by leaf, so that "reality" is made of other stuff than the learned worlds."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.physics import shapes
from hedgerow.physics.shapes import Mesh

Array = NDArray[np.float64]


def crown_points(
    rng: np.random.Generator, n: int, radius_m: ArrayLike, n_clumps: int = 60, clump_m: float = 0.2
) -> Array:
    """Return (N, 3) places of leaves in an ellipsoid about 0: gathered in clumps, as twigs gather them [m]."""
    direction = rng.normal(size=(n_clumps, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    clumps = direction * rng.random((n_clumps, 1)) ** (1 / 3) * np.asarray(radius_m)
    return clumps[rng.integers(0, n_clumps, n)] + clump_m * rng.normal(size=(n, 3))


def tree(rng: np.random.Generator, height_m: float, n_leaves: int, leaf_m: float = 0.06) -> tuple[Mesh, Mesh]:
    """Return (trunk and branches, leaves) of a tree standing on 0."""
    crown_m = np.array([0.28, 0.28, 0.36]) * height_m
    middle = np.array([0, 0, 0.58 * height_m])
    trunk = shapes.cylinder((0, 0, 0), 0.6 * height_m, 0.022 * height_m, 0.01 * height_m)
    points = crown_points(rng, n_leaves, crown_m, n_clumps=max(20, n_leaves // 60), clump_m=0.03 * height_m)
    return trunk, shapes.leaves(points + middle, leaf_m, rng)


def shrub(rng: np.random.Generator, height_m: float, n_leaves: int, leaf_m: float = 0.04) -> Mesh:
    """Return the leaves of a shrub standing on 0."""
    size = np.array([0.6, 0.6, 0.45]) * height_m
    points = crown_points(rng, n_leaves, size, n_clumps=max(10, n_leaves // 40), clump_m=0.12 * height_m)
    points[:, 2] = np.abs(points[:, 2] + 0.5 * height_m)
    return shapes.leaves(points, leaf_m, rng)


def grass(rng: np.random.Generator, side_m: float, n_per_m2: float, height_m: float, width_m: float = 0.006) -> Mesh:
    """Return a square of grass with a corner at 0."""
    n = int(n_per_m2 * side_m**2)
    feet = np.concatenate([rng.uniform(0, side_m, (n, 2)), np.zeros((n, 1))], axis=1)
    return shapes.blades(feet, height_m * rng.uniform(0.6, 1.2, n), width_m, rng)
