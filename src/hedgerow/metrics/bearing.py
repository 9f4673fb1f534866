# SPDX-License-Identifier: Apache-2.0
"""Histograms of range by beam direction, for a sensor that stands still, and how far two are apart.

A direction is a ring with an azimuth and an elevation bin; each has range bins and one more for no return (Browning
2012 §5.1 and §6.1.2). Bins are centred on multiples of their width: sensors report multiples of their resolution, which
must not fall on an edge. Only occupied bins are stored, so memory grows with what was seen, not with the number of
beams.

Two histograms are compared by Bhattacharyya distance (Browning 2012 eq. 14) and histogram match (Tallavajhula 2018
§3.4.3). Browning 2012 compares two-dimensional histograms of bearing and range as a whole (Table 3); the distance in
each direction, averaged over directions, is stricter. Both are -log of the overlap sum(sqrt(h f)). Histograms that
share no bin would be infinitely far apart; from n and m beams no overlap below one shared beam, 1 / sqrt(n m), can be
told from none, so that is the bound. Beware of few beams: two samples of one distribution overlap incompletely too.

A sensor stands still if its sweeps are centred on one place and its directions repeat.

Equations: docs/models.md §26.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import RealSweep, SweepPair

BEARING_METRICS = {
    "bhattacharyya": Metric(
        label="Bhattacharyya, bearing by range",
        meaning="-log of the overlap of the two histograms of direction and range, with a bin for no return",
        source="Browning 2012 eq. 14, Table 3",
        better="low",
        decimals=3,
        counts="beams",
    ),
    "bhattacharyya_per_direction": Metric(
        label="Bhattacharyya, mean of directions",
        meaning="the same for the range histogram of each direction alone, averaged over the beams",
        source="Browning 2012 eq. 14",
        better="low",
        decimals=3,
        counts="beams",
    ),
    "histogram_match_m": Metric(
        label="Histogram match, mean of directions",
        meaning="how far returns have to move along their direction to turn one histogram into the other",
        source="Tallavajhula 2018 §3.4.3",
        better="low",
        unit="cm",
        scale=100,
        decimals=2,
        counts="beams",
    ),
}

_RANGE_BITS = 22
NO_RETURN = (1 << _RANGE_BITS) - 1
"""Range bin of beams without return; farther returns than the bins reach (8 km at 2 mm) count in the bin before."""
_SETTLE_AT = 4_000_000
_FEW_REPEATS = 100
SENSOR_SIZE_M = 0.5
"""Lasers of one sensor may leave from different places, but not farther apart than this."""


class Directions:
    """Numbers the directions, and reads the numbers."""

    def __init__(self, step_deg: float) -> None:
        """Divide the sphere in azimuth and elevation by one step, 0.045 deg or more, so that numbers fit 63 bits."""
        self.step_deg = step_deg
        self._n_azimuth = int(np.ceil(360 / step_deg - 1e-9))
        self._n_elevation = int(np.ceil(180 / step_deg)) + 1

    def of(self, beams: Beams) -> NDArray[np.int64]:
        """Return the (N,) numbers of the directions of beams, map frame."""
        x, y, z = beams.direction.astype(np.float64).T
        azimuth = np.rint(np.degrees(np.arctan2(y, x)) / self.step_deg).astype(np.int64) % self._n_azimuth
        elevation = np.rint((np.degrees(np.arcsin(np.clip(z, -1, 1))) + 90) / self.step_deg).astype(np.int64)
        return (beams.ring.astype(np.int64) * self._n_azimuth + azimuth) * self._n_elevation + elevation

    def ring_and_azimuth_deg(self, number: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the rings and the middle azimuths, from -180 to 180, of directions."""
        ring, azimuth = np.divmod(number // self._n_elevation, self._n_azimuth)
        return ring, (azimuth * self.step_deg + 180) % 360 - 180


class BearingHistogram:
    """Counts per direction and range bin."""

    def __init__(self, directions: Directions, range_step_m: float) -> None:
        """Start with nothing."""
        self.directions = directions
        self.range_step_m = range_step_m
        self._keys: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._n_waiting = 0

    def add(self, direction: NDArray[np.int64], range_m: NDArray[np.float32]) -> None:
        """Add beams: (N,) numbers of their directions and (N,) first ranges, inf for no return."""
        place = np.full(len(range_m), NO_RETURN, dtype=np.int64)
        hit = np.isfinite(range_m)
        place[hit] = np.minimum(np.rint(range_m[hit].astype(np.float64) / self.range_step_m), NO_RETURN - 1)
        self._wait(*np.unique(direction << _RANGE_BITS | place, return_counts=True))

    def merge(self, other: Self) -> None:
        """Add the counts of other beams."""
        self._wait(*other.entries())

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the occupied bins, ascending (`split_keys` reads them), and their counts."""
        if self._waiting:
            keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
            counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
            self._waiting, self._n_waiting = [], 0
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, int)
            self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(keys) else counts
        return self._keys, self._counts

    def n_directions(self) -> int:
        """Return how many directions have a beam."""
        direction, _ = split_keys(self.entries()[0])
        return int(np.count_nonzero(np.diff(direction))) + 1 if len(direction) else 0

    def _wait(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self._waiting.append((keys, counts))
        self._n_waiting += len(keys)
        if self._n_waiting > _SETTLE_AT:
            self.entries()


def split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of direction and range bin of occupied bins."""
    return keys >> _RANGE_BITS, keys & NO_RETURN


class StandstillCheck:
    """Bounding boxes of all origins and of the middles of the sweeps."""

    def __init__(self, tolerance_m: float) -> None:
        """Start with nothing; `tolerance_m` is how far apart the middles may lie."""
        self.tolerance_m = tolerance_m
        # Rows: lowest and highest origin, lowest and highest middle of a sweep.
        self._box_m: NDArray[np.float64] = np.array([[np.inf] * 3, [-np.inf] * 3] * 2)

    def add(self, origin_m: NDArray[np.float64]) -> None:
        """Add the (N, 3) origins of one sweep."""
        middle = origin_m.mean(axis=0)
        self._widen(np.stack([origin_m.min(axis=0), origin_m.max(axis=0), middle, middle]))

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self._widen(other._box_m)

    @property
    def is_standing(self) -> bool:
        """Whether nothing so far says that the sensor moved."""
        extent, wander = np.linalg.norm(self._box_m[1::2] - self._box_m[::2], axis=1)
        return bool(extent <= SENSOR_SIZE_M and wander <= self.tolerance_m)

    def _widen(self, box_m: NDArray[np.float64]) -> None:
        self._box_m[::2] = np.minimum(self._box_m[::2], box_m[::2])
        self._box_m[1::2] = np.maximum(self._box_m[1::2], box_m[1::2])


class BearingDistances:
    """The histograms of a real log and of its simulations, as long as the sensor may stand still."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing."""
        self.settings = settings
        self.directions = Directions(settings.bearing_step_deg)
        self.real = self._empty()
        self.simulated = {name: self._empty() for name in names}
        self._standstill = StandstillCheck(settings.static_tolerance_m)
        self._n_beams = 0
        self._max_range_m = 0.0

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        self._n_beams += len(real.range_m)
        self._max_range_m = max(self._max_range_m, real.log.max_range_m)
        self._standstill.add(real.beams.origin_m)
        if not self._may_be_static():
            self._drop()
            return
        direction = self.directions.of(real.beams)
        self.real.add(direction, real.range_m)
        for name, histogram in self.simulated.items():
            partner = pairs[name].partner
            histogram.add(direction if partner is None else direction[partner], pairs[name].range_m)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self._n_beams += other._n_beams
        self._max_range_m = max(self._max_range_m, other._max_range_m)
        self._standstill.merge(other._standstill)
        if not self._may_be_static():
            self._drop()
            return
        self.real.merge(other.real)
        for name, histogram in self.simulated.items():
            histogram.merge(other.simulated[name])

    def is_static(self) -> bool:
        """Whether the sensor stands still and repeats its directions, unless the settings say so."""
        if self.settings.static is not None:
            return self.settings.static
        n_directions = self.real.n_directions() if self._standstill.is_standing else 0
        return n_directions > 0 and self._n_beams / n_directions >= self.settings.min_repeats

    def values(self) -> dict[str, dict[str, Value]]:
        """Return the distances of each simulation; {} if the sensor moves."""
        if not self.is_static():
            return {}
        return {
            name: bearing_distances(self.real, each, self.settings.min_repeats, self._max_range_m)
            for name, each in self.simulated.items()
        }

    def notes(self) -> dict[str, list[str]]:
        """Say if the directions of a standing sensor repeat too rarely."""
        _, counts = self.real.entries()
        repeats = float(counts.sum()) / max(self.real.n_directions(), 1)
        if not self.is_static() or repeats >= _FEW_REPEATS:
            return {}
        note = (
            f"a direction has {repeats:.0f} beams on average: two samples of one distribution would not match "
            "either, so compare the Bhattacharyya distances with each other, not with 0"
        )
        return {name: [note] for name in self.simulated}

    def _may_be_static(self) -> bool:
        return self._standstill.is_standing if self.settings.static is None else self.settings.static

    def _empty(self) -> BearingHistogram:
        return BearingHistogram(self.directions, self.settings.range_step_m)

    def _drop(self) -> None:
        # A moving sensor would fill memory with histograms that mean nothing.
        self.real = self._empty()
        self.simulated = {name: self._empty() for name in self.simulated}


@dataclass(frozen=True, slots=True)
class _Joined:
    """Two histograms over the union of their bins, in order; only directions with beams enough in both."""

    direction: NDArray[np.int64]
    """(K,) 0 to D - 1."""
    range_bin: NDArray[np.int64]
    """(K,)."""
    real: NDArray[np.int64]
    simulated: NDArray[np.int64]
    n_real: NDArray[np.int64]
    """(D,) beams per direction."""
    n_simulated: NDArray[np.int64]


def bearing_distances(
    real: BearingHistogram, simulated: BearingHistogram, min_repeats: int, max_range_m: float
) -> dict[str, Value]:
    """Compare two histograms.

    Args:
        real, simulated: of the same steps.
        min_repeats: directions with fewer beams are left out.
        max_range_m: a beam without return counts as one here in the histogram match; inf: behind the farthest return.

    Returns:
        bhattacharyya (of the whole), bhattacharyya_per_direction (mean over beams), histogram_match_m (the same).
    """
    joined = _join(real, simulated, min_repeats)
    n = int(joined.n_real.sum())
    if n == 0:
        keys = ("bhattacharyya", "bhattacharyya_per_direction", "histogram_match_m")
        return {key: Value(None, 0) for key in keys}
    per_direction = _bhattacharyya(_overlap(joined), joined.n_real, joined.n_simulated)
    shared = np.sqrt(joined.real * joined.simulated.astype(np.float64)).sum()
    whole = _bhattacharyya(shared, joined.n_real.sum(), joined.n_simulated.sum())
    match_m = _matches(joined, max_range_m, real.range_step_m)
    return {
        "bhattacharyya": Value(float(whole), n),
        "bhattacharyya_per_direction": Value(float(np.average(per_direction, weights=joined.n_real)), n),
        "histogram_match_m": Value(float(np.average(match_m, weights=joined.n_real)), n),
    }


def _bhattacharyya(shared: NDArray[Any], n: NDArray[Any], m: NDArray[Any]) -> NDArray[np.float64]:
    """-log of the overlap, given sum(sqrt(counts * counts)), which is 1 for one shared beam."""
    overlap = np.maximum(shared, 1.0) / np.sqrt(n.astype(np.float64) * m)
    return np.maximum(-np.log(overlap), 0.0)  # rounding may take it a little below


def _overlap(joined: _Joined) -> NDArray[Any]:
    weights = np.sqrt(joined.real * joined.simulated.astype(np.float64))
    return np.bincount(joined.direction, weights, minlength=len(joined.n_real))


def _matches(joined: _Joined, max_range_m: float, step_m: float) -> NDArray[Any]:
    seen = joined.range_bin[joined.range_bin != NO_RETURN]
    end = int(seen.max()) + 1 if seen.size else 1
    if np.isfinite(max_range_m):
        end = max(end, round(max_range_m / step_m))
    place = np.where(joined.range_bin == NO_RETURN, end, joined.range_bin)
    difference = joined.real / joined.n_real[joined.direction] - joined.simulated / joined.n_simulated[joined.direction]
    # Within each direction the differences add up to 0, so one running sum serves all; after the last bin it is 0.
    running = np.abs(np.cumsum(difference))
    same = np.concatenate([joined.direction[1:] == joined.direction[:-1], [False]])
    gap = np.where(same, np.concatenate([np.diff(place), [0]]), 0)
    return np.bincount(joined.direction, running * gap, minlength=len(joined.n_real)) * step_m


def _join(real: BearingHistogram, simulated: BearingHistogram, min_repeats: int) -> _Joined:
    (real_keys, real_counts), (simulated_keys, simulated_counts) = real.entries(), simulated.entries()
    keys = np.union1d(real_keys, simulated_keys)
    counts = np.zeros((2, len(keys)), dtype=np.int64)
    counts[0, np.searchsorted(keys, real_keys)] = real_counts
    counts[1, np.searchsorted(keys, simulated_keys)] = simulated_counts
    number, range_bin = split_keys(keys)
    _, direction = np.unique(number, return_inverse=True)
    totals = np.stack([np.bincount(direction, row).astype(np.int64) for row in counts])
    enough: NDArray[np.bool_] = np.asarray((totals >= min_repeats).all(axis=0))
    keep = enough[direction]
    _, direction = np.unique(direction[keep], return_inverse=True)
    return _Joined(direction, range_bin[keep], counts[0, keep], counts[1, keep], totals[0, enough], totals[1, enough])
