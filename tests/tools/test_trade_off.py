# SPDX-License-Identifier: Apache-2.0
"""Models are compared where they find as many hits."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # tools are scripts beside each other, not a package
from trade_off import Found, matched, most_misses

WORLDS = [(1.0, Found(0.9, 0.8, 0.2)), (9.0, Found(0.95, 0.7, 0.3))]


def test_a_world_with_as_many_hits_is_taken_as_it_is():
    assert matched(0.95, WORLDS) == [(9.0, Found(0.95, pytest.approx(0.7), 0.3))]  # pyright: ignore[reportArgumentType]  # compared only


def test_returns_are_forgotten_until_the_hits_are_as_many():
    # Every third hit goes, and with it every third of the 20 % false returns; what is left is as far off as before.
    assert matched(0.6, WORLDS)[0] == (1.0, Found(0.6, pytest.approx(1 - 0.2 * 2 / 3), 0.2))  # pyright: ignore[reportArgumentType]  # compared only


def test_worlds_with_fewer_hits_do_not_count():
    assert [weight for weight, _ in matched(0.92, WORLDS)] == [9.0]
    assert matched(0.96, WORLDS) == []


def test_what_repeats_itself_can_be_told_entirely():
    assert most_misses(1.0, np.array([1.0, 0.0, 1.0, 0.0])) == 1.0


def test_no_forecast_finds_more_misses_than_chance_allows():
    # Two beams always return, one every other time, one never. All 2.5 hits are found if the third is said to return
    # too, which is wrong for half a miss of 1.5; without it two hits, and all misses.
    shares = np.array([0.5, 1.0, 0.0, 1.0])
    assert most_misses(1.0, shares) == pytest.approx(1 - 0.5 / 1.5)
    assert most_misses(2.0 / 2.5, shares) == pytest.approx(1.0)
    assert most_misses(2.25 / 2.5, shares) == pytest.approx(1 - 0.25 / 1.5)
