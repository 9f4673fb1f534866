# SPDX-License-Identifier: Apache-2.0
"""The gradient of the loss: against differences of a slow oracle, and the same bits however the work is cut."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import foldnorm, norm

import hedgerow as hr
from hedgerow.models.refined.descent import Adam, prior_gradient, shapes_of, within_reach
from hedgerow.models.refined.score import LossEvaluator, LossWeights, RayModel, Score
from hedgerow.models.steps.permeability import scene_of
from hedgerow.world.elements import Gaussians

MODEL = RayModel(min_range_m=0.5, max_range_m=30.0, min_sigma_m=0.01, outlier_share=0.01)
WEIGHTS = LossWeights(error_nat_per_m=0.7, lost_hit_nat=3.0, false_hit_nat=2.0)


LAWS = pytest.mark.parametrize("law", ["extinction", "depth"])


def some_gaussians(law="extinction"):
    """Twelve Gaussians of all shapes, well apart, so that small steps do not change their order on a ray."""
    rng = np.random.default_rng(4)
    roots = rng.normal(size=(12, 3, 3)) * 0.2
    mean_m = np.column_stack([np.linspace(4, 26, 12), rng.uniform(-0.5, 0.5, (12, 2))])
    stop = rng.uniform(1, 8, 12).astype(np.float32)
    covariance_m2 = roots @ roots.transpose(0, 2, 1) + 0.01 * np.eye(3)
    return Gaussians.plain(mean_m, covariance_m2, stop=stop, law=law, min_sigma_m=0.01, tau=6.0)


def some_log(n=3000, seed=1):
    """Beams along the row of them, ranges anywhere: slopes are as true for bad ranges as for good ones."""
    rng = np.random.default_rng(seed)
    directions = np.column_stack([np.ones(n), rng.uniform(-0.06, 0.06, (n, 2))])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    origins = rng.uniform(-0.2, 0.2, (n, 3))
    beams = hr.Beams.from_arrays(origins=origins, directions=directions, sweeps=np.arange(n) // (n // 8))
    log = hr.SceneWorld(scene_of((some_gaussians(),)), min_range_m=0.5, max_range_m=30.0).fire(beams, seed)
    range_m = np.where(np.arange(n) % 20 == 0, rng.uniform(0.5, 30, n), log.returns.range_m).astype(np.float32)
    return hr.Log.from_arrays(
        origins=origins, directions=directions, ranges=range_m, sweeps=beams.sweep, min_range_m=0.5, max_range_m=30.0
    )


def slow_scores(gaussians, log):
    """Log density, probability of a return and expected error of each beam, element by element, in float64."""
    out = np.zeros((len(log), 3))
    inverse = np.linalg.inv(gaussians.covariance_m2)
    e = MODEL.outlier_share
    for beam, r in enumerate(log.returns.first_m.astype(float)):
        d = log.beams.direction[beam].astype(float)
        q = gaussians.mean_m - log.beams.origin_m[beam]
        variance = 1 / np.einsum("i,nij,j->n", d, inverse, d)
        t = variance * np.einsum("i,nij,nj->n", d, inverse, q)
        x = t[:, None] * d - q
        square = np.einsum("ni,nij,nj->n", x, inverse, x)
        soft = (1 - square / gaussians.tau**2) ** 2
        depth = gaussians.stop * (np.sqrt(variance) * np.exp(-square / 2) if gaussians.law == "extinction" else soft)
        depth = np.where((square <= gaussians.tau**2) & (t > 0) & (t <= MODEL.max_range_m), depth, 0)
        order = np.argsort(t)
        t, sigma, passing = t[order], np.sqrt(variance[order]), np.exp(-depth[order])
        reaching = np.concatenate([[1], np.cumprod(passing)])
        weight = reaching[:-1] * (1 - passing)
        gone = norm.cdf(MODEL.min_range_m, t, sigma) + norm.sf(MODEL.max_range_m, t, sigma)
        missing = reaching[-1] + weight @ gone
        if np.isfinite(r):
            density = (1 - e) * weight @ norm.pdf(r, t, sigma) + e / (MODEL.max_range_m - MODEL.min_range_m)
            out[beam] = np.log(density), 1 - missing, weight @ foldnorm.mean(np.abs(t - r) / sigma, scale=sigma)
        else:
            out[beam] = np.log((1 - e) * missing + e), 1 - missing, 0
    return out


def slow_loss(gaussians, log):
    return Score.of(slow_scores(gaussians, log), log).loss(WEIGHTS) * len(log)


@LAWS
def test_scores_are_those_of_a_slow_oracle(law):
    gaussians, log = some_gaussians(law), some_log(400)
    _, score = LossEvaluator(gaussians, MODEL, WEIGHTS).evaluate(log)
    slow = Score.of(slow_scores(gaussians, log), log)
    assert_allclose(score.loss(WEIGHTS), slow.loss(WEIGHTS), rtol=1e-4)  # the core works in float32
    assert_allclose(
        [score.nll, score.hits_found, score.misses_found, score.error_m],
        [slow.nll, slow.hits_found, slow.misses_found, slow.error_m],
        rtol=3e-4,
    )


def test_the_score_tells_the_chance_of_no_return():
    gaussians, log = some_gaussians(), some_log(20_000)
    fired = hr.SceneWorld(scene_of((gaussians,)), min_range_m=0.5, max_range_m=30.0).fire(log.beams, 5)
    _, score = LossEvaluator(gaussians, MODEL, WEIGHTS).evaluate(log)
    missing = score.n_hits * (1 - score.hits_found) + score.n_misses * score.misses_found
    # Five sigma of 20,000 coins.
    assert (~fired.returns.hit).mean() == pytest.approx(missing / len(log), abs=5 * 0.5 / np.sqrt(20_000))


def stepped(gaussians, v, shape, s):
    """The elements after a step, by the definition: exp of a symmetric matrix between the roots."""
    from scipy.linalg import expm

    root = np.linalg.cholesky(gaussians.covariance_m2)
    grown = np.array([a @ expm(b) @ a.T for a, b in zip(root, shape, strict=True)])
    stop = gaussians.stop.astype(float) * np.exp(s)
    return replace(
        gaussians, mean_m=gaussians.mean_m + np.einsum("nij,nj->ni", root, v), covariance_m2=grown, stop=stop
    )


@LAWS
@pytest.mark.parametrize("kind", ["mean", "shape", "stop"])
def test_gradients_are_differences_of_the_slow_loss(kind, law):
    gaussians, log = some_gaussians(law), some_log(400)
    slope = LossEvaluator(gaussians, MODEL, WEIGHTS).evaluate(log)[0].values
    rng = np.random.default_rng(2)
    for element in range(0, 12, 3):
        v, shape, s = np.zeros((12, 3)), np.zeros((12, 3, 3)), np.zeros(12)
        if kind == "mean":
            v[element] = rng.normal(size=3)
            expected = slope[element, :3] @ v[element]
        elif kind == "shape":
            half = rng.normal(size=(3, 3))
            shape[element] = half + half.T
            expected = (slope[element, [3, 4, 6, 4, 5, 7, 6, 7, 8]] * shape[element].ravel()).sum()
        else:
            s[element] = 1.0
            expected = slope[element, 9]
        h = 1e-5
        up, down = (slow_loss(stepped(gaussians, x * v, x * shape, x * s), log) for x in (h, -h))
        # Scores count in steps of 2^-20, a beam each: an error of 400 / 2^20 / 2 / h at the very worst, 1 as a rule.
        assert_allclose(expected, (up - down) / (2 * h), rtol=2e-3, atol=2.0)


def test_threads_and_partitions_do_not_change_a_bit():
    evaluator, log = LossEvaluator(some_gaussians(), MODEL, WEIGHTS), some_log()
    gradient, score = evaluator.evaluate(log, threads=1)
    halves = [evaluator.evaluate(log[:1234], threads=2), evaluator.evaluate(log[1234:], threads=2)]
    assert_array_equal(gradient.table, (halves[0][0] + halves[1][0]).table)
    assert score == halves[0][1] + halves[1][1]
    assert evaluator.evaluate(log[:0])[1] == Score()


def test_the_gradient_of_the_prior_is_that_of_its_density():
    gaussians = some_gaussians()
    prior_m2, count = np.tile(np.diag([0.01, 0.02, 0.05]), (12, 1, 1)), np.linspace(0, 11, 12)

    def loss(covariance_m2):
        inverse = np.linalg.inv(covariance_m2)
        return 0.5 * count * (np.linalg.slogdet(covariance_m2)[1] + np.einsum("nij,nji->n", inverse, prior_m2))

    slope = prior_gradient(gaussians, prior_m2, count)
    rng = np.random.default_rng(5)
    half = rng.normal(size=(12, 3, 3))
    shape, h = half + half.transpose(0, 2, 1), 1e-6
    up, down = (loss(stepped(gaussians, np.zeros((12, 3)), x * shape, np.zeros(12)).covariance_m2) for x in (h, -h))
    assert_allclose(
        (slope[:, [3, 4, 6, 4, 5, 7, 6, 7, 8]] * shape.reshape(12, 9)).sum(axis=1), (up - down) / (2 * h), rtol=1e-5,
        atol=1e-6,
    )  # fmt: skip
    assert not slope[:, :3].any()
    assert not slope[0].any()  # nothing counted


def test_descent_lowers_the_loss_and_leaves_what_it_does_not_see():
    true, log = some_gaussians(), some_log()
    far = replace(true[:1], mean_m=true.mean_m[:1] + np.array([0, 500, 0]))
    gaussians = Gaussians.join([replace(true, mean_m=true.mean_m + 0.05, stop=true.stop / 3), far])
    adam, losses = Adam(13, 0.03, 0.1), []
    for number in range(30):
        gradient, score = LossEvaluator(gaussians, MODEL, WEIGHTS).evaluate(log)
        losses.append(score.loss(WEIGHTS))
        adam.step(gaussians, np.arange(13), gradient.values, np.sqrt(1 - number / 30))
    _, truth = LossEvaluator(true, MODEL, WEIGHTS).evaluate(log)
    assert losses[-1] < losses[0] - 0.5
    assert losses[-1] < truth.loss(WEIGHTS) + 0.01  # the truth need not have the least loss on these very beams
    assert_array_equal(gaussians.mean_m[12], far.mean_m[0])
    assert_array_equal(gaussians.stop[12], far.stop[0])


@LAWS
def test_elements_within_reach_have_the_gradient_that_they_have_among_all(law):
    own, log = some_gaussians(law), some_log()
    shift_m = np.array([[0.0, 500.0, 0.0], [-300.0, 0.0, 0.0], [0.0, 0.0, 80.0]])
    everywhere = Gaussians.join([*(replace(own, mean_m=own.mean_m + shift) for shift in shift_m), own])
    near = within_reach(everywhere, log, MODEL.max_range_m)
    assert_array_equal(near, np.arange(36, 48))
    of_all = LossEvaluator(everywhere, MODEL, WEIGHTS).evaluate(log)[0]
    of_near = LossEvaluator(shapes_of(everywhere, near), MODEL, WEIGHTS).evaluate(log)[0]
    assert not of_all.table[:36].any()
    # The frames of the scenes lie 120 m apart: float32 positions differ by up to 1e-5 m, of elements 0.1 m wide.
    assert_allclose(of_near.values, of_all.values[near], rtol=0.01, atol=0.5)


def test_a_step_keeps_covariances_above_their_floor():
    gaussians = some_gaussians()
    slope = np.zeros((12, 10))
    slope[:, [3, 5, 8]] = 1e6
    adam = Adam(12, 0.5, 0.1)
    for _ in range(60):
        adam.step(gaussians, np.arange(12), slope, 1.0)
    assert_allclose(np.linalg.eigvalsh(gaussians.covariance_m2), 1e-4, rtol=1e-6)  # all the way down to 1 cm
