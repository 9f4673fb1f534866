# SPDX-License-Identifier: Apache-2.0
"""A small world for tests, a lane between hedgerows: a solid mesh (lane, shed, trunks), a permeable mesh (chain-link
fence) and Gaussians with extinction (hedges, grass, crowns).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Trajectory
from hedgerow.scenes import mesh
from hedgerow.world import Scene, SceneWorld, SurfaceNoise

# SemanticKITTI's numbers.
BUILDING, FENCE, VEGETATION, TRUNK, TERRAIN = 50, 51, 70, 71, 72
NOISE = SurfaceNoise(0.015, 0.0014)
LANE_M = 80.0
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plants:
    """How one kind of vegetation is made of Gaussians."""

    sigma_m: float
    """Mean size of an element."""
    extinction_per_m: float
    """How soon it stops a beam."""
    intensity: float


HEDGE = Plants(0.07, 4.0, 0.35)
CROWN = Plants(0.12, 3.0, 0.4)
GRASS = Plants(0.03, 8.0, 0.3)


def lane_world(seed: int = 0) -> SceneWorld:
    """Build the lane: 80 m long, hedges on both sides, trees, a fence and a shed."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    _add_ground(scene)
    for side in (-1, 1):
        _add_plants(scene, rng, HEDGE, _hedge_points(rng, side))
    _add_plants(scene, rng, GRASS, _verge_points(rng))
    for x, y in ((-24, 9), (-6, -8.5), (12, 8), (26, -9), (33, 9.5)):
        _add_tree(scene, rng, x, y)
    shed = mesh.box((14, -17, 0), (22, -11, 3.2))
    scene.add_mesh(*shed, label=BUILDING, reflectance=0.5, noise=NOISE)
    _add_fence(scene)
    return SceneWorld(scene)


def lane_trajectory(speed_mps: float = 5.0) -> Trajectory:
    """Drive down the lane, the sensor 1.9 m above the ground, swerving a little."""
    s = np.linspace(0, 1, 81)
    x, y = (s - 0.5) * 0.6 * LANE_M, 0.6 * np.sin(2 * np.pi * s)
    yaw = np.arctan2(np.gradient(y), np.gradient(x))
    zero = np.zeros_like(x)
    way_m = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    quaternion = np.stack([zero, zero, np.sin(yaw / 2), np.cos(yaw / 2)], axis=1)
    time_ns = np.rint(way_m / speed_mps * 1e9).astype(np.int64)
    return Trajectory(time_ns, np.stack([x, y, ground_m(x, y) + 1.9], axis=1), quaternion)


def ground_m(x: Array, y: Array) -> Array:
    """Height of the ground [m]: a worn lane along y = 0, swelling meadows beside it."""
    meadow = 0.25 * np.sin(x / 9) * np.cos(y / 7) + 0.12
    return meadow * (1 - np.exp(-((y / 4) ** 2)))


def _add_ground(scene: Scene) -> None:
    x, y = np.arange(-60, 60.5, 0.5), np.arange(-40, 40.5, 0.5)
    ground = mesh.height_field(x, y, ground_m(*np.meshgrid(x, y)))
    scene.add_mesh(*ground, label=TERRAIN, reflectance=0.25, noise=NOISE)


def _hedge_points(rng: np.random.Generator, side: int) -> Array:
    n = 14_000
    x = rng.uniform(-LANE_M / 2, LANE_M / 2, n)
    gap = (np.abs(x - 18) < 2.5) & (side < 0)  # the gate to the shed
    x = x[~gap & ~((np.abs(x + 12) < 2) & (side > 0))]
    y = side * (6 + 0.45 * rng.normal(size=len(x)) + 0.3 * np.sin(x / 4))
    top = 1.7 + 0.35 * np.sin(x / 2.3 + side)
    return np.c_[x, y, ground_m(x, y) + top * rng.beta(1.4, 1.2, len(x))]


def _verge_points(rng: np.random.Generator) -> Array:
    n = 40_000
    x, y = rng.uniform(-LANE_M / 2, LANE_M / 2, n), rng.uniform(2.2, 5.4, n) * rng.choice([-1, 1], n)
    return np.c_[x, y, ground_m(x, y) + rng.exponential(0.12, n).clip(max=0.5)]


def _add_plants(scene: Scene, rng: np.random.Generator, kind: Plants, points: Array) -> None:
    sigma = kind.sigma_m * rng.uniform(0.6, 1.4, (len(points), 3))
    turns = np.linalg.qr(rng.normal(size=(len(points), 3, 3)))[0]
    covariance = np.einsum("nij,nj,nkj->nik", turns, sigma**2, turns)
    extinction = kind.extinction_per_m * rng.uniform(0.5, 1.5, len(points))
    intensity = (kind.intensity * rng.uniform(0.6, 1.4, len(points))).astype(np.float32)
    scene.add_gaussians(points, covariance, extinction_per_m=extinction, label=VEGETATION, intensity=intensity)


def _add_tree(scene: Scene, rng: np.random.Generator, x: float, y: float) -> None:
    foot = np.array([x, y, float(ground_m(np.array(x), np.array(y)))])
    scene.add_mesh(*mesh.cylinder(foot, 4.0, 0.22, 0.12), label=TRUNK, reflectance=0.3, noise=NOISE)
    crown = rng.normal(size=(2500, 3))
    crown *= (rng.random((2500, 1)) ** (1 / 4)) / np.linalg.norm(crown, axis=1, keepdims=True)
    _add_plants(scene, rng, CROWN, foot + [0, 0, 4.6] + crown * [1.9, 1.9, 1.6])


def _add_fence(scene: Scene) -> None:
    # Chain link: one sheet that seven beams of ten pass.
    sheet = mesh.rectangle((-35, 10.5, 0), (21, 0, 0), (0, 0, 2))
    scene.add_mesh(*sheet, permeability=0.7, label=FENCE, reflectance=0.6, noise=NOISE)
