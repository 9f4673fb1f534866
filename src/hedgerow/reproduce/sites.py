# SPDX-License-Identifier: Apache-2.0
"""Synthetic sites for the mobile experiments of 000 §6.2: an off-road trail and a street, both made of meshes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Trajectory
from hedgerow.physics import shapes
from hedgerow.physics.shapes import Mesh
from hedgerow.reproduce import plants
from hedgerow.world import Scene, SceneWorld, SurfaceNoise

# SemanticKITTI's numbers.
ROAD, BUILDING, FENCE, CAR, VEGETATION, TRUNK, TERRAIN, POLE = 40, 50, 51, 10, 70, 71, 72, 80
NOISE = SurfaceNoise(0.012, 0.001)
Array = NDArray[np.float64]


def trail_ground_m(x: Array, y: Array) -> Array:
    """Height of the off-road site [m]: a trail winding along x, swelling ground beside it."""
    beside = np.abs(y - 1.5 * np.sin(x / 12))
    return 0.35 * np.sin(x / 11) * np.cos(y / 8) + 0.25 * (1 - np.exp(-((beside / 3) ** 2)))


def offroad(seed: int = 0) -> SceneWorld:
    """Build a trail through meadow and trees, 90 m long."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    x, y = np.arange(-60, 60.1, 0.25), np.arange(-40, 40.1, 0.25)
    z = trail_ground_m(*np.meshgrid(x, y)) + 0.015 * rng.normal(size=(len(y), len(x)))
    scene.add_mesh(*shapes.height_field(x, y, z), label=TERRAIN, reflectance=0.25, noise=NOISE)
    kinds = [plants.tree(rng, 4.5, n_leaves) for n_leaves in (2500, 6000, 12000)]
    feet = _beside_the_trail(rng, 110, 3.5, 30)
    for kind, (trunk, crown) in enumerate(kinds):
        chosen = feet[kind::3]
        places = _placed(rng, chosen)
        scene.place(_scene_of(trunk, TRUNK, 0.3), places)
        scene.place(_scene_of(crown, VEGETATION, 0.45), places)
    bush = _scene_of(plants.shrub(rng, 1.6, 3000), VEGETATION, 0.4)
    scene.place(bush, _placed(rng, _beside_the_trail(rng, 220, 2.5, 28)))
    meadow = _scene_of(plants.grass(rng, 2.0, 250, 0.35), VEGETATION, 0.35)
    scene.place(meadow, _placed(rng, _beside_the_trail(rng, 700, 2.2, 25), turn=False))
    return SceneWorld(scene)


def urban(seed: int = 0) -> SceneWorld:
    """Build a street, 100 m long: houses, pavements, parked cars, poles, a chain-link fence, shrubs and a few trees."""
    rng = np.random.default_rng(seed)
    scene = Scene()

    def solid(mesh: Mesh, label: int, reflectance: float = 0.4) -> None:
        scene.add_mesh(*mesh, label=label, reflectance=reflectance, noise=NOISE)

    solid(shapes.rectangle((-70, -40, 0), (140, 0, 0), (0, 80, 0)), ROAD, 0.2)
    for side in (-1, 1):
        solid(shapes.box((-70, min(side * 4, side * 6.5), 0), (70, max(side * 4, side * 6.5), 0.15)), TERRAIN, 0.3)
    for x in range(-60, 60, 20):
        for side in (-1, 1):
            depth, wide, height = rng.uniform(7, 10), rng.uniform(10, 15), rng.uniform(5, 9)
            near = side * rng.uniform(9, 12)
            low, high = sorted((near, near + side * depth))
            solid(shapes.box((x, low, 0), (x + wide, high, height)), BUILDING, 0.5)
            for _ in range(6):  # recessed windows
                u, w = rng.uniform(1, wide - 2), rng.uniform(1, height - 2)
                edge = near - side * 0.15
                solid(shapes.rectangle((x + u, edge, w), (1.1, 0, 0), (0, 0, 1.4)), BUILDING, 0.15)
    for x in np.arange(-50, 50, 9.0):
        if rng.random() < 0.6:
            solid(shapes.box((x, 2.2, 0.2), (x + 4.3, 3.9, 1.4)), CAR, 0.5)
        solid(shapes.cylinder((x + 6, -6, 0), 6.0, 0.09), POLE, 0.4)
    fence = shapes.rectangle((-20, -8, 0.15), (30, 0, 0), (0, 0, 2))
    scene.add_mesh(*fence, permeability=0.7, label=FENCE, reflectance=0.6, noise=NOISE)
    trunk, crown = plants.tree(rng, 6.0, 6000)
    feet = np.array([[x, 6.2, 0.15] for x in (-45.0, -22, 3, 18, 41)])
    places = _placed(rng, feet)
    scene.place(_scene_of(trunk, TRUNK, 0.3), places)
    scene.place(_scene_of(crown, VEGETATION, 0.45), places)
    hedge = np.array([[x, 8.2, 0.0] for x in np.arange(-30, -5, 0.8)])
    scene.place(_scene_of(plants.shrub(rng, 1.2, 2000), VEGETATION, 0.4), _placed(rng, hedge))
    return SceneWorld(scene)


def pass_along(
    offset_m: float, length_m: float, ground: Callable[[Array, Array], Array] | None = None, height_m: float = 2.0
) -> Trajectory:
    """Drive along x at 5 m/s, to one side of the middle by `offset_m`; over the trail if `ground` is given [m]."""
    x = np.linspace(-length_m / 2, length_m / 2, 121)
    y = offset_m + (0 * x if ground is None else 1.5 * np.sin(x / 12))
    z = height_m + (0 * x if ground is None else ground(x, y))
    yaw, zero = np.arctan2(np.gradient(y), np.gradient(x)), np.zeros_like(x)
    quaternion = np.stack([zero, zero, np.sin(yaw / 2), np.cos(yaw / 2)], axis=1)
    way_m = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    return Trajectory(np.rint(way_m / 5.0 * 1e9).astype(np.int64), np.stack([x, y, z], axis=1), quaternion)


def _beside_the_trail(rng: np.random.Generator, n: int, near_m: float, far_m: float) -> Array:
    x = rng.uniform(-50, 50, n)
    y = 1.5 * np.sin(x / 12) + rng.choice([-1, 1], n) * rng.uniform(near_m, far_m, n)
    return np.stack([x, y, trail_ground_m(x, y)], axis=1)


def _placed(rng: np.random.Generator, feet: Array, *, turn: bool = True) -> Array:
    places = np.tile(np.eye(4), (len(feet), 1, 1))
    angle = rng.uniform(0, 2 * np.pi, len(feet)) if turn else np.zeros(len(feet))
    scale = rng.uniform(0.75, 1.25, len(feet)) if turn else np.ones(len(feet))
    places[:, 0, 0] = places[:, 1, 1] = np.cos(angle) * scale
    places[:, 1, 0] = np.sin(angle) * scale
    places[:, 0, 1] = -places[:, 1, 0]
    places[:, 2, 2] = scale
    places[:, :3, 3] = feet
    return places


def _scene_of(mesh: Mesh, label: int, reflectance: float) -> Scene:
    scene = Scene()
    scene.add_mesh(*mesh, label=label, reflectance=reflectance, noise=NOISE)
    return scene
