# SPDX-License-Identifier: Apache-2.0
"""Hits and passes per element, by the rules of Browning 2012 §3.3, and the permeability that follows from them."""

import numpy as np
import pytest
from random_scenes import beams_of, fan, mixed_scene

from hedgerow import InputError
from hedgerow.log import Beams
from hedgerow.world import Scene

WALL = [[5, -9, -9], [5, 9, -9], [5, 0, 9]]


def counted(scene, range_m, direction=(1.0, 0.0, 0.0), **more):
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to(direction, (len(range_m), 3)))
    hits, passes = scene.count(beams, np.asarray(range_m, dtype=np.float32), **more)
    return hits.tolist(), passes.tolist()


def test_a_triangle_is_hit_within_the_window_passed_beyond_and_else_not_counted():
    scene = Scene()
    scene.add_mesh(WALL, [[0, 1, 2]])
    assert counted(scene, [4.6, 5.4]) == ([2], [0])
    assert counted(scene, [5.6, 9.0, np.inf], max_range_m=20.0) == ([0], [3])
    assert counted(scene, [4.4, 1.0]) == ([0], [0])
    assert counted(scene, [4.6, 5.4], window_m=0.1) == ([0], [1])


def test_a_gaussian_is_hit_inside_its_ellipsoid_passed_behind_it_and_not_counted_in_front():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 0.01], tau=3.0)  # from 4.7 to 5.3
    assert counted(scene, [4.75, 5.0, 5.25]) == ([3], [0])
    assert counted(scene, [5.35, np.inf], max_range_m=20.0) == ([0], [2])
    assert counted(scene, [4.65, 0.5]) == ([0], [0])


def test_off_centre_the_way_through_the_ellipsoid_is_shorter():
    scene = Scene()
    scene.add_gaussians([[5.0, 0.24, 0]], [np.eye(3) * 0.01], tau=3.0)  # a chord of half length 0.18
    assert counted(scene, [4.85, 5.15]) == ([2], [0])
    assert counted(scene, [4.8, 5.2]) == ([0], [1])


def test_what_lies_beyond_the_maximal_range_is_not_passed_by_a_missing_return():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 0.01])
    assert counted(scene, [np.inf], max_range_m=4.0) == ([0], [0])


@pytest.mark.parametrize("seed", range(3))
def test_counts_follow_the_rules_applied_to_the_reference(seed):
    scene, reference = mixed_scene(seed)
    rng = np.random.default_rng(seed)
    directions = fan(400, rng).astype(np.float32).astype(float)
    range_m = np.where(rng.random(400) < 0.2, np.inf, rng.uniform(3, 10, 400)).astype(np.float32)
    hits, passes = scene.count(beams_of((0, 0, 0), directions), range_m, max_range_m=10.0)
    taus = {g[5]: g[2] for g in reference.gaussians}
    covariances = {g[5]: (g[0], np.linalg.inv(g[1])) for g in reference.gaussians}
    expected = np.zeros((2, scene.n_elements), dtype=int)
    for direction, r in zip(directions, range_m, strict=True):
        for mean, _, _, number in reference.crossings(np.zeros(3), direction, 10.0):
            if number in taus:
                centre, inverse = covariances[number]
                offset = (direction * r if np.isfinite(r) else direction * 1e6) - centre
                hit = offset @ inverse @ offset <= taus[number] ** 2
                passed = not hit and r > mean
            else:
                hit, passed = abs(r - mean) < 0.5, r - mean > 0.5
            expected[0, number] += hit
            expected[1, number] += passed
    assert expected.sum() > 1000
    # A ray that grazes an ellipsoid or an edge within float32 rounding may be counted on the other side.
    assert np.abs(hits - expected[0]).max() <= 1
    assert np.abs(passes - expected[1]).max() <= 1


def test_permeability_of_a_fence_comes_back_from_counting():
    rho, n = 0.7, 200_000
    scene = Scene()
    scene.add_mesh(WALL, [[0, 1, 2]], permeability=rho)
    scene.add_mesh(np.add(WALL, [3, 0, 0]), [[0, 1, 2]])
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (n, 3)))
    range_m = scene.fire(beams, seed=1).range_m
    hits, passes = scene.count(beams, range_m)
    assert hits[0] + passes[0] == n
    assert abs(passes[0] / n - rho) < 5 * np.sqrt(rho * (1 - rho) / n)  # 5 sigma: false alarm 6e-7
    assert hits[1] == passes[0]


def test_count_wants_float32_ranges_and_says_so():
    scene = Scene()
    with pytest.raises(InputError, match="range_m: expected type float32"):
        scene.count(beams_of((0, 0, 0), [[1, 0, 0]]), np.zeros(1))  # pyright: ignore[reportArgumentType]  # wrong on purpose


def test_with_boxes_only_beams_that_cross_the_box_count():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 0.04], tau=3.0)  # an ellipsoid of radius 0.6
    box = np.array([[4.9, -0.1, -0.1, 5.1, 0.1, 0.1]])
    assert counted(scene, [5.0, np.inf], max_range_m=20.0, boxes_m=box) == ([1], [1])
    beside = np.array([5.0, 0.3, 0.0]) / np.linalg.norm((5.0, 0.3, 0.0))  # through the ellipsoid, past the box
    assert counted(scene, [5.0, np.inf], direction=beside, max_range_m=20.0) == ([1], [1])
    assert counted(scene, [5.0, np.inf], direction=beside, max_range_m=20.0, boxes_m=box) == ([0], [0])
    with pytest.raises(TypeError, match="boxes_m"):
        counted(scene, [5.0], boxes_m=box[:, :3])
