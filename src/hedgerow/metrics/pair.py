# SPDX-License-Identifier: Apache-2.0
"""One sweep, real and simulated, with what several metrics need of it computed once: points and their nearest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams, Log
from hedgerow.metrics.incidence import incidence_deg
from hedgerow.world.forecast import DrawnColumns, Forecast, crps_of

FIRINGS = 12
"""Firings of each ring in a packet."""
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_WORTH_THREADS = 10_000  # fewer points are looked up before threads have started
_AT_ONCE = 1_000_000  # the tree also returns which points are nearest; for a whole log that is too much to hold


@dataclass(frozen=True, slots=True)
class SimulatedSweep:
    """What one simulation answers to the beams of one sweep."""

    range_m: NDArray[np.float32]
    """(N,) first ranges within the limits of the real log; inf is no return."""
    log_density: NDArray[np.float64] | None
    """(N,) of what was really measured; None if the simulation cannot tell."""
    forecast: Forecast | None = None
    """What the simulation expects of each beam, with the errors of what was measured; None if it cannot tell."""
    is_again: bool = False
    """Whether this is reality once more: another recording of the same beams, no simulation."""
    columns: Mapping[str, NDArray[Any] | None] = field(default_factory=dict[str, NDArray[Any] | None])
    """(N,) intensity and label of the first returns, where they are known."""
    own: Beams | None = None
    """The beams that were really simulated, if they are not those of the real sweep (matching.py)."""
    own_range_m: NDArray[np.float32] | None = None
    """Their first ranges, within the limits of the real log."""
    own_intensity: NDArray[np.float32] | None = None
    """Intensities of their first returns, where they are known."""
    partner: NDArray[np.bool_] | None = None
    """(N,) which real beams have a partner among them: only these rows mean anything."""
    drawn: DrawnColumns | None = None
    """Intensities and labels of several answers to some of the beams; None if there are none."""


class RealSweep:
    """What was measured in one sweep; shared by all simulations of it."""

    def __init__(self, log: Log, learned: "Nearest | None" = None) -> None:
        """Take the first returns of a log of one sweep, and the returns that worlds were learned from, if known."""
        self.log = log
        self.beams = log.beams
        self.range_m = log.returns.first_m
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)
        self.learned = learned

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) first returns, map frame."""
        return points_of(self.beams, self.range_m, self.hit)

    @cached_property
    def nearest(self) -> "Nearest":
        """Looks up distances to these points."""
        return Nearest(self.points_m)

    @cached_property
    def incidence_deg(self) -> NDArray[np.float64]:
        """(N,) angles at which beams met surfaces; NaN where there is no return or no plane around it."""
        return incidence_deg(self.beams, self.range_m)

    @cached_property
    def from_learned_m(self) -> NDArray[np.float64] | None:
        """(M,) distances of the first returns to the nearest learned one; None if nothing learned is known."""
        return None if self.learned is None else self.learned.distance_m(self.points_m)

    @cached_property
    def packet(self) -> NDArray[np.int64]:
        """(N,) number of the packet that each beam belongs to."""
        return packets(self.beams)


class SweepPair:
    """A real sweep and one simulation of it.

    Where the simulation has beams of its own, `real` and the arrays hold the real beams that have a partner among them:
    what scores of single beams are over. `whole`, `points_m` and `all_range_m` are for scores that need no partner.
    """

    def __init__(self, real: RealSweep, simulated: SimulatedSweep) -> None:
        """Put the simulation beside the sweep; both have one row per beam."""
        self.whole = real
        self.own = simulated.own
        self.partner = rows = simulated.partner
        self.real = real if rows is None else RealSweep(real.log[rows], real.learned)
        self.range_m = simulated.range_m if rows is None else simulated.range_m[rows]
        self.columns = {
            name: column if rows is None or column is None else column[rows]
            for name, column in simulated.columns.items()
        }
        self.all_range_m = self.range_m if simulated.own_range_m is None else simulated.own_range_m
        self.log_density = simulated.log_density
        self.forecast = simulated.forecast
        self.drawn = simulated.drawn
        self.own_intensity = simulated.own_intensity
        self.is_again = simulated.is_again
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) all simulated first returns, map frame."""
        beams = self.real.beams if self.own is None else self.own
        return points_of(beams, self.all_range_m, np.isfinite(self.all_range_m))

    @cached_property
    def there(self) -> "Found":
        """From each simulated return to the nearest real one; both sweeps must have some."""
        return self.whole.nearest.find(self.points_m)

    @cached_property
    def back(self) -> "Found":
        """From each real return to the nearest simulated one."""
        return Nearest(self.points_m).find(self.whole.points_m)

    @cached_property
    def crps_m(self) -> NDArray[np.float64] | None:
        """(N,) CRPS of each beam's range; of reality again half of how far both are apart; None if unknown."""
        if self.forecast is not None:
            return crps_of(self.forecast)
        limit_m = self.real.log.max_range_m
        if not self.is_again or not np.isfinite(limit_m):
            return None
        one, other = (np.minimum(each.astype(np.float64), limit_m) for each in (self.range_m, self.real.range_m))
        return np.abs(one - other) / 2

    def column(self, name: str) -> NDArray[Any] | None:
        """Return a column of the simulated first returns; None if the simulation does not know it."""
        return self.columns.get(name)


def packets(beams: Beams) -> NDArray[np.int64]:
    """Return the (N,) number, from 0, of the packet that each beam of one sweep belongs to: FIRINGS of each ring.

    A sweep without rings, or whose beams all have one time, is one packet.
    """
    counts = np.bincount(beams.ring)
    is_known = np.count_nonzero(counts) > 1
    time_ns = np.sort(beams.time_ns[beams.ring == counts.argmax()]) if is_known else np.zeros(0, dtype=np.int64)
    step_ns = np.diff(time_ns)
    step_ns = step_ns[step_ns > 0]
    if len(step_ns) == 0:
        return np.zeros(len(beams), dtype=np.int64)
    packet_ns = FIRINGS * float(np.median(step_ns))  # the median: masked beams leave gaps
    return np.floor((beams.time_ns - beams.time_ns.min()) / packet_ns).astype(np.int64)


def points_of(beams: Beams, range_m: NDArray[np.float32], hit: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the (M, 3) points of the beams that hit, map frame [m]."""
    along: NDArray[Any] = range_m[hit].astype(np.float64)[:, None] * beams.direction[hit]
    return beams.origin_m[hit] + along


@dataclass(frozen=True, slots=True)
class Found:
    """The nearest of some points to each of K others."""

    distance_m: NDArray[np.float64]
    """(K,) how far it is."""
    point: NDArray[np.int64]
    """(K,) which of the distinct points it is."""


class Nearest:
    """Finds the distance to the nearest of some points."""

    def __init__(self, points_m: NDArray[np.float64], *, distinct: bool = False) -> None:
        """Index (M, 3) points, M of 1 or more; unless they are known to be distinct, duplicates are dropped.

        A k-d tree cannot divide equal points: thousands of them in one leaf make every look-up slow.
        """
        if not distinct:
            _, first = np.unique(hash_points(points_m.view(np.uint64)), return_index=True)
            points_m = points_m if len(first) == len(points_m) else points_m[np.sort(first)]
        from scipy.spatial import cKDTree

        # Neither balanced nor compact: several times as fast where beams repeat and points lie in dense lines, and no
        # slower on other sweeps.
        self._tree: Any = cKDTree(points_m, balanced_tree=False, compact_nodes=False)

    def distance_m(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (K,) distances of (K, 3) points, on all cores [m]."""
        return np.concatenate([np.empty(0), *(distance_m for distance_m, _ in self._look_up(points_m))])

    def find(self, points_m: NDArray[np.float64]) -> Found:
        """Return the nearest point to each of (K, 3), and its distance."""
        parts = list(self._look_up(points_m))
        distance_m = np.concatenate([np.empty(0), *(each for each, _ in parts)])
        return Found(distance_m, np.concatenate([np.empty(0, dtype=np.int64), *(each for _, each in parts)]))

    def _look_up(self, points_m: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        for begin in range(0, len(points_m), _AT_ONCE):
            some = points_m[begin : begin + _AT_ONCE]
            yield self._tree.query(some, workers=-1 if len(some) >= _WORTH_THREADS else 1)


def hash_points(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash (N, 3) words to (N,) numbers; of ten million points no two collide, but for a chance of 3 in a million."""
    out = np.zeros(len(words), dtype=np.uint64)
    for column, multiplier in zip(words.T, _MULTIPLIERS, strict=True):
        out = (out ^ column) * multiplier
        out ^= out >> np.uint64(29)
    out *= _MULTIPLIERS[0]
    return out ^ (out >> np.uint64(32))
