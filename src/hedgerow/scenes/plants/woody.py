# SPDX-License-Identifier: Apache-2.0
"""What shrubs and trees share: the parameters foresters quote, the trunk, and limbs that get twigs and leaves."""

from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.scenes.mesh import MeshPart, join_meshes
from hedgerow.scenes.plants import leaves
from hedgerow.scenes.plants.branching import (
    GOLDEN_RAD,
    Branches,
    Crown,
    Habit,
    clip_heights,
    fit_lengths_m,
    grow_branches,
    tubes,
    turn_away,
)
from hedgerow.scenes.plants.leaves import LeafTriangles
from hedgerow.scenes.plants.plant import LeafArea, LeafAreaIndex, Metres, MetresOrNone, PlantParameters

BREAST_M = 1.3
"""Height at which foresters measure the diameter of a stem."""
LEAVES_PER_TWIG = 12
"""Leaves on one twig, on average."""


class WoodyParameters(PlantParameters):
    """Size of a woody plant and of its leaves."""

    height_m: Metres = 8.0
    """Height from the ground to the top."""
    crown_diameter_m: Metres = 5.0
    """Width of the crown where it is widest."""
    crown_base_m: MetresOrNone = 2.0
    """Height of the lowest leaves."""
    leaf_area_index: LeafAreaIndex = 4.0
    """Leaf area (one side) per ground area under the crown."""
    leaf_area_m2: LeafArea | None = None
    """Leaf area (one side) of the whole plant. Default: what leaf_area_index gives."""
    detail: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)] = 1.0
    """Number of leaves and twigs as a share of the true number; below 1 they are fewer and larger, of the same area."""

    @property
    def foliage_m2(self) -> float:
        """Leaf area of the plant, one side [m²]."""
        if self.leaf_area_m2 is not None:
            return self.leaf_area_m2
        return self.leaf_area_index * np.pi / 4 * self.crown_diameter_m**2

    @model_validator(mode="after")
    def _check_crown(self) -> Self:
        if self.crown_base_m >= 0.95 * self.height_m:
            raise InputError(
                "crown_base_m",
                f"is {self.crown_base_m:g}, not clearly below height_m, {self.height_m:g}; "
                f"expected less than {0.95 * self.height_m:g}",
            )
        return self


class LeafyParameters(WoodyParameters):
    """A woody plant with broad leaves."""

    leaf_length_m: Metres = 0.09
    """Length of a leaf."""
    leaf_width: Annotated[float, Field(ge=0.01, le=2, allow_inf_nan=False)] = 0.6
    """Width of a leaf as a share of its length."""
    leaf_triangles: LeafTriangles = 2
    """Triangles of a leaf: 2 make a diamond, 4 an oval."""

    @model_validator(mode="after")
    def _check_leaves(self) -> Self:
        self.require_few("leaf_length_m", "leaves")
        if self.leaf_m >= min(self.crown_diameter_m, self.height_m):
            raise InputError("leaf_length_m", f"a leaf would be {self.leaf_m:g} m long, longer than the crown is wide")
        return self

    @property
    def n_triangles(self) -> float:
        """Those of the leaves, and twelve for each twig."""
        n_leaves = self.foliage_m2 / (self.leaf_m**2 * self.leaf_width / 2)
        return n_leaves * (self.leaf_triangles + 12 / LEAVES_PER_TWIG)

    @property
    def leaf_m(self) -> float:
        """Length of a leaf at this detail [m]."""
        return self.leaf_length_m / np.sqrt(self.detail)

    @property
    def n_twigs(self) -> int:
        """Twigs that carry the leaves."""
        return max(40, round(self.foliage_m2 / (self.leaf_m**2 * self.leaf_width / 2) / LEAVES_PER_TWIG))


def trunk(height_m: float, breast_diameter_m: float, wander: float, rng: np.random.Generator) -> Branches:
    """Grow a trunk with a flare at its foot; its diameter at breast height, or a sixth of its height, is given [m]."""
    segments = 14
    up = np.array([[0.0, 0.0, 1.0]])
    straight = grow_branches(
        np.zeros((1, 3)), up, np.array([height_m]), np.ones(1), Habit(segments, 0.6, wander, 1.0), rng
    )
    spine = straight.spine_m * [1, 1, height_m / straight.spine_m[0, -1, 2]]
    z = spine[0, :, 2]
    measured_m = min(BREAST_M, height_m / 6)
    taper = (1 - 0.93 * z / height_m) / (1 - 0.93 * measured_m / height_m)
    flare = 1 + 0.45 * np.exp(-z / (0.25 * measured_m))
    return Branches(spine, (breast_diameter_m / 2 * taper * flare)[None])


def children(parents: Branches, n: int, first: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array]:
    """Share n children among parents by their length; their places along them beyond a share `first`, spread evenly."""
    weight = parents.length_m * (1 - first)
    edges = np.concatenate([[0], np.cumsum(weight)]) / weight.sum()
    place = (np.arange(n) + rng.uniform(0, 1, n)) / n
    which = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, len(weight) - 1)
    along = (place - edges[which]) / (edges[which + 1] - edges[which])
    return which, first + (1 - first) * np.clip(along, 0, 1)


def boughs(limbs: Branches, crown: Crown, n: int, rng: np.random.Generator) -> Branches:
    """Grow n second-order branches from limbs, within the crown."""
    which, along = children(limbs, n, 0.15, rng)
    foot, heading, radius = limbs.at(which, along)
    direction = turn_away(heading, rng.uniform(0.6, 1.1, n), np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.4, n))
    wanted = limbs.length_m[which] * (0.62 - 0.37 * along) * rng.uniform(0.7, 1.2, n)
    length = fit_lengths_m(crown, foot, direction, wanted)
    return grow_branches(
        foot, direction, length, np.minimum(0.6 * radius, 0.02 * length), Habit(4, 0.35, 0.35, 0.35), rng
    )


def twigs(boughs: Branches, crown: Crown, n: int, length_m: float, rng: np.random.Generator) -> Branches:
    """Grow n twigs of about that length from branches, within the crown [m]."""
    which, along = children(boughs, n, 0.1, rng)
    foot, heading, radius = boughs.at(which, along)
    direction = turn_away(heading, rng.uniform(0.5, 1.1, n), np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.4, n))
    length = fit_lengths_m(crown, foot, direction, length_m * rng.uniform(0.6, 1.4, n))
    return grow_branches(
        foot, direction, length, np.minimum(0.7 * radius, 0.008 * length_m), Habit(2, 0.25, 0.25, 0.5), rng
    )


def add_leaves(
    limbs: Branches,
    crown: Crown,
    parameters: LeafyParameters,
    rng: np.random.Generator,
    *,
    label: str = "leaves",
    limb_sides: int = 6,
) -> tuple[MeshPart, ...]:
    """Give limbs their boughs, twigs and leaves: one mesh part of wood and one of leaves."""
    n_twigs = parameters.n_twigs
    second = boughs(limbs, crown, max(12, min(n_twigs // 6, 10 + 14 * len(limbs.spine_m))), rng)
    spacing = 0.12 * (crown.diameter_m * (crown.top_m - crown.base_m)) ** 0.5
    third = twigs(second, crown, n_twigs, float(np.clip(spacing, 2 * parameters.leaf_m, 0.9)), rng)
    limbs, second, third = (clip_heights(each, crown.top_m) for each in (limbs, second, third))
    wood = join_meshes(tubes(limbs, limb_sides), tubes(second, 4), tubes(third, 3))
    area = parameters.foliage_m2
    if not area:
        return (MeshPart(wood, "bark", "branch"),)
    size = parameters.leaf_m, parameters.leaf_width, parameters.height_m
    leaf = leaves.leaves(third, area, *size, rng, triangles=parameters.leaf_triangles)
    return MeshPart(wood, "bark", "branch"), MeshPart(leaf, "leaf", label)
