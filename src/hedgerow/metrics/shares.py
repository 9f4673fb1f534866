# SPDX-License-Identifier: Apache-2.0
"""Distributions that need no partner of any beam: which share of beams returns at which elevation, and how the ranges
and the intensities of returns are distributed. They are given for logs of other programs too, whatever their beams.

- Share of returns by elevation: in bands of `elevation_step_deg`, the shares of real and of simulated beams that
  return; the mean absolute difference, weighted by the real beams of each band, over bands that both have.
- Ranges of returns: the area between the cumulative distributions, in metres: how far returns have to move on average
  to turn one distribution into the other. Beams without return are left out, since logs of other programs may not have
  them; with them it is the histogram match (range_histogram.py).
- Intensities of returns: the same, in the unit of the log.

Equations: docs/models.md §34.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.counts import GrowingHistogram, cumulative_difference
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import RealSweep, SweepPair

SHARES_METRICS = {
    "elevation_share_error": Metric(
        label="Share of returns by elevation",
        meaning="how far the share of beams that return is from the real one, on average over bands of elevation",
        better="low",
        unit="%",
        scale=100,
        decimals=2,
        counts="beams",
    ),
    "return_ranges_m": Metric(
        label="Ranges of returns",
        meaning="how far returns have to move along their beams to turn one distribution of ranges into the other",
        better="low",
        unit="cm",
        scale=100,
        decimals=2,
        counts="returns",
    ),
    "intensity_distribution": Metric(
        label="Intensities of returns",
        meaning="how far intensities have to change to turn one distribution into the other; in the unit of the log",
        better="low",
        decimals=4,
        counts="returns",
    ),
}
FINEST = 1 / 4096
"""Bins of intensities begin with this width."""
_OTHER_SCALE = 20  # medians of intensity that differ by this factor are of different units


class LogShares:
    """What is counted of one log."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.step_deg = settings.elevation_step_deg
        n_bands = int(np.ceil(180 / self.step_deg)) + 1
        self.beams: NDArray[np.int64] = np.zeros(n_bands, dtype=np.int64)
        """(B,) beams by elevation, from straight down."""
        self.returned: NDArray[np.int64] = np.zeros(n_bands, dtype=np.int64)
        self.ranges_m = GrowingHistogram(settings.histogram_step_m / 8)
        self.intensity = GrowingHistogram(FINEST)

    def add(self, beams: Beams, range_m: NDArray[np.float32], intensity: NDArray[np.float32] | None) -> None:
        """Add the beams of one sweep and their first returns."""
        hit = np.isfinite(range_m)
        elevation_deg = np.degrees(np.arcsin(np.clip(beams.direction[:, 2].astype(np.float64), -1, 1)))
        # Around multiples of the step: lasers point by whole degrees, and must not be split by rounding.
        band = np.rint((elevation_deg + 90) / self.step_deg).astype(np.int64)
        self.beams += np.bincount(band, minlength=len(self.beams))
        self.returned += np.bincount(band[hit], minlength=len(self.beams))
        self.ranges_m.add(range_m[hit])
        if intensity is not None:
            self.intensity.add(intensity[hit & np.isfinite(intensity)])

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log."""
        self.beams += other.beams
        self.returned += other.returned
        self.ranges_m.merge(other.ranges_m)
        self.intensity.merge(other.intensity)

    def to_dict(self) -> dict[str, Any]:
        """Return the bands that have beams, in types that JSON knows."""
        seen = np.flatnonzero(self.beams)
        return {
            "from_deg": ((seen - 0.5) * self.step_deg - 90).tolist(),
            "beams": self.beams[seen].tolist(),
            "returned": self.returned[seen].tolist(),
        }


class Shares:
    """The distributions of a real log and of its simulations."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing."""
        self.real = LogShares(settings)
        self.simulated = {name: LogShares(settings) for name in names}

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        self.real.add(real.beams, real.range_m, real.log.returns.first("intensity"))
        for name, shares in self.simulated.items():
            pair = pairs[name]
            beams, intensity = pair.own, pair.own_intensity
            if beams is None:
                beams, intensity = pair.real.beams, pair.column("intensity")
            shares.add(beams, pair.all_range_m, intensity)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.real.merge(other.real)
        for name, shares in self.simulated.items():
            shares.merge(other.simulated[name])

    def values(self) -> dict[str, dict[str, Value]]:
        """Return the differences of each simulation to the real log."""
        return {name: self._values(shares) for name, shares in self.simulated.items()}

    def notes(self) -> dict[str, list[str]]:
        """Say where beams of an elevation are missing, every beam returned, or intensities are of another unit."""
        return {name: list(self._notes(shares)) for name, shares in self.simulated.items()}

    def _values(self, simulated: LogShares) -> dict[str, Value]:
        both = (self.real.beams > 0) & (simulated.beams > 0)
        n = int(self.real.beams[both].sum())
        share, ours = (each.returned[both] / each.beams[both] for each in (self.real, simulated))
        error = float(self.real.beams[both] @ np.abs(share - ours)) / n if n else None
        found = {
            "elevation_share_error": Value(error, n),
            "return_ranges_m": Value(
                cumulative_difference(self.real.ranges_m, simulated.ranges_m),
                self.real.ranges_m.n + simulated.ranges_m.n,
            ),
        }
        apart = cumulative_difference(self.real.intensity, simulated.intensity)
        if apart is not None:
            found["intensity_distribution"] = Value(apart, self.real.intensity.n + simulated.intensity.n)
        return found

    def _notes(self, simulated: LogShares) -> Iterable[str]:
        alone = self.real.beams[simulated.beams == 0].sum() / max(self.real.beams.sum(), 1)
        if alone > 0.01:
            yield f"{alone:.0%} of the real beams are at elevations where the simulation has none"
        if (self.real.returned < self.real.beams).any() and (simulated.returned == simulated.beams).all():
            yield (
                "every simulated beam returned: if the log just leaves out those that did not, its hits, misses and "
                "shares of returns say nothing"
            )
        ours, theirs = self.real.intensity.median(), simulated.intensity.median()
        if min(ours, theirs) > 0 and max(ours, theirs) > _OTHER_SCALE * min(ours, theirs):
            yield (
                f"intensities seem to be of another unit: the median is {theirs:.3g}, that of the real log {ours:.3g}"
            )
