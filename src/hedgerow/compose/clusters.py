# SPDX-License-Identifier: Apache-2.0
"""What stands on the ground, as a graph of cells: which touch each other, and which seed each is nearest to.

Cells are cubes that hold points (`LinkedCells`). Neighbours that share a face, an edge or a corner are linked, and so
are cells of one column with a gap between them, since the rings of a lidar lie apart on what is upright.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.scenes.point_grid import find, pack, step, unpack

_HALF_AROUND = [(dx, dy, dz) for dx in (-1, 0, 1) for dy in (-1, 0, 1) for dz in (-1, 0, 1) if (dx, dy, dz) > (0, 0, 0)]
"""Half of the 26 neighbours: the others are found from the other side."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkedCells:
    """Cubes that hold points, and the links between them."""

    key: NDArray[np.int64]
    """(C,) ascending."""
    side_m: float
    link: Rows
    """(L, 2) cells that belong together, each pair once."""
    length_m: Array
    """(L,) distance between the middles of linked cells."""

    @classmethod
    def of(cls, points_m: Array, origin_m: Array, side_m: float, gap_m: float) -> "tuple[LinkedCells, Rows]":
        """Put points into cells and link these.

        Args:
            points_m: (N, 3) map frame.
            origin_m: (3,) corner of a cell.
            side_m: of the cells.
            gap_m: cells of one column are linked over gaps up to this.

        Returns:
            The cells, and (N,) the cell of each point.
        """
        index = np.floor((points_m - origin_m) / side_m).astype(np.int64)
        key, cell = np.unique(pack(index), return_inverse=True)
        links = [_links(key, each, np.sqrt(float(np.dot(each, each))) * side_m) for each in _HALF_AROUND]
        above = [(0, 0, dz) for dz in range(2, int(gap_m / side_m) + 2)]
        links += [_links(key, each, each[2] * side_m) for each in above]
        link = np.concatenate([pair for pair, _ in links])
        return cls(key, side_m, link, np.concatenate([length for _, length in links])), cell.reshape(-1)

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.key)

    def components(self, keep: NDArray[np.bool_] | None = None) -> tuple[int, NDArray[np.int64]]:
        """Return how many groups of linked cells there are, and (C,) the group of each; -1 for cells not kept."""
        from scipy import sparse

        csgraph: Any = sparse.csgraph
        chosen = np.ones(len(self), dtype=np.bool_) if keep is None else keep
        pairs = self.link[chosen[self.link].all(axis=1)]
        graph = sparse.coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(self), len(self)))
        _, group = csgraph.connected_components(graph.tocsr(), directed=False)
        numbers, group = np.unique(group[chosen], return_inverse=True)
        out = np.full(len(self), -1, dtype=np.int64)
        out[chosen] = group.reshape(-1)
        return len(numbers), out

    def nearest_seed(self, cell: Rows, seed: Rows) -> NDArray[np.int64]:
        """Return (C,) the seed that each cell is nearest to along the links; -1 where none can be reached.

        Args:
            cell: (S,) cells that are seeds.
            seed: (S,) the number of the seed that each belongs to.
        """
        from scipy import sparse

        csgraph: Any = sparse.csgraph
        if not len(cell):
            return np.full(len(self), -1, dtype=np.int64)
        shape = (len(self), len(self))
        graph = sparse.coo_matrix((self.length_m, (self.link[:, 0], self.link[:, 1])), shape=shape).tocsr()
        graph = graph + graph.T
        start, first = np.unique(cell, return_index=True)
        _, _, source = csgraph.dijkstra(graph, directed=True, indices=start, return_predecessors=True, min_only=True)
        of_cell = np.full(len(self), -1, dtype=np.int64)
        of_cell[start] = seed[first]
        return np.where(source >= 0, of_cell[np.maximum(source, 0)], -1)

    def columns(self) -> "Columns":
        """Return the columns that the cells stand in."""
        index = unpack(self.key)
        index[:, 2] = 0
        key, column = np.unique(pack(index), return_inverse=True)
        return Columns(key, column.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Upright columns of cells."""

    key: NDArray[np.int64]
    """(K,) ascending."""
    of_cell: Rows
    """(C,) the column of each cell."""

    def highest(self, height_m: Array) -> Array:
        """Return (K,) the largest of the (C,) heights in each column."""
        top = np.full(len(self.key), -np.inf)
        np.maximum.at(top, self.of_cell, height_m)
        return top

    def neighbours(self) -> list[Rows]:
        """Return eight arrays (K,): the column beside each one, -1 where there is none."""
        around = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
        return [find(self.key, self.key + step(dx, dy, 0)) for dx, dy in around]


def _links(key: NDArray[np.int64], offset: tuple[int, int, int], length_m: float) -> tuple[Rows, Array]:
    row = find(key, key + step(*offset))
    here = np.flatnonzero(row >= 0)
    return np.stack([here, row[here]], axis=1), np.full(len(here), length_m)
