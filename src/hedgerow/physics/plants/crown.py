# SPDX-License-Identifier: Apache-2.0
"""Crown: the outline that branches grow to, by the words foresters use: shape, diameter, base height and top height."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.arrays import Array

CrownShape = Literal["round", "dome", "cone", "column", "vase"]

# Radius at t = 0 (base of the crown) to 1 (top), as a share of the largest.
_OUTLINES: dict[CrownShape, Callable[[Array], Array]] = {
    "round": lambda t: np.sqrt(1 - (2 * t - 1) ** 2),
    "dome": lambda t: np.sqrt(1 - t**2),
    "cone": lambda t: 1 - t**1.2,  # a little convex, as spruces are
    "column": lambda t: (1 - np.abs(2 * t - 1) ** 4) ** 0.25,
    "vase": lambda t: np.sqrt(1 - (2 * t**1.8 - 1) ** 2),
}


@dataclass(frozen=True, slots=True)
class Crown:
    """A body of revolution around the z axis."""

    shape: CrownShape
    diameter_m: float
    base_m: float
    """Height of its lowest point."""
    top_m: float

    @property
    def area_m2(self) -> float:
        """Ground area below the crown; leaf area indices refer to it."""
        return np.pi / 4 * self.diameter_m**2

    def radius_m(self, z_m: Array) -> Array:
        """Return its radius at heights of any shape; 0 above and below [m]."""
        t = (z_m - self.base_m) / (self.top_m - self.base_m)
        inside = (t >= 0) & (t <= 1)
        return np.where(inside, self.diameter_m / 2 * _OUTLINES[self.shape](np.clip(t, 0, 1)), 0.0)

    def reach_m(self, start_m: Array, direction: Array, most_m: Array, steps: int = 24) -> Array:
        """Return how far each of (N, 3) rays runs until it leaves the crown, at most (N,) `most_m` [m].

        A ray that begins below or beside the crown counts from where it enters it; one that never does has 0.
        """
        share = (np.arange(steps) + 1) / steps
        points = start_m[:, None] + direction[:, None] * (most_m[:, None] * share)[..., None]
        inside = np.hypot(points[..., 0], points[..., 1]) <= self.radius_m(points[..., 2])
        last = np.where(inside, share, 0.0).max(axis=1)
        return last * most_m
