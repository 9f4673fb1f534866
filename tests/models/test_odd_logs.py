# SPDX-License-Identifier: Apache-2.0
"""Every model on logs that hardly any suits: a world that answers, a sentence or a refusal, never silently nothing."""

import warnings
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowWarning
from hedgerow.models.registry import MODELS
from hedgerow.models.steps.kept import long_enough_m, require_kept, side_advice, wide_enough_m


def planar_log():
    """A planar sensor in a room of 10 by 16 m with an open door."""
    rng = np.random.default_rng(0)
    angle = np.tile(np.linspace(-np.pi, np.pi, 720, endpoint=False), 4)
    wall_m = np.minimum(5 / np.maximum(np.abs(np.cos(angle)), 1e-9), 8 / np.maximum(np.abs(np.sin(angle)), 1e-9))
    range_m = np.where(np.abs(angle) < 0.2, np.inf, wall_m + rng.normal(0, 0.01, len(angle)))
    directions = np.c_[np.cos(angle), np.sin(angle), np.zeros(len(angle))]
    sweeps = np.repeat(np.arange(4), 720)
    return hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=range_m, sweeps=sweeps, max_range_m=30)


def same_beam(n):
    """A beam, n times over."""
    return hr.Log.from_arrays(
        origins=(0, 0, 0), directions=np.tile([1.0, 0, 0], (n, 1)), ranges=np.full(n, 5.0), max_range_m=50
    )


def all_missing_but_one():
    """A thousand beams, of which one returned."""
    directions = np.random.default_rng(0).normal(size=(1000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ranges = np.where(np.arange(1000) == 17, 6.0, np.inf)
    return hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=ranges, max_range_m=50)


def vertical_line():
    """A scanner that does not turn, before a wall."""
    z = np.linspace(-1, 1, 500)
    range_m = np.sqrt(25 + z**2)
    directions = np.c_[np.full(500, 5.0), 0 * z, z] / range_m[:, None]
    return hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=range_m, max_range_m=50)


def from_the_air(per_m2=1.5, side_m=60.0, seed=0):
    """A slope of grass and crowns above it, seen from 1 km above: a return or two for each square metre."""
    rng = np.random.default_rng(seed)
    n = round(per_m2 * side_m**2)
    point_m = np.c_[rng.uniform(0, side_m, (n, 2)), np.zeros(n)]
    point_m[:, 2] = 0.05 * point_m[:, 0] + np.where(rng.random(n) < 0.3, rng.uniform(2, 15, n), 0)
    away_m = point_m - [side_m / 2, side_m / 2, 1000.0]
    range_m = np.linalg.norm(away_m, axis=1)
    return hr.Log.from_arrays(
        origins=(side_m / 2, side_m / 2, 1000.0), directions=away_m / range_m[:, None], ranges=range_m
    )


ODD = {
    "planar": planar_log,
    "one beam": lambda: same_beam(1),
    "duplicates": lambda: same_beam(400),
    "all missing but one": all_missing_but_one,
    "vertical line": vertical_line,
    "from the air": from_the_air,
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("model", list(MODELS))
def test_no_odd_log_becomes_a_silent_empty_world(model, name):
    log = ODD[name]()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            world = hr.learn(log, model)
        except hr.InputError as error:
            assert "\n" not in str(error)
            assert "topdown" in str(error) or "take side_m=" in str(error)
            return
    returned = np.isfinite(world.fire(log.beams, seed=1).returns.first_m)
    real = np.isfinite(log.returns.first_m)
    if returned.sum() < 0.5 * real.sum():
        sentences = [str(each.message) for each in said if issubclass(each.category, HedgerowWarning)]
        assert any("topdown" in each or "take side_m=" in each for each in sentences)


def test_hybrid_says_that_it_found_no_surface():
    with pytest.warns(HedgerowWarning, match="no surface was found in it.*as one of topdown has"):
        world = hr.learn(planar_log(), "hybrid")
    assert set(world.size().tables) >= {"gaussians"} and world.size().elements > 10


@pytest.mark.parametrize(("model", "least"), [("voxel", 0.8), ("bottomup", 0.8), ("surface", 0.6), ("hybrid", 0.8)])
def test_what_a_model_proposes_for_a_log_from_the_air_works(model, least):
    log = from_the_air()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            hr.learn(log, model)
            sentence = next(str(each.message) for each in said if issubclass(each.category, HedgerowWarning))
        except hr.InputError as error:
            sentence = str(error)
    words = sentence.partition("take ")[2].replace(",", " ").split()
    proposed: dict[str, Any] = {
        name: float(value) for name, _, value in (word.partition("=") for word in words if "=" in word)
    }
    assert proposed
    world = hr.learn(log, model, **proposed)
    returned = np.isfinite(world.fire(log.beams, seed=1).returns.first_m)
    assert returned.mean() > least
    if model == "hybrid":
        assert world.size().tables["triangles"] > 100


def test_the_radius_is_that_of_a_square_grid():
    grid_m = np.stack(np.meshgrid(np.arange(60), np.arange(60)), axis=-1).reshape(-1, 2)
    point_m = np.c_[grid_m, np.full(len(grid_m), -9.0)]
    range_m = np.linalg.norm(point_m, axis=1)
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=point_m / range_m[:, None], ranges=range_m, max_range_m=200)
    # Of a point inside, 4 others are 1 m away and 4 more the root of 2; at the rim there are fewer.
    assert wide_enough_m(lambda: [log], 4) == pytest.approx(1.0, abs=0.11)
    assert wide_enough_m(lambda: [log], 8) == pytest.approx(1.5)
    assert wide_enough_m(lambda: [log[:4]], 8) is None
    assert wide_enough_m(lambda: [same_beam(50)], 8) is None


def test_the_side_is_the_first_that_keeps_most_points():
    rng = np.random.default_rng(0)
    mean_m = np.c_[rng.uniform(0, 100, (10_000, 2)), np.zeros(10_000)]  # one for each square metre
    count = np.ones(10_000, dtype=np.int64)
    side_m, kept = long_enough_m(mean_m, count, 0.3, min_points=5) or (0, 0)
    # Poisson with mean side²: a point is in a square with at least 4 others with P(X >= 4).
    expected = 1 - np.exp(-(side_m**2)) * sum(side_m ** (2 * k) / np.prod(np.arange(1, k + 1)) for k in range(4))
    assert kept == pytest.approx(expected, abs=0.05)  # 5 sigma of 10,000 points in clumps of five
    assert kept >= 0.8 and 2.0 < side_m < 3.5
    assert (
        side_advice(mean_m, count, 0.3, 5) == f"take side_m={side_m:g}, which keeps {kept:.0%}, or a smaller min_points"
    )
    assert long_enough_m(mean_m[:3], count[:3], 0.3, min_points=5) is None
    assert "topdown" in side_advice(mean_m[:3], count[:3], 0.3, 5)


def test_few_kept_returns_are_a_warning_and_none_a_refusal():
    with pytest.raises(
        hr.InputError, match=r"log: none of its returns \(1,000\) made it into the world; the model top"
    ):
        require_kept(0, 1000)
    with pytest.warns(HedgerowWarning, match=r"only 12.0% of its 1,000 returns .*; try this"):
        require_kept(120, 1000, lambda: "try this")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_kept(500, 1000)
