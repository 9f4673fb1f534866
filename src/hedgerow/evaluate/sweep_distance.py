# SPDX-License-Identifier: Apache-2.0
"""Mean distance to the nearest point of the other cloud, both ways (000 §5.2, 001 eq. 4.7 to 4.9).

000 takes the worse of the two ways, 001 their average. Sweep to sweep, each sweep is compared with its own simulation
and the distances of the sweeps are averaged, so no pose error enters. 000 writes sums (eq. 15); its tables, like ours,
are means over points.
"""

from typing import Self

from hedgerow.evaluate.nearest import Nearest
from hedgerow.evaluate.pair import Pair
from hedgerow.evaluate.values import Value


class SweepDistance:
    """Sums over sweeps of the distance from each to its simulation."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.n_sweeps = 0
        self.n_left_out = 0
        """Sweeps without any return, in reality or simulation: no distance is defined."""
        self.n_returns = 0
        self.worse_m = 0.0
        self.average_m = 0.0

    def add(self, pair: Pair) -> None:
        """Add one sweep."""
        real_m, simulated_m = pair.real.points_m, pair.points_m
        if len(real_m) == 0 or len(simulated_m) == 0:
            self.n_left_out += 1
            return
        there = float(pair.real.nearest.distance_m(simulated_m).mean())
        back = float(Nearest(simulated_m).distance_m(real_m).mean())
        self.n_sweeps += 1
        self.n_returns += len(real_m) + len(simulated_m)
        self.worse_m += max(there, back)
        self.average_m += (there + back) / 2

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.n_sweeps += other.n_sweeps
        self.n_left_out += other.n_left_out
        self.n_returns += other.n_returns
        self.worse_m += other.worse_m
        self.average_m += other.average_m

    def values(self) -> dict[str, Value]:
        """Return the mean over sweeps of the worse way (000) and of the average (001) [m]."""
        n = self.n_sweeps
        return {
            "sweep_distance_m": Value(self.worse_m / n if n else None, self.n_returns),
            "sweep_distance_average_m": Value(self.average_m / n if n else None, self.n_returns),
        }
