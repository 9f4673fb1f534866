# SPDX-License-Identifier: Apache-2.0
"""Shrubs: several stems from one root, or a short trunk as of a potted shrub (Goodin 2018 §3.4.3), and leaves."""

import numpy as np
from pydantic import Field

from hedgerow.scenes.mesh import MeshPart
from hedgerow.scenes.plants.branching import (
    GOLDEN_RAD,
    Branches,
    Crown,
    CrownShape,
    Habit,
    fit_lengths_m,
    grow_branches,
)
from hedgerow.scenes.plants.leaves import LeafTriangles
from hedgerow.scenes.plants.plant import LeafAreaIndex, Metres, MetresOrNone
from hedgerow.scenes.plants.woody import LeafyParameters, add_leaves


class ShrubParameters(LeafyParameters):
    """A shrub."""

    height_m: Metres = 1.5
    """Height from the ground to the top."""
    crown_diameter_m: Metres = 1.6
    """Width of the shrub where it is widest."""
    crown_base_m: MetresOrNone = 0.0
    """Height of the lowest leaves; above 0 the stems below are bare."""
    crown_shape: CrownShape = "dome"
    """Outline of the leaves: dome is half an ellipsoid, round a whole one."""
    leaf_area_index: LeafAreaIndex = 4.0
    """Leaf area (one side) per ground area under the shrub."""
    leaf_length_m: Metres = 0.05
    """Length of a leaf."""
    leaf_triangles: LeafTriangles = 4
    """Triangles of a leaf: 2 make a diamond, 4 an oval."""
    stems: int = Field(default=9, ge=1, le=200)
    """Number of stems that come out of the ground."""
    stem_diameter_m: Metres = 0.025
    """Diameter of a stem at its foot."""


def make_shrub(parameters: ShrubParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a shrub: stems and twigs, and leaves."""
    crown = Crown(
        parameters.crown_shape,
        parameters.crown_diameter_m - parameters.leaf_m,
        parameters.crown_base_m,
        max(parameters.height_m - parameters.leaf_m, parameters.crown_base_m + 0.01),
    )
    return add_leaves(_stems(parameters, crown, rng), crown, parameters, rng, label="shrub", limb_sides=5)


def _stems(parameters: ShrubParameters, crown: Crown, rng: np.random.Generator) -> Branches:
    """Stems fan out from the root; where the crown begins higher, they rise to it first, close together."""
    n = parameters.stems
    turn = np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.3, n)
    # Even over the sky's half sphere, down to 20 degrees above the ground; a single stem stands upright.
    cosine = 1 - (np.arange(n) + 0.5) / n * (1 - np.cos(np.radians(70))) if n > 1 else np.ones(1)
    sine = np.sqrt(1 - cosine**2)
    outward = np.stack([np.cos(turn), np.sin(turn), np.zeros(n)], axis=1)
    direction = sine[:, None] * outward + cosine[:, None] * [0, 0, 1]
    root = 0.06 * crown.diameter_m * np.sqrt(sine)[:, None] * outward
    reach = np.hypot(crown.diameter_m / 2, crown.top_m)
    if crown.base_m > 0:  # aim at the crown instead of beside it
        aim = direction * [crown.diameter_m / 2, crown.diameter_m / 2, crown.top_m - crown.base_m]
        direction = aim + np.array([0, 0, crown.base_m])
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = fit_lengths_m(crown, root, direction, np.full(n, reach)) * rng.uniform(0.85, 1, n)
    thick = np.full(n, parameters.stem_diameter_m / 2)
    return grow_branches(root, direction, length, thick, Habit(7, 0.15, 0.25, 0.3), rng)
