# SPDX-License-Identifier: Apache-2.0
"""Coarser worlds: fewer Gaussians that stop as many beams, at about the same places."""

import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_worlds import gaussians, mixtures, points, rays, same, world

from hedgerow import Beams, InputError
from hedgerow.world import Gaussians, LabelCounts, Triangles
from hedgerow.world.coarser import coarser_tables, merge_gaussians
from hedgerow.world.stop_area import StopProfile, profile_of, shared_area_m2, solve_depth, stop_area_m2

LAWS = ("permeability", "extinction", "depth")
# How much three elements of each kind stop: hardly, half, nearly all.
STOPS = {"permeability": (0.9, 0.5, 0.05), "extinction": (0.3, 4.0, 40.0), "depth": (0.2, 2.0, 20.0)}


def some(covariance, *, law, stop, mean=(0.0, 0.0, 0.0), tau=2.7, **columns):
    mean = np.broadcast_to(np.asarray(mean, float), (len(covariance), 3)).copy()
    stop = np.broadcast_to(np.asarray(stop, np.float32), len(covariance)).copy()
    return Gaussians.plain(mean, np.asarray(covariance), stop=stop, law=law, tau=tau, **columns)


def thicket(n, law="depth", seed=0, extent=4.0, **columns):
    """Small Gaussians close together, as leaves of a bush."""
    table = gaussians(n, seed=seed, extent=extent, **columns)
    rng = np.random.default_rng(seed)
    low, high = {"permeability": (0.2, 0.9), "extinction": (0.5, 10.0), "depth": (0.1, 3.0)}[law]
    return replace(
        table,
        covariance_m2=table.covariance_m2 / 9,
        law=law,
        tau=2.7,
        stop=rng.uniform(low, high, n).astype(np.float32),
    )


def lines(n, radius_m, seed=1):
    """Beams from all sides, evenly spread over a disk across each direction: what stop areas are about."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    side = np.cross(direction, rng.normal(size=(n, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    off = radius_m * np.sqrt(rng.uniform(size=(n, 1)))
    return Beams.from_arrays(origins=off * side - 10 * radius_m * direction, directions=direction)


def stopped_m2(table, beams, radius_m, seed=7):
    hit = world(table, max_range_m=1000.0).fire(beams, seed=seed).returns.hit
    return np.pi * radius_m**2 * hit.mean()


# Stop areas


@pytest.mark.parametrize("law", LAWS)
def test_the_stop_area_is_the_area_that_beams_from_all_sides_lose(law):
    covariance = np.diag([0.3, 0.2, 0.05])[None] ** 2
    beams = lines(200_000, 1.0)
    for stop in STOPS[law]:
        table = some(covariance, law=law, stop=stop)
        profile = profile_of(table)
        found = stop_area_m2(covariance, profile.depths(table.stop), profile)[0]
        # 200,000 beams: 0.0015 of the disk of 3.1 m² per standard deviation, four of them; 13 directions: 1 %.
        assert found == pytest.approx(stopped_m2(table, beams, 1.0), rel=0.01, abs=0.014)


def test_the_stop_area_of_a_solid_ball_is_its_disk():
    profile = StopProfile.of("permeability", 2.0)
    area = stop_area_m2(np.eye(3)[None] * 0.25, np.array([50.0]), profile)
    assert area[0] == pytest.approx(np.pi, rel=1e-4)  # 2 sigma of 0.5 m; the table of F has steps of 1 %


@pytest.mark.parametrize("law", LAWS)
def test_the_depth_is_found_back_from_the_stop_area(law):
    rng = np.random.default_rng(3)
    root = rng.normal(scale=0.3, size=(50, 3, 3))
    covariance, depth = root @ root.transpose(0, 2, 1), rng.uniform(0.01, 5, 50)
    profile = StopProfile.of(law, 2.7)
    found = solve_depth(covariance, stop_area_m2(covariance, depth, profile), profile)
    assert_allclose(found, depth, rtol=1e-6)


def test_what_two_far_apart_share_is_nothing():
    covariance, depth = np.eye(3)[None] * 0.01, np.array([3.0])
    # Only a beam along all three metres meets both; none of the 13 directions is near it.
    apart = np.array([[3.0, 1.0, 0.5]])
    shared = shared_area_m2(apart, (covariance, covariance), (depth, depth), StopProfile.of("depth", 2.7))
    assert shared[0] == 0


# Merging


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("which", [0, 1])
def test_two_identical_gaussians_become_one_with_the_same_answers(law, which):
    covariance = np.array([np.diag([0.3, 0.1, 0.05]) ** 2] * 2)
    pair = some(covariance, law=law, stop=STOPS[law][which])
    one = merge_gaussians(pair, 1)
    assert len(one) == 1
    assert_allclose(one.mean_m[0], pair.mean_m[0], atol=1e-12)
    assert_allclose(one.covariance_m2[0], covariance[0], atol=1e-12)
    depth = profile_of(pair).depths(pair.stop)[0]
    assert profile_of(one).depths(one.stop)[0] == pytest.approx(2 * depth, rel=2e-3)  # 24 places, 13 directions


@pytest.mark.parametrize("law", LAWS)
def test_a_pair_stops_as_many_beams_when_it_is_one(law):
    rng = np.random.default_rng(5)
    beams = lines(60_000, 3.0)
    for _ in range(3):
        pair = thicket(2, law, seed=int(rng.integers(1000)), extent=0.3)
        one = merge_gaussians(pair, 1)
        around = pair.mean_m.mean(axis=0)
        before, after = (stopped_m2(replace(table, mean_m=table.mean_m - around), beams, 3.0) for table in (pair, one))
        # Counts: 4 standard deviations of 28 m² times sqrt(0.01 / 60,000), twice; areas from 13 directions: 3 %.
        assert after == pytest.approx(before, rel=0.03, abs=0.09)


@pytest.mark.parametrize("law", LAWS)
def test_a_thicket_stops_about_as_many_beams_with_an_eighth_of_its_elements(law):
    full = thicket(800, law)
    coarse = merge_gaussians(full, 100)
    centre = full.mean_m.mean(axis=0)
    before, after = (
        stopped_m2(replace(table, mean_m=table.mean_m - centre), lines(60_000, 5.0), 5.0) for table in (full, coarse)
    )
    assert before > 5  # of 79 m²
    # Each pair is exact; that gaps are filled behind other elements is not counted.
    assert after == pytest.approx(before, rel=0.08)


def test_likelihood_of_held_out_beams_falls_slowly_and_ever_further():
    full = world(thicket(1500, "depth"), max_range_m=100.0)
    log = full.fire(lines(10_000, 4.0, seed=8), seed=3)
    scores = [full.log_likelihood(log)]
    for elements in (750, 375, 187, 93, 46):
        (table,) = coarser_tables(full.tables, elements).values()
        scores.append(world(table, max_range_m=100.0).log_likelihood(log))
    # With an outlier share of 0.001, as elsewhere, so that no beam decides alone.
    mean = np.array([np.log(0.999 * np.exp(each) + 0.001 / 100).mean() for each in scores])
    step = -np.diff(mean)
    assert (step > 0).all()
    assert step.max() < 0.25  # nat per halving


def test_the_number_of_elements_is_reached_exactly():
    for elements in (499, 300, 41, 1):
        assert len(coarser_tables({"gaussians": thicket(500)}, elements)["gaussians"]) == elements


def test_a_world_that_is_small_enough_stays_as_it_is():
    full = {"gaussians": thicket(50)}
    assert coarser_tables(full, 50)["gaussians"] is full["gaussians"]


def test_rows_that_merge_with_no_other_stay_the_same_bytes():
    full = thicket(300)
    coarse = merge_gaussians(full, 290)
    kept = (coarse.mean_m[:, None] == full.mean_m[None]).all(axis=2)
    assert kept.any(axis=1).sum() >= 280
    row = kept.argmax(axis=1)[kept.any(axis=1)]
    assert (np.diff(row) > 0).all()
    assert same(coarse[kept.any(axis=1)], full[row])


def test_coarsening_is_deterministic_and_does_not_depend_on_where_the_map_is():
    full = thicket(400)
    assert same(merge_gaussians(full, 60), merge_gaussians(full, 60))
    moved = merge_gaussians(replace(full, mean_m=full.mean_m + np.array([5e5, 5e6, 100.0])), 60)
    assert_allclose(moved.mean_m - [5e5, 5e6, 100.0], merge_gaussians(full, 60).mean_m, atol=1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class OfPlants(Gaussians):
    """Gaussians with a column that merging does not know."""

    plant: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))


def of_plants(table, plant):
    return OfPlants(**(table.settings() | table.columns()), plant=np.asarray(plant, np.uint32))


def test_elements_of_different_objects_are_never_merged():
    table = thicket(400)
    plant = np.arange(400) % 7
    full = of_plants(table, plant)
    coarse = merge_gaussians(full, 70)
    assert isinstance(coarse, OfPlants) and len(coarse) == 70
    assert set(coarse.plant) == set(range(7))
    for number in range(7):
        own = coarse[coarse.plant == number]
        low, high = full.mean_m[plant == number].min(axis=0), full.mean_m[plant == number].max(axis=0)
        assert ((own.mean_m >= low - 1e-9) & (own.mean_m <= high + 1e-9)).all()
        # No label of another object comes in: label counts of an object add up to what they were.
        assert own.label.count.sum() == (plant == number).sum()
    assert len(merge_gaussians(full, 1)) == 7  # one each is as near as it gets


def test_labels_are_added_up_and_intensities_mixed_by_what_each_stops():
    covariance = np.array([np.eye(3) * 0.01] * 3)
    pair = some(
        covariance,
        law="permeability",
        stop=[0.5, 0.5, 0.5],
        mean=[[0, 0, 0], [0.05, 0, 0], [0.1, 0, 0]],
        intensity=np.array([0.2, 0.6, np.nan], np.float32),
        intensity_sigma=np.array([0.1, 0.1, 0.0], np.float32),
        label=LabelCounts.from_rows(np.array([1, 2, 0]), np.array([5, 5, 9], np.uint16), np.array([3, 4, 6])),
    )
    one = merge_gaussians(pair, 1)
    assert one.intensity[0] == pytest.approx(0.4)
    assert one.intensity_sigma[0] == pytest.approx(np.hypot(0.1, 0.2))
    assert_array_equal(one.label.label, [5, 9])
    assert_array_equal(one.label.count, [7, 6])


def test_no_count_of_a_label_is_lost():
    full = replace(thicket(300), label=mixtures(300))
    coarse = merge_gaussians(full, 20)

    def totals(counts):
        return np.bincount(counts.label, counts.count, 10)

    assert_array_equal(totals(coarse.label), totals(full.label))


def test_what_stops_nothing_merges_first_and_changes_nothing():
    table = thicket(60)
    stop = table.stop.copy()
    stop[::2] = 0
    coarse = merge_gaussians(replace(table, stop=stop), 50)
    solid = coarse.stop > 0
    assert solid.sum() == 30
    assert_allclose(np.sort(coarse.mean_m[solid], axis=0), np.sort(table.mean_m[1::2], axis=0), atol=1e-9)


# Triangles


def sheet(n=20, **columns):
    """A flat square of 10 m, two triangles a cell."""
    x, y = (each.ravel() for each in np.meshgrid(np.arange(n), np.arange(n)))
    corner = np.stack([x, y, 0 * x], axis=1)[:, None]
    halves = np.array([[(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(1, 0, 0), (1, 1, 0), (0, 1, 0)]])
    corners = (corner[:, None] + halves[None]).reshape(-1, 3, 3) * (10 / n)
    return Triangles.plain(corners.astype(float), **columns)


@pytest.fixture
def simplification():
    return pytest.importorskip("fast_simplification")


def test_a_flat_sheet_keeps_its_area_its_permeability_and_its_labels(simplification):
    full = sheet(permeability=np.full(800, 0.3, np.float32), label=np.full(800, 7, np.uint16))
    (coarse,) = coarser_tables({"triangles": full}, 100).values()
    assert isinstance(coarse, Triangles) and 50 <= len(coarse) <= 100
    x, y = np.random.default_rng(2).uniform(0.5, 9.5, (2, 20_000))
    beams = Beams.from_arrays(
        origins=np.stack([x, y, 0 * x + 5], axis=1), directions=np.tile([0.0, 0.0, -1.0], (20_000, 1))
    )
    log = world(coarse, max_range_m=20.0).fire(beams, seed=1)
    # 20,000 beams, 0.7 of which return: 0.0033 per standard deviation, four of them.
    assert log.returns.hit.mean() == pytest.approx(0.7, abs=0.013)
    assert_allclose(log.returns.range_m[log.returns.hit], 5, atol=1e-4)
    assert coarse.label.count.sum() >= 800 and set(coarse.label.label) == {7}


def test_tables_keep_the_same_share_and_a_coarser_world_fires(simplification):
    full = world(thicket(600), sheet())
    coarse = world(*coarser_tables(full.tables, 350).values())
    assert coarse.size().tables["gaussians"] == 150
    assert 100 <= coarse.size().tables["triangles"] <= 200
    assert coarse.fire(rays(500, origin=(0, 0, 1)), seed=1).returns.hit.any()


def test_triangles_without_the_package_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_simplification", None)
    with pytest.raises(InputError, match=r"elements: fewer triangles need .* pip install 'hedgerow\[simplify\]'"):
        coarser_tables({"triangles": sheet()}, 10)


# Refusals


def test_remembered_points_are_refused():
    with pytest.raises(InputError, match="remembers what was measured, which cannot be merged"):
        coarser_tables({"points": points(40), "gaussians": thicket(40)}, 10)


@pytest.mark.parametrize("elements", [0, -3, 2.5, True, "many"])
def test_a_number_of_elements_that_is_none_is_refused(elements):
    with pytest.raises(InputError, match="elements: expected a whole number of 1 or more"):
        coarser_tables({"gaussians": thicket(10)}, elements)
