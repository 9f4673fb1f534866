# SPDX-License-Identifier: Apache-2.0
"""A small place to navigate in: a walled yard with two trees and a meadow."""

import numpy as np
import pytest

from hedgerow.reproduce.yard import Yard
from hedgerow.scenes import mesh
from hedgerow.world import Scene, SceneWorld

GROUND, WALL, TRUNK, GRASS, LEAVES = 72, 114, 71, 101, 103


def flat(x, y):
    return np.zeros_like(x)


@pytest.fixture(scope="session")
def yard() -> Yard:
    rng = np.random.default_rng(2)
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((-20, -20, 0), (40, 0, 0), (0, 40, 0)), label=GROUND)
    scene.add_mesh(*mesh.box((-20.5, -20, 0), (-20, 20, 10)), label=WALL)
    meadow = mesh.blades(
        np.column_stack([rng.uniform(-5, 5, (4000, 2)), np.zeros(4000)]), np.full(4000, 0.6), 0.03, rng
    )
    scene.add_mesh(*meadow, label=GRASS)
    for x, y in ((10.0, -6.0), (2.0, 14.0)):
        scene.add_mesh(*mesh.cylinder((x, y, 0), 4.8, 0.18, 0.08), label=TRUNK)
        crown = rng.normal(size=(4000, 3)) * (0.9, 0.9, 0.9) + (x, y, 5.6)
        scene.add_mesh(*mesh.leaves(crown, 0.15, rng), label=LEAVES)
    solid = frozenset({WALL, TRUNK})
    trees = frozenset({TRUNK, LEAVES})
    return Yard("yard", SceneWorld(scene), flat, (-13.0, 0.0), (15.0, 0.0), frozenset({GRASS}), trees, solid)
