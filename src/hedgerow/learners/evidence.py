# SPDX-License-Identifier: Apache-2.0
"""Which of two worlds predicts beams better, and where: log densities compared cell by cell.

Sums are whole numbers, the gains in steps of 2⁻²⁰ nat: they add up exactly, so partitions and order do not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log

_STEPS = float(1 << 20)
_BITS = 21
_MOST = 1 << (_BITS - 1)


def cells_of(position_m: NDArray[np.float64], cell_m: float) -> NDArray[np.int64]:
    """Return the (N,) numbers of the cubes of side `cell_m` that (N, 3) points lie in, map frame.

    Raises:
        InputError: a point is more than a million cells from the map's zero.
    """
    place = np.floor(position_m / cell_m).astype(np.int64)
    if (np.abs(place) >= _MOST).any():
        raise InputError(f"log: has points more than {_MOST * cell_m:g} m from the map's zero; move its origin")
    x, y, z = (place + _MOST).T
    return (x << 2 * _BITS) | (y << _BITS) | z


def returned_m(log: Log) -> NDArray[np.float64]:
    """Return the (N, 3) points that beams which all returned were measured at, map frame."""
    return log.beams.origin_m + log.returns.first_m.astype(np.float64)[:, None] * log.beams.direction


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """What evidence comes to, cell by cell."""

    cell: NDArray[np.int64]
    """(C,) numbers of the cells, rising."""
    n_sweeps: NDArray[np.int64]
    """(C,) sweeps with returns in the cell."""
    gain: NDArray[np.float64]
    """(C,) sum of the gains of the returns [nat]; above 0 the new world is better."""
    error: NDArray[np.float64]
    """(C,) standard error of the gain by the spread over sweeps [nat]; infinite for a single one."""

    def __getitem__(self, rows: NDArray[np.bool_]) -> Self:
        """Select cells by mask."""
        return type(self)(self.cell[rows], self.n_sweeps[rows], self.gain[rows], self.error[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """How much better one world predicts the returns in each cell than another, by sweep; adds up.

    The beams of one sweep share the error of its poses: what helps one of them helps its neighbours, and harms those
    of the next sweep. So sweeps are what evidence is counted by, not beams.
    """

    place: NDArray[np.int64]
    """(R, 2) cell and sweep, in rising order."""
    gain: NDArray[np.int64]
    """(R,) sum of the gains of the returns, fixed point."""

    @classmethod
    def none(cls) -> Self:
        """Nothing seen yet."""
        return cls(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, log: Log, gain: Callable[[Log], NDArray[np.float64]], cell_m: float) -> Self:
        """Compare two worlds by the returns of a log; each counts where it was measured.

        Args:
            log: any beams; those without a return are left out.
            gain: from M beams to the (M,) log densities of one world less those of the other [nat].
            cell_m: side of the cells [m].
        """
        hit = log[np.isfinite(log.returns.first_m)]
        if len(hit) == 0:
            return cls.none()
        place = np.stack([cells_of(returned_m(hit), cell_m), hit.beams.sweep.astype(np.int64)], axis=1)
        return cls._summed(place, np.rint(gain(hit) * _STEPS).astype(np.int64))

    def __add__(self, other: Self) -> Self:
        """Join the evidence of two partitions."""
        return self._summed(np.concatenate([self.place, other.place]), np.concatenate([self.gain, other.gain]))

    def by_cell(self) -> Gains:
        """Sum up over the sweeps of each cell."""
        cell, first, n = np.unique(self.place[:, 0], return_index=True, return_counts=True)
        if len(cell) == 0:
            return Gains(cell, n, np.zeros(0), np.zeros(0))
        each = self.gain / _STEPS
        gain = np.add.reduceat(self.gain, first) / _STEPS
        square = np.add.reduceat((each - np.repeat(gain / n, n)) ** 2, first)
        error = np.sqrt(np.divide(square * n, n - 1, out=np.full(len(n), np.inf), where=n > 1))
        return Gains(cell, n, gain, error)

    @classmethod
    def _summed(cls, place: NDArray[np.int64], gain: NDArray[np.int64]) -> Self:
        order = np.lexsort((place[:, 1], place[:, 0]))
        place = place[order]
        first = np.flatnonzero(np.diff(place, axis=0, prepend=-1).any(axis=1))
        return cls(place[first], np.add.reduceat(gain[order], first) if len(first) else gain)
