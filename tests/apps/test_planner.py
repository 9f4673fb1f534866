# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from hedgerow.apps.planner import plan
from hedgerow.errors import InputError


def oracle(weight: np.ndarray, start, goal) -> float:
    """Cost by scipy's Dijkstra over the grid as a sparse matrix."""
    rows, columns = weight.shape
    source, target, cost = [], [], []
    for row in range(rows):
        for column in range(columns):
            for dr, dc in [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]:
                r, c = row + dr, column + dc
                if not (0 <= r < rows and 0 <= c < columns) or np.isinf(weight[row, column] + weight[r, c]):
                    continue
                if np.isinf(weight[row, c] + weight[r, column]):  # a corner in the way, if diagonal
                    continue
                source.append(row * columns + column)
                target.append(r * columns + c)
                cost.append(np.hypot(dr, dc) * (weight[row, column] + weight[r, c]) / 2)
    graph = coo_array((cost, (source, target)), shape=(rows * columns,) * 2).tocsr()
    return float(dijkstra(graph, indices=start[0] * columns + start[1])[goal[0] * columns + goal[1]])


def cost_of(weight: np.ndarray, cells: np.ndarray) -> float:
    """Cost of a way, move by move; every move must be one that is allowed."""
    total = 0.0
    for (r, c), (r2, c2) in zip(cells[:-1].tolist(), cells[1:].tolist(), strict=True):
        assert max(abs(r - r2), abs(c - c2)) == 1
        assert np.isfinite(weight[r, c2] + weight[r2, c])
        total += np.hypot(r - r2, c - c2) * (weight[r, c] + weight[r2, c2]) / 2
    return total


@pytest.mark.parametrize("seed", range(12))
def test_random_grids_cost_what_dijkstra_says(seed):
    rng = np.random.default_rng(seed)
    weight = rng.choice([1.0, 1.0, 1.5, 7.0, 30.0], (17, 23)) * rng.uniform(0.5, 2.0)
    weight[rng.random(weight.shape) < 0.25] = np.inf
    start, goal = (2, 3), (15, 20)
    weight[start] = weight[goal] = 2.0
    found, expected = plan(weight, start, goal), oracle(weight, start, goal)
    if np.isinf(expected):
        assert found is None
        return
    assert found is not None
    assert found.cost == pytest.approx(expected, rel=1e-12)  # sums of 40 numbers in another order
    assert cost_of(weight, found.cells) == pytest.approx(found.cost, rel=1e-12)
    assert (tuple(found.cells[0]), tuple(found.cells[-1])) == (start, goal)


def test_some_of_the_random_grids_have_a_way_and_it_costs_the_same_back():
    rng = np.random.default_rng(5)
    weight = rng.uniform(1, 50, (30, 30))
    there, back = plan(weight, (0, 0), (29, 17)), plan(weight, (29, 17), (0, 0))
    assert there is not None and back is not None
    assert there.cost == pytest.approx(back.cost, rel=1e-12)
    assert len(there.cells) >= 30


def test_open_ground_is_crossed_by_the_octile_distance():
    found = plan(np.full((50, 80), 3.0), (10, 5), (30, 65))
    assert found is not None
    assert found.cost == pytest.approx(3 * (40 + 20 * np.sqrt(2)))
    assert len(found.cells) == 61


def test_a_wall_is_driven_around_through_its_gap():
    weight = np.ones((21, 21))
    weight[10, :] = np.inf
    weight[10, 18] = 1
    found = plan(weight, (0, 2), (20, 2))
    assert found is not None
    assert [10, 18] in found.cells.tolist()


def test_no_way_through_a_closed_wall_nor_through_a_diagonal_one():
    closed = np.ones((9, 9))
    closed[4, :] = np.inf
    assert plan(closed, (0, 0), (8, 8)) is None
    diagonal = np.where(np.eye(9) > 0, np.inf, 1.0)
    assert plan(diagonal, (0, 8), (8, 0)) is None


def test_a_blocked_goal_cannot_be_reached_but_a_blocked_start_can_be_left():
    weight = np.ones((9, 9))
    weight[4, 4] = np.inf
    assert plan(weight, (0, 0), (4, 4)) is None
    left = plan(weight, (4, 4), (4, 8))
    assert left is not None
    assert len(left.cells) == 5
    assert left.cost == 4


def test_start_and_goal_in_one_cell_cost_nothing():
    found = plan(np.ones((5, 5)), (2, 3), (2, 3))
    assert found is not None
    assert found.cells.tolist() == [[2, 3]]
    assert found.cost == 0


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan])
def test_weights_that_are_not_above_0_are_refused(wrong):
    weight = np.ones((5, 5))
    weight[1, 2] = wrong
    with pytest.raises(InputError, match="weight: row 1, column 2"):
        plan(weight, (0, 0), (4, 4))


@pytest.mark.parametrize(("start", "goal", "name"), [((-1, 0), (1, 1), "start"), ((0, 0), (1, 5), "goal")])
def test_cells_outside_the_grid_are_refused(start, goal, name):
    with pytest.raises(InputError, match=name):
        plan(np.ones((5, 5)), start, goal)
