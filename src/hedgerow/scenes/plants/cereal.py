# SPDX-License-Identifier: Apache-2.0
"""Patches of tall stems with long leaves and a loose ear: oats, reed and other tall grasses."""

import numpy as np
from pydantic import Field

from hedgerow.base.parameters import Share
from hedgerow.scenes.mesh import Mesh, MeshPart, join_meshes
from hedgerow.scenes.plants.blades import truncated_normal
from hedgerow.scenes.plants.branching import GOLDEN_RAD, Branches, tubes, turn_away, unit
from hedgerow.scenes.plants.grass import PatchParameters
from hedgerow.scenes.plants.leaves import arc_spines, scaled_to_area, strips
from hedgerow.scenes.plants.plant import Angle, LeafAreaIndex, Metres, PerSquareMetre


class CerealParameters(PatchParameters):
    """Tall grass with ears; the defaults are a field of oats."""

    side_m: Metres = 5.0
    """Extent of the patch in x, and in y too unless side_y_m is given."""
    density_per_m2: PerSquareMetre = 250.0
    """Mean number of stems per square metre; they stand at independent random places (a Poisson process)."""
    height_m: Metres = 1.0
    """Mean height of the stems."""
    height_spread: Share = 0.08
    """Standard deviation of the height as a share of its mean; a normal law, cut off at two standard deviations."""
    stem_diameter_m: Metres = 0.004
    """Diameter of a stem at its foot."""
    bend_deg: Angle = 14.0
    """Mean angle between the top of a stem and the vertical."""
    leaves: int = Field(default=4, ge=0, le=30)
    """Number of leaves of a stem."""
    leaf_length_m: Metres = 0.3
    """Mean length of a leaf."""
    leaf_width_m: Metres = 0.011
    """Width of a leaf where it is widest."""
    leaf_area_index: LeafAreaIndex | None = None
    """Leaf area (one side) per ground area; leaf widths are scaled to meet it. Default: leaf_width_m as it is."""
    spikelets: int = Field(default=14, ge=0, le=200)
    """Number of grains of an ear."""

    @property
    def triangles_per_stem(self) -> int:
        """A tube of five segments, with ten for each leaf and four for each grain."""
        return 30 + 10 * self.leaves + 4 * self.spikelets


def make_cereal(parameters: CerealParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a patch: stems and leaves, and ears."""
    feet = parameters.feet_m(rng)
    n = len(feet)
    height = parameters.height_m * (1 + parameters.height_spread * truncated_normal(n, rng))
    tip = np.radians(parameters.bend_deg * rng.uniform(0.4, 1.6, n))
    spine = arc_spines(feet, height, np.zeros(n), tip, rng.uniform(0, 2 * np.pi, n), 5)
    radius = parameters.stem_diameter_m / 2 * np.linspace(1, 0.4, 6)
    stems = Branches(spine, np.broadcast_to(radius, (n, 6)))
    green = [tubes(stems, 3)]
    if n and parameters.leaves:
        green.append(_leaves(stems, parameters, rng))
    parts = [MeshPart(join_meshes(*green), "grass", "grass")]
    if n and parameters.spikelets:
        parts.append(MeshPart(_ears(stems, parameters, rng), "dry-grass", "grass"))
    return tuple(parts)


def _leaves(stems: Branches, parameters: CerealParameters, rng: np.random.Generator) -> Mesh:
    n = len(stems.spine_m) * parameters.leaves
    which = np.repeat(np.arange(len(stems.spine_m)), parameters.leaves)
    place = (np.tile(np.arange(parameters.leaves), len(stems.spine_m)) + rng.uniform(0.2, 0.8, n)) / parameters.leaves
    foot, _, _ = stems.at(which, 0.1 + 0.65 * place)
    length = parameters.leaf_length_m * rng.uniform(0.7, 1.3, n)
    tip = rng.uniform(1.2, 2.2, n)
    spine = arc_spines(foot, length, rng.uniform(0.2, 0.5, n), tip, rng.uniform(0, 2 * np.pi, n), 5)
    run = np.linalg.norm(np.diff(spine, axis=1), axis=-1).sum(axis=1)
    spine = foot[:, None] + (spine - foot[:, None]) * (length / run)[:, None, None]  # as long as was said
    spine[..., 2] = np.clip(spine[..., 2], 0, stems.spine_m[which, -1, 2, None])
    half_m = parameters.leaf_width_m / 2 * np.array([0.7, 1.0, 1.0, 0.85, 0.5, 0.05])
    area_m2 = None if parameters.leaf_area_index is None else parameters.leaf_area_index * parameters.area_m2
    return scaled_to_area(spine, np.broadcast_to(half_m, (n, 6)), area_m2)


def _ears(stems: Branches, parameters: CerealParameters, rng: np.random.Generator) -> Mesh:
    """Grains that hang around the upper fifth of each stem, on a wider circle further down, as an oat's."""
    n = len(stems.spine_m) * parameters.spikelets
    which = np.repeat(np.arange(len(stems.spine_m)), parameters.spikelets)
    share = (np.tile(np.arange(parameters.spikelets), len(stems.spine_m)) + rng.random(n)) / parameters.spikelets
    foot, heading, _ = stems.at(which, 0.8 + 0.2 * share)
    out = turn_away(heading, np.full(n, np.pi / 2), np.arange(n) * GOLDEN_RAD)
    start = foot + out * (0.045 * (1 - share) * parameters.height_m)[:, None]
    hang = unit(0.35 * out + np.array([0, 0, -1]))
    s = np.array([0.0, 0.4, 1.0])
    spine = start[:, None] + hang[:, None] * (0.022 * s)[:, None]
    return strips(spine, np.broadcast_to(0.0045 * np.array([0.3, 1.0, 0.05]), (n, 3)))
