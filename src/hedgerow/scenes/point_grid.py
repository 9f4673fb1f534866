# SPDX-License-Identifier: Apache-2.0
"""PointGrid: points summed up in the cells of a sparse grid, chunk by chunk, so that memory grows with the site alone.

Ten million points of a drive lie in about a million voxels. What stands in a cell is its number of points, their mean,
the highest of them, and how many are labelled as ground, as plants and as something else. Cells come out sorted by x,
then y, then z, so those of one column lie side by side. Sums are whole numbers of micrometres, so that they add up
alike however the points are cut into chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.labels import LABELS, vegetation_of, with_finer
from hedgerow.errors import InputError

_BITS = 21
_HALF = 1 << (_BITS - 1)
_UNITS_PER_M = 1 << 20
"""Places are summed up in steps of about a micrometre."""
_MERGE_ROWS = 4_000_000
"""Sums are merged when this many rows wait, or as many as there are cells."""
GROUND, PLANT, OTHER = 0, 1, 2
"""What a label says about a point; columns of `GridTable.labels`."""
_GROUND_KITTI = (40, 44, 48, 49, 60, 72)
_PLANT_KITTI = (70, 71)
_OUTLIER = 1


def label_groups() -> NDArray[np.int8]:
    """Return, for each label number, what it says about a point: GROUND, PLANT, OTHER, or -1 for nothing."""
    table = np.full(65536, OTHER, dtype=np.int8)
    table[[0, _OUTLIER]] = -1
    table[sorted(with_finer(_GROUND_KITTI) - vegetation_of(LABELS.values()))] = GROUND
    table[sorted(with_finer(_PLANT_KITTI) | vegetation_of(LABELS.values()))] = PLANT
    # Grass is what covers the ground: it says neither that a point is ground nor that it belongs to a plant.
    table[LABELS["grass"].number] = -1
    return table


_GROUP_OF_LABEL = label_groups()


@dataclass(frozen=True, slots=True, eq=False)
class GridTable:
    """The occupied cells of a grid, sorted by x, then y, then z."""

    key: NDArray[np.int64]
    """(V,) ascending; `PointGrid.keys` gives those of points."""
    count: Array
    """(V,) number of points, or sum of their weights."""
    mean_m: Array
    """(V, 3) map frame."""
    top_m: Array
    """(V,) z of the highest point."""
    labels: Array
    """(V, 3) number of points that are labelled as ground, as plants, as something else."""

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.key)

    def columns(self) -> NDArray[np.int64]:
        """(V,) key of the column of each cell: the same for all heights."""
        return self.key >> _BITS


class PointGrid:
    """Sums points in cells; see the module."""

    def __init__(self, side_m: float | Sequence[float]) -> None:
        """Start with nothing.

        Args:
            side_m: side of a cell, one for all axes or (3,) [m].
        """
        self.side_m: Array = np.broadcast_to(np.asarray(side_m, dtype=np.float64), (3,)).copy()
        self.origin_m: Array = np.zeros(3)
        """Corner of cell (0, 0, 0): whole cells near the first point, once there is one."""
        self._has_origin = False
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._n_waiting = 0

    def add(self, points_m: Array, label: NDArray[np.uint16] | None = None, weight: Array | None = None) -> None:
        """Add points.

        Args:
            points_m: (N, 3) map frame, finite.
            label: (N,) semantic classes.
            weight: (N,) how many points each one stands for, whole numbers. Default 1.

        Raises:
            InputError: a point lies too far from the first for a grid of such cells.
        """
        if not len(points_m):
            return
        key = self.keys(points_m)
        n = np.ones(len(points_m), dtype=np.int64) if weight is None else np.rint(weight).astype(np.int64)
        group = np.full(len(points_m), -1) if label is None else _GROUP_OF_LABEL[label]
        off_m = points_m - self.origin_m
        inside = np.rint((off_m - unpack(key) * self.side_m) * _UNITS_PER_M).astype(np.int64)
        columns = [n, *(n * axis for axis in inside.T)]
        columns += [np.where(group == each, n, 0) for each in (GROUND, PLANT, OTHER)]
        columns += [np.rint(off_m[:, 2] * _UNITS_PER_M).astype(np.int64)]
        self._waiting.append(_summed(key, np.stack(columns, axis=1)))
        self._n_waiting += len(self._waiting[-1][0])
        if self._n_waiting > max(_MERGE_ROWS, 2 * len(self._waiting[0][0])):
            self._merge()

    def keys(self, points_m: Array) -> NDArray[np.int64]:
        """Return (N,) the key of the cell of each point. Raises InputError if one lies too far off."""
        if not self._has_origin and len(points_m):
            self._has_origin = True
            self.origin_m = np.floor(points_m[0] / self.side_m) * self.side_m
        index = np.floor((points_m - self.origin_m) / self.side_m)
        if len(index) and np.abs(index).max() >= _HALF:
            reach_km = float(_HALF * self.side_m.min() / 1000)
            said = f"two of them are more than {reach_km:,.0f} km apart, too far for cells of {self.side_m.min():g} m"
            raise InputError("points", f"{said}; take larger cells, or leave out what is far away")
        return pack(index.astype(np.int64))

    def table(self) -> GridTable:
        """Return the cells."""
        self._merge()
        if not self._waiting:
            none = np.zeros(0)
            return GridTable(np.zeros(0, np.int64), none, np.zeros((0, 3)), none, np.zeros((0, 3)))
        key, sums = self._waiting[0]
        mean_m = self.origin_m + unpack(key) * self.side_m + sums[:, 1:4] / (_UNITS_PER_M * sums[:, :1])
        top_m = self.origin_m[2] + sums[:, 7] / _UNITS_PER_M
        return GridTable(key, sums[:, 0].astype(np.float64), mean_m, top_m, sums[:, 4:7].astype(np.float64))

    def _merge(self) -> None:
        if len(self._waiting) > 1:
            keys, sums = zip(*self._waiting, strict=True)
            self._waiting = [_summed(np.concatenate(keys), np.concatenate(sums))]
        self._n_waiting = sum(len(key) for key, _ in self._waiting)


def pack(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of (N, 3) cell numbers."""
    shifted = index + _HALF
    return (shifted[:, 0] << (2 * _BITS)) | (shifted[:, 1] << _BITS) | shifted[:, 2]


def unpack(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the (N, 3) cell numbers of keys."""
    mask = (1 << _BITS) - 1
    return np.stack([(key >> (2 * _BITS)) & mask, (key >> _BITS) & mask, key & mask], axis=1) - _HALF


def find(key: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each wanted key in sorted keys, -1 where it is not there."""
    if not len(key):
        return np.full(len(wanted), -1, dtype=np.int64)
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where(key[row] == wanted, row, -1)


def step(dx: int, dy: int, dz: int) -> int:
    """Return what to add to a key to get that of a neighbour."""
    return (dx << (2 * _BITS)) + (dy << _BITS) + dz


def _summed(key: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add up the rows of each key; of the last column the largest value counts."""
    order = np.argsort(key, kind="stable")
    key, columns = key[order], columns[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    sums = np.add.reduceat(columns, first, axis=0)
    sums[:, -1] = np.maximum.reduceat(columns[:, -1], first)
    return key[first], sums
