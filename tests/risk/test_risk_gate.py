# SPDX-License-Identifier: Apache-2.0
"""The gate: bounds, and whether a simulator became worse."""

from typing import Any

import pytest
from fake_programs import Quadratic, measured, real, source

from hedgerow.errors import InputError
from hedgerow.risk.gate import check_bounds, check_last
from hedgerow.risk.score import score

NOISE: dict[str, Any] = {"scene_noise": 0.02, "run_noise": 0.02}


def table(*biases, **more):
    return measured(real(**NOISE), *(source(f"sim{i}", bias=bias, **NOISE) for i, bias in enumerate(biases)), **more)


def test_bounds_are_broken_by_what_is_above_them():
    scores = score(table(0.1, 0.5), Quadratic())
    assert check_bounds(scores) == []
    assert check_bounds(scores, max_risk=1.0, max_regret=1.0) == []
    [broken] = check_bounds(scores, max_risk=0.3)
    assert broken.startswith("sim1: risk 0.5")
    assert broken.endswith("is above 0.3")


def test_a_risk_that_is_not_known_breaks_every_bound():
    scores = score(measured(real(), source("sim", failing=2.0)), Quadratic())
    assert check_bounds(scores, max_risk=100) == ["sim: risk nan is above 100"]


def test_worse_than_last_time_fails_and_the_same_or_better_does_not():
    app = Quadratic()
    assert check_last(table(0.1), table(0.1), app) == []
    assert check_last(table(0.1), table(0.5), app) == []
    [worse] = check_last(table(0.5), table(0.1), app)
    assert worse.startswith("sim0: risk is 0.4 above that of last time (95 % interval")


def test_a_little_worse_within_noise_does_not_fail():
    noisy: dict[str, Any] = {"run_noise": 0.3}
    now = measured(real(**noisy), source("sim", bias=0.101, number=1, **noisy))
    last = measured(real(**noisy), source("sim", bias=0.1, number=2, **noisy))
    assert check_last(now, last, Quadratic()) == []


def test_a_longer_table_is_compared_over_the_settings_that_both_have():
    assert check_last(table(0.5, settings=20), table(0.1, settings=10), Quadratic())


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (lambda: measured(real(4), source("sim", 4)), "other scenes"),
        (lambda: table(0.1, seed=5), "settings drawn otherwise"),
        (lambda: table(0.1, fixed={"k": 1}), "other fixed values"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(last, said):
    with pytest.raises(InputError, match=said):
        check_last(table(0.1), last(), Quadratic())


def test_a_table_of_other_simulators_is_refused():
    other = measured(real(), source("a"), source("b"))
    with pytest.raises(InputError, match="has a, b, but now there is sim0, sim1"):
        check_last(table(0.1, 0.2), other, Quadratic())
