# SPDX-License-Identifier: Apache-2.0
"""Errors say what is wrong in one sentence, and carry the same as data."""

import copy
import pickle

import pytest

from hedgerow.base.arrays import RowError
from hedgerow.errors import (
    FileError,
    HedgerowError,
    InputError,
    MissingPackage,
    ParameterError,
    SocketError,
    dotted,
)


def test_an_input_error_says_its_field_and_what_is_wrong():
    error = InputError("range_m", "expected 0 or more, found -1: a range is a length")
    assert (error.field, error.said) == ("range_m", "expected 0 or more, found -1: a range is a length")
    assert str(error) == "range_m: expected 0 or more, found -1: a range is a length"
    assert isinstance(error, HedgerowError) and isinstance(error, ValueError)


def test_a_parameter_error_knows_its_place_as_data():
    error = ParameterError(("group", 2, "time_us"), "goes down")
    assert (error.location, error.field) == (("group", 2, "time_us"), "group[2].time_us")
    assert str(error) == "group[2].time_us: goes down"
    assert str(ParameterError((), "is no table", "a sensor")) == "a sensor: is no table"


@pytest.mark.parametrize(
    ("location", "text"), [((), ""), (("a",), "a"), (("a", "b", 0, "c"), "a.b[0].c"), (("a", 1, 2), "a[1][2]")]
)
def test_a_place_is_written_with_dots_and_brackets(location, text):
    assert dotted(location) == text


@pytest.mark.parametrize(
    "error",
    [
        InputError("range_m", "is: no number"),
        ParameterError(("group", 2, "time_us"), "goes down", "a sensor"),
        ParameterError((), "is no table", "a sensor"),
        RowError("origin_m", 7, "is nan; every number must be finite"),
        FileError("a.pcd: no such file"),
        MissingPackage("viser: pip install viser"),
        SocketError("port: 8765 is taken"),
    ],
)
def test_errors_pass_between_processes_whole(error):
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(made) is type(error)
        assert str(made) == str(error)
        assert vars(made) == vars(error)
