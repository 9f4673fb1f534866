# SPDX-License-Identifier: Apache-2.0
"""Ferns: fronds that arch out of one root, each with leaflets to both sides that grow shorter towards the tip."""

import numpy as np
from pydantic import Field

from hedgerow.base.arrays import Array
from hedgerow.scenes.mesh import MeshPart, join_meshes
from hedgerow.scenes.plants.branching import GOLDEN_RAD, Branches, across, tubes, unit
from hedgerow.scenes.plants.leaves import arc_spines, scaled_to_area
from hedgerow.scenes.plants.plant import Angle, LeafArea, Metres, PlantParameters


class FernParameters(PlantParameters):
    """A fern."""

    height_m: Metres = 0.7
    """Height of the highest frond."""
    fronds: int = Field(default=16, ge=1, le=200)
    """Number of fronds of a plant."""
    bend_deg: Angle = 76.0
    """Mean angle between the tip of a frond and the vertical."""
    leaflets: int = Field(default=30, ge=2, le=200)
    """Number of leaflets on each side of a frond."""
    leaflet_m: Metres = 0.16
    """Length of the longest leaflets."""
    leaf_area_m2: LeafArea | None = None
    """Leaf area (one side) of the plant; leaflet widths are scaled to meet it. Default: 0.26 of their length."""

    @property
    def n_triangles(self) -> float:
        """A tube of ten segments for each frond, and six for each leaflet."""
        return float(self.fronds * (60 + 12 * self.leaflets))


def make_fern(parameters: FernParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a fern as one mesh part."""
    n = parameters.fronds
    tip = np.radians(np.clip(parameters.bend_deg + rng.normal(0, 12, n), 5, 150))
    height = parameters.height_m * np.append(rng.uniform(0.6, 0.95, n - 1), 1.0)
    heading = np.arange(n) * GOLDEN_RAD + rng.normal(0, 0.2, n)
    spine = arc_spines(np.zeros((n, 3)), height, np.radians(rng.uniform(5, 28, n)), tip, heading, 10)
    rachis = Branches(spine, np.broadcast_to(0.003 * np.linspace(1, 0.3, 11), (n, 11)))
    leaflets, half_m = _leaflets(rachis, parameters, rng)
    mesh = scaled_to_area(leaflets, half_m, parameters.leaf_area_m2)
    return (MeshPart(join_meshes(tubes(rachis, 3), mesh), "leaf", "vegetation"),)


def _leaflets(rachis: Branches, parameters: FernParameters, rng: np.random.Generator) -> tuple[Array, Array]:
    """Middle lines and half widths of the leaflets, in pairs from a fifth of the frond to its tip."""
    n, pairs = parameters.fronds, parameters.leaflets
    along = np.tile(np.repeat(np.linspace(0.2, 0.995, pairs), 2), n)
    which = np.repeat(np.arange(n), 2 * pairs)
    foot, heading, _ = rachis.at(which, along)
    level, _ = across(heading)
    side = np.where(np.arange(len(along)) % 2, 1.0, -1.0)[:, None] * level
    share = (along - 0.2) / 0.8
    outline = np.minimum(0.55 + 1.8 * share, 1.12 * (1 - share**1.7) + 0.05)
    length = parameters.leaflet_m * np.clip(outline, 0.05, 1) * rng.uniform(0.9, 1.1, len(along))
    out = unit(side + 0.45 * heading + 0.08 * rng.normal(size=(len(along), 3)))
    s = np.array([0.0, 0.35, 0.7, 1.0])
    hang = -0.22 * length[:, None] * s**2
    spine = foot[:, None] + out[:, None] * (length[:, None] * s)[..., None] + hang[..., None] * np.array([0, 0, 1])
    spine[..., 2] = np.maximum(spine[..., 2], 0)
    return spine, 0.13 * length[:, None] * np.array([0.9, 1.0, 0.65, 0.06])
