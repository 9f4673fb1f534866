# SPDX-License-Identifier: Apache-2.0
"""Parameters of programs: what they draw, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hedgerow.apps import Space, choice, log_number, number, whole
from hedgerow.apps.space import Parameter
from hedgerow.errors import InputError

SPACE = Space.of(
    share=number(0, 1),
    voxel_m=log_number(0.1, 10),
    count=whole(1, 3),
    kind=choice("point", "plane"),
    on=choice(True, False),
)
N = 3000


@pytest.mark.parametrize("sampler", ["uniform", "sobol"])
def test_settings_have_the_distribution_of_their_kind(sampler):
    # Kolmogorov-Smirnov and chi-square at 1e-4 each: a false alarm in 1 of 1,000 seeds, and the seed is fixed.
    drawn = SPACE.sample(N, seed=5, sampler=sampler)
    assert stats.kstest([each["share"] for each in drawn], "uniform").pvalue > 1e-4
    assert stats.kstest(np.log10([each["voxel_m"] for each in drawn]), stats.uniform(-1, 2).cdf).pvalue > 1e-4
    for name, values in (("count", [1, 2, 3]), ("kind", ["point", "plane"]), ("on", [True, False])):
        counts = [sum(each[name] == value for each in drawn) for value in values]
        assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("sampler", ["uniform", "sobol"])
def test_more_settings_begin_with_the_same(sampler):
    assert SPACE.sample(100, seed=3, sampler=sampler)[:37] == SPACE.sample(37, seed=3, sampler=sampler)


def test_another_seed_draws_other_settings():
    assert SPACE.sample(5, seed=1) != SPACE.sample(5, seed=2)


def test_sobol_points_fill_halves_evenly():
    below = sum(each["share"] < 0.5 for each in SPACE.sample(64, sampler="sobol"))
    assert below == 32  # a property of the sequence; independent draws rarely have it


def test_fixed_values_are_in_every_setting():
    drawn = SPACE.sample(10, fixed={"kind": "plane", "count": 2})
    assert {(each["kind"], each["count"]) for each in drawn} == {("plane", 2)}


@given(st.floats(0, 1, exclude_max=True))
def test_a_share_gives_a_value_within_bounds_and_back(share):
    for parameter in SPACE.parameters.values():
        value = parameter.at(share)
        assert parameter.check("x", value) == value
        assert (
            parameter.at(parameter.share(value)) == pytest.approx(value) if parameter.kind in ("float", "log") else True
        )
        assert parameter.kind in ("float", "log") or parameter.at(parameter.share(value)) == value


def test_a_space_reads_back_what_it_writes():
    again = Space.parse(SPACE.to_dict(), "space")
    assert again.sample(20, seed=9) == SPACE.sample(20, seed=9)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"kind": "float", "low": 2, "high": 1}, "x.low: 2 is above high, 1; swap them"),
        ({"kind": "float", "low": 2}, "x.low, high: a parameter of kind float needs both"),
        ({"kind": "log", "low": 0, "high": 1}, "x.low: expected a number above 0 for kind log, found 0"),
        ({"kind": "integer", "low": 0.5, "high": 1}, "expected whole numbers"),
        ({"kind": "choice"}, "x.choices: expected different values"),
        ({"kind": "choice", "choices": ["a", "a"]}, "x.choices: expected different values"),
        ({"kind": "choice", "choices": ["a"], "low": 1}, "a choice has no bounds"),
        ({"kind": "float", "low": 0, "high": 1, "choices": [1]}, "only for kind choice"),
        ({"kind": "float", "low": 0, "high": 1, "default": 2}, "expected a number from 0 to 1, found 2"),
        ({"kind": "flot", "low": 0, "high": 1}, "x.kind"),
        ({"kind": "float", "low": 0, "hihg": 1}, "did you mean high"),
        (3, "x: expected a table"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(table, said):
    with pytest.raises(InputError) as refused:
        Space.parse({"x": table}, "app.toml")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"voxel": 1}, "no such parameter; did you mean voxel_m?"),
        ({"voxel_m": 11}, "voxel_m: expected a number from 0.1 to 10, found 11"),
        ({"voxel_m": float("nan")}, "voxel_m"),
        ({"voxel_m": True}, "voxel_m"),
        ({"count": 1.5}, "count: expected a whole number from 1 to 3, found 1.5"),
        ({"kind": "line"}, "kind: expected one of point, plane, found 'line'"),
        ({"on": 1}, "on: expected one of True, False"),
    ],
)
def test_a_value_that_cannot_be_is_refused(values, said):
    with pytest.raises(InputError) as refused:
        SPACE.check(values)
    assert said in str(refused.value)


def test_a_search_starts_in_the_middle_or_at_the_default():
    space = Space.of(a=number(0, 4), b=log_number(1, 100), c=choice("x", "y"), d=number(0, 1, 0.1))
    assert space.start({"c": "y"}) == pytest.approx({"a": 2, "b": 10, "c": "y", "d": 0.1})
    assert Parameter(kind="integer", low=1, high=3).start == 2
