# SPDX-License-Identifier: Apache-2.0
"""Patches of grass: upright cylinders as in Goodin 2018 §3.4.1, and bent blades.

A patch is a rectangle around (0, 0), merged into one mesh: large patches placed side by side are faster to fire at
than single plants (docs/decisions.md, grass in patches). Everything is made in one go for all blades.
"""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.scenes.mesh import Mesh, MeshPart
from hedgerow.scenes.plants.blades import BladeParameters, bent_blades
from hedgerow.scenes.plants.plant import (
    MAX_TRIANGLES,
    LeafAreaIndex,
    Metres,
    MetresOrNone,
    PerSquareMetre,
    PlantParameters,
)


class PatchParameters(PlantParameters):
    """A rectangle with stems at random places."""

    side_m: Metres = 10.0
    """Extent of the patch in x, and in y too unless side_y_m is given."""
    side_y_m: Metres | None = None
    """Extent of the patch in y. Default: the same as in x."""
    density_per_m2: PerSquareMetre = 50.0
    """Mean number of stems or blades per square metre; they stand at independent random places (a Poisson process)."""

    @property
    def size_m(self) -> tuple[float, float]:
        """Extent in x and y [m]."""
        return self.side_m, self.side_m if self.side_y_m is None else self.side_y_m

    @property
    def area_m2(self) -> float:
        """Area of the rectangle [m²]."""
        return self.size_m[0] * self.size_m[1]

    @property
    def triangles_per_stem(self) -> int:
        """Triangles of one stem or blade, with all that grows on it."""
        return 1

    @property
    def n_triangles(self) -> float:
        """Triangles of the patch, on average."""
        return self.density_per_m2 * self.area_m2 * self.triangles_per_stem

    @model_validator(mode="after")
    def _check(self) -> Self:
        n, each = self.density_per_m2 * self.area_m2, self.triangles_per_stem
        if n * each > MAX_TRIANGLES:
            said = f"gives {n:.3g} stems of {each} triangles each; expected at most {MAX_TRIANGLES:,} triangles"
            raise InputError("density_per_m2", said)
        return self

    def feet_m(self, rng: np.random.Generator) -> Array:
        """Draw where the stems stand, (N, 3) [m]: a Poisson process."""
        n = rng.poisson(self.density_per_m2 * self.area_m2)
        x, y = (rng.uniform(-side / 2, side / 2, n) for side in self.size_m)
        return np.stack([x, y, np.zeros(n)], axis=1)


class CylinderGrassParameters(PatchParameters):
    """Grass of Goodin 2018 §3.4.1: uniform vertical cylinders, randomly placed."""

    diameter_m: Metres = 0.01
    """Diameter d of the stems; Goodin 2018 has 10 and 20 mm."""
    height_m: Metres = 0.5
    """Height of all stems."""
    sides: int = Field(default=8, ge=3, le=64)
    """Number of faces of a stem, two triangles each."""

    @property
    def triangles_per_stem(self) -> int:
        """Two for each face."""
        return 2 * self.sides


class BladeGrassParameters(BladeParameters, PatchParameters):
    """Bent blades."""

    density_per_m2: PerSquareMetre = 400.0
    """Mean number of blades per square metre, Poisson distributed; a mown lawn has tens of thousands."""
    tuft_blades: int = Field(default=6, ge=1, le=1000)
    """Mean number of blades in a tuft; 1 is no tufts."""
    tuft_radius_m: MetresOrNone = 0.03
    """Standard deviation of the distance in x and y between a blade and the middle of its tuft."""
    leaf_area_index: LeafAreaIndex | None = None
    """Leaf area (one side) per ground area; blade widths are scaled to meet it. Default: width_m as it is."""


def make_cylinder_grass(parameters: CylinderGrassParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a patch of upright cylinders.

    The mean width of a stem seen from the side is the diameter exactly, whatever the number of faces: the outline of a
    convex shape is on average its perimeter over pi wide (Cauchy), so the faces stand a little outside the circle.
    """
    feet, sides = parameters.feet_m(rng), parameters.sides
    radius = np.pi * parameters.diameter_m / (2 * sides * np.sin(np.pi / sides))
    turn = rng.uniform(0, 2 * np.pi, len(feet))
    angle = turn[:, None] + np.arange(sides) * 2 * np.pi / sides
    ring = feet[:, None] + np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros_like(angle)], axis=-1)
    vertices = np.stack([ring, ring + np.array([0, 0, parameters.height_m])], axis=1)
    i = np.arange(sides)
    j = (i + 1) % sides
    faces = np.concatenate([np.stack([i, j, i + sides], axis=1), np.stack([j, j + sides, i + sides], axis=1)])
    triangles = (2 * sides * np.arange(len(feet)))[:, None, None] + faces
    return (MeshPart(Mesh(vertices.reshape(-1, 3), triangles.reshape(-1, 3)), "grass", "grass"),)


def make_blade_grass(parameters: BladeGrassParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a patch of bent blades in tufts."""
    feet = gather_tufts(parameters.feet_m(rng), parameters, rng)
    area_m2 = None if parameters.leaf_area_index is None else parameters.leaf_area_index * parameters.area_m2
    return (MeshPart(bent_blades(feet, parameters, area_m2, rng), "grass", "grass"),)


def gather_tufts(feet_m: Array, parameters: BladeGrassParameters, rng: np.random.Generator) -> Array:
    """Gather (N, 3) feet around every n-th of them, without leaving the patch."""
    n, size = len(feet_m), np.asarray(parameters.size_m)
    if parameters.tuft_blades == 1 or n == 0:
        return feet_m
    middles = feet_m[rng.integers(0, max(1, n // parameters.tuft_blades), n), :2]
    near = middles + parameters.tuft_radius_m * rng.normal(size=(n, 2))
    # What would grow over the border comes in on the other side: patches side by side show no seam.
    near = (near + size / 2) % size - size / 2
    return np.concatenate([near, np.zeros((n, 1))], axis=1)
