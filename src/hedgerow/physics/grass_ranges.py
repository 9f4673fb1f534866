# SPDX-License-Identifier: Apache-2.0
"""Closed forms for the range of a beam shot into a stand of grass (003 section 3.4.1).

Stems are upright cylinders of one diameter at independent places. Both laws begin at the edge of the stand and know
its depth only by being cut off there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.arrays import Array


@dataclass(frozen=True)
class Stand:
    """A stand of grass in front of a beam."""

    distance_m: float
    """D, from the sensor to the edge."""
    stems_per_m2: float
    """lambda."""
    diameter_m: float
    """d, of a stem."""
    divergence_rad: float
    """gamma, full angle of the beam."""
    depth_m: float = np.inf
    """How far the stand reaches behind its edge; beams that pass it give no range."""

    def exponential(self, range_m: ArrayLike) -> Array:
        """Share of returns up to (N,) ranges if the nearest stem in the beam answers (003 eq. 2, after Macedo et al.).

        The paper's exponent has (r + D)² / 2; only with (r + D) / 2 is its density one, so that is what is meant.
        """
        r, a = np.asarray(range_m, dtype=np.float64), 2 * np.tan(self.divergence_rad / 2)

        def passed(r: Array | float) -> Array:
            into = np.maximum(np.asarray(r) - self.distance_m, 0)
            rate = self.stems_per_m2 * self.diameter_m
            return np.exp(-rate * into * (1 + a * (into + 2 * self.distance_m) / 2))

        end = passed(self.distance_m + self.depth_m) if np.isfinite(self.depth_m) else 0.0
        return np.minimum((1 - passed(r)) / (1 - end), 1)

    def gamma(self, range_m: ArrayLike) -> Array:
        """Share of returns up to (N,) ranges if the beam averages over its spot (003 eqs. 4 and 5)."""
        from scipy import special

        shape = 1 + self.divergence_rad * self.distance_m**2
        rate = shape * self.stems_per_m2 * self.diameter_m
        into = np.maximum(np.asarray(range_m, dtype=np.float64) - self.distance_m, 0)
        return np.minimum(special.gammainc(shape, rate * into) / special.gammainc(shape, rate * self.depth_m), 1)
