# SPDX-License-Identifier: Apache-2.0
"""Parameters: one sentence for each way to be wrong, and help from the same declaration."""

from typing import Annotated, Literal, Self

import pytest
from pydantic import Field, ValidationError, model_validator

from hedgerow.base.parameters import (
    Finite,
    NotNegative,
    Parameters,
    Positive,
    Share,
    StrictParameters,
)
from hedgerow.errors import FileError, InputError, ParameterError, shown


class Box(Parameters):
    """A shape."""

    kind: Literal["box"]
    side_m: Positive


class Ball(Parameters):
    """Another shape."""

    kind: Literal["ball"]
    radius_m: Positive

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.radius_m > 9:
            raise InputError("radius_m", f"{self.radius_m:g} is too large")
        return self


class Group(Parameters):
    """Some lasers."""

    weight: Share = 0.5
    """How much the group
    counts."""
    offsets_m: list[Finite] = Field(default_factory=list[float])
    """Where they sit."""


class Site(Parameters):
    """What is tested here."""

    count: int
    """How many there are."""
    width_m: NotNegative = 2.0
    """From side to side."""
    group: Group = Group()
    """The lasers."""
    shapes: dict[str, Annotated[Box | Ball, Field(discriminator="kind")]] = Field(default={})
    """By name."""
    place: Positive | dict[int, Positive] = 1.0
    """One for all, or one for each."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.count == 13:
            raise ParameterError(("group", "offsets_m", 0), "is unlucky")
        if self.count == 14:
            raise ValueError("fourteen is not liked")
        return self


@pytest.mark.parametrize(
    ("values", "location", "said"),
    [
        ({}, ("count",), "missing; expected: how many there are"),
        (
            {"count": "x"},
            ("count",),
            "input should be a valid integer, unable to parse string as an integer, found 'x'",
        ),
        ({"count": 1, "width_m": -1}, ("width_m",), "input should be greater than or equal to 0, found -1"),
        ({"count": 1, "width_m": float("nan")}, ("width_m",), "input should be a finite number, found nan"),
        (
            {"count": 1, "widht_m": 1},
            ("widht_m",),
            "site has no such parameter; did you mean width_m? it has count, width_m, group, shapes, place",
        ),
        ({"count": 1, "group": {"x": 1}}, ("group", "x"), "site has no such parameter; it has weight, offsets_m"),
        ({"count": 1, "group": {"weight": 2}}, ("group", "weight"), "input should be less than or equal to 1, found 2"),
        ({"count": 1, "group": {"offsets_m": [0, "a"]}}, ("group", "offsets_m", 1), "input should be a valid number"),
        ({"count": 1, "group": 3}, ("group",), "expected a table of values by name, found 3"),
        ({"count": 1, "shapes": {"a": {"kind": "cone"}}}, ("shapes", "a", "kind"), "expected one of 'box', 'ball'"),
        ({"count": 1, "shapes": {"a": {}}}, ("shapes", "a", "kind"), "missing"),
        ({"count": 1, "shapes": {"a": {"kind": "box"}}}, ("shapes", "a", "side_m"), "missing"),
        (
            {"count": 1, "shapes": {"a": {"kind": "ball", "radius_m": 1, "colour": 2}}},
            ("shapes", "a", "colour"),
            "site has no such parameter; leave it out or mend its name",
        ),
        (
            {"count": 1, "shapes": {"a": {"kind": "ball", "radius_m": 10}}},
            ("shapes", "a", "radius_m"),
            "10 is too large",
        ),
        ({"count": 1, "place": -1}, ("place",), "input should be greater than 0, found -1"),
        ({"count": 1, "place": {5: -1}}, ("place",), "input should be"),
        ({"count": 13}, ("group", "offsets_m", 0), "is unlucky"),
        ({"count": 14}, (), "fourteen is not liked"),
        ([1], (), "expected a table of values by name, found [1]"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_in_one_sentence(values, location, said):
    with pytest.raises(ParameterError) as caught:
        Site.parse(values, "site")
    assert caught.value.location == location
    assert caught.value.said.startswith(said)
    assert "\n" not in str(caught.value)


def test_further_mistakes_are_counted():
    with pytest.raises(InputError, match=r"^count: missing; expected: how many there are \(1 more\)$"):
        Site.parse({"width_m": -1}, "site")


def test_a_file_is_named_with_its_table():
    with pytest.raises(FileError, match=r"^a\.toml: group\.weight: input should be less than or equal to 1, found 2$"):
        Group.parse_from({"weight": 2}, "a.toml", "group")
    with pytest.raises(FileError, match=r"^a\.toml: weight: input should"):
        Group.parse_from({"weight": 2}, "a.toml")
    with pytest.raises(FileError, match=r"^a\.toml: group: expected a table of values by name, found 7$"):
        Group.parse_from(7, "a.toml", "group")
    with pytest.raises(FileError, match=r"^a\.toml: expected a table of values by name, found 7$"):
        Group.parse_from(7, "a.toml")


def test_good_values_are_taken_and_stay_as_they_are():
    site = Site.parse({"count": 3, "group": {"weight": 1}}, "site")
    assert site == Site(count=3, group=Group(weight=1.0))
    with pytest.raises(ValidationError):
        site.count = 4  # pyright: ignore[reportAttributeAccessIssue]


def test_help_has_a_row_for_each_parameter():
    assert Group.rows() == [("weight", "0.5", "How much the group counts."), ("offsets_m", "[]", "Where they sit.")]
    assert Site.rows()[0] == ("count", "required", "How many there are.")


def test_strict_parameters_take_no_text_for_a_number():
    class Strict(StrictParameters):
        rate_hz: Positive = 1.0

    assert Strict.parse({"rate_hz": 2}, "x").rate_hz == 2.0
    with pytest.raises(InputError, match="rate_hz: input should be a valid number, found '2'"):
        Strict.parse({"rate_hz": "2"}, "x")
    assert Strict.parse({}, "x") == Strict()


def test_long_values_are_shown_shortened():
    assert shown([0] * 100) == "[" + "0, " * 18 + "0,..."
    assert len(shown("x" * 100)) == 60
