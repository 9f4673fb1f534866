# SPDX-License-Identifier: Apache-2.0
"""Conifers: a straight trunk, whorls of branches, flat sprays of shoots along them, and needles around the shoots."""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.scenes.mesh import MeshPart, join_meshes
from hedgerow.scenes.plants import leaves
from hedgerow.scenes.plants.branching import (
    GOLDEN_RAD,
    Branches,
    Crown,
    CrownShape,
    Habit,
    clip_heights,
    fit_lengths_m,
    grow_branches,
    tubes,
    turn_away,
)
from hedgerow.scenes.plants.plant import LeafAreaIndex, Metres, MetresOrNone
from hedgerow.scenes.plants.woody import WoodyParameters, children, trunk

SHOOT_SPACING_M = 0.045
"""Distance between the side shoots of a branch."""


class ConiferParameters(WoodyParameters):
    """A conifer; the defaults are a spruce of thirty years."""

    height_m: Metres = 10.0
    """Height from the ground to the top."""
    crown_diameter_m: Metres = 4.0
    """Width of the crown where it is widest."""
    crown_base_m: MetresOrNone = 0.8
    """Height of the lowest branches."""
    crown_shape: CrownShape = "cone"
    """Outline of the crown."""
    leaf_area_index: LeafAreaIndex = 6.0
    """Needle area (one side) per ground area under the crown."""
    stem_diameter_m: Metres = 0.18
    """Diameter of the trunk at breast height (1.3 m)."""
    whorl_spacing_m: Metres = 0.35
    """Height from one whorl of branches to the next: a year's growth."""
    whorl_branches: int = Field(default=7, ge=2, le=30)
    """Number of branches in a whorl."""
    droop: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.35
    """How much old branches hang down: 0 is level, 1 is steep; below 0 they rise, as those of a pine."""
    needle_length_m: Metres = 0.06
    """Length of a bundle of needles; each bundle is one triangle."""
    needle_width_m: Metres = 0.012
    """Width of a bundle of needles where it is widest."""

    @model_validator(mode="after")
    def _check_needles(self) -> Self:
        if self.whorl_spacing_m > 0.5 * (self.height_m - self.crown_base_m):
            raise InputError("whorl_spacing_m", f"{self.whorl_spacing_m:g} is more than half the depth of the crown")
        fine = self._n_branches * self.crown_diameter_m > self.foliage_m2 / self.needle_length_m
        self.require_few(*(("whorl_spacing_m", "shoots") if fine else ("needle_length_m", "needles")))
        return self

    @property
    def n_triangles(self) -> float:
        """One for each bundle of needles, 18 for each shoot and 48 for each branch."""
        needles = self.foliage_m2 * self.detail / (self.needle_length_m * self.needle_width_m / 2)
        shoots = self._n_branches * self.crown_diameter_m / 2 / SHOOT_SPACING_M * min(self.detail, 1.0) ** 0.5
        return needles + 18 * shoots + 48 * self._n_branches

    @property
    def _n_branches(self) -> float:
        return self.whorl_branches * self.height_m / self.whorl_spacing_m


def make_conifer(parameters: ConiferParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a tree: a trunk, its branches and its needles."""
    crown = Crown(parameters.crown_shape, parameters.crown_diameter_m, parameters.crown_base_m, parameters.height_m)
    stem = trunk(parameters.height_m - parameters.needle_length_m, parameters.stem_diameter_m, 0.02, rng)
    branches = clip_heights(_whorls(parameters, stem, crown, rng), crown.top_m)
    shoots = clip_heights(_shoots(branches, parameters.detail, rng), crown.top_m)
    wood = join_meshes(tubes(branches, 4), tubes(shoots, 3))
    woody = MeshPart(tubes(stem, 12), "bark", "trunk"), MeshPart(wood, "bark", "branch")
    if not parameters.foliage_m2:
        return woody
    scale = 1 / np.sqrt(parameters.detail)
    twigs = _needle_twigs(stem, branches, shoots)
    size = parameters.needle_length_m * scale, parameters.needle_width_m * scale
    needles = leaves.needles(twigs, parameters.foliage_m2, *size, parameters.height_m, rng)
    return *woody, MeshPart(needles, "needle", "needles")


def _whorls(parameters: ConiferParameters, stem: Branches, crown: Crown, rng: np.random.Generator) -> Branches:
    top = stem.spine_m[0, -1, 2]
    heights = np.arange(crown.base_m, top - 0.3 * parameters.whorl_spacing_m, parameters.whorl_spacing_m)
    heights = np.repeat(heights, parameters.whorl_branches)
    n = len(heights)
    # Two branches in three stand in the whorl, the others anywhere between it and the next one.
    offset = np.where(rng.random(n) < 0.67, rng.normal(0, 0.06, n), rng.random(n)) * parameters.whorl_spacing_m
    z = np.clip(heights + offset, crown.base_m, 0.985 * top)
    foot, _, radius = stem.at(np.zeros(n, dtype=np.int64), z / top)
    whorl = np.arange(n) // parameters.whorl_branches
    turn = np.arange(n) * 2 * np.pi / parameters.whorl_branches + whorl * GOLDEN_RAD + rng.normal(0, 0.15, n)
    share = (z - crown.base_m) / (crown.top_m - crown.base_m)
    # Young branches at the top rise at 45 degrees, old ones at the bottom hang.
    rise = np.radians(42 * share**1.5 - 35 * parameters.droop * (1 - share) + rng.normal(0, 5, n))
    level = np.stack([np.cos(turn), np.sin(turn), np.zeros(n)], axis=1)
    direction = np.cos(rise)[:, None] * level + np.sin(rise)[:, None] * [0, 0, 1]
    least = 0.35 * parameters.whorl_spacing_m
    length = crown.radius_m(z) / np.cos(rise)
    # One that rises may leave the crown through its upper side; one that hangs may end below it.
    length = np.where(rise > 0, np.minimum(length, fit_lengths_m(crown, foot, direction, length)), length)
    length = np.maximum(length * rng.uniform(0.8, 1.0, n), least)
    return grow_branches(
        foot, direction, length, np.minimum(0.5 * radius, 0.014 * length), Habit(6, 0.35, 0.12, 0.25), rng
    )


def _shoots(branches: Branches, detail: float, rng: np.random.Generator) -> Branches:
    """Side shoots to the left and the right of their branch, shorter towards its tip: a flat spray."""
    n = max(50, round(branches.length_m.sum() / SHOOT_SPACING_M * min(detail, 1.0) ** 0.5))
    which, along = children(branches, n, 0.06, rng)
    foot, heading, radius = branches.at(which, along)
    side = np.where(np.arange(n) % 2, 0.0, np.pi) + rng.normal(0, 0.35, n)
    direction = turn_away(heading, rng.normal(0.9, 0.12, n), side)
    length = branches.length_m[which] * (0.12 + 0.4 * (1 - along)) * rng.uniform(0.7, 1.15, n)
    return grow_branches(
        foot, direction, length, np.minimum(0.6 * radius, 0.012 * length), Habit(3, -0.1, 0.15, 0.4), rng
    )


def _needle_twigs(stem: Branches, branches: Branches, shoots: Branches) -> Branches:
    """Cut what bears needles into single segments: the shoots, the outer half of the branches and the leader."""
    n = branches.spine_m.shape[1] - 1
    spines = [_segments(shoots.spine_m), _segments(branches.spine_m[:, n // 2 :]), _segments(stem.spine_m[:, -2:])]
    spine = np.concatenate(spines)
    return Branches(spine, np.zeros(spine.shape[:2]))


def _segments(spine: Array) -> Array:
    return np.stack([spine[:, :-1], spine[:, 1:]], axis=2).reshape(-1, 2, 3)
