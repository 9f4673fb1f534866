# SPDX-License-Identifier: Apache-2.0
"""CRPS against the closed form of a Gaussian and the sum over all pairs; packets and their errors done by hand."""

import numpy as np
import pytest
from known_logs import NormalWorld, log_of, with_ranges
from scipy.stats import norm

from hedgerow import Log
from hedgerow.errors import InputError
from hedgerow.metrics import compare
from hedgerow.metrics.crps import crps, crps_by_sweep, crps_of_world
from hedgerow.metrics.pair import packets

INF = np.inf


def gaussian_crps(real, mean, sigma):
    """Gneiting and Raftery 2007 eq. 21."""
    z = (real - mean) / sigma
    return sigma * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


@pytest.mark.parametrize("n_draws", [2, 8])
def test_few_draws_give_the_closed_form_of_a_gaussian_without_bias(n_draws):
    rng = np.random.default_rng(1)
    real = np.repeat([19.0, 20.0, 20.4], 200_000)
    found = crps(real, rng.normal(20, 0.5, (n_draws, len(real))), 100).reshape(3, -1)
    error = found.std(axis=1) / np.sqrt(200_000)
    assert (np.abs(found.mean(axis=1) - gaussian_crps(np.array([19.0, 20.0, 20.4]), 20, 0.5)) < 4 * error).all()


def test_the_sorted_sum_is_that_over_all_pairs():
    rng = np.random.default_rng(2)
    real, draws = rng.uniform(1, 50, 40), rng.uniform(1, 50, (7, 40))
    pairs = np.abs(draws[:, None] - draws[None]).sum(axis=(0, 1)) / (2 * 7 * 6)
    np.testing.assert_allclose(crps(real, draws, 100), np.abs(draws - real).mean(axis=0) - pairs, rtol=1e-12)


def test_one_answer_scores_its_distance_and_no_return_lies_at_the_limit():
    real = np.array([10.0, INF, 10.0, INF, 99.0])
    draws = np.tile([12.0, INF, INF, 30.0, 120.0], (3, 1))
    np.testing.assert_allclose(crps(real, draws, 80.0), [2, 0, 70, 50, 0], atol=1e-12)


def test_the_right_share_of_returns_scores_best():
    rng = np.random.default_rng(3)
    real = np.where(rng.random(20_000) < 0.3, INF, 20.0)
    scores = [crps(real, np.where(rng.random((8, 20_000)) < miss, INF, 20.0), 50).mean() for miss in (0, 0.3, 0.6, 1)]
    assert min(scores) == scores[1]
    # 30 m times the Brier score of two outcomes: (p - q)^2 + q (1 - q).
    np.testing.assert_allclose(scores, [30 * ((p - 0.3) ** 2 + 0.21) for p in (0, 0.3, 0.6, 1)], rtol=0.05)


def test_a_world_is_scored_by_its_draws_and_the_seed_decides():
    real = log_of(np.random.default_rng(0).normal(20, 0.1, 3000))
    found = crps_of_world(NormalWorld(), real, draws=4, seed=1)
    assert found.shape == (3000,)
    expected = 0.1 / np.sqrt(np.pi)  # mean over y of the closed form
    assert found.mean() == pytest.approx(expected, abs=4 * found.std() / np.sqrt(3000))
    assert crps_of_world(NormalWorld(), real, draws=4, seed=1).tobytes() == found.tobytes()
    assert crps_of_world(NormalWorld(), real, draws=4, seed=2).tobytes() != found.tobytes()


def test_sweeps_are_scored_as_the_whole_is():
    real = log_of(np.full(60, 20.0), sweeps=np.repeat([0, 1, 2], [10, 20, 30]))
    whole = crps_of_world(NormalWorld(), real, draws=3)
    means, counts = crps_by_sweep(NormalWorld(), real, draws=3)
    assert counts.tolist() == [10, 20, 30]
    np.testing.assert_allclose(means, [whole[:10].mean(), whole[10:30].mean(), whole[30:].mean()], rtol=1e-12)


@pytest.mark.parametrize(
    ("real", "draws", "limit", "said"),
    [
        (np.zeros(3), np.zeros((1, 3)), 80, "K of 2 or more"),
        (np.zeros(3), np.zeros((4, 2)), 80, r"expected shape \(K, 3\)"),
        (np.zeros((3, 1)), np.zeros((4, 3)), 80, "real_m"),
        (np.zeros(3), np.zeros((4, 3)), INF, "finite range limit"),
        (np.full(3, np.nan), np.zeros((4, 3)), 80, "NaN"),
    ],
)
def test_what_cannot_be_scored_is_refused(real, draws, limit, said):
    with pytest.raises(InputError, match=said):
        crps(real, draws, limit)


def test_a_world_needs_two_draws_and_a_range_limit():
    with pytest.raises(InputError, match="draws"):
        crps_of_world(NormalWorld(), log_of([20.0]), draws=1)
    with pytest.raises(InputError, match="finite range limit"):
        crps_of_world(NormalWorld(), log_of([20.0], max_range_m=INF))


def firings(n_firings: int, n_rings: int, range_m: float = 10.0) -> Log:
    """A sweep of all rings at once, every 50 microseconds."""
    n = n_firings * n_rings
    return log_of(
        np.full(n, range_m),
        rings=np.tile(np.arange(n_rings), n_firings),
        times=np.repeat(np.arange(n_firings), n_rings) * 50e-6,
    )


def test_a_packet_is_twelve_firings_of_all_rings():
    number = packets(firings(30, 8).beams)
    np.testing.assert_array_equal(number, np.repeat([0, 1, 2], [96, 96, 48]))


def test_masked_beams_do_not_shift_packets():
    log = firings(48, 4)
    kept = np.random.default_rng(0).random(len(log)) < 0.8
    kept[:4] = True  # the first firing, where the count begins
    np.testing.assert_array_equal(packets(log[kept].beams), packets(log.beams)[kept])


def test_without_rings_or_times_a_sweep_is_the_observation():
    assert not packets(log_of(np.full(50, 10.0), times=np.arange(50) * 1e-3).beams).any()
    assert not packets(log_of(np.full(50, 10.0), rings=np.arange(50) % 4).beams).any()
    assert len(packets(log_of(np.zeros(0)).beams)) == 0


def test_observations_count_alike_and_the_pooled_error_weighs_them():
    real = firings(24, 2)
    ranges = np.full(48, 11.0)  # 1 m off
    ranges[:24] = INF
    ranges[0] = 14.0  # the only true hit of the first packet, 4 m off
    scores = compare(real, with_ranges(real, ranges))
    assert scores["observation_error_m"] == pytest.approx((4 + 1) / 2, abs=1e-5)  # float32 ranges
    assert scores.values["observation_error_m"].n == 2
    assert scores["beam_error_mean_m"] == pytest.approx((4 + 24) / 25, abs=1e-5)
    ranges[0] = INF
    assert compare(real, with_ranges(real, ranges)).values["observation_error_m"].n == 1
