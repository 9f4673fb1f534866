# SPDX-License-Identifier: Apache-2.0
"""Scores of the re-simulation papers: a few beams by hand, brute force, and means over sweeps."""

import numpy as np
import pytest
from known_logs import NormalWorld, drive, log_of, random_ranges, with_ranges

from hedgerow.metrics import compare
from hedgerow.metrics.novel_view import score_view

INF = np.inf
APART = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])


def test_four_beams_by_hand():
    log = log_of([10.0, 20.0, INF, 30.0], APART)
    found = score_view(log.beams, log.returns.first_m, np.array([10.1, 20.3, INF, INF], dtype=np.float32))
    assert found["range_rmse_m"] == pytest.approx(np.sqrt((0.1**2 + 0.3**2 + 30**2) / 4), rel=1e-6)
    assert found["range_medae_m"] == pytest.approx(0.2, rel=1e-5)  # of 0, 0.1, 0.3, 30
    assert found["range_psnr"] == pytest.approx(20 * np.log10(80 / found["range_rmse_m"]))
    assert found["drop_accuracy"] == 0.75
    assert found["drop_f1"] == pytest.approx(2 / 3)  # one of one found, one of two right
    # Both drawn points are near their own; the real one at 30 m is nearest to that at 10.1 m.
    there, back = [0.01, 0.09], [0.01, 0.09, 30**2 + 10.1**2]
    assert found["chamfer_m2"] == pytest.approx(np.mean(there) + np.mean(back), rel=1e-5)
    precision, recall = 1 / 2, 1 / 3  # 0.09 m² is not near
    assert found["f_score"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_distances_are_those_of_brute_force():
    real = drive(1, n_sweeps=1)
    other = with_ranges(real, random_ranges(np.random.default_rng(5), len(real)))
    found = score_view(real.beams, real.returns.first_m, other.returns.first_m)
    squares = ((real.points()[:, None] - other.points()[None]) ** 2).sum(axis=2)
    assert found["chamfer_m2"] == pytest.approx(squares.min(axis=0).mean() + squares.min(axis=1).mean(), rel=1e-4)


def test_far_returns_are_empty():
    log = log_of([90.0, 10.0], APART[:2])
    found = score_view(log.beams, log.returns.first_m, np.array([INF, 10.0], dtype=np.float32))
    assert found["range_rmse_m"] == 0 and found["drop_f1"] == 1 and "range_psnr" not in found


def test_they_are_means_over_sweeps_and_come_only_if_asked_for():
    real = drive(2)
    world = NormalWorld(20, 5, 0.1)
    assert not any(key.startswith("draw_") for key in compare(real, world).values)
    scores = compare(real, world, novel_view=True)
    by_sweep = [compare(sweep, world, novel_view=True) for _, sweep in real.iter_sweeps()]
    for key in ("draw_chamfer_m2", "draw_range_rmse_m", "median_f_score", "median_range_medae_m"):
        assert scores[key] == pytest.approx(np.mean([np.float64(each[key] or 0) for each in by_sweep])), key
        assert scores.values[key].n == 6


def test_a_draw_of_the_truth_errs_more_than_its_median():
    world = NormalWorld(20, 0.5)
    real = world.fire(log_of(np.full(3000, 20.0)).beams, seed=9, limits_m=(0, 100))
    scores = compare(real, world, novel_view=True, draws=64)
    draw, median = scores["draw_range_rmse_m"], scores["median_range_rmse_m"]
    assert draw == pytest.approx(0.5 * np.sqrt(2), rel=0.06)  # the noise of both
    assert median == pytest.approx(0.5, rel=0.06)
