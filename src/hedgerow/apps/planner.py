# SPDX-License-Identifier: Apache-2.0
"""Cost maps from returns, and the cheapest paths through them (Goodin 2018 §3.5.3).

**Cost.** Every point costs by its height h above the ground, equation (8) of Goodin 2018. It prints c = max(100 h /
h_max, 100), which would be 100 or more everywhere; the text and Fig. 10 ("black corresponds to zero cost") want the
smaller of the two, so c = min(100 h / h_max, 100), and 0 below the ground. A cell costs what its highest point costs. A
cell without points costs nothing, as in Fig. 10: the unknown is driven into, and seen from nearer by. The paper says
nothing of the vehicle's width, nor of cells that may not be entered. Here a cell of cost 100 is blocked, and the cells
within the vehicle's width of it cost 100 too, but stay open: a vehicle that stands there must be able to leave.
`PAPER_GRID` is the map that the paper tells of; `equation_8="max"` is the equation as it is printed.

**Path.** A* on the grid (Hart, Nilsson and Raphael 1968). Moves go to the eight neighbours. A move costs its length in
cells times the mean weight of the two cells, so a path costs the same in both directions. A diagonal move needs both
cells beside it open: a vehicle does not cut corners, and does not slip through a wall that runs diagonally. The
heuristic is the octile distance times the smallest weight: it never exceeds the true cost and obeys the triangle
inequality, so the first path found is a cheapest one.

Plain Python with a heap: a map of 160,000 cells takes well under a second, and is planned once a second of driving.
scipy's Dijkstra is compiled, but visits every cell and wants the grid as a sparse matrix each time (and is the tests'
oracle); scikit-image's would be one more dependency for this alone.

Equations: docs/models.md §29.
"""

from heapq import heappop, heappush
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from hedgerow.base import arrays
from hedgerow.base.parameters import NotNegative, Positive, StrictParameters
from hedgerow.errors import InputError

MAX_COST = 100.0
"""Cost of what cannot be crossed."""
Cell = tuple[int, int]
"""Row (northwards) and column (eastwards)."""
_DIAGONAL = 2**0.5


class GridSettings(StrictParameters):
    """Size of the grid and cost of a cell."""

    cell_m: Positive = 0.5
    """Side length of a cell."""
    n_cells: int = Field(default=400, ge=2, le=4000)
    """Number of cells along each side of the grid."""
    max_height_m: Positive = 1.5
    """Highest vegetation that the vehicle can cross, h_max of Goodin 2018."""
    heights_above: Literal["ground", "lowest"] = "ground"
    """What heights are measured from: the ground height given with the points (Goodin 2018: flat ground), or the lowest
    point around the cell (for slopes; a sensor that never sees the ground then sees no heights)."""
    window_m: Positive = 1.5
    """Radius within which the lowest point is searched, if heights are above the lowest."""
    equation_8: Literal["min", "max"] = "min"
    """Which of the two terms of equation (8) of Goodin 2018 is the cost. max is as printed: every cell that is seen
    costs 100 or more."""
    blocks: bool = True
    """Whether cells of cost 100 are closed to the vehicle. False: they are expensive, but open."""
    keep_off_m: NotNegative = 1.5
    """Safety distance: cells nearer than this to an obstacle (cost 100) cost 100 too. Default: half the width of the
    vehicle, 0.9 m, and its deviation from the planned path in bends."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.equation_8 == "max" and self.blocks:
            raise InputError("equation_8", "max makes every seen cell cost 100 or more; give blocks = false as well")
        return self


PAPER_GRID = GridSettings(blocks=False, keep_off_m=0.0)
"""The map of Goodin 2018 §3.5.3: no cell is closed, and no distance is kept."""


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
        base_m = self._base_m() if self.settings.heights_above == "lowest" else 0.0
        with np.errstate(invalid="ignore"):  # inf - inf where nothing is known
            return np.where(self.known, np.maximum(self.highest_m - base_m, 0), np.nan)

    def cost(self) -> NDArray[np.float64]:
        """Return (rows, columns) costs from 0 to 100 by equation (8) of Goodin 2018; 0 where nothing is known."""
        cost = MAX_COST * np.nan_to_num(self.height_m()) / self.settings.max_height_m
        if self.settings.equation_8 == "max":
            return np.where(self.known, np.maximum(cost, MAX_COST), 0)
        return np.minimum(cost, MAX_COST)

    def weight(self) -> NDArray[np.float64]:
        """Return (rows, columns) what a metre in the cell costs to drive: 1 plus its cost, inf if it is blocked."""
        from scipy import ndimage

        cost = self.cost()
        blocked = cost >= MAX_COST
        if blocked.any() and self.settings.keep_off_m > 0:
            away_m = ndimage.distance_transform_edt(~blocked, sampling=self.settings.cell_m)
            near = away_m < self.settings.keep_off_m
            cost[near] = np.maximum(cost[near], MAX_COST)
        return np.where(blocked & self.settings.blocks, np.inf, 1 + cost)

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


class Plan(NamedTuple):
    """A path from start to goal."""

    cells: NDArray[np.int64]
    """(K, 2) row and column, start and goal included."""
    cost: float
    """Sum over its moves."""


def plan(weight: ArrayLike, start: Cell, goal: Cell) -> Plan | None:
    """Find the cheapest path over a grid.

    Args:
        weight: (rows, columns) above 0; inf is blocked. The start is open even so: the vehicle stands there.
        start: row and column.
        goal: row and column.

    Returns:
        The path, or None if there is none.

    Raises:
        InputError: a weight that is not above 0, or a cell outside the grid; says which.
    """
    grid = _checked(weight, start, goal)
    columns = grid.shape[1] + 2
    padded = np.pad(grid, 1, constant_values=np.inf)  # a blocked rim instead of checks at the border
    first, last = ((row + 1) * columns + column + 1 for row, column in (start, goal))
    if not np.isfinite(grid[start]):
        padded.flat[first] = grid[np.isfinite(grid)].max(initial=1.0)
    to_go = _octile(padded.shape, (goal[0] + 1, goal[1] + 1)) * float(padded.min())
    came_from, cost = _search(padded.ravel().tolist(), to_go.ravel().tolist(), columns, first, last)
    if cost == np.inf:
        return None
    path = [last]
    while path[-1] != first:
        path.append(came_from[path[-1]])
    row, column = np.divmod(np.array(path[::-1], dtype=np.int64), columns)
    return Plan(np.stack([row - 1, column - 1], axis=1), cost)


def _search(
    weight: list[float], to_go: list[float], columns: int, start: int, goal: int
) -> tuple[dict[int, int], float]:
    """Return where each reached cell was reached from, and the cost of the goal; cells are numbered row by row."""
    inf = float("inf")
    best = [inf] * len(weight)
    done = bytearray(len(weight))
    came_from: dict[int, int] = {}
    best[start] = 0.0
    heap = [(to_go[start], start)]
    # (step, length / 2, the two cells beside a diagonal step)
    half, slant = 0.5, 0.5 * _DIAGONAL
    straight = [(step, half, 0, 0) for step in (-1, 1, -columns, columns)]
    moves = straight + [(r + c, slant, r, c) for r in (-columns, columns) for c in (-1, 1)]
    while heap:
        _, cell = heappop(heap)
        if done[cell]:
            continue
        if cell == goal:
            break
        done[cell] = 1
        so_far, here = best[cell], weight[cell]
        for step, length, beside, other in moves:
            near = cell + step
            there = weight[near]
            if there == inf or done[near]:
                continue
            if beside and (weight[cell + beside] == inf or weight[cell + other] == inf):
                continue
            cost = so_far + length * (here + there)
            if cost < best[near]:
                best[near] = cost
                came_from[near] = cell
                heappush(heap, (cost + to_go[near], near))
    return came_from, best[goal]


def _octile(shape: tuple[int, ...], goal: Cell) -> NDArray[np.float64]:
    """Length of the shortest path to the goal over an open grid, from each cell [cells]."""
    rows, columns = (np.abs(np.arange(n) - at) for n, at in zip(shape, goal, strict=True))
    longer = np.maximum(rows[:, None], columns)
    shorter = np.minimum(rows[:, None], columns)
    return longer + (_DIAGONAL - 1) * shorter


def _checked(weight: ArrayLike, start: Cell, goal: Cell) -> NDArray[np.float64]:
    grid: NDArray[np.float64] = arrays.as_floats("weight", weight, ("rows", "columns"))
    wrong = ~(grid > 0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise InputError(
            "weight", f"row {row}, column {column} is {grid[row, column]}; expected a number above 0, or inf"
        )
    for name, cell in (("start", start), ("goal", goal)):
        if not all(0 <= at < n for at, n in zip(cell, grid.shape, strict=True)):
            raise InputError(name, f"{cell} lies outside the grid of {grid.shape[0]} x {grid.shape[1]} cells")
    return grid
