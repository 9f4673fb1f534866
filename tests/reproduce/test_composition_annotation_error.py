# SPDX-License-Identifier: Apache-2.0
"""Errors of annotations: what is changed and what stays, and the table of what they cost."""

from typing import Any

import numpy as np
import pytest

from hedgerow import Beams
from hedgerow.errors import InputError
from hedgerow.reproduce.composition import annotation_error
from hedgerow.reproduce.composition.annotation_error import (
    FLOOR,
    TRUE,
    Cost,
    far_off,
    with_boxes_off,
    with_feet_off,
    with_other_classes,
    without_some,
    wrong_boxes,
)
from hedgerow.reproduce.composition.scoring import BeamScores
from hedgerow.reproduce.composition.trial import Sizes, on_ground
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.world import Gaussians, LearnedWorld

N = 40


def truth():
    rng = np.random.default_rng(1)
    names = [PLANT_CLASSES[k % len(PLANT_CLASSES)] for k in range(N)]
    feet = rng.uniform(-30, 30, (N, 3))
    return Annotation.of_boxes(names, feet, rng.uniform(-3, 3, N), rng.uniform(0.5, 9, (N, 3)), object=1 + np.arange(N))


def test_more_missed_plants_are_the_same_ones_and_more():
    few, many = (set(without_some(truth(), share, seed=4).object.tolist()) for share in (0.05, 0.5))
    assert len(few) == 38 and len(many) == 20
    assert many < few
    assert len(without_some(truth(), 1.0, seed=4)) == 1  # an annotation needs a row


def test_a_share_gets_another_class_and_keeps_its_box():
    boxes = truth()
    for share, n in ((0.2, 8), (0.5, 20)):
        wrong = with_other_classes(boxes, share, seed=4)
        assert (wrong.class_name != boxes.class_name).sum() == n
        assert np.array_equal(wrong.size_m, boxes.size_m) and np.array_equal(wrong.position_m, boxes.position_m)


def test_feet_and_boxes_are_off_by_just_so_much():
    boxes = truth()
    moved = with_feet_off(boxes, 0.3, seed=4).position_m - boxes.position_m
    np.testing.assert_allclose(np.hypot(moved[:, 0], moved[:, 1]), 0.3)
    assert (moved[:, 2] == 0).all() and np.ptp(np.arctan2(moved[:, 1], moved[:, 0])) > 3
    resized = with_boxes_off(boxes, 0.1, seed=4).size_m - boxes.size_m
    np.testing.assert_allclose(np.abs(resized), 0.1)
    assert with_boxes_off(boxes, 1.0, seed=4).size_m.min() == pytest.approx(0.2)  # none vanishes


def test_every_kind_of_error_is_tried_and_the_same_seed_gives_the_same():
    one, same = wrong_boxes(truth(), 1), wrong_boxes(truth(), 1)
    assert list(one)[:5] == [
        "5 % missed",
        "20 % missed",
        "50 % missed",
        "20 % of another class",
        "50 % of another class",
    ]
    assert list(one)[5:] == [f"{what} off by {off:g} m" for what in ("feet", "boxes") for off in (0.1, 0.3, 1.0)]
    for name, boxes in one.items():
        assert np.array_equal(boxes.position_m, same[name].position_m), name
        assert np.array_equal(boxes.size_m, same[name].size_m), name


def test_the_ground_alone_is_one_small_box_at_the_rim_and_boxes_stand_on_the_ground():
    alone = far_off(truth())
    assert len(alone) == 1 and alone.size_m.max() < 0.3
    assert abs(alone.position_m[0, 1]) == np.abs(truth().position_m[:, 1]).max()
    assert np.isnan(on_ground(truth()).position_m[:, 2]).all()


def test_sizes_grow_with_the_sweeps_up_to_whole_sections():
    assert Sizes.of(None) == Sizes()
    small, large = Sizes.of(4), Sizes.of(1000)
    assert small.composed == 0.1 and small.judged_sweeps == 4
    assert large.composed == 1.0 and large.learned == 1.0


def scores(error_m):
    """A wall 10 m away, found so far off, in four sweeps."""
    beams = Beams.from_arrays(
        origins=np.zeros((8, 3)), directions=np.tile([1.0, 0, 0], (8, 1)), sweeps=np.arange(8) // 2
    )
    table = Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 1e-6)
    log = LearnedWorld(table, kind="test", max_range_m=30.0).fire(beams, seed=1)
    return BeamScores(log, log.returns.first_m + np.float32(error_m), np.full(8, error_m), np.zeros(8))


class Risk:
    """Stands in for the risk of all simulators."""

    def __init__(self):
        self.scores = dict.fromkeys((TRUE, FLOOR, "5 % missed"), self)
        self.risk = 0.25


def rows():
    known = {FLOOR: scores(0.1), TRUE: scores(0.5), "5 % missed": scores(0.75)}
    risks: Any = {name: Risk() for name in annotation_error.PROGRAMS}
    return [Cost.of(name, known, risks, 3) for name in known]


def test_a_row_says_how_much_worse_than_true_boxes_it_is():
    floor, true, missed = rows()
    assert missed.against_true.startswith("+0.250 (+0.250 to +0.250)")  # the same in every sweep
    assert floor.against_true.startswith("-0.400") and true.against_true == ""
    assert missed.values["crps_m"] == 0.75 and missed.values["cost-map"] == 0.25
    assert missed.values["cloud_distance_average_m"] == pytest.approx(0.75, abs=5e-3)  # the wall is 1 mm rough


def test_the_plot_needs_the_two_lines_that_all_is_held_against(tmp_path):
    annotation_error.draw(rows(), tmp_path / "cost.png")
    assert (tmp_path / "cost.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="true boxes"):
        annotation_error.draw(rows()[:1], tmp_path / "other.png")


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["annotation-error"].module == "composition.annotation_error"


@pytest.mark.slow
def test_missing_half_of_the_plants_costs_more_than_missing_few(tmp_path):
    outcome = annotation_error.run(tmp_path, 2, say=lambda line: None)
    table = [line.strip("| ").split(" | ") for line in outcome.text.splitlines() if line.startswith("|")]
    crps = {row[0]: float(row[3]) for row in table[2:]}
    assert crps["reality again"] < crps["true boxes"] < crps["50 % missed"] < crps["ground alone"]
