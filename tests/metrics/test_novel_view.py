# SPDX-License-Identifier: Apache-2.0
"""Scores of the re-simulation papers: a few beams by hand, brute force, and means over sweeps."""

import numpy as np
import pytest
from known_logs import NormalWorld, drive, log_of, random_ranges, with_ranges

from hedgerow.log import Log
from hedgerow.metrics import compare
from hedgerow.metrics.novel_view import View, score_view
from hedgerow.metrics.range_image import pixels_of

INF = np.inf
APART = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])


def score(log, range_m, **answer):
    """Score an answer to all beams of a log."""
    real = View(log.returns.first_m, log.returns.first("intensity"))
    return score_view(log.beams, real, View(np.asarray(range_m, dtype=np.float32), **answer), None)


def test_four_beams_by_hand():
    log = log_of([10.0, 20.0, INF, 30.0], APART)
    found = score(log, [10.1, 20.3, INF, INF])
    assert found["range_rmse_m"] == pytest.approx(np.sqrt((0.1**2 + 0.3**2 + 30**2) / 4), rel=1e-6)
    assert found["range_medae_m"] == pytest.approx(0.2, rel=1e-5)  # of 0, 0.1, 0.3, 30
    assert found["range_psnr"] == pytest.approx(20 * np.log10(80 / found["range_rmse_m"]))
    assert found["drop_accuracy"] == 0.75
    assert found["drop_f1"] == pytest.approx(2 / 3)  # one of one found, one of two right
    assert found["return_f1"] == pytest.approx(4 / 5)  # two of three found, two of two right
    assert found["drop_rmse"] == pytest.approx(0.5)  # one of four told wrong, with certainty
    assert not any(key.startswith("intensity") or key.endswith("ssim") for key in found)
    # Both drawn points are near their own; the real one at 30 m is nearest to that at 10.1 m.
    there, back = [0.01, 0.09], [0.01, 0.09, 30**2 + 10.1**2]
    assert found["chamfer_m2"] == pytest.approx(np.mean(there) + np.mean(back), rel=1e-5)
    precision, recall = 1 / 2, 1 / 3  # 0.09 m² is not near
    assert found["f_score"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_distances_are_those_of_brute_force():
    real = drive(1, n_sweeps=1)
    other = with_ranges(real, random_ranges(np.random.default_rng(5), len(real)))
    found = score(real, other.returns.first_m)
    squares = ((real.points()[:, None] - other.points()[None]) ** 2).sum(axis=2)
    assert found["chamfer_m2"] == pytest.approx(squares.min(axis=0).mean() + squares.min(axis=1).mean(), rel=1e-4)


def test_far_returns_are_empty():
    log = log_of([90.0, 10.0], APART[:2])
    found = score(log, [INF, 10.0])
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


def test_intensities_by_hand():
    log = Log.from_arrays(
        origins=[0, 0, 0],
        directions=APART,
        ranges=[10, 20, INF, 30],
        intensities=[0.5, 0.2, np.nan, 0.4],
        max_range_m=80,
    )
    found = score(
        log, [10, 20, 5, INF], intensity=np.array([0.4, 0.5, 0.1, np.nan]), returns=np.array([1, 1, 0.8, 0.4])
    )
    error = np.array([0.1, 0.3, 0.1, 0.4])  # no return is 0 in either
    assert found["intensity_rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert found["intensity_medae"] == pytest.approx(0.2)
    assert found["intensity_psnr"] == pytest.approx(-10 * np.log10((error**2).mean()))
    assert found["drop_rmse"] == pytest.approx(np.sqrt((0.8**2 + 0.6**2) / 4))


def ringed(seed, n_rings=9, n_columns=40, missing=0.2, bright=1.0):
    """One sweep of a sensor with rings, half of whose beams fall into the column of another."""
    rng = np.random.default_rng(seed)
    ring = np.repeat(np.arange(n_rings), n_columns)
    azimuth = np.tile(np.arange(n_columns), n_rings) * 2 * np.pi / n_columns + rng.uniform(0, 0.3, len(ring))
    elevation = np.deg2rad(2.0 * ring)
    flat = np.cos(elevation)
    direction = np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    hit = rng.random(len(ring)) > missing
    return Log.from_arrays(
        origins=[0, 0, 1],
        directions=direction,
        ranges=np.where(hit, rng.uniform(5, 70, len(ring)), INF),
        intensities=np.where(hit, bright * rng.random(len(ring)), np.nan),
        rings=ring,
        max_range_m=80,
    )


def test_the_scores_of_an_image_are_those_of_its_pixels():
    real, other = ringed(1), ringed(2)
    pixels = pixels_of(real.beams)
    assert pixels is not None
    truth, answer = (View(log.returns.first_m, log.returns.first("intensity")) for log in (real, other))
    found = score_view(real.beams, truth, answer, pixels)
    some = score_view(real.beams[pixels.beam], truth.at(pixels.beam), answer.at(pixels.beam), None)
    assert {key: value for key, value in found.items() if not key.endswith("ssim")} == some
    same = score_view(real.beams, truth, truth, pixels)
    assert same["range_ssim"] == same["intensity_ssim"] == same["f_score"] == pytest.approx(1)
    assert found["range_ssim"] < 0.5


def test_images_are_scored_for_draws_and_medians_and_the_notes_say_how_they_differ():
    scores = compare(ringed(1), NormalWorld(20, 0.1, 0.1), novel_view=True)
    assert {f"{answer}_range_ssim" for answer in ("draw", "median")} <= scores.values.keys()
    assert any("images of 9 rings x 40 columns, each pixel a true beam" in note for note in scores.notes)
    without = compare(log_of(np.full(50, 20.0)), NormalWorld(20, 0.1), novel_view=True)
    assert "draw_range_ssim" not in without.values
    assert any("too few rings for an image" in note for note in without.notes)


def test_intensities_above_their_peak_are_not_scored():
    real = ringed(1, bright=255.0)
    scores = compare(real, ringed(1, bright=200.0), novel_view=True)
    assert "draw_range_ssim" in scores.values and "draw_intensity_rmse" not in scores.values
    assert any("intensities above 1" in note for note in scores.notes)
    assert "draw_intensity_rmse" in compare(ringed(1), ringed(2), novel_view=True, match_deg=10).values
