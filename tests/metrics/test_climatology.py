# SPDX-License-Identifier: Apache-2.0
"""Climatology against numerical integrals, its own draws and closed forms; floors as columns."""

from itertools import pairwise

import numpy as np
import pytest
from known_logs import NormalWorld, drive, log_of, with_ranges
from scipy.integrate import quad

import hedgerow as hr
from hedgerow import InputError
from hedgerow.metrics import CompareSettings, compare
from hedgerow.metrics.climatology import Climatology, ClimatologySums
from hedgerow.metrics.floors import floor_columns

INF = np.inf
LIMIT_M = 64.0


def ringed(n=4000, seed=0):
    """Two rings: one returns always, near 10 m; the other in three of five beams, from 20 to 40 m."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n) % 2
    far = np.where(rng.random(n) < 0.6, rng.uniform(20, 40, n), INF)
    return log_of(
        np.where(ring == 0, rng.normal(10, 1, n), far), rings=ring, sweeps=np.arange(n) // 500, max_range_m=64
    )


def fitted(log):
    sums = ClimatologySums((log.min_range_m, log.max_range_m))
    for _, sweep in log.iter_sweeps():
        sums.add(sweep)
    return Climatology(sums)


def cdf_of(world, ring):
    row = ring + 1
    below = np.concatenate([[0], np.cumsum(world.share[row, :-1])])
    return lambda r: float(np.interp(r, world.edges_m, below))


def test_shares_of_returns_are_those_of_each_ring():
    log = ringed()
    world = fitted(log)
    found = world.expected(log.beams, limits_m=(0, LIMIT_M)).returns
    for ring in (0, 1):
        mine = log.beams.ring == ring
        np.testing.assert_allclose(found[mine], log.returns.hit[mine].mean(), rtol=1e-12)


@pytest.mark.parametrize("measured_m", [5.3, 10.0, 33.3, INF])
def test_crps_is_the_integral_of_its_definition(measured_m):
    """The integral of (F(r) - [r >= y])² up to the limit (Gneiting and Raftery 2007 eq. 20)."""
    world = fitted(ringed())
    for ring in (0, 1):
        one = log_of([measured_m], rings=[ring], max_range_m=LIMIT_M)
        forecast = world.forecast(one)
        assert forecast.error_m is not None and forecast.spread_m is not None and forecast.draws is None
        cdf, y = cdf_of(world, ring), min(measured_m, LIMIT_M)
        edges = [edge for edge in world.edges_m if 0 < edge < LIMIT_M]

        def part(r, cdf=cdf, y=y):
            return (cdf(r) - (r >= y)) ** 2

        ends = [0.0, *sorted({*edges, y} - {LIMIT_M}), LIMIT_M]
        exact = sum(quad(part, low, high)[0] for low, high in pairwise(ends))
        found = forecast.error_m - forecast.spread_m / 2
        assert found[0] == pytest.approx(exact, rel=1e-6)


def test_draws_follow_the_forecast_and_the_density_adds_up():
    world = fitted(ringed())
    n = 40_000
    beams = log_of(np.full(n, 10.0), rings=np.ones(n, dtype=int), max_range_m=LIMIT_M)
    drawn = world.fire(beams.beams, seed=3, limits_m=(0, LIMIT_M)).returns.first_m
    expected = world.expected(beams.beams[:1], limits_m=(0, LIMIT_M))
    p = expected.returns[0]
    assert np.isfinite(drawn).mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))
    assert np.median(drawn[np.isfinite(drawn)]) == pytest.approx(expected.median_m[0], abs=0.3)  # 20 m wide, 24,000
    middles = (world.edges_m[1:] + world.edges_m[:-1]) / 2
    every = log_of([*middles, INF], rings=np.ones(len(middles) + 1, dtype=int), max_range_m=LIMIT_M)
    p_of = np.exp(world.log_likelihood(every))
    assert p_of[:-1].sum() * world.step_m + p_of[-1] == pytest.approx(1)


def test_its_exact_scores_are_those_of_many_draws():
    log = ringed(600)
    world = fitted(log)
    exact = compare(log, world)
    from hedgerow.world.world import World

    shot_world = type("Drawn", (Climatology,), {"_forecast": World._forecast})(_sums(log))
    drawn = compare(log, shot_world, draws=200)
    for key, tolerance in (("crps_m", 0.02), ("brier", 0.01), ("spread", 0.02)):
        assert drawn[key] == pytest.approx(exact[key], rel=tolerance, abs=2e-3), key
    assert exact["spread"] == pytest.approx(1, abs=0.01)  # it is the distribution of these very beams
    assert exact["reliability_error"] == pytest.approx(0, abs=1e-12)


def _sums(log):
    sums = ClimatologySums((log.min_range_m, log.max_range_m))
    sums.add(log)
    return sums


def test_bins_widen_until_few_returns_cannot_be_learned_by_heart():
    fine, coarse = fitted(ringed(20_000)), fitted(ringed(200))
    assert fine.step_m <= 0.25 < coarse.step_m
    # On its own data a histogram gains one nat for each occupied bin: here at most a twentieth for each return.
    for world, log in ((fine, ringed(20_000)), (coarse, ringed(200))):
        assert np.count_nonzero(world.share[1:, :-1]) <= log.returns.hit.sum() / 20


def test_sums_merge_in_any_order():
    log = ringed()
    parts = [_sums(log.select(sweep=part)) for part in (range(3), range(3, 8))]
    parts[1].merge(parts[0])
    np.testing.assert_array_equal(Climatology(parts[1]).share, fitted(log).share)


def test_unknown_rings_get_the_distribution_of_all():
    log = ringed()
    strange = log_of([10.0], rings=[9], max_range_m=LIMIT_M)
    assert fitted(log).forecast(strange).returns[0] == pytest.approx(log.returns.hit.mean())


def test_floors_are_columns_and_are_said():
    real = drive(1)
    scores = compare(real, NormalWorld(20, 5, 0.1), floors=True)
    assert list(scores) == ["simulated", "climatology"]
    assert any(note.startswith("climatology: fitted to the judged log itself") for note in scores.notes)
    assert scores["climatology"]["reliability_error"] == pytest.approx(0, abs=1e-12)
    named = compare(real, {"a": NormalWorld(20, 5, 0.1)}, floors=True, again=real)
    assert list(named) == ["a", "climatology", "reality again"]
    assert named["reality again"]["crps_m"] == 0.0
    assert list(compare(real, {"a": NormalWorld(20, 5)}, again=real)) == ["a", "reality again"]


def test_a_standing_sensor_has_reality_again_by_itself():
    rng = np.random.default_rng(2)
    still = log_of(
        rng.normal(10, 0.1, 400), np.tile(log_of(np.ones(100)).beams.direction, (4, 1)), sweeps=np.arange(400) // 100
    )
    scores = compare(still, {"normal": NormalWorld(10, 0.1)}, floors=True)
    assert list(scores) == ["normal", "climatology", "reality again"]
    # Both are draws of one distribution: as near to reality as reality itself, within chance.
    again, world = scores["reality again"]["beam_error_mean_m"], scores["normal"]["beam_error_mean_m"]
    assert again is not None and world is not None
    assert world == pytest.approx(again, abs=5 * 0.085 * np.sqrt(2 / 400))


def test_a_scene_again_is_drawn_with_another_seed():
    world = NormalWorld(20, 0.5, 0.2)
    real = world.fire(log_of(np.full(500, 20.0)).beams, seed=0, limits_m=(0, 100))
    scores = compare(real, {"same": world}, floors=True, again=world)
    assert scores["same"]["hits_found"] == 1.0  # the same seed: the very same draw
    found = scores["reality again"]["hits_found"]
    assert found is not None and 0.7 < found < 0.9
    assert scores["reality again"]["spread"] == pytest.approx(1, abs=0.2)


def test_streams_and_names_of_floors_are_refused():
    real = drive(3, n_sweeps=2)
    with pytest.raises(InputError, match="floors: need a log that can be read twice"):
        compare(iter([real]), NormalWorld(), floors=True)
    with pytest.raises(InputError, match="'climatology' is a column of its own"):
        compare(real, {"climatology": NormalWorld()}, floors=True)
    with pytest.raises(InputError, match="has no max_range_m"):
        ClimatologySums((0.0, INF))


def test_without_a_range_limit_there_is_no_climatology():
    real = log_of([20.0, 21.0], max_range_m=INF)
    assert floor_columns(real, CompareSettings()) == {}


def test_the_mean_intensity_of_a_ring_is_expected():
    log = hr.Log.from_arrays(
        origins=(0, 0, 0), directions=log_of(np.ones(4)).beams.direction, ranges=[5.0, 6.0, INF, 7.0],
        intensities=[0.2, 0.4, np.nan, 0.9], rings=[0, 0, 0, 1], max_range_m=10.0,
    )  # fmt: skip
    found = fitted(log).expected(log.beams, limits_m=(0, 10)).intensity
    np.testing.assert_allclose(found, [0.3, 0.3, 0.3, 0.9], atol=1e-4)
    assert with_ranges(log, log.returns.first_m).returns.first("intensity") is None
