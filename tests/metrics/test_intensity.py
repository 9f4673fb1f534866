# SPDX-License-Identifier: Apache-2.0
"""Scores of intensity: closed forms, slow sums, and estimates that have no bias for any number of draws."""

import json

import numpy as np
import pytest
from known_logs import PaintedWorld, log_of

from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.crps import crps
from hedgerow.metrics.drawn import choose_beams
from hedgerow.metrics.intensity import INCIDENCE_EDGES_DEG, INTENSITY_METRICS, fair_crps, fair_square
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld

N = 4000


def painted_log(world, seed=99, n=N):
    return world.fire(log_of(np.full(n, 20.0)).beams, seed=seed, limits_m=(0, 100.0))


def test_fair_crps_of_full_draws_is_that_of_ranges():
    rng = np.random.default_rng(0)
    y, drawn = rng.uniform(1, 9, 50), rng.uniform(1, 9, (7, 50))
    assert fair_crps(y, drawn) == pytest.approx(crps(y, drawn, 100.0), rel=1e-12)


def test_fair_crps_is_the_slow_sum_over_pairs_of_the_draws_that_returned():
    rng = np.random.default_rng(1)
    y, drawn = rng.random(60), rng.random((6, 60))
    drawn[rng.random(drawn.shape) < 0.5] = np.nan
    found = fair_crps(y, drawn)
    squares = fair_square(y, drawn)
    for beam in range(60):
        x = drawn[~np.isnan(drawn[:, beam]), beam]
        if len(x) < 2:
            assert np.isnan(found[beam]) and np.isnan(squares[beam])
            continue
        pairs = [abs(a - b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
        assert found[beam] == pytest.approx(np.mean(np.abs(x - y[beam])) - np.mean(pairs) / 2)
        assert squares[beam] == pytest.approx((x.mean() - y[beam]) ** 2 - x.var(ddof=1) / len(x))


def test_a_world_that_knows_the_distribution_scores_what_a_normal_does():
    """CRPS of the true N(m, s²) is s / sqrt(pi); RMSE of its mean is s, of a draw sqrt(2) s. Four standard errors."""
    world = PaintedWorld(sigma=0.1)
    scores = compare(painted_log(world), world)
    assert scores["intensity_crps"] == pytest.approx(0.1 / np.sqrt(np.pi), abs=4 * 0.08 / np.sqrt(N))
    assert scores["intensity_rmse"] == pytest.approx(0.1, abs=4 * 0.1 / np.sqrt(2 * N))
    assert scores["intensity_draw_rmse"] == pytest.approx(0.1 * np.sqrt(2), abs=4 * 0.1 / np.sqrt(N))
    assert {scores.values[key].n for key in INTENSITY_METRICS} == {N}


def test_few_draws_have_no_bias():
    world = PaintedWorld(sigma=0.1)
    real = painted_log(world)
    few, many = compare(real, world, draws=2), compare(real, world, draws=40)
    # The scatter of 2 draws beside 40: standard errors of 0.002 and 0.003 at most.
    assert few["intensity_crps"] == pytest.approx(many["intensity_crps"], abs=0.008)
    assert few["intensity_rmse"] == pytest.approx(many["intensity_rmse"], abs=0.012)


def test_too_sure_and_shifted_intensities_score_worse_than_true_ones():
    true = PaintedWorld(sigma=0.1)
    both = compare(painted_log(true), {"true": true, "sure": PaintedWorld(sigma=0.01), "off": PaintedWorld(0.7)})
    crps_of = {name: both[name].values["intensity_crps"].value for name in both}
    assert min(crps_of, key=lambda name: crps_of[name] or 0) == "true"


def test_reality_again_scores_as_the_true_distribution():
    world = PaintedWorld(sigma=0.1)
    real = painted_log(world, 1)
    scores = compare(real, {"true": world}, again=painted_log(world, 2))["reality again"]
    assert scores["intensity_crps"] == pytest.approx(0.1 / np.sqrt(np.pi), abs=4 * 0.05 / np.sqrt(N))
    assert scores["intensity_rmse"] == pytest.approx(0.1, abs=4 * 0.1 / np.sqrt(N))
    assert scores["intensity_draw_rmse"] == pytest.approx(0.1 * np.sqrt(2), abs=4 * 0.1 / np.sqrt(N))


def test_elements_give_the_exact_mean_and_draws_of_some_beams():
    """A world of one Gaussian of intensity 0.3, measured as 0.5: all three are known."""
    gaussians = Gaussians.plain(
        np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.04, intensity=np.full(1, 0.3, dtype=np.float32)
    )
    real = log_of(np.full(500, 10.0), np.tile([[1.0, 0, 0]], (500, 1)), intensities=np.full(500, 0.5))
    scores = compare(real, LearnedWorld(gaussians, kind="voxel"), drawn_beams=100)
    for key in INTENSITY_METRICS:
        assert scores[key] == pytest.approx(0.2, abs=1e-6)
    assert scores.values["intensity_rmse"].n == 500
    assert 60 < (scores.values["intensity_crps"].n or 0) < 140  # about 100: four deviations of a binomial
    assert any("intensities are forecast by 8 draws" in note for note in scores.notes)


def test_the_same_beams_are_chosen_every_time_and_only_those_that_returned():
    real = log_of(np.where(np.arange(3000) % 3, 20.0, np.inf))
    rows = choose_beams(real, 500)
    assert np.array_equal(rows, choose_beams(real, 500))
    assert (rows % 3 > 0).all() and 400 < len(rows) < 600
    assert len(choose_beams(real, 5000)) == 2000


def test_logs_have_the_error_of_a_draw_alone_and_nothing_without_intensities():
    real = log_of([20.0, 20.0, np.inf, 20.0], intensities=[0.1, 0.2, np.nan, np.nan])
    other = log_of([20.0, np.inf, 20.0, 20.0], intensities=[0.4, np.nan, 0.3, 0.3])
    scores = compare(real, other)
    assert scores["intensity_draw_rmse"] == pytest.approx(0.3)
    assert scores.values["intensity_draw_rmse"].n == 1
    assert "intensity_crps" not in scores.values
    bare = compare(real, log_of([20.0, 20.0, 20.0, 20.0]))
    assert not INTENSITY_METRICS.keys() & bare.values.keys()
    assert "no scores of intensity: the simulation has none" in bare.notes


def test_bands_add_up_to_the_score_and_parts_to_the_whole():
    rng = np.random.default_rng(3)
    n = 600
    real = log_of(rng.uniform(2, 90, n), sweeps=np.repeat(np.arange(3), 200), intensities=rng.random(n))
    world = PaintedWorld(miss=0.3)
    whole = compare(real, world)
    parts = [accumulate(real.select(sweep=[k]), {"simulated": world}, CompareSettings()) for k in range(3)]
    for each in parts[1:]:
        parts[0].merge(each)
    merged = score(parts[0], {})["simulated"]
    for key in INTENSITY_METRICS:
        assert merged[key] == pytest.approx(whole[key], rel=1e-12)
    table = json.loads(whole.to_json())["intensity"]
    for bands in (table["by_range"], table["by_incidence"]):
        crps_sum, beams = sum(bands["crps"]["sum"]), sum(bands["crps"]["beams"])
        assert crps_sum / beams == pytest.approx(whole["intensity_crps"])
        assert beams == whole.values["intensity_crps"].n
    assert len(table["by_incidence"]["crps"]["sum"]) == len(INCIDENCE_EDGES_DEG)  # bands, and no plane
    r = real.returns.first_m
    band = table["by_range"]["edges_m"].index(20.0)
    assert table["by_range"]["mean_square"]["beams"][band] <= np.sum((r >= 20) & (r < 30))


def test_climatology_draws_the_intensities_of_each_ring():
    rng = np.random.default_rng(4)
    n = 20_000
    ring = np.arange(n) % 2
    intensity = np.where(ring, rng.normal(0.7, 0.05, n), rng.uniform(0, 0.2, n))
    real = log_of(np.full(n, 20.0), rings=ring, intensities=intensity)
    scores = compare(real, {"again": PaintedWorld()}, floors=True)["climatology"]
    # E|X - y| - E|X - X'| / 2 is s / sqrt(pi) of the normal and (b - a) / 6 of the uniform ring.
    exact = (0.05 / np.sqrt(np.pi) + 0.2 / 6) / 2
    assert scores["intensity_crps"] == pytest.approx(exact, rel=0.03)
    assert scores["intensity_rmse"] == pytest.approx(np.sqrt((0.05**2 + 0.2**2 / 12) / 2), rel=0.03)
