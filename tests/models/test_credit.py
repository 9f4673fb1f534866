# SPDX-License-Identifier: Apache-2.0
"""Returns that are shared out give the permeabilities of overlapping elements back, however the log is cut."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import hedgerow as hr
from hedgerow import _core
from hedgerow.base.progress import ProgressSteps
from hedgerow.models.steps.credit import CreditParameters, learn_permeability, share_returns
from hedgerow.models.steps.log_chunks import LearningTask, summarise
from hedgerow.models.steps.permeability import scene_of
from hedgerow.models.voxel import VoxelParameters
from hedgerow.parallel.log_parts import cut_log
from hedgerow.world.elements import Gaussians, Triangles

SIDE_M, TRUE = 0.3, 0.7
LIMIT_M = 40.0
E = 0.001
"""Share of outliers."""


def touching_voxels(tau, n=6):
    """Gaussians of points spread evenly over the voxels of a cube, side by side."""
    corner = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * SIDE_M
    covariance_m2 = np.tile(np.eye(3) * SIDE_M**2 / 12, (n**3, 1, 1))
    gaussians = Gaussians.plain(corner - corner.mean(axis=0), covariance_m2, tau=tau)
    return replace(gaussians, stop=np.full(n**3, TRUE, np.float32))


def looks_from_all_sides(tables, n=100_000, seed=3, max_range_m=LIMIT_M):
    """What beams from a sphere of 6 m see of elements in its middle."""
    rng = np.random.default_rng(1)
    origin_m = rng.normal(size=(n, 3))
    origin_m *= 6 / np.linalg.norm(origin_m, axis=1, keepdims=True)
    direction = rng.uniform(-0.9, 0.9, (n, 3)) - origin_m
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    beams = hr.Beams.from_arrays(origins=origin_m, directions=direction, sweeps=np.arange(n) // (n // 8))
    return hr.SceneWorld(scene_of(tables), max_range_m=max_range_m).fire(beams, seed)


def task_of(source, report=None):
    chunks = cut_log(source)
    summary = summarise(chunks)
    return LearningTask(chunks, summary, ProgressSteps(summary.n_beams, report))


def some_tables():
    """Gaussians that overlap, round and flat, before and behind a half permeable triangle."""
    rng = np.random.default_rng(4)
    roots = rng.normal(size=(12, 3, 3)) * 0.3
    covariance_m2 = roots @ roots.transpose(0, 2, 1)
    covariance_m2[::2] = 0.1 * covariance_m2[::2] + 0.02 * np.eye(3)  # the others are flat
    gaussians = Gaussians.plain(rng.uniform(-0.8, 0.8, (12, 3)), covariance_m2, min_sigma_m=0.02)
    gaussians = replace(gaussians, stop=rng.uniform(0.2, 0.9, 12).astype(np.float32))
    wall = np.array([[[0.2, -9.0, -9], [0.2, 9, -9], [0.2, 0, 9]]])
    return gaussians, Triangles.plain(wall, permeability=np.array([0.5], np.float32), noise=hr.SurfaceNoise(0.02))


@pytest.mark.parametrize(("tau", "counted"), [(2.0, 0.71), (3.5, 0.30)])
def test_touching_voxels_come_back_as_permeable_as_they_are(tau, counted):
    truth = touching_voxels(tau)
    log = looks_from_all_sides((truth,))
    found = {
        credit: learn_permeability(task_of(log), (truth,), CreditParameters(credit=credit))[0].stop
        for credit in ("all", "share")
    }
    # The paper's rule, by the way: of a beam that one element stopped, all that overlap it get a hit.
    assert found["all"].mean() == pytest.approx(counted, abs=0.02)
    # Each element has some hundred hits: 5 sigma of the least are 0.13, of the mean of 216 less than 0.01.
    assert found["share"].mean() == pytest.approx(TRUE, abs=0.01)
    assert np.abs(found["share"] - TRUE).max() < 0.13


def slow_shares(tables, log):
    """(E, 2) hits and passes of one round as in docs/models.md §6, one beam after the other."""
    scene = scene_of(tables)
    found = scene.pierced(log.beams, max_range_m=LIMIT_M)
    sums = np.zeros((scene.n_elements, 2))
    for beam, r in enumerate(log.returns.first_m.astype(float)):
        rows = slice(found.begin[beam], found.begin[beam + 1])
        element, q = found.element[rows], found.permeability[rows].astype(float)
        t, sigma = found.mean_m[rows].astype(float), np.maximum(found.sigma_m[rows], 0.001)
        reaching = np.concatenate([[1], np.cumprod(q)])
        if np.isfinite(r):
            share = (1 - E) * reaching[:-1] * (1 - q) * norm.pdf(r, t, sigma)
            beyond, outlier = 0.0, E / LIMIT_M
        else:
            share = (1 - E) * reaching[:-1] * (1 - q) * (norm.cdf(0, t, sigma) + norm.sf(LIMIT_M, t, sigma))
            beyond, outlier = (1 - E) * reaching[-1], E
        share, beyond = share / (total := share.sum() + beyond + outlier), beyond / total
        np.add.at(sums[:, 1], element, beyond + share.sum() - np.cumsum(share))
        if np.isfinite(r):
            np.add.at(sums[:, 0], element, share)
    return sums


def test_a_round_is_that_of_a_slow_oracle_and_leaves_surfaces_alone():
    tables = some_tables()
    log = looks_from_all_sides(tables, n=3000)
    assert 0.3 < np.isfinite(log.returns.first_m).mean() < 0.99  # both kinds of beams were tried
    gaussians, triangles = share_returns(task_of(log), tables, rounds=1, prior_hits=1, prior_passes=2)
    assert isinstance(gaussians, Gaussians) and isinstance(triangles, Triangles)
    hits, passes = slow_shares(tables, log)[:12].T
    # Shares below 1e-6 are left out, of 3,000 beams up to 3e-3 in all; ranges are float32.
    sigma_m = np.sqrt(np.linalg.eigvalsh(tables[0].covariance_m2))
    flat = sigma_m[:, 0] < 0.5 * sigma_m[:, 1]
    assert 3 <= flat.sum() <= 9
    assert_allclose(gaussians.stop[~flat], ((passes + 2) / (hits + passes + 3))[~flat], atol=2e-4)
    assert_array_equal(gaussians.stop[flat], tables[0].stop[flat])
    every = share_returns(task_of(log), tables, rounds=1, flat=0.0, prior_hits=1, prior_passes=2)[0]
    assert isinstance(every, Gaussians)
    assert_allclose(every.stop, (passes + 2) / (hits + passes + 3), atol=2e-4)
    assert_array_equal(triangles.permeability, [0.5])


def test_an_element_alone_lets_pass_the_share_of_beams_that_met_it_and_did_not_return():
    alone = replace(touching_voxels(3.5)[:1], mean_m=np.zeros((1, 3)))
    log = looks_from_all_sides((alone,))
    n_met = len(scene_of((alone,)).pierced(log.beams, max_range_m=LIMIT_M).element)
    n_returned = np.isfinite(log.returns.first_m).sum()
    (shared,) = learn_permeability(task_of(log), (alone,), CreditParameters(credit="share"))
    # Returns far out and missing ones have a share of outliers, one in a thousand at most but for some of the former.
    assert shared.stop[0] == pytest.approx(1 - n_returned / n_met, abs=0.002)


def test_parts_in_any_order_give_the_same_bits():
    tables = some_tables()
    log = looks_from_all_sides(tables, n=6000)
    pieces = [log[log.beams.sweep == k] for k in (5, 0, 7, 2, 1, 6, 3, 4)]
    whole = share_returns(task_of(log), tables, rounds=2)[0]
    cut = share_returns(task_of(lambda: iter(pieces)), tables, rounds=2)[0]
    assert isinstance(whole, Gaussians) and isinstance(cut, Gaussians)
    assert_array_equal(cut.stop, whole.stop)


def test_each_round_tells_its_progress():
    stages: list[tuple[str, int, int]] = []
    tables = some_tables()
    log = looks_from_all_sides(tables, n=800)
    share_returns(task_of(log, lambda *told: stages.append(told)), tables, rounds=2)
    assert {"sharing returns, round 1 of 2", "sharing returns, round 2 of 2"} <= {stage for stage, _, _ in stages}


def test_what_no_beam_meets_stays_and_a_log_without_range_limit_will_do():
    tables = some_tables()
    away = replace(tables[0][:1], mean_m=np.array([[0.0, 0, 90]]))
    log = looks_from_all_sides(tables, n=2000)
    returned = replace(log[np.isfinite(log.returns.first_m)], max_range_m=np.inf)
    near, far = share_returns(task_of(returned), (tables[0], away), rounds=1)
    assert far.stop[0] == tables[0].stop[0]
    assert ((near.stop >= 0) & (near.stop <= 1)).all()


def test_the_two_columns_of_the_kernel_are_the_first_of_all():
    tables = some_tables()
    log, scene = looks_from_all_sides(tables, n=2000), scene_of(tables)
    limits = _core.RangeLimits(min_m=0.0, max_m=LIMIT_M)
    given = {
        "range_m": np.ascontiguousarray(log.returns.first_m),
        "model": _core.RayModel(limits=limits, min_sigma_m=0.001, outlier_share=E),
        "threads": 0,
        "progress": None,
    }
    both, density = _core.ray_sums(scene.native, scene.beam_arrays(log.beams), **given, stops_alone=True)
    every, same_density = _core.ray_sums(scene.native, scene.beam_arrays(log.beams), **given)
    assert both.shape == (13, 2)
    assert_array_equal(both, every[:, :2])
    assert_array_equal(density, same_density)


def test_settings_that_say_nothing_here_are_refused():
    with pytest.raises(hr.InputError, match="through_voxel: is a rule of counting"):
        VoxelParameters.parse({"through_voxel": True, "credit": "share"}, "model voxel")
    log = looks_from_all_sides(some_tables(), n=50)
    with pytest.raises(hr.InputError, match=r"set credit of the hybrid model instead"):
        hr.learn(log, "hybrid", topdown={"credit": "share"})
    with pytest.raises(hr.InputError, match="credit"):
        hr.learn(log, "voxel", credit="some")


@pytest.mark.parametrize("model", ["voxel", "topdown", "hybrid", "terrain", "bottomup"])
def test_every_model_of_gaussians_learns_by_either_rule(model):
    log = looks_from_all_sides((touching_voxels(3.5, n=4),), n=20_000)
    tables = [hr.learn(log, model, credit=credit).tables["gaussians"] for credit in ("all", "share")]
    stop = [table.stop for table in tables if isinstance(table, Gaussians)]
    assert len(stop[0]) == len(stop[1])
    assert stop[1].mean() > stop[0].mean() + 0.05  # what overlaps is no longer taken for more solid than it is
