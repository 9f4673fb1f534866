# SPDX-License-Identifier: Apache-2.0
"""Worlds: what beams are fired at."""

from hedgerow.world.density import RangeDensity
from hedgerow.world.elements import Gaussians, Points, Triangles
from hedgerow.world.header import Provenance
from hedgerow.world.hits import Hits, Pierced
from hedgerow.world.labels import LabelCounts
from hedgerow.world.learned import LearnedWorld
from hedgerow.world.load import is_world, load_world
from hedgerow.world.noise import SurfaceNoise
from hedgerow.world.scene import Scene
from hedgerow.world.world import SceneWorld, World, WorldSize

__all__ = [
    "Gaussians",
    "Hits",
    "LabelCounts",
    "LearnedWorld",
    "Pierced",
    "Points",
    "Provenance",
    "RangeDensity",
    "Scene",
    "SceneWorld",
    "SurfaceNoise",
    "Triangles",
    "World",
    "WorldSize",
    "is_world",
    "load_world",
]
