# SPDX-License-Identifier: Apache-2.0
"""Refined worlds of the trail: how fast a round and a step of learning are, and what firing costs against topdown."""

from functools import cache

from measure import Result, at_least, best_seconds

from hedgerow.learners import learn
from hedgerow.learners.quality import QualityCounter
from hedgerow.learners.ray_sums import RayCounter, RayModel
from hedgerow.learners.verdict import QualityWeights
from hedgerow.reproduce.mobile import OFFROAD, record

N_SWEEPS = 8
ROUND_GOAL = 1.0  # M beams/s on two cores


@cache
def worlds():
    """Two passes along the trail, and a topdown and a refined world with no more elements, learned from the first."""
    first, second = record(OFFROAD, N_SWEEPS)
    topdown = learn(first, "topdown")
    refined = learn(first, "refined", budget=len(topdown.tables["gaussians"]))
    return first, second, topdown, refined


def results():
    first, second, topdown, refined = worlds()
    model = RayModel(first.min_range_m, first.max_range_m, 0.001)
    gaussians = refined.tables["gaussians"]
    rounds, steps = RayCounter((gaussians,), model), QualityCounter(gaussians, model, QualityWeights())
    round_s, step_s, topdown_s, refined_s = best_seconds(
        lambda: rounds.sums(first),
        lambda: steps.slopes(first),
        lambda: topdown.fire(second.beams),
        lambda: refined.fire(second.beams),
        rounds=5,
    )
    size = f"{len(gaussians):,} elements"
    yield at_least("rounds of EM, M beams/s", len(first) / round_s / 1e6, ROUND_GOAL, size)
    yield Result("slopes of descent, M beams/s", f"{len(first) / step_s / 1e6:.2f}", "", None)
    rate = f"{len(second) / refined_s / 1e6:.1f} of {len(second) / topdown_s / 1e6:.1f} M rays/s"
    yield at_least("firing refined / topdown, as many elements", topdown_s / refined_s, 1.0, rate)
