# SPDX-License-Identifier: Apache-2.0
"""The sums of a round: against a slow oracle, and the same bits however the work is cut."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import hedgerow as hr
from hedgerow.models.refined.rounds import RayCounter, RaySums
from hedgerow.models.refined.score import RayModel
from hedgerow.models.steps.permeability import scene_of
from hedgerow.world.elements import Gaussians, Triangles

MODEL = RayModel(min_range_m=0.5, max_range_m=30.0, min_sigma_m=0.01, outlier_share=0.01)


def some_tables(law="extinction"):
    """Forty Gaussians of all shapes before a half permeable wall."""
    rng = np.random.default_rng(4)
    roots = rng.normal(size=(40, 3, 3)) * 0.25
    mean_m = rng.uniform([4, -2, -2], [12, 2, 2], (40, 3))
    stop = rng.uniform(0.1, 8, 40) if law == "extinction" else rng.uniform(0, 1, 40)
    gaussians = Gaussians.plain(
        mean_m, roots @ roots.transpose(0, 2, 1), stop=stop.astype(np.float32), law=law, min_sigma_m=0.01, tau=3.0
    )
    wall = np.array([[[14.0, -30, -30], [14, 30, -30], [14, 0, 60]]])
    triangles = Triangles.plain(wall, permeability=np.array([0.5], np.float32), noise=hr.SurfaceNoise(0.02))
    return gaussians, triangles


def some_log(tables, n=4000, seed=1):
    """What beams from a moving sensor see of the tables, and some ranges that nothing explains."""
    rng = np.random.default_rng(seed)
    directions = np.column_stack([np.ones(n), rng.uniform(-0.35, 0.35, (n, 2))])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    beams = hr.Beams.from_arrays(
        origins=rng.uniform(-1, 1, (n, 3)), directions=directions, sweeps=np.arange(n) // (n // 8)
    )
    log = hr.SceneWorld(scene_of(tables), min_range_m=0.5, max_range_m=30.0).fire(beams, seed)
    range_m = np.where(np.arange(n) % 50 == 0, rng.uniform(0.5, 30, n), log.returns.range_m).astype(np.float32)
    return hr.Log.from_arrays(
        origins=beams.origin_m, directions=beams.direction, ranges=range_m, sweeps=beams.sweep, min_range_m=0.5,
        max_range_m=30.0,
    )  # fmt: skip


def slow_sums(tables, log):
    """The same sums as in docs/models.md §13, one beam after the other."""
    gaussians = tables[0]
    scene = scene_of(tables)
    found = scene.pierced(log.beams, max_range_m=MODEL.max_range_m)
    sums = np.zeros((scene.n_elements, 14))
    log_density = np.zeros(len(log))
    e = MODEL.outlier_share
    for beam, r in enumerate(log.returns.first_m.astype(float)):
        rows = slice(found.begin[beam], found.begin[beam + 1])
        element, passing = found.element[rows], found.permeability[rows].astype(float)
        middle, sigma = found.mean_m[rows].astype(float), np.maximum(found.sigma_m[rows], MODEL.min_sigma_m)
        reaching = np.concatenate([[1], np.cumprod(passing)])
        weight = reaching[:-1] * (1 - passing)
        if np.isfinite(r):
            density = norm.pdf(r, middle, sigma)
            rest, beyond = e / (MODEL.max_range_m - MODEL.min_range_m), 0.0
        else:
            density = norm.cdf(MODEL.min_range_m, middle, sigma) + norm.sf(MODEL.max_range_m, middle, sigma)
            rest, beyond = e, (1 - e) * reaching[-1]
        share = (1 - e) * weight * density
        total = share.sum() + rest + beyond
        log_density[beam] = np.log(total)
        share, beyond = share / total, beyond / total
        behind = np.concatenate([np.cumsum(share[::-1])[::-1][1:], [0]]) + beyond if len(share) else share
        u = np.minimum(50, -np.log(np.maximum(passing, 2e-22)))
        is_volume = element < len(gaussians)
        np.add.at(sums[:, 1], element, behind)
        np.add.at(sums[:, 4], element[is_volume], (behind * u)[is_volume])
        if not np.isfinite(r):
            continue
        np.add.at(sums[:, 0], element, share)
        slope = np.where(u > 1e-9, u / np.expm1(np.maximum(u, 1e-9)), 1)
        point = log.beams.origin_m[beam] + r * log.beams.direction[beam]
        for i in np.flatnonzero(is_volume):
            away = point - gaussians.mean_m[element[i]]
            outer = np.outer(away, away)[np.tril_indices(3)]
            own = [slope[i], slope[i] * (u[i] + slope[i] - 1)]
            sums[element[i], [2, 3, *range(5, 14)]] += share[i] * np.concatenate([own, away, outer])
    return sums, log_density


@pytest.mark.parametrize("law", ["extinction", "permeability"])
def test_the_sums_are_those_of_a_slow_oracle(law):
    tables = some_tables(law)
    log = some_log(tables)
    fast = RayCounter(tables, MODEL).sums(log)
    sums, log_density = slow_sums(tables, log)
    # Shares below 1e-6 are left out, of 4,000 beams up to 4e-3 in all; 1e-4 allows for float32 ranges at 15 m.
    assert_allclose(fast.table / 2**30, sums, rtol=1e-4, atol=4e-3)
    assert fast.nll == pytest.approx(-log_density.mean(), abs=1e-5)
    assert 0.3 < np.isfinite(log.returns.first_m).mean() < 0.99  # both kinds were tried


def test_named_columns_are_those_of_the_table():
    tables = some_tables()
    log = some_log(tables)
    fast = RayCounter(tables, MODEL).sums(log)
    sums, _ = slow_sums(tables, log)
    for number, name in enumerate(["hits", "passes", "slope", "curve", "depth"]):
        assert_allclose(getattr(fast, name), sums[:, number], rtol=1e-4, atol=4e-3)
    assert_allclose(fast.offset_m, sums[:, 5:8], rtol=1e-4, atol=4e-3)
    for entry, (row, column) in enumerate(zip(*np.tril_indices(3), strict=True)):
        assert_allclose(fast.square_m2[:, row, column], sums[:, 8 + entry], rtol=1e-4, atol=4e-3)
        assert_array_equal(fast.square_m2[:, row, column], fast.square_m2[:, column, row])


def test_the_score_is_the_one_that_compare_reports():
    tables = some_tables()
    log = some_log(tables)
    world = hr.LearnedWorld(*tables, kind="refined", min_range_m=0.5, max_range_m=30.0)
    nll = hr.compare(log, world, seed=0, outlier_share=MODEL.outlier_share)["nll"]
    # Elements narrower than 1 cm are widened here alone; there are none but rounding.
    assert RayCounter(tables, MODEL).sums(log).nll == pytest.approx(nll, abs=1e-4)


def test_partitions_and_threads_give_the_same_bits():
    tables = some_tables()
    log = some_log(tables)
    counter = RayCounter(tables, MODEL)
    whole = counter.sums(log, threads=1)
    cuts = np.sort(np.random.default_rng(0).integers(0, len(log), 6))
    chunks = [log[a:b] for a, b in zip([0, *cuts], [*cuts, len(log)], strict=True)]
    total = sum((counter.sums(chunk, threads=2) for chunk in reversed(chunks)), RaySums.zero(41))
    assert_array_equal(total.table, whole.table)
    assert (total.log_density, total.n_beams) == (whole.log_density, whole.n_beams)


def test_every_return_is_shared_out_but_for_the_outliers():
    tables = some_tables()
    log = some_log(tables)
    sums = RayCounter(tables, MODEL).sums(log)
    returned = np.isfinite(log.returns.first_m).sum()
    # One range in fifty is arbitrary; most of those nothing explains.
    assert 0.96 * returned < sums.hits.sum() < returned
