# SPDX-License-Identifier: Apache-2.0
"""Histograms of range by beam direction, for a sensor that stands still (000 §5.1 and §6.1.2).

A direction is a ring with an azimuth and an elevation bin; each has range bins and one more for no return. Bins are
centred on multiples of their width: sensors report multiples of their resolution, which must not fall on an edge. Only
occupied bins are stored, so memory grows with what was seen, not with the number of beams.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams

_RANGE_BITS = 22
NO_RETURN = (1 << _RANGE_BITS) - 1
"""Range bin of beams without return; farther returns than the bins reach (8 km at 2 mm) count in the bin before."""
_SETTLE_AT = 4_000_000


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
        """Return the occupied bins, ascending (`split` reads them), and their counts."""
        if self._waiting:
            keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
            counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
            self._waiting, self._n_waiting = [], 0
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, int)
            self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(keys) else counts
        return self._keys, self._counts

    def _wait(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        self._waiting.append((keys, counts))
        self._n_waiting += len(keys)
        if self._n_waiting > _SETTLE_AT:
            self.entries()


def split(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of direction and range bin of occupied bins."""
    return keys >> _RANGE_BITS, keys & NO_RETURN
