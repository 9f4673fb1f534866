# SPDX-License-Identifier: Apache-2.0
"""Logs in use: selected, joined, compared, turned into points."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from small_logs import AXES, make_beams, make_log

from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns

INF, NAN = np.inf, np.nan


# Selection


@given(st.data())
def test_every_way_to_index_agrees_with_numpy(data):
    n = data.draw(st.integers(0, 12))
    log = make_log(n)
    positions = st.lists(st.integers(-n, n - 1), max_size=8) if n else st.just([])
    masks = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda mask: np.array(mask, bool))
    index = data.draw(st.one_of(st.slices(n), masks, positions))
    expected = np.arange(n)[np.array(index, int) if isinstance(index, list) else index]
    chosen = log[index]
    assert_array_equal(chosen.beams.pulse, expected)
    assert_array_equal(chosen.beams.origin_m, log.beams.origin_m[expected])
    assert_array_equal(chosen.returns.range_m, log.returns.range_m[expected])
    assert log.returns.label is not None
    assert_array_equal(chosen.returns.label, log.returns.label[expected])


def test_a_slice_shares_memory_and_every_selection_is_contiguous():
    log = make_log()
    assert np.shares_memory(log[2:5].beams.origin_m, log.beams.origin_m)
    for chosen in (log[2:5], log[::2], log[::-1], log[[0, 3]]):
        assert chosen.beams.direction.flags.c_contiguous
        assert not chosen.beams.direction.flags.writeable


def test_selections_are_not_checked_again(monkeypatch):
    log = make_log()

    def fail(self):
        raise AssertionError("checked again")

    monkeypatch.setattr(Beams, "__post_init__", fail)
    monkeypatch.setattr(Returns, "__post_init__", fail)
    assert len(log[2:4].select(sweep=1)) == 2


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, "index: 3 is a single number"),
        ([6], "index: position 6 is outside the 6 entries"),
        ([-7], "index: position -7 is outside"),
        ([True, False], "index: the mask has 2 entries, the data 6"),
        ([0.5], "index: expected a slice"),
        (np.zeros((6, 1), bool), "index: expected a slice"),
    ],
)
def test_bad_index_is_refused(index, message):
    with pytest.raises(InputError, match=message):
        make_log()[index]


def test_select_by_sweep_and_ring():
    log = make_log(12)
    assert_array_equal(log.select(sweep=2).beams.pulse, [4, 5])
    assert_array_equal(log.select(sweep=range(1, 3)).beams.pulse, [2, 3, 4, 5])
    assert_array_equal(log.select(sweep=range(0, 6, 3)).beams.pulse, [0, 1, 6, 7])
    assert_array_equal(log.select(sweep=[5, 0]).beams.pulse, [0, 1, 10, 11])
    assert_array_equal(log.select(sweep=[]).beams.pulse, [])
    assert_array_equal(log.select(ring=1, sweep=range(3)).beams.pulse, [1, 4])
    assert_array_equal(log.beams.select(ring=np.array([0, 2])).pulse, [0, 2, 3, 5, 6, 8, 9, 11])
    assert len(log.select(sweep=99)) == 0
    assert len(log.select()) == 12


def test_selecting_by_a_fraction_is_refused():
    with pytest.raises(InputError, match=r"selected numbers: row 0 is 0.5"):
        make_log().select(sweep=[0.5])  # pyright: ignore[reportArgumentType]  # wrong on purpose


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_sweeps_partition_the_log(numbers):
    n = len(numbers)
    log = Log.from_arrays(origins=[0, 0, 0], directions=AXES[np.arange(n) % 3], ranges=np.ones(n), sweeps=numbers)
    parts = list(log.iter_sweeps())
    assert [number for number, _ in parts] == sorted(set(numbers)) == log.sweeps.tolist()
    for number, part in parts:
        assert part.equal(log.select(sweep=number))


# Joining


def test_joining_the_sweeps_gives_the_log_back():
    log = make_log(12)
    assert Log.concatenate([part for _, part in log.iter_sweeps()]).equal(log)


def test_pulse_ids_are_kept_where_intervals_are_apart_in_any_order():
    beams = make_beams()
    joined = Beams.concatenate([beams[4:], beams[:0], beams[:4]])
    assert_array_equal(joined.pulse, [4, 5, 0, 1, 2, 3])


def test_pulse_ids_are_renumbered_where_intervals_overlap():
    beams = make_beams(4)
    assert_array_equal(Beams.concatenate([beams, beams]).pulse, np.arange(8))
    # One id in common: the intervals 0..2 and 2..3 touch.
    assert_array_equal(Beams.concatenate([beams[:3], beams[2:]]).pulse, np.arange(5))
    # The ids differ, but the intervals 0..2 and 1..3 overlap.
    assert_array_equal(Beams.concatenate([beams[[0, 2]], beams[[1, 3]]]).pulse, np.arange(4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensor": "other"}, "sensor: cannot join .* found test and other"),
        ({"max_range_m": 50}, "max_range_m: cannot join .*100.0 and 50.0"),
        ({"min_range_m": 0.5}, "min_range_m: cannot join"),
        ({"map_origin_m": np.ones(3)}, "map_origin_m: cannot join"),
        ({"returns": Returns(np.ones(6, np.float32))}, "label: cannot join, 1 of 2 parts have none"),
        (
            {"returns": Returns.from_arrays(ranges=np.ones((6, 2)), labels=np.ones((6, 2)))},
            r"range_m: cannot join rows of different shape, found \(\) and \(2,\)",
        ),
    ],
)
def test_joining_different_logs_is_refused_naming_the_difference(change, message):
    with pytest.raises(InputError, match=message):
        Log.concatenate([make_log(), replace(make_log(), **change)])


def test_joining_nothing_is_refused():
    with pytest.raises(InputError, match=r"nothing to join"):
        Log.concatenate([])


def test_joining_keeps_the_metadata_that_all_parts_share():
    parts = [replace(make_log(), metadata={"seed": 1, "run": run}) for run in (1, 2)]
    assert Log.concatenate(parts).metadata == {"seed": 1}


# Points, results, comparison


def test_points_are_origin_plus_range_along_the_direction():
    log = Log.from_arrays(
        origins=[[10, 0, 0], [0, 20, 0], [0, 0, 30]], directions=AXES, ranges=[[1, 2], [INF, INF], [3, INF]]
    )
    assert_array_equal(log.points(), [[11, 0, 0], [12, 0, 0], [0, 0, 33]])
    assert log.points().dtype == np.float64


def test_points_stay_within_ten_micrometres_at_100_m_and_5_km_from_the_origin():
    rng = np.random.default_rng(2)
    direction = rng.normal(size=(500, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    log = Log.from_arrays(origins=[5000, -5000, 100], directions=direction, ranges=np.full(500, 100))
    # The product itself is taken in float64; only the stored direction is rounded.
    assert_array_equal(log.points(), [5000, -5000, 100] + 100 * log.beams.direction.astype(np.float64))
    # Half a float32 step at 1 is 3e-8: 3 micrometres per axis at 100 m.
    assert_allclose(log.points(), np.array([5000, -5000, 100]) + 100 * direction, atol=1e-5, rtol=0)


def test_labels_follow_the_points():
    log = Log.from_arrays(
        origins=[0, 0, 0], directions=AXES, ranges=[[1, 2], [INF, INF], [3, INF]], labels=[[1, 2], [3, 4], [5, 6]]
    )
    assert log.returns.label is not None
    assert_array_equal(log.returns.label[log.returns.hit], [1, 2, 5])


def test_other_returns_take_the_place_of_the_old():
    log = make_log()
    simulated = log.with_returns(Returns.from_arrays(ranges=np.full(6, 7)))
    assert_array_equal(simulated.returns.range_m, np.full(6, 7))
    assert simulated.beams is log.beams
    assert simulated.sensor == "test"
    with pytest.raises(InputError, match=r"max_range_m"):
        log.with_returns(Returns.from_arrays(ranges=np.full(6, 101)))


@pytest.mark.parametrize(
    "change",
    [
        {"sensor": "x"},
        {"max_range_m": 99.0},
        {"map_origin_m": np.ones(3)},
        {"metadata": {"a": 1}},
        {"beams": make_beams()[::-1]},
        {"returns": Returns(np.ones(6, np.float32))},
    ],
)
def test_equal_sees_every_difference(change):
    log = make_log()
    assert log.equal(make_log())
    assert not log.equal(replace(log, **change))


def test_nan_intensities_are_equal_to_themselves():
    returns = Returns.from_arrays(ranges=[1, INF], intensities=[NAN, 1])
    assert returns.equal(Returns.from_arrays(ranges=[1, INF], intensities=[NAN, 2]))


def test_a_log_passes_between_processes():
    log = make_log()
    assert pickle.loads(pickle.dumps(log)).equal(log)


def test_metadata_of_the_caller_is_copied():
    metadata = {"seed": 1}
    log = replace(make_log(), metadata=metadata)
    metadata["seed"] = 2
    assert log.metadata == {"seed": 1}


def test_zero_beams_are_valid_everywhere():
    empty = Log.from_arrays(origins=[], directions=[], ranges=[], intensities=[], labels=[])
    assert len(empty) == 0
    assert empty.points().shape == (0, 3)
    assert empty.sweeps.tolist() == []
    assert list(empty.iter_sweeps()) == []
    assert len(empty[:]) == len(empty[np.zeros(0, bool)]) == len(empty[[]]) == len(empty.select(sweep=0)) == 0
    assert Log.concatenate([empty, empty]).equal(empty)
    dual = Log.from_arrays(origins=[0, 0, 0], directions=np.zeros((0, 3)), ranges=np.zeros((0, 2)))
    assert dual.returns.n_per_pulse == 2
    assert dual.points().shape == (0, 3)
