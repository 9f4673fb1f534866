# SPDX-License-Identifier: Apache-2.0
"""Bent blades, of lawns, meadows and tussocks, and the tussock itself: a clump of blades on one foot."""

import numpy as np
from pydantic import Field

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Share
from hedgerow.scenes.mesh import Mesh, MeshPart
from hedgerow.scenes.plants.leaves import arc_spines, scaled_to_area
from hedgerow.scenes.plants.plant import Angle, Metres, PlantParameters


class BladeParameters(PlantParameters):
    """Shape of blades, and how finely they are cut into triangles."""

    height_m: Metres = 0.35
    """Mean height of the blades above the ground, bent as they are."""
    height_spread: Share = 0.25
    """Standard deviation of the height as a share of its mean; a normal law, cut off at two standard deviations."""
    width_m: Metres = 0.005
    """Width of a blade near its foot."""
    bend_deg: Angle = 55.0
    """Mean angle between the tip of a blade and the vertical."""
    bend_spread_deg: Angle = 25.0
    """The angle of a tip is uniform between bend_deg minus this and bend_deg plus this."""
    segments: int = Field(default=4, ge=1, le=64)
    """Number of segments along a blade, two triangles each."""
    folded: bool = False
    """Whether a blade is folded along its middle, as real ones are; takes twice the triangles."""

    @property
    def triangles_per_stem(self) -> int:
        """Two for each segment, four if it is folded."""
        return self.segments * (4 if self.folded else 2)


class TussockParameters(BladeParameters):
    """A tussock, or bunch grass."""

    blades: int = Field(default=120, ge=1, le=10_000)
    """Number of blades."""
    foot_radius_m: Metres = 0.08
    """Radius of the disk in which the blades stand."""

    @property
    def n_triangles(self) -> float:
        """Those of all blades."""
        return float(self.blades * self.triangles_per_stem)


def make_tussock(parameters: TussockParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make a tussock as one mesh part."""
    radius = parameters.foot_radius_m * np.sqrt(rng.random(parameters.blades))
    turn = rng.uniform(0, 2 * np.pi, parameters.blades)
    feet = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.zeros(parameters.blades)], axis=1)
    return (MeshPart(bent_blades(feet, parameters, None, rng), "grass", "grass"),)


def bent_blades(feet_m: Array, parameters: BladeParameters, area_m2: float | None, rng: np.random.Generator) -> Mesh:
    """Make a blade on each of (N, 3) feet; with an area, their widths are scaled to have it together (one side)."""
    n = len(feet_m)
    height = parameters.height_m * (1 + parameters.height_spread * truncated_normal(n, rng))
    spread = parameters.bend_spread_deg * rng.uniform(-1, 1, n)
    tip = np.radians(np.clip(parameters.bend_deg + spread, 0, 170))
    spine = arc_spines(feet_m, height, 0.15 * tip, tip, rng.uniform(0, 2 * np.pi, n), parameters.segments)
    along = np.linspace(0, 1, parameters.segments + 1)
    half_m = np.broadcast_to(parameters.width_m / 2 * (1 - 0.93 * along**2), (n, len(along)))
    return scaled_to_area(spine, half_m, area_m2, 0.35 if parameters.folded else 0.0)


def truncated_normal(n: int, rng: np.random.Generator) -> Array:
    """Draw n standard normal numbers between -2 and 2."""
    from scipy import special

    return special.ndtri(rng.uniform(special.ndtr(-2.0), special.ndtr(2.0), n))
