# SPDX-License-Identifier: Apache-2.0
"""The border to C++: enums have the names that Python has, and settings come over by name or not at all."""

from typing import get_args

import pytest

from hedgerow import _core
from hedgerow.models.refined.rounds import RaySums
from hedgerow.models.topdown import TopdownParameters
from hedgerow.pulse.receiver import Processing
from hedgerow.sensor.config import RETURN_MODES, SensorMode
from hedgerow.world.elements import Points
from hedgerow.world.pulsed import native_mode


def names(enum):
    return {member.name for member in enum}


def test_return_modes_have_the_same_names_on_both_sides():
    assert set(get_args(SensorMode)) < set(RETURN_MODES)
    assert {native_mode(mode) for mode in RETURN_MODES} == set(_core.ReturnMode)
    back = {native_mode(mode).name.replace("_and_", "+").replace("_", "-") for mode in RETURN_MODES}
    assert back == set(RETURN_MODES)


def test_processings_have_the_same_names_on_both_sides():
    # What signal "sensor" asks for is no choice of its own in Python.
    assert {*get_args(Processing), "detected"} == names(_core.Processing)


def test_starts_of_k_means_have_the_same_names_on_both_sides():
    assert set(get_args(TopdownParameters.model_fields["start"].annotation)) == names(_core.ClusterStart)


def test_ways_to_pick_a_point_have_the_same_names_on_both_sides():
    assert set(get_args(Points.__annotations__["pick"])) == names(_core.Pick)


def test_columns_of_ray_sums_have_names_that_python_has():
    columns = names(_core.RaySum) - {"end"}
    assert all(isinstance(getattr(RaySums, name), property) for name in columns)


@pytest.mark.parametrize(
    "given",
    [
        {"mode": _core.ReturnMode.first},
        {"mode": _core.ReturnMode.first, "max_returns": 2, "gain": 1.0},
        {"mode": 0, "max_returns": 2},
        {"mode": "first", "max_returns": 2},
    ],
    ids=["missing", "unknown", "number for an enum", "text for an enum"],
)
def test_settings_are_complete_and_of_their_type(given):
    with pytest.raises(TypeError):
        _core.Receiver(processing=_core.Processing.light, cutoff_m=1.0, threshold=0.0, **given)


def test_settings_can_be_read_back_by_name():
    given = {
        "mode": _core.ReturnMode.all,
        "processing": _core.Processing.light,
        "cutoff_m": 0.5,
        "threshold": 0.25,
        "max_returns": 3,
    }
    receiver = _core.Receiver(**given)
    assert {name: getattr(receiver, name) for name in given} == given
