# SPDX-License-Identifier: Apache-2.0
"""Which point a beam sees (Browning 2012 §4.2), against the formulas written down plainly in float64."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kstest
from small_worlds import points, rays, world

from hedgerow import Beams
from hedgerow.world import Points, SurfaceNoise
from hedgerow.world.points import PointScene, build_cloud

FALSE_ALARM = 1e-6  # per test; every seed below is fixed, so a pass stays a pass
ROUNDING_M = 2e-5  # float32 of coordinates up to 60 m, some operations long


def scene_of(table, origin_m=(0.0, 0.0, 0.0), cuts=()):
    """The points in one cloud, or cut into several."""
    bounds = [0, *cuts, len(table)]
    clouds = [build_cloud(table[a:b], origin_m, a) for a, b in pairwise(bounds)]
    return PointScene(clouds, origin_m, table)


def candidates(table, origin, direction, min_range_m, max_range_m):
    """Distances along the ray (eq. 9) and from it (eq. 10), and which points count (eq. 11)."""
    offset = table.position_m - origin
    along = offset @ direction
    beside = np.linalg.norm(offset - along[:, None] * direction, axis=1)
    return along, beside, (along > 0) & (along >= min_range_m) & (along <= max_range_m)


@pytest.mark.parametrize("pick", ["nearest", "first"])
@pytest.mark.parametrize("cuts", [(), (0, 700, 701, 3999)])
def test_the_point_seen_is_that_of_the_plain_formulas(pick, cuts):
    table = points(4000, reach_m=0.15, pick=pick)
    beams = rays(1500)
    low, high = 2.0, 35.0
    seen = scene_of(table, cuts=cuts).see(beams, min_range_m=low, max_range_m=high)
    n_seen = n_choices = 0
    for beam in range(len(beams)):
        direction = beams.direction[beam].astype(float)
        direction /= np.linalg.norm(direction)
        along, beside, allowed = candidates(table, beams.origin_m[beam], direction, low, high)
        score = beside if pick == "nearest" else along
        sure = allowed & (beside < table.reach_m - ROUNDING_M)
        number = seen.element[beam]
        if number < 0:
            near_a_limit = (np.abs(along - low) < ROUNDING_M) | (np.abs(along - high) < ROUNDING_M)
            assert not (sure & ~near_a_limit).any()
            continue
        n_seen += 1
        n_choices += sure.sum() > 1
        assert beside[number] < table.reach_m + ROUNDING_M
        assert seen.mean_m[beam] == pytest.approx(along[number], abs=ROUNDING_M)
        assert low - ROUNDING_M <= along[number] <= high + ROUNDING_M
        if sure.any():
            assert score[number] <= score[sure].min() + ROUNDING_M
        cosine = abs(table.normal[number].astype(float) @ direction)
        assert seen.incidence_cosine[beam] == pytest.approx(cosine, abs=1e-6)
        assert seen.label[beam] == table.label[number]
        assert seen.intensity[beam] == table.intensity[number]
    assert n_seen > 200
    assert n_choices > 50


def test_nearest_to_the_line_and_first_along_it_differ():
    position = np.array([[5.0, 0.008, 0.0], [9.0, 0.001, 0.0], [3.0, 0.02, 0.0]])
    normal = np.tile(np.array([-1, 0, 0], np.float32), (3, 1))
    beam = Beams.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]])
    for pick, element, mean_m in (("nearest", 1, 9.0), ("first", 0, 5.0)):
        seen = scene_of(Points.plain(position, normal, pick=pick)).see(beam)
        assert seen.element[0] == element
        assert seen.mean_m[0] == pytest.approx(mean_m)


def test_points_outside_the_range_limits_do_not_hide_others():
    position = np.array([[5.0, 0.001, 0.0], [9.0, 0.005, 0.0], [20.0, 0.0, 0.0], [-4.0, 0.0, 0.0]])
    table = Points.plain(position, np.tile(np.array([-1, 0, 0], np.float32), (4, 1)))
    beam = Beams.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]])
    assert scene_of(table).see(beam, min_range_m=6.0, max_range_m=15.0).element[0] == 1
    assert scene_of(table).see(beam, min_range_m=6.0, max_range_m=8.0).element[0] == -1


def test_of_equal_points_the_lower_number_is_seen():
    table = Points.plain(np.tile([5.0, 0.0, 0.0], (300, 1)), np.tile(np.array([-1, 0, 0], np.float32), (300, 1)))
    beam = Beams.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]])
    for cuts in ((), (100, 200)):
        assert scene_of(table, cuts=cuts).see(beam).element[0] == 0


def test_ranges_are_normal_by_the_incidence_angle():
    tilt = np.radians(60)
    normal = np.array([[-np.cos(tilt), 0, np.sin(tilt)]], np.float32)
    made = world(Points.plain(np.array([[5.0, 0.0, 0.0]]), normal, noise=SurfaceNoise(0.015, 0.0014)))
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.tile([1.0, 0, 0], (20_000, 1)))
    sigma = np.hypot(0.015, 0.0014 * np.sin(tilt) / np.cos(tilt) ** 2)
    assert kstest(made.fire(beams, seed=2).returns.range_m, "norm", (5, sigma)).pvalue > FALSE_ALARM


def test_noise_past_the_limits_gives_no_return():
    made = world(
        Points.plain(np.array([[5.0, 0, 0]]), np.array([[-1, 0, 0]], np.float32), noise=SurfaceNoise(0.1)),
        max_range_m=5.0,
    )
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.tile([1.0, 0, 0], (10_000, 1)))
    log = made.fire(beams, seed=2)
    # Half of them, give or take six standard deviations of 50.
    assert abs(log.returns.hit.sum() - 5000) < 300
    assert log.returns.element is not None
    assert (log.returns.element[~log.returns.hit] == -1).all()
    assert log.returns.intensity is not None
    assert np.isnan(log.returns.intensity[~log.returns.hit]).all()


def test_rigid_motion_of_points_and_beams_changes_nothing():
    table, beams = points(4000, reach_m=0.15), rays(1500)
    turn, shift = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([1e5, -2e6, 300.0])
    moved = Points.plain(
        table.position_m @ turn.T + shift, (table.normal @ turn.T).astype(np.float32), reach_m=0.15, noise=table.noise
    )
    turned = Beams.from_arrays(origins=beams.origin_m @ turn.T + shift, directions=beams.direction @ turn.T)
    here = scene_of(table).see(beams)
    there = scene_of(moved, origin_m=tuple(shift.tolist())).see(turned)
    assert (here.element == there.element).mean() > 0.999
    same = (here.element == there.element) & (here.element >= 0)
    np.testing.assert_allclose(here.mean_m[same], there.mean_m[same], atol=ROUNDING_M)


def test_no_points_and_no_beams():
    empty = scene_of(points(0))
    assert (empty.see(rays(10)).element == -1).all()
    assert len(scene_of(points(10)).see(rays(10)[:0]).element) == 0


def test_threads_and_order_of_beams_change_nothing():
    table, beams = points(4000, reach_m=0.15), rays(20_000)
    scene = scene_of(table)
    one, five = scene.see(beams, threads=1), scene.see(beams, threads=5)
    shuffled = np.random.default_rng(0).permutation(len(beams))
    other = scene.see(beams[shuffled])
    for name in ("element", "mean_m", "sigma_m"):
        assert getattr(one, name).tobytes() == getattr(five, name).tobytes()
        assert getattr(one, name)[shuffled].tobytes() == getattr(other, name).tobytes()
