# SPDX-License-Identifier: Apache-2.0
"""Patches lie edge to edge over hills: no gap in the ground, and what stands on it stands upright."""

import numpy as np
import pytest

from hedgerow import Beams, InputError, LearnedWorld
from hedgerow.compose.ground_patches import cut_squares, lay_patches, patch_halves
from hedgerow.world import Gaussians, Triangles
from hedgerow.world.assets import instances_of

SIDE_M = 4.0
GROUND = Triangles.plain(np.eye(3)[None], label=72, intensity=np.full(1, 0.4, dtype=np.float32))


def grass(n=60, seed=0, half=SIDE_M / 2):
    rng = np.random.default_rng(seed)
    mean = np.c_[rng.uniform(-half, half, (n, 2)), rng.uniform(0.1, 0.3, n)]
    return Gaussians.plain(mean, np.tile(np.diag([0.05, 0.05, 0.1]) ** 2, (n, 1, 1)), label=101)


def hills(nx=6, ny=5, seed=2):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 3, (ny + 1, nx + 1)), rng.integers(0, 2, (ny, nx)), rng.integers(0, 4, (ny, nx))


def site(bare=False):
    corner_z, which, turn = hills()
    assets = [
        half
        for k in range(2)
        for half in patch_halves(f"grass-{k}", grass(seed=k)[: 0 if bare else None], SIDE_M, GROUND)
    ]
    asset, transform = lay_patches(corner_z, (-10.0, 3.0), SIDE_M, which, turn)
    return corner_z, LearnedWorld(instances_of(assets, asset, transform), kind="composed", assets=assets)


def down(xy):
    origins = np.c_[xy, np.full(len(xy), 20.0)]
    return Beams.from_arrays(origins=origins, directions=np.tile([0.0, 0.0, -1.0], (len(xy), 1)))


def test_the_ground_goes_through_all_corners_and_has_no_gap():
    corner_z, world = site(bare=True)
    rng = np.random.default_rng(1)
    # Everywhere, and on the borders of squares, along which two halves or two patches meet.
    xy = np.array([-10.0, 3.0]) + rng.uniform(0.001, 0.999, (4000, 2)) * [24.0, 20.0]
    edge = xy.copy()
    edge[::2, 0] = -10 + SIDE_M * rng.integers(1, 6, 2000)
    edge[1::2, 1] = 3 + SIDE_M * rng.integers(1, 5, 2000)
    assert world.fire(down(xy)).returns.hit.all()
    log = world.fire(down(edge))
    hit = log.returns.hit
    assert hit.mean() > 0.99  # a ray exactly along an edge may miss both of its triangles
    u, v = ((edge - [-10.0, 3.0]) / SIDE_M).T
    i, j = np.rint(u).astype(int), np.rint(v).astype(int)
    along_y = np.arange(len(edge)) % 2 == 0
    low = np.where(along_y, np.floor(v), np.floor(u)).astype(int)
    share = np.where(along_y, v, u) - low
    first = np.where(along_y, corner_z[np.minimum(low, 5), i], corner_z[j, np.minimum(low, 6)])
    second = np.where(along_y, corner_z[np.minimum(low + 1, 5), i], corner_z[j, np.minimum(low + 1, 6)])
    expected = first + share * (second - first)
    # Both sides of an edge have the heights of the line between its corners, to the float32 step at 20 m.
    np.testing.assert_allclose(20 - log.returns.first_m[hit], expected[hit], atol=1e-4)


def test_grass_stands_as_high_above_the_ground_as_in_the_patch():
    _, bare = site(bare=True)
    _, world = site()
    rng = np.random.default_rng(3)
    beams = down(np.array([-10.0, 3.0]) + rng.uniform(0.01, 0.99, (20_000, 2)) * [24.0, 20.0])
    log = world.fire(beams)
    assert log.returns.label is not None
    on_grass = (log.returns.label == 101) & np.isfinite(log.returns.first_m)
    above = bare.fire(beams).returns.first_m - log.returns.first_m
    assert 0.1 < on_grass.mean() < 0.9
    assert above[on_grass].min() > -0.3 and above[on_grass].max() < 0.8  # 0.1 to 0.3 m, and 3.5 sigma
    assert abs(np.median(above[on_grass]) - 0.2) < 0.05
    np.testing.assert_allclose(above[~on_grass], 0, atol=1e-4)


def test_all_elements_are_placed_inside_their_squares():
    squares = cut_squares(grass(900, half=3 * SIDE_M / 2), SIDE_M, 3)
    assert [len(each) > 50 for each in squares] == [True] * 9
    assert sum(map(len, squares)) == 900
    for each in squares:
        assert (np.abs(each.mean_m[:, :2]) <= SIDE_M / 2).all()
    whole = grass(900, half=3 * SIDE_M / 2)
    low = whole[(whole.mean_m[:, :2] < -SIDE_M / 2).all(axis=1)]
    np.testing.assert_allclose(squares[0].mean_m - np.array([SIDE_M, SIDE_M, 0.0]), low.mean_m)
    halves = patch_halves("grass", squares[0], SIDE_M, GROUND)
    assert sum(half.n_elements for half in halves) == len(low) + 2


def test_wrong_patches_are_refused():
    with pytest.raises(InputError, match=r"elements: lie outside of the square of 1 m"):
        patch_halves("grass", grass(), 1.0, GROUND)
    with pytest.raises(InputError, match="ground: expected one triangle"):
        patch_halves("grass", grass(), SIDE_M, GROUND[:0])
    corner_z, which, turn = hills()
    with pytest.raises(InputError, match=r"corner_z_m: expected \(6, 7\) heights for \(5, 6\) squares"):
        lay_patches(corner_z[1:], (0, 0), SIDE_M, which, turn)
