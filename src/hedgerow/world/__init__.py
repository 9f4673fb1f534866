# SPDX-License-Identifier: Apache-2.0
"""Worlds: what beams are fired at."""

from hedgerow.world.hits import Hits, Pierced
from hedgerow.world.noise import SurfaceNoise
from hedgerow.world.scene import Scene
from hedgerow.world.world import SceneWorld, World

__all__ = ["Hits", "Pierced", "Scene", "SceneWorld", "SurfaceNoise", "World"]
