# SPDX-License-Identifier: Apache-2.0
"""Surface or volume by contest: planes become surface, plants stay volume, and both can share a cell."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.learners.contest import contested
from hedgerow.learners.evidence import Evidence, cells_of
from hedgerow.learners.permeability import scene_of
from hedgerow.learners.quality import QualityCounter
from hedgerow.learners.ray_sums import RayCounter, RayModel
from hedgerow.learners.swap import Swap, triangle_cells
from hedgerow.learners.verdict import QualityWeights
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians, Triangles

MODEL = RayModel(min_range_m=0.0, max_range_m=30.0, outlier_share=0.001)
NOISE = hr.SurfaceNoise(0.01, 0.001)
GROUND_M = 0.2


def plants():
    """A row of grass 10 to 40 cm above the ground that half of the beams pass, and a shrub beyond it."""
    rng = np.random.default_rng(5)
    grass_m = rng.uniform([4, -2, GROUND_M + 0.1], [6, 2, GROUND_M + 0.4], (160, 3))
    shrub_m = rng.normal([9, 0, 1.5], [0.4, 0.8, 0.4], (40, 3))
    sigma_m = np.concatenate([np.full((160, 3), 0.06), np.full((40, 3), 0.15)])
    stop = np.concatenate([np.full(160, 6.0), np.full(40, 4.0)]).astype(np.float32)
    return Gaussians.plain(
        np.concatenate([grass_m, shrub_m]),
        sigma_m[:, :, None] ** 2 * np.eye(3),
        stop=stop,
        law="extinction",
        min_sigma_m=0.005,
        tau=3.5,
    )


def mesh(n=12):
    """The ground from x = 2 to 14 and y = -3 to 3 in 4 n² triangles."""
    x, y = np.meshgrid(np.linspace(2, 14, 2 * n + 1), np.linspace(-3, 3, n + 1), indexing="ij")
    node = np.stack([x, y, np.full_like(x, GROUND_M)], axis=-1)
    a, b, c, d = node[:-1, :-1], node[1:, :-1], node[1:, 1:], node[:-1, 1:]
    corners = np.stack([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)], axis=2)
    return Triangles.plain(corners.reshape(-1, 3, 3), noise=NOISE)


def ground(sigma_m=0.025):
    """The same ground of flat Gaussians, too thick by far for its noise."""
    x, y = np.meshgrid(np.arange(2.1, 14, 0.2), np.arange(-2.9, 3, 0.2))
    mean_m = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, GROUND_M)])
    covariance_m2 = np.broadcast_to(np.diag([0.1, 0.1, sigma_m]) ** 2, (len(mean_m), 3, 3))
    stop = np.full(len(mean_m), 60.0, dtype=np.float32)
    return Gaussians.plain(mean_m, covariance_m2.copy(), stop=stop, law="extinction", min_sigma_m=0.005, tau=3.5)


def skin(gaussians):
    """What a surface learner makes of a shrub: triangles through its middle that stop half of the beams."""
    rng = np.random.default_rng(8)
    corners_m = gaussians.mean_m[:, None] + rng.uniform(-0.2, 0.2, (len(gaussians), 3, 3))
    return Triangles.plain(corners_m, permeability=np.full(len(gaussians), 0.5, np.float32), noise=NOISE)


def beams(n, seed, n_sweeps=8):
    """Beams from a path at 2 m height on the whole strip; some go over it into the sky."""
    rng = np.random.default_rng(seed)
    origin_m = rng.uniform([-2, -3, 1.9], [0, 3, 2.1], (n, 3))
    to_m = rng.uniform([2.2, -2.8, GROUND_M], [13.8, 2.8, GROUND_M], (n, 3))
    to_m[:: n // 1000, 2] += 2.5
    direction = (to_m - origin_m) / np.linalg.norm(to_m - origin_m, axis=1, keepdims=True)
    return hr.Beams.from_arrays(origins=origin_m, directions=direction, sweeps=np.arange(n) * n_sweeps // n)


def seen(tables, n=24_000, seed=1):
    """What a sensor sees of some tables."""
    return hr.SceneWorld(scene_of(tables), max_range_m=30.0).fire(beams(n, seed), seed)


@pytest.fixture(scope="module")
def truth():
    return seen((plants(), mesh()))


def divided(log):
    """Six sweeps to learn from, two to judge."""
    judge = log.beams.sweep % 4 == 3
    return (lambda: iter([log[~judge]])), (lambda: iter([log[judge]]))


def run(gaussians, triangles, log, budget=10**9, **settings):
    parts, judges = divided(log)
    return contested(gaussians, triangles, parts, judges, MODEL, budget_parameters=budget, **settings)


def rows_of(part, whole):
    """Mask of the rows of a table that a part of it has."""
    keys = {tuple(row) for row in part.mean_m}
    return np.array([tuple(row) in keys for row in whole.mean_m])


@pytest.fixture(scope="module")
def won(truth):
    whole = Gaussians.joined([plants(), ground()])
    return whole, run(whole, Triangles.joined([mesh(), skin(plants())]), truth)


def test_the_plane_becomes_surface_and_plants_stay_volume(won):
    whole, (gaussians, triangles) = won
    kept = rows_of(gaussians, whole)
    assert kept[:200].mean() > 0.95  # grass between ground triangles, and the shrub
    assert kept[200:].mean() < 0.1  # ground, the border of the strip apart
    flat = np.ptp(triangles.corners_m[:, :, 2], axis=1) == 0
    assert np.count_nonzero(flat) > 0.9 * len(mesh())
    assert np.count_nonzero(~flat) < 0.05 * len(skin(plants()))
    assert_allclose(triangles.permeability[flat], 0, atol=0.05)  # beams that grass stopped did not pass the ground


def test_ground_under_grass_survives(won, truth):
    _, tables = won
    again = seen((plants(), mesh()), seed=4)
    world = LearnedWorld(*tables, kind="refined", max_range_m=30.0)
    shares = []
    for log in (again, world.fire(again.beams, 4)):
        point_m = log.beams.origin_m + log.returns.first_m.astype(np.float64)[:, None] * log.beams.direction
        nominal_m = (GROUND_M - log.beams.origin_m[:, 2]) / log.beams.direction[:, 2]
        under_m = log.beams.origin_m + nominal_m[:, None] * log.beams.direction
        inside = (under_m[:, 0] > 4.5) & (under_m[:, 0] < 6) & (np.abs(under_m[:, 1]) < 1.8) & (nominal_m > 0)
        on_ground = np.abs(point_m[:, 2] - GROUND_M) < 0.04
        shares.append(on_ground[inside].mean())
        error_m = (log.returns.first_m - nominal_m)[inside & on_ground]
        # Truth has 11 mm: 0.67 sigma of the plane's noise, and some grass that touches the ground. The Gaussians alone
        # have 69 mm.
        assert np.median(np.abs(error_m)) < 0.013
    assert 0.2 < shares[0] < 0.8
    # 2,500 beams each: three standard errors of a difference are 0.04.
    assert abs(shares[1] - shares[0]) < 0.04


def test_the_result_predicts_new_beams_better(won):
    whole, tables = won
    new = seen((plants(), mesh()), n=8000, seed=6)
    assert RayCounter(tables, MODEL).sums(new).nll < RayCounter((whole,), MODEL).sums(new).nll - 0.3


def test_gaussians_that_are_better_everywhere_are_returned_as_they_are():
    whole = Gaussians.joined([plants(), ground()])
    log = seen((whole,))  # thick ground, as the Gaussians have it
    assert run(whole, Triangles.joined([mesh(), skin(plants())]), log) == (whole,)
    assert run(whole, mesh()[:0], log) == (whole,)


def test_held_out_sweeps_have_the_last_word(truth):
    whole = Gaussians.joined([plants(), ground()])
    parts, _ = divided(truth)
    _, judges = divided(seen((whole,)))
    assert contested(whole, mesh(), parts, judges, MODEL, budget_parameters=10**9) == (whole,)


def test_surfaces_that_save_too_little_are_left_out(truth, monkeypatch):
    whole = Gaussians.joined([plants(), ground()])
    assert len(run(whole, mesh(), truth)) == 2
    monkeypatch.setattr("hedgerow.learners.contest.MIN_GAIN_NAT", 100.0)  # more than any surface can save
    assert run(whole, mesh(), truth) == (whole,)


def test_the_budget_is_kept_and_spent_on_the_best_cells(truth):
    whole = Gaussians.joined([plants(), ground()])
    fine = mesh(30)  # two triangles for each Gaussian of the ground
    found = {}
    for extra in (0, 5000, 15_000):
        tables = run(whole, fine, truth, whole.n_parameters() + extra)
        size = LearnedWorld(*tables, kind="refined", max_range_m=30.0).size()
        assert size.parameters <= whole.n_parameters() + extra
        found[extra] = size.tables.get("triangles", 0)
    assert 0 < found[5000] < found[15_000]
    coarse = run(whole, mesh(), truth, whole.n_parameters())
    assert sum(table.n_parameters() for table in coarse) < whole.n_parameters()


def test_partitions_do_not_change_a_byte(won, truth):
    whole, tables = won
    parts, judges = divided(truth)
    pieces = [[log[k::3] for log in logs() for k in (2, 0, 1)] for logs in (parts, judges)]
    triangles = Triangles.joined([mesh(), skin(plants())])
    cut = contested(whole, triangles, lambda: iter(pieces[0]), lambda: iter(pieces[1]), MODEL, budget_parameters=10**9)
    for a, b in zip(tables, cut, strict=True):
        for name, column in a.columns().items():
            if isinstance(column, np.ndarray):
                assert_array_equal(column, b.columns()[name])


def test_permeable_gaussians_can_lose_too(truth):
    whole = Gaussians.joined([plants(), ground()])
    constant = replace(whole, law="permeability", stop=np.full(len(whole), 0.3, np.float32), tau=2.0)
    tables = run(constant, mesh(), truth)
    assert [type(table) for table in tables] == [Gaussians, Triangles]


def test_every_stage_tells_how_far_it_is(truth):
    told = {}
    whole = Gaussians.joined([plants(), ground()])
    run(whole, mesh(), truth, meter=lambda stage: lambda done: told.update({stage: done}))
    assert told["trying surfaces, round 1 of 4"] == np.count_nonzero(truth.beams.sweep % 4 != 3)
    assert {"looking for surfaces", "asking who answers", "judging surfaces"} < set(told)


def test_a_swap_is_the_difference_of_two_worlds(truth):
    hit = truth[np.isfinite(truth.returns.first_m)][:4000]
    whole, triangles = Gaussians.joined([plants(), ground()]), mesh()
    freed = np.arange(len(whole)) >= 200
    swap = Swap(whole, triangles, freed, MODEL, 2.0)
    point_m = hit.beams.origin_m + hit.returns.first_m.astype(np.float64)[:, None] * hit.beams.direction
    cell = cells_of(point_m, 2.0)
    home, owners = cells_of(whole.mean_m, 2.0), triangle_cells(triangles, 2.0)

    def likely(cells, log):
        there = ~(freed & np.isin(home, cells))
        tables = whole[there], triangles[np.isin(owners, cells).any(axis=1)]
        scores = QualityCounter(tables, MODEL, QualityWeights())
        return scores.slopes(log)[1].nll

    chosen = np.unique(cell)[:4]
    gains = swap.gains(hit, chosen)
    for each in np.unique(cell)[[0, 3, 8]]:  # two that are surface already, and one that is not
        log = hit[cell == each]
        wanted = likely(np.setdiff1d(chosen, each), log) - likely(np.union1d(chosen, each), log)
        # Verdicts are in steps of a millionth, and the kernel sums float32 passing probabilities in another order.
        assert_allclose(gains[cell == each].mean(), wanted, atol=1e-4)


def test_evidence_counts_sweeps_not_beams():
    rng = np.random.default_rng(3)
    place = np.column_stack([rng.integers(0, 3, 500), rng.integers(0, 6, 500)])
    gain = rng.integers(-(2**20), 2**21, 500)
    halves = [Evidence._summed(place[rows], gain[rows]) for rows in (slice(0, 200), slice(200, None))]
    total = (halves[1] + halves[0]).by_cell()
    for k in range(3):
        sums = np.array([gain[(place == [k, sweep]).all(axis=1)].sum() for sweep in range(6)]) / 2**20
        assert_allclose(total.gain[k], sums.sum())
        assert_allclose(total.error[k], np.sqrt(6) * sums.std(ddof=1))
    assert_array_equal(total.n_sweeps, 6)
    assert len(Evidence.none().by_cell().cell) == 0
    once = Evidence._summed(place[:1], gain[:1]).by_cell()
    assert np.isinf(once.error[0])


def test_cells_are_cubes_on_both_sides_of_zero():
    inside_m = np.array([[-0.01, 0, 0], [-0.99, 0.9, 0.9], [0.01, 0, 0], [0.99, 0.01, 0.5]])
    first, second, third, fourth = cells_of(inside_m, 1.0)
    assert first == second != third == fourth
    with pytest.raises(hr.InputError, match="move its origin"):
        cells_of(np.array([[2e6, 0, 0]]), 1.0)
