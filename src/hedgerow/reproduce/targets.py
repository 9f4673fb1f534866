# SPDX-License-Identifier: Apache-2.0
"""The six targets of 000 §6.1, 8 m from a standing sensor, each in a world of its own."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose
from hedgerow.physics import shapes
from hedgerow.physics.shapes import Mesh
from hedgerow.reproduce import plants
from hedgerow.sensor import Sensor
from hedgerow.world import Scene, SceneWorld, SurfaceNoise

DISTANCE_M = 8.0
EYE_M = 1.9
NOISE = SurfaceNoise(0.005, 0.0)  # 000 §6.1.2: sigma = 5 mm on a plane facing the sensor


@dataclass(frozen=True)
class Target:
    """A target and where to look for it."""

    name: str
    build: Callable[[np.random.Generator], list[Mesh]]
    low_m: float
    """Beams that pass the target's distance between these heights are kept [m]."""
    high_m: float
    half_width_m: float = 0.5


def _plane(rng: np.random.Generator) -> list[Mesh]:
    edge = (DISTANCE_M, 0, 0.8)
    return [
        shapes.rectangle(edge, (0.25, 0.9, 0), (0, 0, 2.0)),
        shapes.rectangle(edge, (0.45, -0.9, 0), (0, 0, 2.0)),
    ]


def _tree(n_leaves: int) -> Callable[[np.random.Generator], list[Mesh]]:
    def build(rng: np.random.Generator) -> list[Mesh]:
        return [part.moved((DISTANCE_M, 0, 0)) for part in plants.tree(rng, 2.6, n_leaves, 0.05)]

    return build


def _tall_grass(rng: np.random.Generator) -> list[Mesh]:
    ground = shapes.rectangle((DISTANCE_M - 3, -3, 0), (6, 0, 0), (0, 6, 0))
    return [ground, plants.grass(rng, 2.0, 900, 0.75, 0.007).moved((DISTANCE_M - 1, -1, 0))]


def _short_grass(rng: np.random.Generator) -> list[Mesh]:
    ground = shapes.rectangle((DISTANCE_M - 3, -3, 0), (6, 0, 0), (0, 6, 0))
    return [ground, plants.grass(rng, 2.4, 4000, 0.07, 0.004).moved((DISTANCE_M - 1.2, -1.2, 0))]


TARGETS = (
    Target("Plane", _plane, 1.2, 2.2),
    Target("High-density tree", _tree(9000), 1.0, 2.2),
    Target("Medium-density tree", _tree(3500), 1.0, 2.2),
    Target("Low-density tree", _tree(1400), 1.0, 2.2),
    Target("Tall grass", _tall_grass, 0.1, 0.8),
    Target("Short grass", _short_grass, -0.1, 0.1),
)


def target_world(target: Target, seed: int = 0) -> SceneWorld:
    """Build the target and nothing else."""
    scene = Scene()
    for mesh in target.build(np.random.default_rng(seed)):
        scene.add_mesh(*mesh, noise=NOISE)
    return SceneWorld(scene)


def look_at(target: Target, sensor: Sensor) -> tuple[Pose, NDArray[np.bool_]]:
    """Return where the sensor stands, and which pulses of a sweep go through the target."""
    pose = Pose.from_xyz_rpy((0, 0, EYE_M))
    beams = sensor.sweep(pose)
    reach = DISTANCE_M / np.where(beams.direction[:, 0] > 0.1, beams.direction[:, 0], np.inf)
    across = beams.origin_m[:, 1] + reach * beams.direction[:, 1]
    height = beams.origin_m[:, 2] + reach * beams.direction[:, 2]
    inside = (np.abs(across) < target.half_width_m) & (height > target.low_m) & (height < target.high_m)
    return pose, inside & (beams.direction[:, 0] > 0.1)
