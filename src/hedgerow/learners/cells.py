# SPDX-License-Identifier: Apache-2.0
"""Cutting a large cloud into cells that fit in memory, without seams.

Square tiles would leave straight borders that no cluster crosses. Instead the first cuts of the recursive K-means are
made on a sample of the points: a cell is what one of its upper clusters is, and the borders between cells are borders
that the clusters would have anyway. The sample is the points whose positions have the smallest hashes, so it depends
neither on the order of the points nor on how the log is cut into parts, and samples of parts can be merged.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.learners.moments import RECORD

Split = Callable[[NDArray[np.float64], int], list[NDArray[np.integer]]]
"""Splits (M, 3) points into clusters, given a number that names the split; gives the rows of each cluster."""


class PointSample:
    """At most `size` of all the points that were added, fairly drawn and independent of their order."""

    def __init__(self, size: int) -> None:
        """Start with nothing."""
        self.size = size
        self.n_points = 0
        self._position_m = np.empty((0, 3))
        self._hash = np.empty(0, dtype=np.uint64)
        self._limit = np.uint64(2**64 - 1)

    def add(self, position_m: NDArray[np.float64]) -> None:
        """Add (M, 3) points."""
        self.n_points += len(position_m)
        hashed = _hash(position_m)
        low = hashed <= self._limit
        self._position_m = np.concatenate([self._position_m, position_m[low]])
        self._hash = np.concatenate([self._hash, hashed[low]])
        if len(self._hash) > 2 * self.size:
            self._cut()

    def merge(self, other: "PointSample") -> None:
        """Add the sample of other points, of the same size."""
        self._position_m = np.concatenate([self._position_m, other._position_m])
        self._hash = np.concatenate([self._hash, other._hash])
        self.n_points += other.n_points
        self._cut()

    def position_m(self) -> NDArray[np.float64]:
        """(S, 3) the sample, S at most `size`."""
        self._cut()
        return self._position_m

    def _cut(self) -> None:
        # Only equal points have equal hashes, so it does not matter which of them are kept.
        order = np.argsort(self._hash, kind="stable")[: self.size]
        self._position_m, self._hash = self._position_m[order], self._hash[order]
        if len(order) == self.size:
            self._limit = self._hash[-1]


class CellTree:
    """Cells as the leaves of a tree of nearest means."""

    def __init__(self, sample: PointSample, max_points: int, min_sample: int, split: Split) -> None:
        """Cut until a cell stands for at most `max_points` of all points.

        Args:
            sample: of the points to be cut.
            max_points: a cell with more than about this many is cut again.
            min_sample: a cell with fewer points of the sample is not cut.
            split: K-means; what it cannot split, because all lies in one place, stays a cell.
        """
        position_m = sample.position_m()
        most = max(max_points * len(position_m) / max(sample.n_points, 1), min_sample)
        self.n_cells = 0
        self._means: list[NDArray[np.float64]] = []
        self._children: list[list[int]] = []
        self._cell: list[int] = []
        nodes = [position_m]
        for number, points in enumerate(nodes):  # grows while it is read
            groups = split(points, number) if len(points) > most else []
            cut = len(groups) > 1
            self._cell.append(-1 if cut else self.n_cells)
            self.n_cells += not cut
            self._children.append(list(range(len(nodes), len(nodes) + len(groups))) if cut else [])
            children = [points[group] for group in groups] if cut else []
            self._means.append(np.array([child.mean(axis=0) for child in children]).reshape(-1, 3))
            nodes.extend(children)

    def cells_of(self, position_m: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell, from 0 to n_cells - 1, that each of (M, 3) points lies in."""
        cell = np.empty(len(position_m), dtype=np.int64)
        open_nodes = [(0, np.arange(len(position_m)))]
        while open_nodes:
            node, rows = open_nodes.pop()
            if not self._children[node]:
                cell[rows] = self._cell[node]
                continue
            squared = [((position_m[rows] - mean_m) ** 2).sum(axis=1) for mean_m in self._means[node]]
            nearest = np.argmin(squared, axis=0)
            open_nodes.extend((child, rows[nearest == k]) for k, child in enumerate(self._children[node]))
        return cell


class CellFiles:
    """Points of cells in files of a folder, which the caller removes."""

    def __init__(self, folder: Path, n_cells: int) -> None:
        """Start with empty cells."""
        self._paths = [folder / f"cell_{cell:06d}.points" for cell in range(n_cells)]

    def append(self, cell: NDArray[np.int64], records: NDArray[Any]) -> None:
        """Add (M,) points of type RECORD to the (M,) cells they lie in.

        Raises:
            FileError: a file cannot be written.
        """
        order = np.argsort(cell, kind="stable")
        begin = np.searchsorted(cell[order], np.arange(len(self._paths) + 1))
        for path, first, last in zip(self._paths, begin[:-1], begin[1:], strict=True):
            if first == last:
                continue
            try:
                with path.open("ab") as file:
                    file.write(records[order[first:last]].tobytes())
            except OSError as error:
                raise FileError(
                    f"{path}: cannot be written, {error.strerror}; set TMPDIR to a folder with room"
                ) from error

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the points of each cell in turn; each file is removed when it has been read."""
        for path in self._paths:
            if not path.exists():
                yield np.empty(0, dtype=RECORD)
                continue
            records = np.fromfile(path, dtype=RECORD)
            path.unlink()
            yield records


def _hash(position_m: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Mix the bits of (M, 3) positions (the finaliser of splitmix64)."""
    bits = np.ascontiguousarray(position_m).view(np.uint64)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for axis in range(3):
        mixed = (mixed ^ bits[:, axis]) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
