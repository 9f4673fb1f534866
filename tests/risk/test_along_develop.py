# SPDX-License-Identifier: Apache-2.0
"""Curves along parameters, and development on a simulator."""

import numpy as np
import pytest
from fake_programs import Quadratic, real, source

from hedgerow.apps import Space, choice, log_number, number, whole
from hedgerow.errors import InputError
from hedgerow.risk.along import along
from hedgerow.risk.develop import develop, open_strategy, paths_of
from hedgerow.risk.measure import open_table
from hedgerow.risk.table import read_table

SPACE = Space.of(a=number(0, 1), b=log_number(1, 100), c=whole(1, 3), d=choice("x", "y"), e=number(0, 1))
SETTINGS = SPACE.sample(400, seed=2)


def curves(**functions):
    rng = np.random.default_rng(1)
    noise = 0.02 * rng.normal(size=len(SETTINGS))
    j = {name: np.array([f(each) for each in SETTINGS]) + noise for name, f in functions.items()}
    return {each.name: each for each in along(SPACE, SETTINGS, j)}


def test_steps_optima_and_slopes_are_told_and_compared():
    found = curves(
        real=lambda s: (s["a"] > 0.5) + 2 * (np.log10(s["b"]) - 1) ** 2 + 0.5 * (s["d"] == "y") + 0.3 * s["c"],
        same=lambda s: (s["a"] > 0.5) + 2 * (np.log10(s["b"]) - 1) ** 2 + 0.5 * (s["d"] == "y") + 0.3 * s["c"],
        other=lambda s: (s["a"] < 0.25) + 2 * (np.log10(s["b"]) - 0.3) ** 2 + 0.5 * (s["d"] == "x"),
    )
    shapes = {
        name: (each.curves["real"].shape, each.same_place("same"), each.same_place("other"))
        for name, each in found.items()
    }
    assert shapes == {
        "a": ("step", True, False),
        "b": ("optimum", True, False),
        "c": ("slope", True, False),
        "d": ("best choice", True, False),
        "e": ("flat", True, True),
    }
    assert found["a"].words() == (
        "a: real: a step up between 0.375 to 0.5 and 0.5 to 0.625; same: the same; "
        "other: a step down between 0.125 to 0.25 and 0.25 to 0.375"
    )
    assert "an optimum at" in found["b"].words()
    assert found["d"].words() == "d: real: x is best; same: the same; other: y is best"


def test_failed_settings_and_constant_parameters_are_left_out():
    settings = [{**each, "e": 0.5} for each in SETTINGS]
    j = np.where(np.arange(400) % 2, np.nan, [each["a"] for each in settings])
    found = {each.name: each for each in along(SPACE, settings, {"real": j})}
    assert "e" not in found
    assert found["a"].curves["real"].shape in ("slope", "step")
    nothing = along(SPACE, settings, {"real": np.full(400, np.nan)})
    assert all(each.curves["real"].shape == "flat" for each in nothing)


def run_development(strategy, tmp_path=None, steps=25, **sim):
    app = Quadratic()
    given = [real(3), source("sim", 3, **sim)]
    output = None if tmp_path is None else tmp_path / "risk.parquet"
    table = open_table(app, given, settings=5, output=output)
    path = develop(app, table, given[0], given[1], open_strategy(strategy), name=strategy, steps=steps)
    return path, table


@pytest.mark.parametrize("strategy", ["random", "coordinate"])
def test_development_finds_the_simulators_optimum_and_shows_what_it_is_worth(strategy):
    path, _ = run_development(strategy, optimum=0.7)
    seen, worth = path.best_so_far()
    assert len(seen) == 25
    assert np.all(np.diff(seen) <= 0)
    assert seen[-1] < 0.011  # coordinate search tries x = 0.7 exactly or 0.1 beside it
    best = path.settings[int(np.nanargmin(path.simulated))]["x"]
    assert worth[-1] == pytest.approx((best - 0.3) ** 2)


def test_a_path_is_kept_in_the_table_and_not_run_again(tmp_path):
    path, table = run_development("coordinate", tmp_path)
    table.write(tmp_path / "risk.parquet")
    n = table.n_runs
    again, longer = run_development("coordinate", tmp_path)
    np.testing.assert_array_equal(again.simulated, path.simulated)
    assert longer.n_runs == n
    [read] = paths_of(read_table(tmp_path / "risk.parquet"), Quadratic().objectives["J"])
    np.testing.assert_array_equal(read.real, path.real)
    assert read.settings == path.settings


def test_fixed_parameters_stay_in_a_development():
    app = Quadratic()
    given = [real(3), source("sim", 3)]
    table = open_table(app, given, settings=5, fixed={"x": 0.9})
    path = develop(app, table, given[0], given[1], open_strategy("random"), name="random", steps=8)
    assert {each["x"] for each in path.settings} == {0.9}


def recall_first(space, start, trials):
    """A strategy of one's own: sees sums, tries two settings and ends."""
    first = trials.try_setting({**start, "x": 0.0})
    assert first.sums.get("n", 0) == (3 if np.isfinite(first.j) else 0)
    trials.try_setting({**start, "x": 1.0 if first.j > 0 else 0.5})


def test_a_strategy_of_ones_own_sees_sums_and_may_end_early():
    path, _ = run_development("test_along_develop:recall_first")
    assert [each["x"] for each in path.settings] == [0.0, 1.0]
    assert path.sums["n"][0].tolist() == [3, 3]


def test_failed_steps_have_no_j():
    path, _ = run_development("test_along_develop:recall_first", failing=0.5)
    assert np.isnan(path.simulated[0])


def test_an_unknown_strategy_is_refused():
    with pytest.raises(InputError, match="expected one of random, coordinate"):
        open_strategy("genius")
    with pytest.raises(InputError, match="cannot be imported"):
        open_strategy("no_such:thing")
