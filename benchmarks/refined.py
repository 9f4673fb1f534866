# SPDX-License-Identifier: Apache-2.0
"""Refined worlds of the trail: how fast a round and a step of learning are, and what firing costs against topdown."""

from functools import cache

from measure import Result, at_least, best_seconds

from hedgerow.models import learn
from hedgerow.models.refined.rounds import RayCounter
from hedgerow.models.refined.score import LossEvaluator, LossWeights, RayModel
from hedgerow.reproduce.mobile import OFFROAD, record
from hedgerow.world.elements import Gaussians

N_SWEEPS = 8
SPLIT_POINTS = 272  # topdown then has as many elements as refined
ROUND_GOAL = 1.0  # M beams/s on two cores


@cache
def worlds():
    """Two passes along the trail; of the first a topdown world, a refined one of half its size, a topdown of that."""
    first, second = record(OFFROAD, N_SWEEPS)
    topdown = learn(first, "topdown")
    refined = learn(first, "refined", budget=len(topdown.tables["gaussians"]) // 2)
    coarse = learn(first, "topdown", split_points=SPLIT_POINTS)
    return first, second, topdown, coarse, refined


def results():
    first, second, topdown, coarse, refined = worlds()
    model = RayModel(first.min_range_m, first.max_range_m, 0.001)
    gaussians = refined.tables["gaussians"]
    assert isinstance(gaussians, Gaussians)
    rounds, steps = RayCounter((gaussians,), model), LossEvaluator(gaussians, model, LossWeights())
    round_s, step_s, topdown_s, coarse_s, refined_s = best_seconds(
        lambda: rounds.sums(first),
        lambda: steps.evaluate(first),
        lambda: topdown.fire(second.beams),
        lambda: coarse.fire(second.beams),
        lambda: refined.fire(second.beams),
        rounds=5,
    )
    size = f"{len(gaussians):,} elements"
    yield at_least("rounds of EM, M beams/s", len(first) / round_s / 1e6, ROUND_GOAL, size)
    yield Result("slopes of descent, M beams/s", f"{len(first) / step_s / 1e6:.2f}", "", None)
    for name, other, other_s in (("", topdown, topdown_s), (", as many elements", coarse, coarse_s)):
        rate = f"{len(second) / refined_s / 1e6:.1f} of {len(second) / other_s / 1e6:.1f} M rays/s"
        sizes = f"{len(gaussians):,} of {len(other.tables['gaussians']):,} elements"
        yield at_least(f"firing refined / topdown{name}", other_s / refined_s, 1.0, f"{rate}, {sizes}")
