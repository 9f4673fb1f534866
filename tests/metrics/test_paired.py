# SPDX-License-Identifier: Apache-2.0
"""Differences of two worlds over the sweeps of a drive: how often intervals hold the truth, and what is refused."""

import numpy as np
import pytest
from known_logs import NormalWorld
from known_logs import drive as log_drive

from hedgerow.errors import InputError
from hedgerow.metrics import compare
from hedgerow.metrics.paired import paired_difference


def drive(rng: np.random.Generator, n: int = 100, memory: float = 0.8) -> np.ndarray:
    """A score that changes slowly along a drive, of mean 0: an autoregression."""
    noise = rng.normal(size=n + 50)
    for i in range(1, len(noise)):
        noise[i] += memory * noise[i - 1]
    return noise[50:]


def test_blocks_hold_the_truth_where_single_sweeps_do_not():
    rng = np.random.default_rng(0)
    held = {None: 0, 1: 0}
    for trial in range(200):
        difference = drive(rng)
        for block in held:
            found = paired_difference(difference, np.zeros(100), block_sweeps=block, replicates=300, seed=trial)
            assert found.interval is not None
            held[block] += found.interval[0] <= 0 <= found.interval[1]
    # Of 200. Ten blocks of ten sweeps, memory of five: a little below the nominal 190. One by one, a third.
    assert held[None] > 165
    assert held[1] < 130


def test_what_both_share_cancels():
    rng = np.random.default_rng(1)
    hard = 5 * drive(rng)
    one, other = hard + 0.1 * rng.normal(size=100), hard + 0.5 + 0.1 * rng.normal(size=100)
    found = paired_difference(one, other)
    assert found.difference == pytest.approx(-0.5, abs=5 * 0.1 * np.sqrt(2 / 100))
    assert found.is_decided
    assert not paired_difference(one, one).is_decided
    assert found.words("m").startswith("-0.")


def test_beams_weigh_sweeps():
    found = paired_difference(np.array([1.0, 3.0]), np.zeros(2), np.array([3, 1]), block_sweeps=1)
    assert found.difference == 1.5


def test_one_block_has_no_interval():
    found = paired_difference(np.ones(3), np.zeros(3), block_sweeps=3)
    assert found.interval is None and not found.is_decided
    assert "too few" in found.words()


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(2).normal(size=30)
    assert paired_difference(values, 0 * values, seed=4) == paired_difference(values, 0 * values, seed=4)
    assert paired_difference(values, 0 * values, seed=4) != paired_difference(values, 0 * values, seed=5)


@pytest.mark.parametrize(
    ("one", "other", "weight", "said"),
    [
        (np.zeros(3), np.zeros(4), None, "other"),
        (np.full(3, np.nan), np.zeros(3), None, "one"),
        (np.zeros(3), np.zeros(3), np.zeros(3), "weight"),
        (np.zeros(0), np.zeros(0), None, "at least one sweep"),
    ],
)
def test_wrong_scores_are_refused(one, other, weight, said):
    with pytest.raises(InputError, match=said):
        paired_difference(one, other, weight)


def test_scores_of_two_worlds_differ_as_by_hand_and_the_better_one_is_below():
    real = log_drive(3, n_sweeps=12, n=120)
    both = compare(real, {"wide": NormalWorld(20, 12, 0.1), "narrow": NormalWorld(20, 0.5, 0.1), "log": real})
    found = both.differences("narrow")
    assert list(found) == ["wide", "log"]
    assert found["log"] == {}  # a log has no forecast
    assert list(found["wide"]) == ["crps_m", "brier", "log_score", "nll"]
    for key, each in found["wide"].items():
        one, other = both["wide"][key], both["narrow"][key]
        assert one is not None and other is not None
        assert each.difference == pytest.approx(one - other, abs=1e-12), key
        assert each.n_sweeps == 12
    for key in ("crps_m", "nll"):  # ranges are uniform from 2 to 40 m
        assert found["wide"][key].difference < 0 and found["wide"][key].is_decided, key
    assert not found["wide"]["brier"].is_decided  # both say 90 %


def test_the_interval_is_that_of_the_means_of_the_sweeps():
    real = log_drive(4, n_sweeps=9, n=80)
    both = compare(real, {"a": NormalWorld(20, 8), "b": NormalWorld(25, 4)})
    by_hand = [
        np.array([compare(sweep, world)["nll"] for _, sweep in real.iter_sweeps()], dtype=float)
        for world in (NormalWorld(20, 8), NormalWorld(25, 4))
    ]
    found = both.differences("b")["a"]["nll"]
    expected = paired_difference(by_hand[0], by_hand[1], np.full(9, 80))
    assert found.interval == pytest.approx(expected.interval)


def test_a_reference_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no simulation 'c'"):
        compare(log_drive(0, 1), {"a": NormalWorld()}).differences("c")
