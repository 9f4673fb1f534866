# SPDX-License-Identifier: Apache-2.0
"""The sites that the benchmarks fire at, and the HDL-64E drive through them."""

from functools import cache

import numpy as np

from hedgerow import Pose, Scene, Sensor, SurfaceNoise, Trajectory
from hedgerow.world.scene import whitening

N_GAUSSIANS = 500_000
TAU = 3.5


@cache
def sensor():
    return Sensor.named("hdl-64e-s2", rate_hz=10)


@cache
def drive(n_sweeps=8):
    """An HDL-64E, 2 m above the ground, driven along x at 5 m/s."""
    trajectory = Trajectory.line((-5, 0, 2), (5, 0, 2), 5.0)
    return sensor().drive(trajectory, mount=Pose(), n_sweeps=n_sweeps)


def ring_order(beams):
    """The order that serves packets best: by sweep, then ring, then time. The raw loops get their rays in it."""
    return np.lexsort((beams.time_ns, beams.ring, beams.sweep))


def terrain(n=1001, half_m=80.0, seed=0):
    """A rolling height field: vertices and 2 (n - 1)² triangles."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(*[np.linspace(-half_m, half_m, n)] * 2)
    z = 0.5 * np.sin(x / 15) * np.cos(y / 11) + 0.02 * rng.normal(size=x.shape)
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    triangles = np.concatenate([np.c_[corner, corner + 1, corner + n], np.c_[corner + 1, corner + n + 1, corner + n]])
    return np.c_[x.ravel(), y.ravel(), z.ravel()].astype(np.float32), triangles.astype(np.uint32)


def grass_patch(n_blades=10_000, side_m=10.0, segments=5, seed=1):
    """Bent blades on a square: 2 triangles per segment."""
    rng = np.random.default_rng(seed)
    foot = np.c_[rng.uniform(0, side_m, (n_blades, 2)), np.zeros(n_blades)]
    heading = rng.uniform(0, 2 * np.pi, n_blades)
    height, lean = rng.uniform(0.15, 0.5, n_blades), rng.uniform(0.02, 0.25, n_blades)
    across = np.c_[-np.sin(heading), np.cos(heading), np.zeros(n_blades)] * 0.004
    s = np.linspace(0, 1, segments + 1)
    spine = foot[:, None] + np.stack(
        [np.cos(heading)[:, None] * lean[:, None] * s**2, np.sin(heading)[:, None] * lean[:, None] * s**2,
         height[:, None] * s], axis=-1
    )  # fmt: skip
    width = (1 - 0.8 * s)[None, :, None] * across[:, None]
    vertices = np.stack([spine - width, spine + width], axis=2).reshape(-1, 3).astype(np.float32)
    first = (np.arange(n_blades)[:, None] * 2 * (segments + 1) + 2 * np.arange(segments)).ravel()
    triangles = np.concatenate([np.c_[first, first + 1, first + 2], np.c_[first + 1, first + 3, first + 2]])
    return vertices, triangles.astype(np.uint32)


def patch_places(n_side=32, side_m=10.0):
    """4x4 transforms that lay patches out on a square, each turned by a multiple of a right angle."""
    rng = np.random.default_rng(2)
    places = []
    for i in range(n_side):
        for j in range(n_side):
            c, s = [(1, 0), (0, 1), (-1, 0), (0, -1)][rng.integers(4)]
            middle = np.array([(i + 0.5 - n_side / 2) * side_m, (j + 0.5 - n_side / 2) * side_m])
            turn = np.array([[c, -s], [s, c]])
            matrix = np.eye(4)
            matrix[:2, :2] = turn
            matrix[:2, 3] = middle - turn @ [side_m / 2, side_m / 2]
            places.append(matrix)
    return np.array(places)


@cache
def gaussian_site(n=N_GAUSSIANS, seed=0):
    """What a voxel world of a site looks like: flat ground elements every 0.3 m, and clusters of vegetation.

    Returns:
        mean (N, 3), covariance (N, 3, 3), permeability (N,).
    """
    rng = np.random.default_rng(seed)
    x, y = (a.ravel() for a in np.meshgrid(*[np.arange(-80, 80, 0.3)] * 2))
    ground = np.c_[x, y, 0.5 * np.sin(x / 15) * np.cos(y / 11)]
    n_plants = n - len(ground)
    bushes = np.c_[rng.uniform(-80, 80, (n_plants // 400, 2)), rng.uniform(0.3, 4, n_plants // 400)]
    plants = bushes[rng.integers(0, len(bushes), n_plants)] + rng.normal(size=(n_plants, 3)) * [1.0, 1.0, 0.7]
    plants[:, 2] = np.abs(plants[:, 2])
    sigma = np.concatenate([np.tile([[0.087, 0.087, 0.02]], (len(ground), 1)), rng.uniform(0.04, 0.09, (n_plants, 3))])
    turns = np.linalg.qr(rng.normal(size=(n_plants, 3, 3)))[0]
    axes = np.concatenate([np.broadcast_to(np.eye(3), (len(ground), 3, 3)), turns])
    covariance = np.einsum("nij,nj,nkj->nik", axes, sigma**2, axes)
    permeability = np.concatenate([rng.uniform(0.2, 0.6, len(ground)), rng.uniform(0.5, 0.95, n_plants)])
    return np.concatenate([ground, plants]), covariance, permeability


def gaussian_scene():
    mean, covariance, permeability = gaussian_site()
    scene = Scene()
    scene.add_gaussians(mean, covariance, permeability=permeability, tau=TAU)
    return scene


def raw_gaussians():
    """The arrays that the raw loop wants."""
    mean, covariance, permeability = gaussian_site()
    return mean.astype(np.float32), whitening(covariance, 0.001), permeability.astype(np.float32), TAU


NOISE = SurfaceNoise(0.015, 0.0014)
