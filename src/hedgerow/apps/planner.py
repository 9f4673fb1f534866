# SPDX-License-Identifier: Apache-2.0
"""A* on a grid: the cheapest way between two cells (003 §3.5.3; Hart, Nilsson and Raphael 1968).

Moves go to the eight neighbours. A move costs its length in cells times the mean weight of the two cells, so a way
costs the same both ways. A diagonal move needs both cells beside it open: a vehicle does not cut corners, and does not
slip through a wall that runs diagonally. The heuristic is the octile distance times the smallest weight: it never
exceeds the true cost and obeys the triangle inequality, so the first way found is a cheapest one.

Plain Python with a heap: a map of 160,000 cells takes well under a second, and is planned once a second of driving.
scipy's Dijkstra is compiled, but visits every cell and wants the grid as a sparse matrix each time (and is the tests'
oracle); scikit-image's would be one more dependency for this alone.
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays
from hedgerow.apps.cost_grid import Cell
from hedgerow.errors import InputError

_DIAGONAL = 2**0.5


class Plan(NamedTuple):
    """A way from start to goal."""

    cells: NDArray[np.int64]
    """(K, 2) row and column, start and goal included."""
    cost: float
    """Sum over its moves."""


def plan(weight: ArrayLike, start: Cell, goal: Cell) -> Plan | None:
    """Find the cheapest way over a grid.

    Args:
        weight: (rows, columns) above 0; inf is blocked. The start is open even so: the vehicle stands there.
        start: row and column.
        goal: row and column.

    Returns:
        The way, or None if there is none.

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
    way = [last]
    while way[-1] != first:
        way.append(came_from[way[-1]])
    row, column = np.divmod(np.array(way[::-1], dtype=np.int64), columns)
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
    """Length of the shortest way to the goal over an open grid, from each cell [cells]."""
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
