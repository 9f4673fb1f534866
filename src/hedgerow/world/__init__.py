# SPDX-License-Identifier: Apache-2.0
"""Worlds: what beams are fired at."""

from hedgerow.world.elements import Gaussians, Points, RememberedBeams, Triangles
from hedgerow.world.labels import LabelCounts
from hedgerow.world.learned import LearnedWorld
from hedgerow.world.load import is_world, load_world
from hedgerow.world.scene import Hits, Pierced, Scene
from hedgerow.world.store.header import Provenance
from hedgerow.world.surface_noise import SurfaceNoise
from hedgerow.world.target import RangeDensity
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
    "RememberedBeams",
    "Scene",
    "SceneWorld",
    "SurfaceNoise",
    "Triangles",
    "World",
    "WorldSize",
    "is_world",
    "load_world",
]
