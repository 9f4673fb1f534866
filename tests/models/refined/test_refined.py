# SPDX-License-Identifier: Apache-2.0
"""Refined worlds: a start that is never made worse, budgets, Ctrl-C, and going on from a saved world."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bushes import MODEL, bushes, disturbed, seen

import hedgerow as hr
from hedgerow.models.refined.holdout import hold_out
from hedgerow.models.refined.model import RefinedParameters, Trainer
from hedgerow.models.refined.rounds import RayCounter
from hedgerow.models.refined.score import LossEvaluator, LossWeights, RayModel
from hedgerow.models.steps.permeability import scene_of
from hedgerow.parallel.log_parts import cut_log
from hedgerow.world.elements import Gaussians

RAYS = RayModel(0.0, 13.9, 0.001)
SHORT: dict[str, Any] = {"rounds": 1, "epochs": 1, "min_steps": 7}


def behind_bushes(n, seed, n_sweeps=8):
    """Sweeps over the bushes and a wall close behind them."""
    scene = scene_of((bushes(),))
    wall = np.array([[13.0, -30, -30], [13, 30, -30], [13, 0, 60]])
    scene.add_mesh(wall, [[0, 1, 2]], noise=hr.SurfaceNoise(0.02))
    return hr.SceneWorld(scene, max_range_m=13.5).fire(seen(bushes(), n, n_sweeps, seed).beams, seed)


@pytest.fixture(scope="module")
def log():
    return behind_bushes(24_000, 2)


@pytest.fixture(scope="module")
def test_log():
    return behind_bushes(12_000, 9)


def gaussians_of(world) -> Gaussians:
    table = world.tables["gaussians"]
    assert isinstance(table, Gaussians)
    return table


def learned(log, **parameters):
    return gaussians_of(hr.learn(log, "refined", **parameters))


def same(a, b):
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("mean_m", "covariance_m2", "stop"))


def test_the_result_is_better_than_its_start_on_beams_that_neither_saw(log, test_log):
    voxel = hr.learn(log, "voxel")
    refined = hr.learn(log, "refined", budget=len(voxel.tables["gaussians"]))
    scores = [hr.compare(test_log, world, seed=0) for world in (voxel, refined)]
    nll = np.array([each["nll"] for each in scores], float)
    error_m = np.array([each["beam_error_mean_m"] for each in scores], float)
    assert nll[1] < nll[0] - 0.1
    assert error_m[1] < error_m[0]
    assert gaussians_of(refined).law == "depth"
    assert len(refined.tables["gaussians"]) <= len(voxel.tables["gaussians"])


def test_partitions_do_not_change_a_byte(log):
    # Rounds add up over partitions in any order. Gaps are measured to the sweeps before, and descent takes a step per
    # sweep: both go in the order of the log, however it is cut.
    rounds: dict[str, Any] = {"epochs": 0, "widths": [0]}
    shuffled = [log[log.beams.sweep % 3 == k] for k in (2, 0, 1)]
    assert same(learned(log, **rounds), hr.learn(lambda: iter(shuffled), "refined", **rounds).tables["gaussians"])
    cut = [log[log.beams.sweep < 3], log[log.beams.sweep == 3], log[log.beams.sweep > 3]]
    assert same(learned(log, **SHORT), hr.learn(lambda: iter(cut), "refined", **SHORT).tables["gaussians"])


def test_the_same_log_gives_the_same_world_from_either_start(log):
    few = log[log.beams.sweep < 3]
    for start in ("voxel", "topdown"):
        assert same(learned(few, start=start, **SHORT), learned(few, start=start, **SHORT))


@pytest.mark.parametrize(
    "parameters", [{}, {"prior": {"width": 50.0, "count": 1e4}}, {"prior": None}, {"law": "permeability"}]
)
def test_the_held_out_loss_is_never_worse_than_the_start(log, parameters):
    own = RefinedParameters(**SHORT, **parameters)
    held = hold_out(cut_log(log), own.held_out_every)
    start = gaussians_of(hr.learn(held.training, "voxel"))
    trainer = Trainer(held, RAYS, own)
    first = trainer.train(start)
    assert first.score.loss(own.weights) < trainer._validate(start, "").loss(own.weights)
    # A start that is as good as it gets must survive bad advice too.
    assert trainer.train(first.gaussians).score.loss(own.weights) <= first.score.loss(own.weights)


def test_a_budget_is_kept_and_more_elements_fit_better(log, test_log):
    few, many = (learned(log, budget=n, rounds=4) for n in (60, 150))
    assert len(few) <= 60
    assert len(few) < len(many) <= 150
    assert RayCounter((many,), MODEL).sums(test_log).nll < RayCounter((few,), MODEL).sums(test_log).nll


def test_without_a_budget_there_are_at_most_half_as_many_elements_as_in_the_start(log):
    start = gaussians_of(hr.learn(log, "topdown"))
    assert len(learned(log, virtual=None, rounds=1, widths=[0])) <= (len(start) + 1) // 2
    # Beams from one place are those of the training, or between them: there more elements are worth their while.
    one_place = replace(log, beams=hr.Beams.without_checks(log.beams.columns() | {"origin_m": 0 * log.beams.origin_m}))
    start = gaussians_of(hr.learn(one_place, "topdown"))
    assert len(start) // 2 + 1 < len(learned(one_place, virtual=None, rounds=1, widths=[0])) <= len(start)


def loss(world, log):
    """What a simulation with this world costs on beams that it may not have seen."""
    model = RayModel(log.min_range_m, log.max_range_m, outlier_share=0.001)
    evaluator = LossEvaluator(world.tables["gaussians"], model, LossWeights())
    return evaluator.evaluate(log)[1].loss(LossWeights())


def test_a_single_sweep_is_enough(test_log):
    one = behind_bushes(24_000, 2, n_sweeps=1)
    start, refined = (hr.learn(one, model) for model in ("topdown", "refined"))
    assert loss(refined, test_log) < loss(start, test_log) - 0.1
    scores = hr.compare(test_log, {"start": start, "refined": refined}, seed=0)
    before_m, after_m = (scores[name]["beam_error_mean_m"] for name in ("start", "refined"))
    assert before_m is not None and after_m is not None
    assert after_m < 0.8 * before_m


def test_a_saved_world_is_a_start_and_goes_on_where_it_was(log, tmp_path):
    hr.learn(log, "refined", **SHORT).save(tmp_path / "first.world")
    stages = []
    learned(log, **SHORT, start=str(tmp_path / "first.world"), progress=lambda s, d, t: stages.append(s))
    assert not any(stage.startswith(("clustering", "round ")) for stage in stages)
    assert any("held-out -log L" in stage for stage in stages)


def test_an_interrupted_world_goes_on_and_gets_better(log, test_log, tmp_path):
    def interrupt(stage, done, total):
        if stage.startswith("epoch 1") and done == 0:
            raise KeyboardInterrupt

    own: dict[str, Any] = {"budget": 150, "rounds": 1, "epochs": 4, "min_steps": 40}
    half = hr.learn(log, "refined", **own, progress=interrupt)
    half.save(tmp_path / "half.world")
    whole = hr.learn(log, "refined", **own, start=str(tmp_path / "half.world"))
    assert loss(whole, test_log) < loss(half, test_log) - 0.01, (loss(whole, test_log), loss(half, test_log))


def test_a_world_saved_under_old_parameter_names_opens_and_is_a_start(log, tmp_path):
    # A header holds parameters as they were called then; nothing checks them against those of today.
    old = {"passes": 4, "rate": 0.05, "stop_rate": 0.2, "swap": 0.1, "worth_nat": 0.2, "surface": {"node_m": 0.5}}
    saved = hr.LearnedWorld(bushes(), kind="refined", parameters=old, max_range_m=13.5)
    saved.save(tmp_path / "old.world")
    opened = hr.load_world(tmp_path / "old.world")
    assert opened.header.parameters == old
    assert opened.fire(log.beams, 1).equal(saved.fire(log.beams, 1))
    again = learned(log, start=str(tmp_path / "old.world"), **SHORT)
    assert again.law == bushes().law


@pytest.mark.parametrize("when", ["round 2", "epoch 3"])
def test_ctrl_c_keeps_the_best_so_far(log, when):
    start_budget = 10_000  # the start is within it, and comes back as it is
    own = RefinedParameters(epochs=4, budget=start_budget)
    held = hold_out(cut_log(log), own.held_out_every)
    start = gaussians_of(hr.learn(held.training, "topdown"))
    stages = []

    def interrupt(stage):
        stages.append(stage)
        if stage.startswith(when):
            raise KeyboardInterrupt

    trainer = Trainer(replace(held, start=interrupt), RAYS, own)
    stopped = trainer.train(start)
    assert stages[-1].startswith(when)
    before = trainer._validate(start, "").loss(own.weights)
    # Nothing was validated before round 2 ends, so the start comes back; two epochs are better.
    assert stopped.score.loss(own.weights) < before if when == "epoch 3" else stopped.gaussians is start


def test_held_out_sweeps_train_in_the_end():
    # Half of the bushes are seen by the last of eight sweeps alone, and that one is held out.
    whole, elsewhere = (seen(bushes(), 96_000, 8, seed) for seed in (2, 5))

    def across_m(log):
        return log.beams.origin_m[:, 1] + 10 * log.beams.direction[:, 1]

    log = whole[(across_m(whole) > 0) | (whole.beams.sweep == 7)]
    new = elsewhere[elsewhere.returns.hit & (across_m(elsewhere) < -1)]

    def found(gaussians):
        again = hr.SceneWorld(scene_of((gaussians,)), max_range_m=30.0).fire(new.beams, 1)
        return again.returns.hit.mean()

    own = RefinedParameters(**SHORT)
    held = hold_out(cut_log(log), own.held_out_every)
    start = gaussians_of(hr.learn(held.training, "topdown"))
    before = Trainer(held, RayModel(0.0, 30.0, 0.001), own).train(start)
    assert found(before.gaussians) < 0.2 * found(bushes())
    assert found(learned(log, **SHORT)) > 0.6 * found(bushes())


def test_the_last_sweeps_can_be_held_out_instead(log):
    held = hold_out(cut_log(log), 16, end_share=0.25)
    assert held.held_out_sweeps.tolist() == held.sweeps[-2:].tolist()
    assert held.n_training == held.n_sweeps - 2
    assert len(hold_out(cut_log(log.select(sweep=0)), 16, end_share=0.25).held_out_sweeps) == 0


def test_the_width_of_flat_elements_is_chosen_by_held_out_crps(log):
    stages = []
    kept = learned(log, **SHORT, held_out_end_share=0.25, widths=[0], progress=lambda s, d, t: stages.append(s))
    assert not any("gaps" in stage for stage in stages)
    wide = learned(log, **SHORT, held_out_end_share=0.25, widths=[50.0], progress=lambda s, d, t: stages.append(s))
    assert any("validating elements 50 gaps wide" in stage for stage in stages)
    widest = [np.sqrt(np.linalg.eigvalsh(each.covariance_m2)[:, 2]).max() for each in (kept, wide)]
    assert widest[1] > widest[0]
    # Absurd widths are not chosen where staying as they are is among the candidates.
    chosen = learned(log, **SHORT, held_out_end_share=0.25, widths=[0, 50.0])
    assert np.sqrt(np.linalg.eigvalsh(chosen.covariance_m2)[:, 2]).max() < widest[1]


def test_all_sweeps_repeat_the_plan_that_was_best(log):
    stages = []
    world = learned(log, budget=40, widths=[0], **SHORT, progress=lambda s, d, t: stages.append(s))
    again = [stage for stage in dict.fromkeys(stages) if stage.startswith("all sweeps")]
    assert "all sweeps: round 1 of 1 with 40 elements" in again
    # Nothing is validated any more: every sweep has been learned from.
    assert again[-1] == "all sweeps: epoch 1 of 1"
    assert not any("validating" in stage for stage in again)
    assert len(world) <= 40


def test_ctrl_c_while_widths_are_tried_leaves_elements_as_they_are(log):
    def interrupt(stage, done, total):
        if "gaps wide" in stage and done == 0:
            raise KeyboardInterrupt

    stopped = learned(log, rounds=1, held_out_end_share=0.25, widths=[0, 2.0], progress=interrupt)
    assert not same(stopped, learned(log, rounds=1, held_out_end_share=0.25, widths=[2.0]))


@pytest.mark.parametrize("when", ["epoch 1", "all sweeps: round 1"])
def test_ctrl_c_leaves_what_the_held_out_sweeps_found_best(log, when):
    stages = []

    def interrupt(stage, done, total):
        stages.append(stage)
        if stage.startswith(when) and done == 0:
            raise KeyboardInterrupt

    world = learned(log, **SHORT, progress=interrupt)
    whole = learned(log, **SHORT)
    assert not any(stage.startswith("all sweeps: epoch") for stage in stages)
    assert not same(world, whole)
    if when == "epoch 1":  # somebody is in a hurry: nothing is done twice
        assert not any(stage.startswith("all sweeps") for stage in stages)


def test_a_start_with_extinction_keeps_its_law_and_its_tau(log):
    own = RefinedParameters(**SHORT)
    trainer = Trainer(hold_out(cut_log(log), own.held_out_every), RAYS, own)
    result = trainer.train(disturbed(bushes())).gaussians
    assert (result.law, result.tau) == ("extinction", 3.5)


def test_what_cannot_be_refined_is_refused_in_one_sentence(log, tmp_path):
    with pytest.raises(hr.FileError, match="no such folder"):
        learned(log, start=str(tmp_path / "none.world"))
    with pytest.raises(hr.InputError, match="held_out_every"):
        learned(log, held_out_every=1)
    hr.learn(log, "surface", kernel_m=1.0, node_m=1.0).save(tmp_path / "surface.world")
    with pytest.raises(hr.InputError, match=r"start: .*has triangles"):
        learned(log, start=str(tmp_path / "surface.world"))
    hr.learn(log, "refined", **SHORT).save(tmp_path / "refined.world")
    with pytest.raises(hr.InputError, match="law=depth"):
        learned(log, start=str(tmp_path / "refined.world"), law="permeability", epochs=1)
