# SPDX-License-Identifier: Apache-2.0
"""Proper scores of forecasts: closed forms, slow sums beam by beam, and worlds that are too sure."""

import json
from itertools import pairwise

import numpy as np
import pytest
from known_logs import NormalWorld, drive, log_of, with_ranges
from scipy.stats import norm

import hedgerow as hr
from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.forecast_scores import BAND_EDGES_M, FORECAST_METRICS, N_BINS, ForecastScores, score_beams
from hedgerow.metrics.pair import RealSweep, SimulatedSweep, SweepPair
from hedgerow.world.elements import Gaussians
from hedgerow.world.forecast import Forecast
from hedgerow.world.learned import LearnedWorld

INF = np.inf
LIMIT_M = 100.0


def forecast_of(returns, error_m=1.0, spread_m=1.0, draws=None):
    returns = np.asarray(returns, dtype=np.float64)
    n = len(returns)
    return Forecast(
        returns,
        np.full(n, 20.0, dtype=np.float32),
        np.full(n, np.nan, dtype=np.float32),
        np.full(n, error_m),
        np.full(n, spread_m),
        draws,
    )


def number(scores, key) -> float:
    """A score that must be there."""
    value = scores[key]
    assert isinstance(value, float), key
    return value


def sums_of(ranges, forecast, **settings):
    sums = ForecastScores(CompareSettings(**settings))
    real = log_of(ranges)
    sums.add(SweepPair(RealSweep(real), SimulatedSweep(real.returns.first_m, None, forecast)))
    return sums


class SharesWorld(NormalWorld):
    """Says of the n-th beam that it returns with the n-th probability, from N(20, 0.1²)."""

    def __init__(self, shares):
        super().__init__()
        self.shares = np.asarray(shares)

    def returns(self, beams, shot):
        found = super().returns(beams, shot)
        drawn = np.array([np.random.default_rng([shot.seed, 7, p]).random() for p in beams.pulse.tolist()])
        missed = drawn >= self.shares[beams.pulse]
        return hr.Returns.from_arrays(ranges=np.where(missed, INF, found.first_m))


def test_three_beams_are_scored_as_by_hand():
    values = sums_of([20.0, INF, 20.0], forecast_of([0.9, 0.2, 0.5], 3.0, 1.0), outlier_share=0.01).values()
    assert values["crps_m"].value == pytest.approx(2.5)
    assert values["brier"].value == pytest.approx((0.01 + 0.04 + 0.25) / 3)
    by_hand = [-np.log(0.99 * p + 0.005) for p in (0.9, 0.8, 0.5)]
    assert values["log_score"].value == pytest.approx(np.mean(by_hand))
    assert values["reliability_error"].value == pytest.approx((0.1 + 0.2 + 0.5) / 3)  # a bin for each
    assert values["spread"].value == pytest.approx(1 / 3)
    assert {each.n for each in values.values()} == {3}


def test_reliability_is_the_slow_sum_over_bins():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    hit = rng.random(5000) < p**2
    sums = sums_of(np.where(hit, 20.0, INF), forecast_of(p))
    total = 0.0
    for low in np.arange(N_BINS) / N_BINS:
        inside = (p >= low) & (p < low + 1 / N_BINS)
        total += inside.sum() * abs(p[inside].mean() - hit[inside].mean())
    assert sums.values()["reliability_error"].value == pytest.approx(total / 5000, rel=1e-9)
    table = sums.to_dict()["reliability"]
    assert sum(table["beams"]) == 5000 and sum(table["observed"]) == hit.sum()
    assert sum(table["forecast"]) == pytest.approx(p.sum())


def test_sure_forecasts_fall_into_the_last_bin():
    assert sums_of([20.0, 20.0], forecast_of([1.0, 0.999])).beams.tolist() == [0] * (N_BINS - 1) + [2]


def test_brier_of_few_draws_has_no_bias():
    rng = np.random.default_rng(1)
    n, k = 200_000, 3
    p = np.full(n, 0.3)
    hit = rng.random(n) < 0.4
    drawn = rng.binomial(k, p) / k
    found = score_beams(forecast_of(drawn, draws=k), hit, 0.001).brier
    exact = (0.3 - 0.4) ** 2 + 0.4 * 0.6
    assert found.mean() == pytest.approx(exact, abs=4 * found.std() / np.sqrt(n))
    biased = ((drawn - hit) ** 2).mean()
    assert biased > exact + 0.05  # p (1 - p) / K is 0.07


def test_a_world_of_elements_is_scored_by_the_closed_form_of_a_gaussian():
    """One Gaussian that stops every beam: CRPS of a normal (Gneiting and Raftery 2007 eq. 21)."""
    gaussians = Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.04)
    ranges = np.array([9.6, 10.0, 10.3])
    real = log_of(ranges, np.tile([[1.0, 0, 0]], (3, 1)))
    scores = compare(real, LearnedWorld(gaussians, kind="voxel"))
    z = (ranges - 10) / 0.2
    closed = 0.2 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert scores["crps_m"] == pytest.approx(closed.mean(), rel=1e-4)  # float32 elements
    assert scores["brier"] == pytest.approx(0, abs=1e-9)
    error = 0.2 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z))
    assert scores["spread"] == pytest.approx(0.4 / np.sqrt(np.pi) / error.mean(), rel=1e-4)
    assert not any("draws" in note for note in scores.notes)


def test_a_calibrated_world_has_spread_one_and_no_reliability_error_beyond_chance():
    rng = np.random.default_rng(2)
    n = 4000
    shares = rng.choice([0.15, 0.55, 0.9], n)
    world = SharesWorld(shares)
    real = world.fire(log_of(np.full(n, 20.0)).beams, seed=99, limits_m=(0, LIMIT_M))
    scores = compare(real, world, draws=32)
    assert scores["spread"] == pytest.approx(1, abs=0.05)  # standard error 0.013, by 20 seeds
    brier = np.mean(shares * (1 - shares))
    assert scores["brier"] == pytest.approx(brier, abs=4 * 0.25 / np.sqrt(n))
    too_sure = compare(real, SharesWorld(np.rint(shares)), draws=32)
    assert number(too_sure, "spread") < 0.1
    assert number(too_sure, "reliability_error") > 0.1
    for key in ("crps_m", "brier", "log_score"):
        assert number(too_sure, key) > number(scores, key)


def test_parts_add_up_to_the_whole():
    real = drive(3)
    world = NormalWorld(20, 5, 0.1)
    whole = compare(real, world)
    parts = [
        accumulate(real.select(sweep=part), {"simulated": world}, CompareSettings())
        for part in (range(2), range(2, 5), range(5, 6))
    ]
    for each in parts[1:]:
        parts[0].merge(each)
    merged = score(parts[0], {})["simulated"]
    for key in FORECAST_METRICS:
        assert merged[key] == pytest.approx(whole[key], rel=1e-12)
    one, other = whole.histograms.forecast, merged.histograms.forecast
    assert one is not None and other is not None
    assert one.to_dict()["reliability"]["beams"] == other.to_dict()["reliability"]["beams"]
    assert one.by_sweep.counts == other.by_sweep.counts == [300] * 6


def test_crps_by_range_adds_up_to_the_score():
    real = drive(4)
    scores = compare(real, NormalWorld(20, 5, 0.1))
    found = scores.histograms.forecast
    assert found is not None
    assert found.band_crps_m.sum() == pytest.approx(number(scores, "crps_m") * len(real))
    r = real.returns.first_m
    by_hand = [np.sum((r >= low) & (r < high)) for low, high in pairwise(BAND_EDGES_M)]
    assert found.band_beams.tolist() == [*by_hand, np.isinf(r).sum()]
    json.dumps(scores.to_dict(), allow_nan=False)


def test_reality_again_scores_as_the_true_distribution():
    rng = np.random.default_rng(5)
    n = 100_000
    p = np.full(n, 0.7)
    one, other = (np.where(rng.random(n) < p, rng.normal(20, 0.5, n), INF) for _ in range(2))
    sums = ForecastScores(CompareSettings())
    real = log_of(one)
    again = with_ranges(real, other).returns.first_m
    sums.add(SweepPair(RealSweep(real), SimulatedSweep(again, None, is_again=True)))
    values = sums.values()
    assert list(values) == ["crps_m", "brier"]
    assert values["brier"].value == pytest.approx(0.21, abs=4 * 0.25 / np.sqrt(n))
    # E|X - X'| / 2: two returns, or one of them missing.
    exact = 0.49 * 0.5 / np.sqrt(np.pi) + 0.21 * 80
    assert values["crps_m"].value == pytest.approx(exact, abs=4 * 20 / np.sqrt(n))


def test_logs_have_no_forecast_and_say_so():
    scores = compare(drive(6), drive(6))
    assert not FORECAST_METRICS.keys() & scores.values.keys()
    assert any(note.startswith("no forecast scores: the simulation is a log") for note in scores.notes)
    assert scores.to_dict()["forecasts"] is None


def test_draws_can_be_switched_off_and_are_said():
    real = drive(7, n_sweeps=1)
    assert "crps_m" not in compare(real, NormalWorld(20, 5), draws=0).values
    drawn = compare(real, NormalWorld(20, 5), draws=3)
    assert any("forecasts are of 3 draws" in note for note in drawn.notes)
    gaussians = Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.04)
    assert "crps_m" in compare(real, LearnedWorld(gaussians, kind="voxel"), draws=0).values  # it need not draw
    with pytest.raises(hr.InputError, match="draws"):
        compare(real, NormalWorld(20, 5), draws=1)


def test_a_log_without_a_range_limit_has_no_forecast_scores():
    scores = compare(log_of([20.0, 21.0], max_range_m=INF), NormalWorld())
    assert "crps_m" not in scores.values
    assert any("no forecast scores: the real log has no max_range_m" in note for note in scores.notes)
