# SPDX-License-Identifier: Apache-2.0
"""The likelihood score against entropies, a sum done by hand, and its floor."""

import json

import numpy as np
import pytest
from known_logs import NormalWorld, log_of

from hedgerow import InputError, Returns
from hedgerow.metrics import compare

E = 0.001


def normal_log(n, sigma_m, miss=0.0, seed=0, **more):
    rng = np.random.default_rng(seed)
    ranges = np.where(rng.random(n) < miss, np.inf, rng.normal(20.0, sigma_m, n))
    return log_of(ranges, **more)


class Knows(NormalWorld):
    """Fires nothing (slow), but knows densities."""

    def returns(self, beams, shot):
        return Returns.from_arrays(ranges=np.full(len(beams), 20.0))


def test_the_true_world_scores_its_entropy():
    n, sigma = 40_000, 0.1
    scores = compare(normal_log(n, sigma), Knows(sigma_m=sigma))
    entropy = 0.5 * np.log(2 * np.pi * np.e * sigma**2)
    # -log p of a normal scatters by sqrt(1/2); the outlier share adds -log(1 - e), less what it gives the tails, which
    # at e / 100 m against 4 / m is below 1e-5. Five sigma: a false alarm in 2 million.
    assert scores["nll"] == pytest.approx(entropy - np.log(1 - E), abs=5 * np.sqrt(0.5 / n) + 1e-5)
    assert scores.values["nll"].n == n


def test_misses_score_the_probability_of_no_return():
    n, sigma, miss = 40_000, 0.1, 0.3
    scores = compare(normal_log(n, sigma, miss), Knows(sigma_m=sigma, miss=miss))
    of_range = 0.5 * np.log(2 * np.pi * np.e * sigma**2)
    entropy = -miss * np.log(miss) - (1 - miss) * np.log(1 - miss) + (1 - miss) * of_range
    # Variance of the score: of the two outcomes, and 1/2 among those that return.
    outcomes = np.array([-np.log(miss), -np.log(1 - miss) + of_range])
    spread = np.sqrt(miss * (1 - miss) * np.diff(outcomes)[0] ** 2 + (1 - miss) * 0.5)
    assert scores["nll"] == pytest.approx(entropy + E, abs=5 * spread / np.sqrt(n) + 3e-3 * E)


def test_every_beam_adds_the_mixture_with_the_floor():
    ranges = np.array([20.0, 20.1, 35.0, np.inf])
    real = log_of(ranges, max_range_m=50.0, min_range_m=10.0)
    scores = compare(real, Knows(sigma_m=0.1, miss=0.0))
    normal = np.exp(-0.5 * np.array([0.0, 1.0, 150.0**2])) / (0.1 * np.sqrt(2 * np.pi))
    p = np.array([*((1 - E) * normal + E / 40), E])  # the world excludes a miss, so its floor is all there is
    assert scores["nll"] == pytest.approx(-np.log(p).mean(), rel=1e-4)  # float32 of 20.1 m: 2e-6 m, 1e-4 of the density
    assert scores["floored"] == 2 / 4
    assert scores["nll_binned"] == pytest.approx(scores["nll"] - 0.75 * np.log(0.002), rel=1e-12)


@pytest.mark.parametrize(("times", "floored"), [(1.2, 0.0), (0.8, 1.0)])
def test_a_beam_is_floored_where_the_outlier_term_is_the_larger(times, floored):
    class Uniform(Knows):
        def log_likelihood(self, log, **more):
            return np.full(len(log), np.log(times * E / (1 - E) / log.max_range_m))

    assert compare(log_of([35.0]), Uniform())["floored"] == floored


def test_the_outlier_share_is_a_setting():
    real = log_of([35.0], max_range_m=100.0)
    assert compare(real, Knows(), outlier_share=0.1)["nll"] == pytest.approx(-np.log(0.1 / 100), rel=1e-12)


def test_impossible_beams_keep_the_score_and_its_json_finite():
    real = log_of([90.0, np.inf, 5.0])
    scores = compare(real, Knows(sigma_m=1e-3))
    nll = scores["nll"]
    assert nll is not None and np.isfinite(nll)
    json.loads(scores.to_json(), parse_constant=lambda text: pytest.fail(f"JSON holds {text}"))


def test_the_likelihood_histogram_counts_every_beam_in_its_decade():
    real = log_of([20.0] * 3 + [np.inf] * 2)
    histogram = compare(real, Knows(sigma_m=0.1, miss=0.05)).to_dict()["likelihood_histogram"]
    edges, counts = np.array(histogram["log10_edges"]), np.array(histogram["counts"])
    assert counts.sum() == 5
    at = [np.log10(0.999 * 0.95 / (0.1 * np.sqrt(2 * np.pi))), np.log10(0.999 * 0.05 + 0.001)]
    for value, count in zip(at, (3, 2), strict=True):
        assert counts[np.searchsorted(edges, value, side="right") - 1] == count


def test_a_log_without_maximal_range_has_no_likelihood_and_says_so():
    real = log_of([20.0, 20.1], max_range_m=np.inf)
    scores = compare(real, Knows())
    assert scores["nll"] is None
    assert any("max_range_m" in note for note in scores.notes)


def test_a_simulated_log_has_no_likelihood_and_says_so():
    real = log_of([20.0, 20.1])
    scores = compare(real, real)
    assert scores["nll"] is None
    assert any("no likelihood" in note for note in scores.notes)


def test_a_world_that_answers_nan_is_refused():
    class Broken(Knows):
        def log_likelihood(self, log, **more):
            return np.full(len(log), np.nan)

    with pytest.raises(InputError, match=r"broken: log_likelihood gave NaN"):
        compare(log_of([20.0]), {"broken": Broken()})
