# SPDX-License-Identifier: Apache-2.0
"""CostGrid: what lidar points say about where a vehicle can drive; the cost map of 003 §3.5.3.

Every point costs by its height h above the ground, equation (8) of 003. It prints c = max(100 h / h_max, 100), which
would be 100 or more everywhere; the text and Fig. 10 ("black corresponds to zero cost") want the smaller of the two, so
c = min(100 h / h_max, 100), and 0 below the ground. A cell costs what its highest point costs. A cell without points
costs nothing, as in Fig. 10: the unknown is driven into, and seen from nearer by.

The paper says nothing of the vehicle's width. Here the cells within it of one that cannot be crossed (cost 100) cost
100 too, but stay open: a vehicle that stands there must be able to leave. Width 0 gives the paper's map.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from hedgerow import arrays
from hedgerow.base.parameters import NotNegative, Positive, StrictParameters
from hedgerow.errors import InputError

MAX_COST = 100.0
"""Cost of what cannot be crossed."""
Cell = tuple[int, int]
"""Row (northwards) and column (eastwards)."""


class GridSettings(StrictParameters):
    """Size of the grid and cost of a cell."""

    cell_m: Positive = 0.5
    """Side of a cell."""
    n_cells: int = Field(default=400, ge=2, le=4000)
    """Cells along each side."""
    max_height_m: Positive = 1.5
    """Highest vegetation that the vehicle can cross, h_max of 003."""
    above: Literal["ground", "lowest"] = "ground"
    """Heights are above the ground level that comes with the points (003: flat ground), or above the lowest point
    around the cell: for slopes, but then a sensor that never sees the ground sees no heights."""
    window_m: Positive = 1.5
    """How far around a cell the lowest point is looked for."""
    keep_off_m: NotNegative = 1.5
    """Nearer than this to what cannot be crossed, a cell costs 100: half of a vehicle's width, 0.9 m, and how far it
    strays from a planned path in bends (003 says nothing of it)."""


class CostGrid:
    """Heights of the points in each cell, and the costs that follow; rows go north, columns east."""

    def __init__(self, corner_m: ArrayLike, settings: GridSettings | None = None) -> None:
        """Make an empty grid with its south-west corner at (2,) x, y of the map [m]."""
        self.settings = settings or GridSettings()
        self.corner_m: NDArray[np.float64] = arrays.as_floats("corner_m", corner_m, (2,))
        arrays.require_finite("corner_m", self.corner_m)
        shape = (self.settings.n_cells, self.settings.n_cells)
        self.count: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        """(rows, columns) points in each cell."""
        self.lowest_m: NDArray[np.float64] = np.full(shape, np.inf)
        """(rows, columns) height of the lowest point above the ground level that came with it; inf if none [m]."""
        self.highest_m: NDArray[np.float64] = np.full(shape, -np.inf)
        """(rows, columns) height of the highest point; -inf if none [m]."""

    @classmethod
    def around(cls, middle_m: ArrayLike, settings: GridSettings | None = None) -> "CostGrid":
        """Make an empty grid around (2,) x, y of the map [m]."""
        chosen = settings or GridSettings()
        return cls(arrays.as_floats("middle_m", middle_m, (2,)) - chosen.n_cells * chosen.cell_m / 2, chosen)

    def add(self, points_m: ArrayLike, ground_m: ArrayLike = 0.0) -> int:
        """Put points into their cells; those outside the grid are left out.

        Args:
            points_m: (N, 3), map frame [m].
            ground_m: level of the ground that heights count from, one number or (N,) [m].

        Returns:
            How many points lay inside.

        Raises:
            InputError: wrong shape or a number that is not finite; names the row.
        """
        points: NDArray[np.float64] = arrays.as_floats("points_m", points_m, ("N", 3))
        arrays.require_finite("points_m", points)
        level: NDArray[np.float64] = arrays.as_floats("ground_m", ground_m, (), (len(points),))
        arrays.require_finite("ground_m", np.atleast_1d(level))
        column, row = np.floor((points[:, :2] - self.corner_m) / self.settings.cell_m).astype(np.int64).T
        n = self.settings.n_cells
        inside = (row >= 0) & (row < n) & (column >= 0) & (column < n)
        height_m = (points[:, 2] - level)[inside]
        cell = (row * n + column)[inside]
        np.add.at(self.count.reshape(-1), cell, 1)
        np.minimum.at(self.lowest_m.reshape(-1), cell, height_m)
        np.maximum.at(self.highest_m.reshape(-1), cell, height_m)
        return len(cell)

    @property
    def known(self) -> NDArray[np.bool_]:
        """(rows, columns) whether a cell has a point."""
        return self.count > 0

    def height_m(self) -> NDArray[np.float64]:
        """Return (rows, columns) heights of the highest points, 0 or more; NaN where nothing is known [m]."""
        base_m = self._base_m() if self.settings.above == "lowest" else 0.0
        with np.errstate(invalid="ignore"):  # inf - inf where nothing is known
            return np.where(self.known, np.maximum(self.highest_m - base_m, 0), np.nan)

    def cost(self) -> NDArray[np.float64]:
        """Return (rows, columns) costs from 0 to 100 by equation (8) of 003; 0 where nothing is known."""
        return np.minimum(MAX_COST * np.nan_to_num(self.height_m()) / self.settings.max_height_m, MAX_COST)

    def weight(self) -> NDArray[np.float64]:
        """Return (rows, columns) what a metre in the cell costs to drive: 1 plus its cost, inf if it is blocked."""
        from scipy import ndimage

        cost = self.cost()
        blocked = cost >= MAX_COST
        if blocked.any() and self.settings.keep_off_m > 0:
            away_m = ndimage.distance_transform_edt(~blocked, sampling=self.settings.cell_m)
            cost[away_m < self.settings.keep_off_m] = MAX_COST
        return np.where(blocked, np.inf, 1 + cost)

    def cell_of(self, name: str, point_m: ArrayLike) -> Cell:
        """Return row and column of a (2,) point [m].

        Raises:
            InputError: it lies outside the grid; the message calls it `name`.
        """
        point = arrays.as_floats(name, point_m, (2,))
        column, row = np.floor((point - self.corner_m) / self.settings.cell_m)
        n = self.settings.n_cells
        if not (0 <= row < n and 0 <= column < n):
            far_m = self.corner_m + n * self.settings.cell_m
            raise InputError(
                name, f"{point.tolist()} lies outside the grid, {self.corner_m.tolist()} to {far_m.tolist()}"
            )
        return int(row), int(column)

    def centre_m(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the (K, 2) middles x, y of (K, 2) cells (row, column) [m]."""
        return self.corner_m + (np.asarray(cells)[:, ::-1] + 0.5) * self.settings.cell_m

    def extent_m(self) -> tuple[float, float, float, float]:
        """Return west, east, south and north edge [m], as matplotlib's imshow takes them."""
        side_m = self.settings.n_cells * self.settings.cell_m
        west, south = self.corner_m.tolist()
        return west, west + side_m, south, south + side_m

    def copy(self) -> "CostGrid":
        """Return a grid of its own with the same points."""
        new = CostGrid(self.corner_m, self.settings)
        new.count, new.lowest_m, new.highest_m = self.count.copy(), self.lowest_m.copy(), self.highest_m.copy()
        return new

    def _base_m(self) -> NDArray[np.float64]:
        """Height of the lowest point within the window around each cell; inf if there is none [m]."""
        from scipy import ndimage

        reach = int(self.settings.window_m / self.settings.cell_m + 1e-9)
        return ndimage.minimum_filter(self.lowest_m, size=2 * reach + 1, mode="nearest")
