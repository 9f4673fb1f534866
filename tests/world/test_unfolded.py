# SPDX-License-Identifier: Apache-2.0
"""Copies of Gaussians in one search tree answer as instances do, whatever asks."""

import numpy as np
import pytest
from random_scenes import rotation
from small_worlds import gaussians, rays

from hedgerow.world import scene as scene_module
from hedgerow.world.scene import Scene


def forest(law: str, n: int = 60) -> Scene:
    """Copies of two plants, turned, scaled and sheared, beside a mesh and a plant of the scene's own."""
    rng = np.random.default_rng(3)
    made = Scene((0, 0, 0))
    gaussians(20, seed=9, extent=15, law=law).add_to(made)
    made.add_mesh([[12, -30, -5], [12, 30, -5], [12, 0, 30]], [[0, 1, 2]], permeability=0.5)
    for k in range(2):
        plant = Scene((0, 0, 0))
        gaussians(15, seed=k, extent=1.5, law=law).add_to(plant)
        matrices = np.tile(np.eye(4), (n, 1, 1))
        stretch = np.eye(3) + 0.2 * rng.normal(size=(n, 3, 3))
        matrices[:, :3, :3] = np.stack([rotation(rng) for _ in range(n)]) @ stretch
        matrices[:, :2, 3] = rng.uniform(-20, 20, (n, 2))
        made.place(plant, matrices, label=np.where(np.arange(n) % 2, 40 + k, -1), object=1 + k * n + np.arange(n))
    return made


@pytest.fixture(params=["permeability", "extinction", "depth"])
def both(request, monkeypatch):
    unfolded = forest(request.param)
    monkeypatch.setattr(scene_module, "MOST_UNFOLDED", 0)
    return unfolded, forest(request.param)


def test_returns_are_the_same(both):
    beams = rays(20_000)
    one, other = (each.fire(beams, seed=4, max_range_m=60.0) for each in both)
    assert np.isfinite(one.range_m).mean() > 0.5
    # Rays are taken into the plant's frame, or the plant into that of the rays: coins on the edge may fall differently.
    same = one.element == other.element
    assert same.mean() > 0.9999
    np.testing.assert_allclose(one.range_m[same], other.range_m[same], atol=2e-4)  # float32 at 60 m, times sigma
    assert np.array_equal(one.label[same], other.label[same])


def test_crossings_and_likelihoods_are_the_same(both):
    beams = rays(2000)
    one, other = (each.pierced(beams, max_range_m=60.0) for each in both)
    assert abs(len(one.element) - len(other.element)) <= 2  # grazing rays on the edge of an ellipsoid
    range_m = both[0].fire(beams, seed=4, max_range_m=60.0).range_m
    a, b = (each.log_likelihood(beams, range_m, max_range_m=60.0) for each in both)
    assert np.median(np.abs(a - b)) < 1e-4


def test_what_lies_behind_is_the_same(both):
    beams = rays(5000)
    near, far = np.full(5000, 2, np.float32), np.full(5000, 60, np.float32)
    one, other = (each.first_behind(beams, near, far, [40]) for each in both)
    assert (one.element == other.element).mean() > 0.9999
    assert not (one.label == 40).any()


def test_every_copy_is_its_own_object(both):
    for each in both:
        element = each.fire(rays(20_000), seed=4, max_range_m=60.0).element
        found = each.objects_of(element)
        assert found is not None
        n_own = 21
        expected = np.where(element < n_own, 0, 1 + (element - n_own) // 15)
        assert np.array_equal(found[element >= 0], expected[element >= 0])
        assert (found[element < 0] == 0).all()


def test_threads_do_not_matter(both):
    beams = rays(5000)
    one, eight = (both[0].fire(beams, seed=4, threads=threads) for threads in (1, 8))
    assert np.array_equal(one.range_m, eight.range_m)
