# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow.apps.planner import PAPER_GRID, CostGrid, GridSettings, plan
from hedgerow.errors import InputError

SMALL = GridSettings(cell_m=0.5, n_cells=20, keep_off_m=0.0)


def points_over(grid: CostGrid, height_m, step_m: float = 0.1):
    """Points all over the grid, at the height that a function of x and y gives."""
    west, east, south, north = grid.extent_m()
    x, y = np.meshgrid(np.arange(west + step_m / 2, east, step_m), np.arange(south + step_m / 2, north, step_m))
    x, y = x.ravel(), y.ravel()
    return np.column_stack([x, y, height_m(x, y)])


def test_the_default_grid_is_that_of_the_paper():
    grid = CostGrid.around((10.0, -5.0))
    assert grid.count.shape == (400, 400)
    assert grid.extent_m() == (-90.0, 110.0, -105.0, 95.0)
    assert grid.settings.max_height_m == 1.5


def test_flat_ground_and_the_unknown_cost_nothing():
    grid = CostGrid((0, 0), SMALL)
    assert not grid.cost().any()
    assert np.isnan(grid.height_m()).all()
    grid.add(points_over(grid, lambda x, y: 0 * x))
    assert grid.known.all()
    assert not grid.cost().any()
    assert (grid.weight() == 1).all()


@pytest.mark.parametrize(("height_m", "cost"), [(-0.3, 0), (0.3, 20), (0.75, 50), (1.5, 100), (6.0, 100)])
def test_a_step_costs_a_hundred_times_its_share_of_the_highest_that_can_be_crossed(height_m, cost):
    grid = CostGrid((0, 0), SMALL)
    grid.add(points_over(grid, lambda x, y: np.where(x > 5, height_m, 0)))
    np.testing.assert_allclose(grid.cost()[:, 10:], cost, atol=1e-9)  # a rounding of 100 h / 1.5
    assert not grid.cost()[:, :10].any()


def test_a_cell_costs_what_its_highest_point_costs_however_often_and_when_it_came():
    grid = CostGrid((0, 0), SMALL)
    grid.add([[0.1, 0.1, 0.6]])
    assert grid.add([[0.2, 0.2, 0.0], [0.3, 0.3, 0.1]]) == 2
    assert grid.count[0, 0] == 3
    assert grid.cost()[0, 0] == pytest.approx(40)
    assert (grid.lowest_m[0, 0], grid.highest_m[0, 0]) == (0.0, 0.6)


def test_heights_count_from_the_given_ground():
    grid = CostGrid((0, 0), SMALL)
    grid.add([[0.1, 0.1, 100.3], [0.6, 0.1, 50.75]], [100.0, 50.0])
    np.testing.assert_allclose(grid.cost()[0, :2], [20, 50])


def test_rows_go_north_and_columns_east():
    grid = CostGrid((-2, 3), SMALL)
    grid.add([[1.6, 4.2, 1.0]])
    assert np.argwhere(grid.known).tolist() == [[2, 7]]
    assert grid.cell_of("p", (1.6, 4.2)) == (2, 7)
    np.testing.assert_allclose(grid.centre_m([[2, 7]]), [[1.75, 4.25]])


def test_points_outside_are_left_out():
    grid = CostGrid((0, 0), SMALL)
    assert grid.add([[-0.01, 5, 1], [5, 10.0, 1], [1e12, 5, 1], [9.99, 9.99, 1]]) == 1
    assert grid.known.sum() == 1


def test_many_points_agree_with_a_slow_loop():
    rng = np.random.default_rng(3)
    points = np.column_stack([rng.uniform(-1, 11, (3000, 2)), rng.normal(0.5, 1, 3000)])
    grid = CostGrid((0, 0), SMALL)
    for part in np.array_split(points, 7):
        grid.add(part)
    for row in range(20):
        for column in range(20):
            inside = np.all(np.floor(points[:, :2] / 0.5) == (column, row), axis=1)
            assert grid.count[row, column] == inside.sum()
            expected = np.clip(100 * points[inside, 2].max(initial=0) / 1.5, 0, 100)
            assert grid.cost()[row, column] == pytest.approx(expected)


def test_above_the_lowest_a_slope_costs_its_rise_over_the_window_and_a_wall_still_costs_100():
    settings = SMALL.model_copy(update={"heights_above": "lowest", "window_m": 1.0})
    slope = CostGrid((0, 0), settings)
    slope.add(points_over(slope, lambda x, y: 50 + 0.2 * x))
    # From the lowest point two cells west (its points are 0.1 m apart, 5 in a cell) to the highest in the cell: 1.4 m.
    np.testing.assert_allclose(slope.cost()[:, 2:], 100 * 0.2 * 1.4 / 1.5)
    wall = CostGrid((0, 0), settings)
    wall.add(points_over(wall, lambda x, y: np.where((x > 5) & (x < 5.5), 3.0, 0.2 * x)))
    assert (wall.cost()[:, 10] == 100).all()
    assert wall.cost()[:, :10].max() < 20


def test_what_cannot_be_crossed_is_blocked_and_kept_off_from():
    grid = CostGrid((0, 0), GridSettings(cell_m=0.5, n_cells=20, keep_off_m=1.1))
    grid.add([[5.1, 5.1, 2.0]])
    weight = grid.weight()
    row, column = np.indices(weight.shape)
    away_m = 0.5 * np.hypot(row - 10, column - 10)
    assert np.isinf(weight[10, 10])
    assert (weight[(away_m > 0) & (away_m < 1.1)] == 101).all()
    assert (weight[away_m > 1.1] == 1).all()


def test_equation_8_can_be_taken_as_it_is_printed():
    settings = SMALL.model_copy(update={"equation_8": "max", "blocks": False})
    grid = CostGrid((0, 0), settings)
    grid.add([(1.1, 1.1, 0.0), (2.1, 1.1, 0.75), (3.1, 1.1, 3.0)])
    # max(100 h / 1.5, 100), and nothing where nothing is seen
    assert grid.cost()[2, [2, 4, 6, 8]].tolist() == [100, 100, 200, 0]
    assert grid.weight()[2, [2, 4, 6, 8]].tolist() == [101, 101, 201, 1]
    with pytest.raises(InputError, match="give blocks = false"):
        GridSettings.parse({"equation_8": "max"}, "a grid")


def test_the_grid_of_the_paper_closes_nothing_and_keeps_no_distance():
    assert (PAPER_GRID.blocks, PAPER_GRID.keep_off_m, PAPER_GRID.equation_8) == (False, 0.0, "min")
    grid = CostGrid((0, 0), PAPER_GRID.model_copy(update={"n_cells": 20}))
    grid.add(points_over(grid, lambda x, y: np.where(np.abs(x - 5.25) < 0.2, 2.0, 0.0)))  # a wall right across
    weight = grid.weight()
    assert set(np.unique(weight)) == {1.0, 101.0} and (weight[:, 10] == 101).all()
    through = plan(weight, (10, 2), (10, 18))
    assert through is not None and through.cost == pytest.approx(15 + 101)  # sixteen moves, one cell of the wall
    closed = CostGrid((0, 0), SMALL)
    closed.add(points_over(closed, lambda x, y: np.where(np.abs(x - 5.25) < 0.2, 2.0, 0.0)))
    assert plan(closed.weight(), (10, 2), (10, 18)) is None


def test_a_copy_does_not_change_with_the_original():
    grid = CostGrid((0, 0), SMALL)
    before = grid.copy()
    grid.add([[1, 1, 1.0]])
    assert (before.count.sum(), grid.count.sum()) == (0, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cell_m": 0.0},
        {"n_cells": 1},
        {"max_height_m": -1.0},
        {"heights_above": "sky"},
        {"keep_off_m": -0.1},
        {"side": 1},
    ],
)
def test_bad_settings_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        GridSettings(**wrong)


def test_bad_points_and_places_are_refused_by_name():
    grid = CostGrid((0, 0), SMALL)
    with pytest.raises(InputError, match="points_m"):
        grid.add([[1, 2]])
    with pytest.raises(InputError, match="points_m: row 1"):
        grid.add([[1, 2, 0], [1, np.nan, 0]])
    with pytest.raises(InputError, match="ground_m"):
        grid.add([[1, 2, 0]], np.nan)
    with pytest.raises(InputError, match=r"goal: \[11.0, 2.0\] lies outside the grid"):
        grid.cell_of("goal", (11, 2))
