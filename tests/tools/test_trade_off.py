# SPDX-License-Identifier: Apache-2.0
"""Hits and misses of two models are compared where they find as many hits."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # tools are scripts beside each other, not a package
from trade_off import matched

WORLDS = {1.0: (0.9, 0.8), 9.0: (0.95, 0.7)}


def test_a_world_with_as_many_hits_is_taken_as_it_is():
    assert matched(0.95, WORLDS) == (pytest.approx(0.7), 9.0)


def test_returns_are_forgotten_until_the_hits_are_as_many():
    # Of 0.9 every third hit goes, and with it every third of the 20 % false returns;
    assert matched(0.6, WORLDS) == (pytest.approx(1 - 0.2 * 2 / 3), 1.0)


def test_the_better_of_two_worlds_is_taken():
    assert matched(0.9, WORLDS) == (pytest.approx(0.8), 1.0)
    assert matched(0.92, WORLDS) == (pytest.approx(1 - 0.3 * 0.92 / 0.95), 9.0)


def test_more_hits_than_any_world_finds_have_no_match():
    assert matched(0.96, WORLDS) is None
