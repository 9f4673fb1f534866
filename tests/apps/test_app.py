# SPDX-License-Identifier: Apache-2.0
"""Outcomes of programs, their objectives, and how programs are opened."""

import pickle

import numpy as np
import pytest
from small_logs import make_log

from hedgerow.apps import App, minus_f1, minus_iou, number, open_app, program, ratio, root_ratio
from hedgerow.apps.app import Outcome, fail, outcome_of, run
from hedgerow.apps.formula import Formula
from hedgerow.errors import InputError


def sums(**values):
    return {name: np.asarray(each, dtype=float) for name, each in values.items()}


def test_f1_of_a_set_is_no_mean_of_f1s():
    objective = minus_f1().reduce
    one, other = sums(tp=1, fp=0, fn=0), sums(tp=0, fp=0, fn=9)
    whole = sums(tp=1, fp=0, fn=9)
    assert objective(whole) == pytest.approx(-2 / 11)
    assert (objective(one) + objective(other)) / 2 == pytest.approx(-0.5)


def test_objectives_are_computed_element_by_element():
    values = sums(tp=[3, 0], fp=[1, 0], fn=[0, 0])
    np.testing.assert_allclose(minus_iou().reduce(values), [-0.75, 0])
    np.testing.assert_allclose(ratio("fp", "tp").reduce(values), [1 / 3, np.nan])
    np.testing.assert_allclose(root_ratio("a", "b").reduce(sums(a=[9], b=[4])), [1.5])


@program(x=number(0, 1))
def doubled(log, parameters, truth):
    if truth == "raise":
        raise RuntimeError("no way")
    return 2 * parameters["x"] if truth is None else truth


@pytest.mark.parametrize(
    ("truth", "failure"),
    [
        ("raise", "crash: RuntimeError: no way"),
        (float("nan"), "not finite: J is nan"),
        (float("inf"), "not finite: J is inf"),
        ({}, "broken output: no sums"),
        ({"a": "b"}, "broken output: a is no number"),
        ({"a": float("-inf")}, "not finite: a is -inf"),
        ("text", "broken output: expected sums by name or a number, found str"),
        (True, "broken output: expected sums by name or a number, found bool"),
        (fail("lost"), "lost"),
    ],
)
def test_what_goes_wrong_in_a_program_is_an_outcome(truth, failure):
    assert run(doubled, make_log(), {"x": 0.5}, truth) == Outcome({}, failure)


@pytest.mark.parametrize("answer", [1.0, np.float32(1), {"J": 1, "n": 1}, Outcome({"J": 1.0, "n": 1.0})])
def test_a_program_gives_a_number_sums_or_an_outcome(answer):
    assert outcome_of(answer) == Outcome({"J": 1.0, "n": 1.0})


def test_a_reason_is_one_line_and_not_long():
    outcome = fail("crash", "a\n" * 1000)
    assert len(outcome.failure) <= 200
    assert "\n" not in outcome.failure


def test_a_decorated_function_passes_between_processes():
    again = pickle.loads(pickle.dumps(doubled))
    assert isinstance(again, App)
    assert again.run(make_log(), {"x": 0.25}, None) == Outcome({"J": 0.5, "n": 1.0})


@pytest.mark.parametrize("name", ["segmentation", "cost-map", "odometry"])
def test_every_shipped_program_is_one(name):
    app = open_app(name)
    assert isinstance(app, App)
    assert app.name == name
    assert pickle.loads(pickle.dumps(app)).space.sample(3) == app.space.sample(3)


def test_a_program_is_opened_by_module_and_name():
    assert open_app("test_app:doubled") is doubled


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("odometri", "did you mean odometry?"),
        ("no_such_module:app", "cannot be imported"),
        ("json:loads", "has no space, objectives and run"),
        ("test_app:missing", "cannot be imported"),
    ],
)
def test_what_is_no_program_is_refused(given, said):
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        open_app(given)


def test_a_formula_is_computed_from_sums():
    formula = Formula("-2 * tp / (2 * tp + fp + fn) + sqrt(a) - abs(b) ** 2")
    assert formula.names == {"tp", "fp", "fn", "a", "b"}
    value = formula(sums(tp=[1, 0], fp=[1, 0], fn=[0, 0], a=[4, 4], b=[-1, -1]))
    np.testing.assert_allclose(value, [-2 / 3 + 1, np.nan])
    assert pickle.loads(pickle.dumps(formula)).text == formula.text


@pytest.mark.parametrize(
    "text",
    ["", "a +", "__import__('os')", "a.b", "a[0]", "lambda: 1", "'a'", "f(a)", "a if b else c", "1 +" * 300 + "1"],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError, match="objective"):
        Formula(text)
