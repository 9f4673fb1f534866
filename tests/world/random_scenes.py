# SPDX-License-Identifier: Apache-2.0
"""Random small scenes, made twice: as a `Scene` (with instances) and flattened for the reference."""

import numpy as np
from reference import Reference

from hedgerow import Beams
from hedgerow.world import Scene, SurfaceNoise

NOISE = SurfaceNoise(0.015, 0.0014)
IDENTITY = np.eye(3)
SHIFT = np.array([1.0, 0.2, -0.1])


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q if np.linalg.det(q) > 0 else -q


def random_parts(rng, n_triangles=4, n_gaussians=5, centre=(6.0, 0.0, 0.0), spread=1.5):
    """Triangles and Gaussians scattered about a point, as plain arrays."""
    corners = (
        np.asarray(centre) + rng.normal(size=(n_triangles, 1, 3)) * spread + rng.normal(size=(n_triangles, 3, 3)) * 2.5
    )
    sigma = rng.uniform(0.1, 0.7, size=(n_gaussians, 3))
    axes = np.stack([rotation(rng) for _ in range(n_gaussians)])
    return {
        "corners": corners,
        "rho": rng.uniform(0.2, 0.9, n_triangles),
        "mean": np.asarray(centre) + rng.normal(size=(n_gaussians, 3)) * spread * 0.5,
        "covariance": np.einsum("nij,nj,nkj->nik", axes, sigma**2, axes),
        "permeability": rng.uniform(0.2, 0.9, n_gaussians),
        "extinction": rng.uniform(0.5, 6.0, n_gaussians),
    }


def add(scene, parts):
    """Add the parts to a scene: triangles, Gaussians by permeability, the same by extinction and by depth, shifted."""
    n = len(parts["corners"])
    triangles = np.arange(3 * n).reshape(n, 3)
    scene.add_mesh(parts["corners"].reshape(-1, 3), triangles, permeability=parts["rho"], noise=NOISE)
    scene.add_gaussians(parts["mean"], parts["covariance"], permeability=parts["permeability"], tau=2.5)
    scene.add_gaussians(parts["mean"] + SHIFT, parts["covariance"], extinction_per_m=parts["extinction"])
    scene.add_gaussians(parts["mean"] - SHIFT, parts["covariance"], depth=parts["extinction"], tau=2.7)


def add_reference(reference, parts, first, linear=IDENTITY, shift=(0.0, 0.0, 0.0)):
    """The same for the reference, moved by an affine transform; returns the next free number."""
    number = first
    for corners, rho in zip(parts["corners"], parts["rho"], strict=True):
        reference.triangles.append((corners @ linear.T + shift, rho, NOISE.sigma0_m, NOISE.sigma_a_m, number))
        number += 1
    for law, stop, tau, offset in (
        ("permeability", parts["permeability"], 2.5, 0 * SHIFT),
        ("extinction", parts["extinction"], 3.5, SHIFT),
        ("depth", parts["extinction"], 2.7, -SHIFT),
    ):
        for mean, covariance, s in zip(parts["mean"], parts["covariance"], stop, strict=True):
            moved = (mean + offset) @ linear.T + shift
            reference.gaussians.append((moved, linear @ covariance @ linear.T, tau, law, s, number))
            number += 1
    return number


def mixed_scene(seed):
    """Own elements plus a scene placed twice (rotated; scaled and sheared), as Scene and as Reference."""
    rng = np.random.default_rng(seed)
    own, placed = random_parts(rng), random_parts(rng, 3, 3)
    reference, scene, child = Reference(), Scene(), Scene()
    add(scene, own)
    add(child, placed)
    number = add_reference(reference, own, 0)
    for linear, shift in (
        (rotation(rng), np.array([2.0, 1.0, 0.5])),
        (rotation(rng) @ np.diag([0.7, 1.3, 1.0]) @ rotation(rng), np.array([4.0, -2.0, 1.0])),
    ):
        # Turned about its own middle, so that it stays in front of the sensor.
        middle = np.array([6.0, 0.0, 0.0])
        move = middle - linear @ middle + shift * 0.5
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = linear, move
        scene.place(child, matrix)
        number = add_reference(reference, placed, number, linear, move)
    assert scene.n_elements == number
    return scene, reference


def beams_of(origins, directions, **more):
    directions = np.asarray(directions, dtype=float)
    directions = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    return Beams.from_arrays(origins=origins, directions=directions, **more)


def fan(n, rng, spread=0.35):
    """n rays from the origin towards +x, spread at random."""
    directions = np.c_[np.ones(n), rng.uniform(-spread, spread, (n, 2))]
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
