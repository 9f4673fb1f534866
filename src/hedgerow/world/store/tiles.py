# SPDX-License-Identifier: Apache-2.0
"""Tiles: squares of the map's x-y plane into which a world is cut on the disk, and the list of what lies in them.

An element belongs to the tile of its centre. A world numbers its elements table by table and, within a table, tile by
tile, whether it is in memory or on the disk. So each tile of a table is one stretch of numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.columns import Table
from hedgerow.world.check import TABLES
from hedgerow.world.elements import Elements


@dataclass(frozen=True, slots=True, eq=False)
class TileList(Table):
    """The tiles of all tables, in the order of the elements; one row per tile of a table that has elements in it."""

    table: NDArray[np.int32]
    """(K,) which table, a position in `TABLES`."""
    x: NDArray[np.int64]
    """(K,) the tile reaches from x * tile_m to (x + 1) * tile_m."""
    y: NDArray[np.int64]
    n: NDArray[np.int64]
    """(K,) number of rows."""
    elements: NDArray[np.int64]
    """(K,) number of elements: one for each row, but for copies of assets."""
    low_m: NDArray[np.float64]
    """(K, 3) corner of the box outside of which no ray meets them, map frame; elements may reach over their tile."""
    high_m: NDArray[np.float64]
    crc32: NDArray[np.int64]
    """(K,) checksum of the file; 0 in memory."""

    @property
    def first(self) -> NDArray[np.int64]:
        """(K,) number of the first element of each tile in the world."""
        return np.cumsum(self.elements) - self.elements

    def name(self, row: int) -> str:
        """Name the table of a row."""
        return tuple(TABLES)[int(self.table[row])]

    def within(self, low_m: NDArray[np.float64], high_m: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows whose boxes touch the box from `low_m` to `high_m`, ascending."""
        return np.flatnonzero(((self.low_m <= high_m) & (self.high_m >= low_m)).all(axis=1))


def tile_of(centre_m: NDArray[np.float64], tile_m: float) -> NDArray[np.int64]:
    """Return the (N, 2) tiles x, y that (N, 3) centres lie in."""
    return np.floor(centre_m[:, :2] / tile_m).astype(np.int64)


def in_tile_order(table: Elements, tile_m: float) -> Elements:
    """Sort elements by tile, x before y; within a tile their order stays."""
    tile = tile_of(table.centre_m(), tile_m)
    step = np.diff(tile, axis=0)
    if ((step[:, 0] > 0) | ((step[:, 0] == 0) & (step[:, 1] >= 0))).all():
        return table
    return table[np.lexsort((tile[:, 1], tile[:, 0]))]


def list_tiles(tables: Mapping[str, Elements], tile_m: float) -> TileList:
    """List the tiles of tables that are in tile order."""
    rows = [_tiles_of(number, tables[name], tile_m) for number, name in enumerate(TABLES) if name in tables]
    return TileList.join(rows) if rows else _none()


def _tiles_of(number: int, table: Elements, tile_m: float) -> TileList:
    if len(table) == 0:
        return _none()
    tile = tile_of(table.centre_m(), tile_m)
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(tile, axis=0) != 0).any(axis=1)]))
    low, high = table.bounds_m()
    return TileList(
        table=np.full(len(starts), number, dtype=np.int32),
        x=tile[starts, 0],
        y=tile[starts, 1],
        n=np.diff(np.append(starts, len(table))),
        elements=np.add.reduceat(table.n_elements(), starts),
        low_m=np.minimum.reduceat(low, starts),
        high_m=np.maximum.reduceat(high, starts),
        crc32=np.zeros(len(starts), dtype=np.int64),
    )


def _none() -> TileList:
    i = np.zeros(0, dtype=np.int64)
    return TileList(i.astype(np.int32), i, i, i, i, np.zeros((0, 3)), np.zeros((0, 3)), i)
