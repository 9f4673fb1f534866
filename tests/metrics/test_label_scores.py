# SPDX-License-Identifier: Apache-2.0
"""Scores of labels: counts by hand, Laplace's rule, and a world that knows the shares."""

import json

import numpy as np
import pytest
from known_logs import PaintedWorld, log_of

from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.label_scores import LABEL_METRICS, LabelScores
from hedgerow.metrics.pair import RealSweep, SimulatedSweep, SweepPair
from hedgerow.world.forecast import DrawnColumns

N = 4000


def labelled_log(world, seed=99):
    return world.fire(log_of(np.full(N, 20.0)).beams, seed=seed, limits_m=(0, 100.0))


def sums_of(real_labels, drawn_labels, answer=None):
    real_labels, drawn = np.asarray(real_labels), np.asarray(drawn_labels, dtype=np.uint16)
    real = log_of(np.full(len(real_labels), 20.0), labels=real_labels)
    sums = LabelScores(CompareSettings())
    columns = {"label": np.asarray(drawn[0] if answer is None else answer, dtype=np.uint16)}
    drawn_columns = DrawnColumns(np.arange(len(real_labels)), None, drawn)
    sums.add(
        SweepPair(RealSweep(real), SimulatedSweep(real.returns.first_m, None, columns=columns, drawn=drawn_columns))
    )
    return sums


def test_three_beams_are_scored_as_by_hand():
    # Draws of each beam are columns: 3 of 3 right; 1 of 2, and a tie that the smaller label wins; none right.
    values = sums_of([50, 50, 70], [[50, 50, 50], [50, 70, 50], [50, 0, 81]], answer=[50, 70, 50]).values()
    assert values["label_draw_accuracy"].value == pytest.approx(1 / 3)
    assert values["label_accuracy"].value == pytest.approx(2 / 3)
    by_hand = [(3 + 1 / 3) / 4, (1 + 1 / 3) / 3, (0 + 1 / 3) / 4]  # labels 50, 70 and 81
    assert values["label_log_score"].value == pytest.approx(-np.mean(np.log(by_hand)))
    assert {each.n for each in values.values()} == {3}


def test_unlabelled_beams_and_beams_that_no_draw_returned_are_left_out():
    values = sums_of([0, 50, 50], [[50, 0, 50], [50, 0, 50]]).values()
    assert values["label_accuracy"].n == 1 and values["label_accuracy"].value == 1
    assert values["label_draw_accuracy"].n == 1


def test_finer_classes_count_as_what_they_fold_into_if_the_real_log_has_none():
    coarse = sums_of([70, 70], [[101, 50], [102, 50]]).values()  # grass and shrub are vegetation
    assert coarse["label_draw_accuracy"].value == coarse["label_accuracy"].value == 0.5
    fine = sums_of([70, 101], [[101, 70], [102, 70]]).values()
    assert fine["label_draw_accuracy"].value == fine["label_accuracy"].value == 0


def test_a_world_that_knows_the_shares_scores_their_entropy():
    world = PaintedWorld(building=0.8)
    scores = compare(labelled_log(world), world, draws=100)
    entropy = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    # 4 standard errors of the mean of N beams (0.55 / sqrt(N)), and 0.008 for 100 draws instead of all.
    assert scores["label_log_score"] == pytest.approx(entropy, abs=4 * 0.55 / np.sqrt(N) + 0.008)
    assert scores["label_accuracy"] == pytest.approx(0.8, abs=4 * 0.4 / np.sqrt(N))
    assert scores["label_draw_accuracy"] == pytest.approx(0.68, abs=4 * 0.47 / np.sqrt(N))  # 0.8² + 0.2²
    sure = compare(labelled_log(world), PaintedWorld(building=1.0), draws=100)
    assert (sure["label_log_score"] or 0) > (scores["label_log_score"] or 0) + 0.1
    assert (sure["label_draw_accuracy"] or 0) > (scores["label_draw_accuracy"] or 0) + 0.1  # surer is no truer


def test_reality_again_has_the_accuracy_of_a_draw():
    world = PaintedWorld(building=0.8)
    again = compare(labelled_log(world, 1), {"w": world}, again=labelled_log(world, 2))["reality again"]
    assert again["label_draw_accuracy"] == pytest.approx(0.68, abs=4 * 0.47 / np.sqrt(N))
    assert again["label_log_score"] is None


def test_parts_add_up_to_the_whole():
    rng = np.random.default_rng(0)
    real = log_of(np.full(300, 20.0), sweeps=np.repeat(np.arange(3), 100), labels=rng.choice([0, 50, 70, 80], 300))
    world = PaintedWorld(building=0.5, miss=0.4)
    whole = compare(real, world)
    parts = [accumulate(real.select(sweep=[k]), {"simulated": world}, CompareSettings()) for k in range(3)]
    for each in parts[1:]:
        parts[0].merge(each)
    merged = score(parts[0], {})["simulated"]
    assert {key: merged[key] for key in LABEL_METRICS} == {key: whole[key] for key in LABEL_METRICS}
    table = json.loads(whole.to_json())["labels"]["by_label"]
    assert [each["label"] for each in table] == [50, 70, 80]
    assert sum(each["drawn"]["beams"] for each in table) == whole.values["label_draw_accuracy"].n


def test_logs_without_labels_have_no_scores():
    real = log_of([20.0, 20.0], labels=[50, 70])
    scores = compare(real, log_of([20.0, 20.0]))
    assert not LABEL_METRICS.keys() & scores.values.keys()
    assert "no scores of labels: the simulation has none" in scores.notes
    assert not any("labels" in note for note in compare(log_of([20.0]), log_of([20.0])).notes)


def test_climatology_draws_the_labels_of_each_ring():
    ring = np.arange(6000) % 2
    real = log_of(np.full(6000, 20.0), rings=ring, labels=np.where(ring, 50, np.where(np.arange(6000) % 4, 70, 80)))
    scores = compare(real, {"w": PaintedWorld()}, floors=True, draws=50)["climatology"]
    # One ring is all of one label, the other half and half: 1/2 + 1/2 * 1/2 of the draws are right.
    assert scores["label_draw_accuracy"] == pytest.approx(0.75, abs=4 * 0.43 / np.sqrt(6000))
    assert scores["label_log_score"] == pytest.approx(np.log(2) / 2, abs=0.04)  # 50 draws and one evenly
