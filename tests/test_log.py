# SPDX-License-Identifier: Apache-2.0
"""Beams, Returns and Log: what the constructors take, convert and refuse."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_logs import AXES, make_beams, make_log

from hedgerow.base.arrays import RowError
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns

INF, NAN = np.inf, np.nan


# Construction


def test_arrays_keep_the_types_of_the_contract():
    log = make_log()
    types = {name: np.asarray(column).dtype for name, column in log.beams.columns().items()}
    assert types == {
        "origin_m": np.float64,
        "direction": np.float32,
        "time_ns": np.int64,
        "ring": np.uint16,
        "sweep": np.int32,
        "pulse": np.int64,
    }
    assert log.returns.range_m.dtype == np.float32
    assert log.returns.label is not None
    assert log.returns.label.dtype == np.uint16


def test_stored_arrays_are_read_only_and_the_callers_array_stays_writeable():
    origins = np.zeros((1, 3))
    beams = replace(make_beams(1), origin_m=origins)
    with pytest.raises(ValueError, match=r"read-only"):
        beams.origin_m[0, 0] = 1
    origins[0, 0] = 1
    assert np.shares_memory(beams.origin_m, origins)


def test_fields_cannot_be_replaced_in_place():
    with pytest.raises(FrozenInstanceError):
        make_log().sensor = "other"  # pyright: ignore[reportAttributeAccessIssue]  # wrong on purpose


def test_constructor_refuses_another_type_naming_the_field():
    with pytest.raises(InputError, match=r"direction: expected type float32, found float64"):
        replace(make_beams(), direction=np.ones((6, 3)))


def test_constructor_refuses_a_list_and_points_to_from_arrays():
    with pytest.raises(InputError, match=r"range_m: expected a NumPy array, found list; from_arrays"):
        Returns([1.0])  # pyright: ignore[reportArgumentType]  # wrong on purpose


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("origin_m", np.zeros((6, 2)), r"origin_m: expected shape \(N, 3\), found \(6, 2\)"),
        ("direction", np.ones((5, 3), np.float32), r"direction: expected shape \(6, 3\), found \(5, 3\)"),
        ("time_ns", np.zeros(5, np.int64), r"time_ns: expected shape \(6,\), found \(5,\)"),
        ("ring", np.zeros((6, 1), np.uint16), r"ring: expected shape \(6,\)"),
        ("sweep", np.zeros(7, np.int32), r"sweep: expected shape \(6,\)"),
        ("pulse", np.zeros(7, np.int64), r"pulse: expected shape \(6,\)"),
    ],
)
def test_constructor_refuses_unequal_lengths(field, value, message):
    with pytest.raises(InputError, match=message):
        replace(make_beams(), **{field: value})


@pytest.mark.parametrize("value", [NAN, INF])
def test_constructor_refuses_origins_that_are_not_finite_naming_the_row(value):
    origins = np.zeros((6, 3))
    origins[4, 1] = value
    with pytest.raises(InputError, match=r"origin_m: row 4 "):
        replace(make_beams(), origin_m=origins)


@pytest.mark.parametrize("length", [0, 0.999, 1.001, NAN])
def test_constructor_refuses_directions_that_are_not_unit_naming_the_row(length):
    directions = AXES[[0, 1, 2, 0, 1, 2]].astype(np.float32)
    directions[3] *= length
    with pytest.raises(InputError, match=r"direction: row 3 .*unit length"):
        replace(make_beams(), direction=directions)


def test_directions_within_a_ten_thousandth_of_unit_length_are_kept_as_they_are():
    directions = AXES[[0, 1, 2, 0, 1, 2]].astype(np.float32) * np.float32(1.00005)
    assert_array_equal(replace(make_beams(), direction=directions).direction, directions)


# Ranges


@pytest.mark.parametrize("value", [NAN, 0.0, -1.0, -INF])
def test_impossible_range_is_refused_naming_the_row_and_the_remedy(value):
    with pytest.raises(InputError, match=r"ranges: row 2 is .*use inf for no return"):
        Returns.from_arrays(ranges=[1, INF, value])


def test_returns_must_stand_nearest_first():
    with pytest.raises(InputError, match=r"ranges: row 1 is \[5.0, 4.0\]; sort its returns nearest first"):
        Returns.from_arrays(ranges=[[1, 2], [5, 4]])
    with pytest.raises(InputError, match=r"row 0 .*inf last"):
        Returns.from_arrays(ranges=[[INF, 2]])


def test_two_equal_returns_are_in_order():
    assert_array_equal(Returns.from_arrays(ranges=[[2, 2]]).range_m, [[2, 2]])


def test_one_column_of_ranges_is_single_return_data():
    returns = Returns.from_arrays(ranges=[[1], [INF]], intensities=[[3], [4]])
    assert returns.range_m.shape == (2,)
    assert_array_equal(returns.intensity, np.array([3, NAN], np.float32))


def test_constructor_refuses_one_column_of_ranges():
    with pytest.raises(InputError, match=r"range_m: expected \(N,\), or \(N, R\) with R of 2 or more"):
        Returns(np.ones((4, 1), np.float32))


def test_what_stands_beside_a_missing_return_is_blanked():
    returns = Returns.from_arrays(ranges=[[1, 2], [3, INF]], intensities=[[5, 6], [7, 8]], labels=[[5, 6], [7, 8]])
    assert_array_equal(returns.intensity, np.array([[5, 6], [7, NAN]], np.float32))
    assert_array_equal(returns.label, [[5, 6], [7, 0]])


@pytest.mark.parametrize(
    ("field", "value", "blank"),
    [
        ("intensity", np.array([1, 2], np.float32), "nan"),
        ("label", np.array([1, 2], np.uint16), "0"),
        ("element", np.array([1, 2], np.int64), "-1"),
    ],
)
def test_constructor_refuses_values_beside_a_missing_return(field, value, blank):
    with pytest.raises(InputError, match=f"{field}: row 1 is 2.* without a return; expected {blank} there"):
        Returns(np.array([1, INF], np.float32), **{field: value})


def test_intensities_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"intensities: expected shape \(2,\), found \(3,\)"):
        Returns.from_arrays(ranges=[1, 2], intensities=[1, 2, 3])


def test_views_of_returns():
    returns = Returns.from_arrays(ranges=[[1, 2], [3, INF], [INF, INF]])
    assert_array_equal(returns.first_m, [1, 3, INF])
    assert_array_equal(returns.hit, [[True, True], [True, False], [False, False]])
    assert returns.n_per_pulse == 2
    assert Returns.from_arrays(ranges=[1, 2]).n_per_pulse == 1


# The door for plain arrays


def test_log_from_lists():
    log = Log.from_arrays(
        origins=[0, 0, 1],
        directions=[[1, 0, 0], [0, 1, 0]],
        ranges=[2, INF],
        times=[0.5, 1.5],
        rings=[3, 4],
        sweeps=7,
        intensities=[0.5, 0.25],
        labels=[1, 2],
        max_range_m=50,
        min_range_m=1,
        sensor="mine",
        map_origin_m=[1, 2, 3],
    )
    assert_array_equal(log.beams.origin_m, [[0, 0, 1], [0, 0, 1]])
    assert_array_equal(log.beams.time_ns, [500_000_000, 1_500_000_000])
    assert_array_equal(log.beams.ring, [3, 4])
    assert_array_equal(log.beams.sweep, [7, 7])
    assert_array_equal(log.beams.pulse, [0, 1])
    assert_array_equal(log.returns.intensity, np.array([0.5, NAN], np.float32))
    assert_array_equal(log.returns.label, [1, 0])
    assert (log.sensor, log.min_range_m, log.max_range_m) == ("mine", 1.0, 50.0)
    assert_array_equal(log.map_origin_m, [1, 2, 3])


def test_slightly_wrong_lengths_are_normalised():
    beams = Beams.from_arrays(origins=[0, 0, 0], directions=[[1.0009, 0, 0], [0, 0.6, 0.8004]])
    # A float32 unit vector is exact to half a step per component, 3e-8; sqrt(3) of that in length.
    assert_allclose(np.linalg.norm(beams.direction.astype(float), axis=1), 1, atol=1e-7)


def test_wrong_lengths_are_refused_naming_the_row():
    with pytest.raises(InputError, match=r"directions: row 1 is .*of length 1.01; expected unit length"):
        Beams.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0], [1.01, 0, 0]])


def test_directions_read_from_a_log_pass_unchanged():
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(1000, 3))
    first = Beams.from_arrays(
        origins=[0, 0, 0], directions=directions / np.linalg.norm(directions, axis=1, keepdims=True)
    )
    again = Beams.from_arrays(origins=[0, 0, 0], directions=first.direction)
    assert_array_equal(again.direction, first.direction)


def test_unix_times_in_seconds_keep_what_float64_has():
    seconds = 1_700_000_000.123456
    beams = Beams.from_arrays(origins=[0, 0, 0], directions=AXES, times=[seconds] * 3)
    # float64 steps by 2.4e-7 s here, so the nearest nanosecond is within 120 ns of the decimal number.
    assert_allclose(beams.time_ns - 1_700_000_000_123_456_000, 0, atol=120)


def test_integer_times_are_nanoseconds():
    beams = Beams.from_arrays(origins=[0, 0, 0], directions=AXES, times=[1, 2, 3])
    assert_array_equal(beams.time_ns, [1, 2, 3])
    assert_allclose(beams.time_s, [1e-9, 2e-9, 3e-9])


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("times", [0.0, NAN, 0.0], "times: row 1 is nan"),
        ("times", [0.0, 1e10, 0.0], "times: row 1 "),
        ("times", [1, 2], r"times: expected shape \(3,\)"),
        ("rings", [0, 1, 70000], "rings: row 2 is 70000; expected whole numbers from 0 to 65535"),
        ("rings", [0, -1, 2], "rings: row 1 is -1"),
        ("rings", [0, 1.5, 2], "rings: row 1 is 1.5"),
        ("rings", [0, NAN, 2], "rings: row 1 is nan"),
        ("rings", [0, 65536.0, 2], "rings: row 1 is 65536.0"),
        ("sweeps", [0, 1, 2**31], "sweeps: row 2 is 2147483648"),
        ("labels", [0, 1, -3], "labels: row 2 is -3"),
        ("origins", [[0, 0, 0], [0, 0, 0]], r"origins: expected shape \(3,\) or \(3, 3\), found \(2, 3\)"),
        ("origins", [0, NAN, 0], "origin_m: row 0 "),
        ("origins", "here", "origins: expected numbers"),
        ("origins", [[0, 0, 0], [0, 0], [0]], "origins: rows of unequal length"),
        ("directions", [[1, 0], [1, 0], [1, 0]], r"directions: expected shape \(N, 3\)"),
        ("ranges", [1, 2], "log: 3 beams but 2 returns"),
        ("ranges", [1, 1e39, 2], "ranges: row 1 is 1e.39, too large for float32"),
        ("map_origin_m", [1, 2], r"map_origin_m: expected shape \(3,\)"),
        ("map_origin_m", [1, 2, NAN], "map_origin_m: expected three finite numbers"),
        ("max_range_m", 0, "range limits: expected 0 <= min_range_m < max_range_m"),
        ("max_range_m", NAN, "range limits"),
        ("min_range_m", -1, "range limits"),
    ],
)
def test_bad_arguments_are_refused_naming_the_argument(argument, value, message):
    arguments = {"origins": [0, 0, 0], "directions": AXES, "ranges": [1, 2, 3]}
    with pytest.raises(InputError, match=message):
        Log.from_arrays(**(arguments | {argument: value}))


def test_whole_numbers_given_as_floats_are_taken():
    beams = Beams.from_arrays(origins=[0, 0, 0], directions=AXES, rings=[0.0, 1.0, 2.0])
    assert_array_equal(beams.ring, [0, 1, 2])


def test_ranges_beyond_the_limit_are_counted_and_refused():
    with pytest.raises(InputError, match=r"range_m: 2 ranges beyond max_range_m = 2.5 m, the first in row 1 .*inf"):
        Log.from_arrays(origins=[0, 0, 0], directions=AXES, ranges=[1, 3, 4], max_range_m=2.5)
    with pytest.raises(InputError, match=r"range_m: 1 ranges beyond min_range_m = 1.5 m, the first in row 0 .*inf"):
        Log.from_arrays(origins=[0, 0, 0], directions=AXES, ranges=[1, 3, 4], min_range_m=1.5)


def test_a_range_equal_to_its_limit_is_inside():
    log = Log.from_arrays(
        origins=[0, 0, 0], directions=AXES, ranges=[0.1, 20.1, INF], min_range_m=0.1, max_range_m=20.1
    )
    assert_array_equal(log.returns.hit, [True, True, False])


def test_an_error_about_a_row_passes_between_processes():
    with pytest.raises(RowError) as caught:
        Returns.from_arrays(ranges=[1, 0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.name, again.row) == ("ranges", 1)
