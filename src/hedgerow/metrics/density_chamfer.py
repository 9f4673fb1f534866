# SPDX-License-Identifier: Apache-2.0
"""Density-aware Chamfer distance of a sweep and its simulation (Wu et al. 2021), between 0 and 1.

The mean distance to the nearest point says little of how points are spread: a thousand of them in one place near a real
return are as good as one. Here every point x of one sweep, whose nearest of the other is y at distance d, counts

    1 - exp(-a d) / n(y),

where n(y) is how many points have y as their nearest. So of points that share one all but one count nearly 1, and a
point far from everything counts 1 however far it is: outliers cannot decide it. Both ways are averaged, and sweeps.

The paper has a = 1000 in clouds of unit size, and squares d in its code; we take the distance itself, as its equation
has it, and metres: 1 / a is `density_length_m`, 0.2 m, about how far neighbouring returns of a spinning sensor are
apart at 10 to 30 m. Noise of the range (2 cm) hardly counts then, and what misses a trunk counts in full. No factor for
unequal numbers of points is applied: too many or too few returns are a fault of a simulation.

Equations: docs/models.md §25.
"""

from typing import Self

import numpy as np

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import Found, SweepPair

DENSITY_CHAMFER_METRICS = {
    "density_chamfer": Metric(
        label="Density-aware Chamfer",
        meaning="how far returns are from the nearest of the other sweep, and how many share that one: 0 if both are "
        "the same, 1 if nothing is near; averaged over both ways and over sweeps",
        source="Wu et al. 2021 eq. 6",
        better="low",
        near="reality",
        decimals=3,
        counts="returns",
    ),
}


def density_chamfer_one_way(found: Found, length_m: float) -> float:
    """Return the mean over points of 1 - exp(-d / length) / n, n of them having the same nearest."""
    shared = np.bincount(found.point)[found.point]
    return float((1 - np.exp(-found.distance_m / length_m) / shared).mean())


class DensityChamfer:
    """Sums over sweeps; it needs no partners of beams."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.length_m = settings.density_length_m
        self.n_sweeps = self.n_returns = 0
        self.sum = 0.0

    def add(self, pair: SweepPair) -> None:
        """Add one sweep; one without returns has no distance."""
        n_real, n_simulated = len(pair.whole.points_m), len(pair.points_m)
        if not n_real or not n_simulated:
            return
        self.n_sweeps += 1
        self.n_returns += n_real + n_simulated
        ways = (density_chamfer_one_way(found, self.length_m) for found in (pair.there, pair.back))
        self.sum += sum(ways) / 2

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.n_sweeps += other.n_sweeps
        self.n_returns += other.n_returns
        self.sum += other.sum

    def values(self) -> dict[str, Value]:
        """Return the mean over sweeps."""
        return {"density_chamfer": Value(self.sum / self.n_sweeps if self.n_sweeps else None, self.n_returns)}

    def notes(self) -> list[str]:
        """Say nothing: sweeps that are left out are told with the distances."""
        return []
