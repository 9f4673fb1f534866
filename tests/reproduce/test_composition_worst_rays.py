# SPDX-License-Identifier: Apache-2.0
"""Worst rays: what counts as wrong, which element answered, where it lies, and what is drawn of it."""

import numpy as np
import pytest

from hedgerow import Beams, Log
from hedgerow.base.figure import new_figure
from hedgerow.log import Returns
from hedgerow.reproduce.composition import worst_rays
from hedgerow.reproduce.composition.ray_picture import Ray, choose_span, draw_ray, slice_along
from hedgerow.reproduce.composition.worst_rays import (
    GROUND,
    NOTHING,
    Answers,
    answering_sigma_m,
    are_ellipsoids,
    by_kind_text,
    kinds_at,
    worst_beams,
    wrong_text,
)
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.scenes.annotation import Annotation
from hedgerow.world import Gaussians, LearnedWorld, Triangles
from hedgerow.world.assets import Asset, instances_of

INF = np.inf


def beams(n):
    return Beams.from_arrays(origins=np.zeros((n, 3)), directions=np.tile([1.0, 0, 0], (n, 1)))


def log_of(ranges):
    ahead = np.tile([1.0, 0, 0], (len(ranges), 1))
    return Log.from_arrays(origins=np.zeros((len(ranges), 3)), directions=ahead, ranges=ranges)


def world_of(mean_m, sigma_m, stop=0.0):
    """Gaussians on the x axis, as wide as given; `stop` is their permeability."""
    mean = np.array([[x, 0.0, 0.0] for x in mean_m])
    covariance = np.array([np.eye(3) * each**2 for each in sigma_m])
    table = Gaussians.plain(mean, covariance, stop=np.full(len(mean), stop, np.float32))
    return LearnedWorld(table, kind="test", min_range_m=0.5, max_range_m=100.0)


def test_every_beam_is_right_or_wrong_in_one_way():
    real = np.array([10, 10, 10, 10, INF, INF], dtype=np.float32)
    mine = np.array([10.4, 9.4, 10.6, INF, 5, INF], dtype=np.float32)
    wrong = Answers(real, np.stack([mine, mine]), np.zeros(6), log_of(mine)).is_wrong
    assert {name: np.flatnonzero(rows).tolist() for name, rows in wrong.items()} == {
        "short": [1],
        "long": [2],
        "false miss": [3],
        "false hit": [4],
    }


def test_the_element_that_answered_is_asked_for_its_spread():
    wide, thin = world_of([10.0], [0.6]), world_of([10.0], [0.05])
    for world, sigma_m in ((wide, 0.6), (thin, 0.05)):
        log = world.fire(beams(50), seed=1)
        np.testing.assert_allclose(answering_sigma_m(world, log)[log.returns.hit], sigma_m, rtol=1e-3)
    wall = Triangles.plain(np.array([[[5.0, -1, -1], [5, 1, -1], [5, 0, 1]]]))
    behind = Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.6**2)
    before = LearnedWorld(wall, behind, kind="test", max_range_m=100.0)
    assert (answering_sigma_m(before, before.fire(beams(5), seed=1)) == 0).all()  # a triangle answers
    empty = world_of([10.0], [0.05], stop=1.0).fire(beams(5), seed=1)  # lets everything pass
    assert (answering_sigma_m(thin, empty) == 0).all()


def test_large_ellipsoids_in_low_shrubs_are_counted():
    world = world_of([10.0], [0.6])
    real = world.fire(beams(400), seed=1)
    real = real.with_returns(Returns(np.full(400, INF, np.float32)))
    answers = Answers.of_world(world, real, seed=2)
    shrub = Annotation.of_boxes(["low-shrub"], [[10.0, 0, -1.0]], 0.0, [[20.0, 2.0, 2.0]])
    (row,) = [line for line in wrong_text({"it": answers}, {"it": world}, shrub).splitlines() if "false hit" in line]
    cells = row.strip("| ").split(" | ")
    assert cells[0] == "it: false hit" and cells[1] == "400"
    # All by the one large ellipsoid, all within the shrub's box.
    assert cells[3:] == ["100.0", "0.0", "0.0", "100.0", "100.0"]


def test_a_point_belongs_to_the_box_that_it_lies_in():
    boxes = Annotation.of_boxes(
        ["low-shrub", "large-tree"], [[0.0, 0, 0], [3.0, 0, 0]], [np.pi / 2, 0.0], [[4.0, 1.0, 1.0], [5.0, 5.0, 12.0]]
    )
    points = np.array([[0, 1.8, 0.5], [1.8, 0, 0.5], [0, 0, 5.0], [3, 0, 6.0], [0, 0, 0.1], [0.45, 0, 0.5]])
    # The shrub is 4 m long along y, since it is turned; the tree takes what lies in it alone.
    assert kinds_at(points, boxes).tolist() == [
        "low-shrub", "large-tree", GROUND, "large-tree", GROUND, "low-shrub",
    ]  # fmt: skip


def test_the_worst_beam_of_each_kind_is_found():
    kind = np.array(["low-shrub", "low-shrub", NOTHING, GROUND])
    scored = Answers(np.zeros(4, np.float32), np.zeros((2, 4), np.float32), np.array([1.0, 3, 2, 0]), log_of([1.0] * 4))
    assert worst_beams(scored, kind) == {"low-shrub": 1, GROUND: 3, NOTHING: 2}
    table = by_kind_text({"it": scored}, kind)
    assert "| low-shrub | 2 | 2.00 |" in table


def test_a_ray_is_drawn_with_the_elements_that_it_meets_and_no_others():
    gaussians = Gaussians.plain(
        np.array([[10.0, 0, 0], [20.0, 0, 1.9], [-5.0, 0, 0]]), np.tile(np.eye(3) * 0.5**2, (3, 1, 1))
    )
    wall = np.array([[[15.0, -1, -1], [15, 1, -1], [15, 0, 1]], [[15.0, 1, -1], [15, 3, -1], [15, 2, 1]]])
    world = LearnedWorld(gaussians, Triangles.plain(wall), kind="test", max_range_m=100.0)
    ray = Ray(np.zeros(3), np.array([1.0, 0, 0]), 9.0, np.zeros((0, 3)))
    cut = slice_along(world, ray, 30.0)
    # 1.9 m off is 3.8 deviations: beyond tau, 3.5; what lies behind is not met; one of the two triangles is cut.
    assert cut.middle[cut.is_met].tolist() == [[10.0, 0.0]]
    np.testing.assert_allclose(cut.covariance[0], np.eye(2) * 0.25)
    assert cut.lines.shape == (1, 2, 2) and np.allclose(cut.lines[0, :, 0], 15)
    np.testing.assert_allclose(np.sort(cut.lines[0, :, 1]), [-1, 1])
    axes = new_figure(5, 2).subplots()
    draw_ray(axes, ray, world, np.array([9.5, INF]), choose_span(9.0, np.array([9.5, INF])))
    assert axes.get_xlim() == (6.0, 12.5)
    assert len(axes.patches) == 1


def test_the_kind_of_every_element_of_a_composed_world_is_known():
    plant = Asset(
        "plant", (Triangles.plain(np.eye(3)[None]), Gaussians.plain(np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1))))
    )
    places = np.tile(np.eye(4), (2, 1, 1))
    placed = instances_of([plant], np.array([0, 0]), places)
    ground = Triangles.plain(np.zeros((2, 3, 3)) + np.eye(3))
    world = LearnedWorld(ground, placed, kind="test", assets=[plant], max_range_m=100.0)
    assert are_ellipsoids(world).tolist() == [False, False, False, True, True, False, True, True]
    assert len(are_ellipsoids(world)) == world.scene.n_elements


def test_a_long_ray_is_cut_and_one_without_returns_begins_at_the_sensor():
    assert choose_span(5.0, np.array([90.0])) == (2.0, 42.0)
    assert choose_span(INF, np.array([INF])) == (0.0, 40.0)


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["worst-rays"].module == "composition.worst_rays"


@pytest.mark.slow
def test_the_experiment_draws_rays_of_both_worlds(tmp_path):
    outcome = worst_rays.run(tmp_path, 2, say=lambda line: None)
    assert [path.name for path in outcome.pictures] == ["worst-rays-primitives.png", "worst-rays-meshes.png"]
    assert "primitives: false hit" in outcome.text
