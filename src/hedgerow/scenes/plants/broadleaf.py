# SPDX-License-Identifier: Apache-2.0
"""Broad-leaved trees: a trunk, limbs that reach to the outline of the crown, boughs, twigs and single leaves."""

import numpy as np

from hedgerow.scenes.mesh import MeshPart
from hedgerow.scenes.plants.branching import (
    GOLDEN_RAD,
    Branches,
    Crown,
    CrownShape,
    Habit,
    fit_lengths_m,
    grow_branches,
    tubes,
    turn_away,
)
from hedgerow.scenes.plants.plant import Metres
from hedgerow.scenes.plants.woody import LeafyParameters, add_leaves, trunk


class BroadleafParameters(LeafyParameters):
    """A broad-leaved tree; the defaults are a young maple or lime."""

    stem_diameter_m: Metres = 0.22
    """Diameter of the trunk at breast height (1.3 m)."""
    crown_shape: CrownShape = "round"
    """Outline of the crown."""


def make_broadleaf(parameters: BroadleafParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a tree: a trunk, its branches and its leaves."""
    top = parameters.height_m - parameters.leaf_m
    crown = Crown(parameters.crown_shape, parameters.crown_diameter_m, parameters.crown_base_m, top)
    stem = trunk(0.93 * top, parameters.stem_diameter_m, 0.12, rng)
    limbs = _limbs(stem, crown, rng)
    return MeshPart(tubes(stem, 12), "bark", "trunk"), *add_leaves(limbs, crown, parameters, rng)


def _limbs(stem: Branches, crown: Crown, rng: np.random.Generator) -> Branches:
    depth = crown.top_m - crown.base_m
    n = int(np.clip(round(5 * depth), 14, 40))
    stem_top = stem.spine_m[0, -1, 2]
    # The lowest limbs leave the trunk below the leaves and rise into the crown.
    first = max(crown.base_m - 0.04 * depth, 0.02 * crown.top_m) / stem_top
    share = (np.arange(n) + rng.uniform(0, 1, n)) / n
    foot, heading, radius = stem.at(np.zeros(n, dtype=np.int64), np.clip(first + (1 - first) * share, 0, 1))
    away = np.radians(72 - 45 * share + rng.normal(0, 6, n))
    direction = turn_away(heading, away, np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.25, n))
    length = fit_lengths_m(crown, foot, direction, np.full(n, 0.75 * max(crown.diameter_m, depth))) * rng.uniform(
        0.85, 1, n
    )
    thick = np.minimum(0.55 * radius, 0.028 * length)
    return grow_branches(foot, direction, length, thick, Habit(8, 0.35, 0.3, 0.2), rng)
