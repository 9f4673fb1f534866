# SPDX-License-Identifier: Apache-2.0
"""The border to C++: enums have the names that Python has, and settings come over by name or not at all."""

from typing import get_args

import pytest

from hedgerow import _core
from hedgerow.models.refined.rounds import RaySums
from hedgerow.models.topdown import TopdownParameters
from hedgerow.sensor.config import RETURN_MODES, SensorMode
from hedgerow.world.elements import Points
from hedgerow.world.pulsed import native_mode


def names(enum):
    return {member.name for member in enum}


def test_return_modes_have_the_same_names_on_both_sides():
    assert set(get_args(SensorMode)) < set(RETURN_MODES)
    assert {native_mode(mode) for mode in RETURN_MODES} == set(_core.ReturnMode)
    assert {native_mode(mode).name.replace("_and_", "+") for mode in RETURN_MODES} == set(RETURN_MODES)


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
        {"mode": _core.ReturnMode.first, "cutoff_m": 1.0, "threshold": 0.0},
        {"mode": _core.ReturnMode.first, "cutoff_m": 1.0, "threshold": 0.0, "max_returns": 2, "gain": 1.0},
        {"mode": 0, "cutoff_m": 1.0, "threshold": 0.0, "max_returns": 2},
        {"mode": "first", "cutoff_m": 1.0, "threshold": 0.0, "max_returns": 2},
    ],
    ids=["missing", "unknown", "number for an enum", "text for an enum"],
)
def test_settings_are_complete_and_of_their_type(given):
    with pytest.raises(TypeError):
        _core.Receiver(**given)


def test_settings_can_be_read_back_by_name():
    receiver = _core.Receiver(mode=_core.ReturnMode.all, cutoff_m=0.5, threshold=0.25, max_returns=3)
    assert (receiver.mode, receiver.cutoff_m, receiver.threshold, receiver.max_returns) == (
        _core.ReturnMode.all,
        0.5,
        0.25,
        3,
    )
