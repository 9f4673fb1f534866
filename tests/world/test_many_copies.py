# SPDX-License-Identifier: Apache-2.0
"""Worlds of very many copies: written tile by tile, not unfolded, and paged with the assets counted once."""

import numpy as np
import pytest
from small_worlds import gaussians, rays, world

from hedgerow import InputError, load_world
from hedgerow.world import scene as scene_module
from hedgerow.world import tiled as tiled_module
from hedgerow.world.assets import Asset, instances_of
from hedgerow.world.store.files import WorldFile, save_tiles

N_COPIES, N_EACH = 400, 30
REACH_M = 30.0


def site():
    """Copies of two bushes of Gaussians alone, over 8 x 8 tiles."""
    rng = np.random.default_rng(1)
    assets = [Asset(f"bush-{k}", (gaussians(N_EACH, seed=k, extent=1.5),)) for k in range(2)]
    matrices = np.tile(np.eye(4), (N_COPIES, 1, 1))
    matrices[:, :2, 3] = rng.uniform(-128, 128, (N_COPIES, 2))
    which = np.sort(np.arange(N_COPIES) % 2)
    copies = instances_of(assets, which, matrices, object=1 + np.arange(N_COPIES))
    return world(copies, assets=assets, max_range_m=REACH_M)


@pytest.fixture
def path(tmp_path):
    site().save(tmp_path / "site.world")
    return tmp_path / "site.world"


def drive():
    return rays(9000, sweeps=9, origin=(-100.0, 0.0, 1.0), step=(25.0, 0.0, 0.0))


def test_a_world_of_too_many_copies_to_unfold_answers_paged_as_in_memory(path, monkeypatch):
    """What is in memory would be few enough to unfold; the whole world is not, and that decides."""
    unfolded = load_world(path).fire(drive(), 3)
    monkeypatch.setattr(scene_module, "MOST_UNFOLDED", N_COPIES * N_EACH // 2)
    whole = load_world(path).fire(drive(), 3)
    paged = load_world(path, resident_tiles=14)
    assert whole.returns.hit.sum() > 500
    assert paged.fire(drive(), 3).equal(whole)
    assert len(paged.loaded_tiles) <= 14
    # As one search tree and as instances they answer alike, up to rounding and coins on the edge: not by bytes.
    one, other = unfolded.returns.first_m, whole.returns.first_m
    assert not np.array_equal(one, other)
    assert np.isclose(one, other, atol=1e-3).mean() > 0.999


def test_copies_that_are_not_unfolded_build_no_tree_over_their_elements(monkeypatch):
    from hedgerow import _core

    taken = []
    for most in (N_COPIES * N_EACH, 0):
        monkeypatch.setattr(scene_module, "MOST_UNFOLDED", most)
        made = site()
        before = _core.embree_bytes()
        made.fire(drive(), 3)
        taken.append(_core.embree_bytes() - before)
    assert taken[1] < taken[0] - 30 * N_COPIES * N_EACH


@pytest.fixture
def many(path, monkeypatch):
    monkeypatch.setattr(scene_module, "MOST_UNFOLDED", 100)
    return path


def test_small_assets_stay_in_memory_and_are_counted_once(many, monkeypatch):
    read = []
    read_asset = WorldFile.read_asset
    monkeypatch.setattr(WorldFile, "read_asset", lambda self, number: read.append(number) or read_asset(self, number))
    assets_bytes = 2 * N_EACH * tiled_module._BYTES_EACH["gaussians"]
    max_bytes = assets_bytes + 90 * tiled_module._BYTES_COPY
    tiled = load_world(many, max_bytes=max_bytes)
    held = []
    for sweep in range(9):
        tiled.fire(drive().select(sweep=sweep), 3)
        held.append(tiled.memory)
    assert sorted(read) == [0, 1]  # each once, though tiles came and went
    assert len(tiled.loaded_tiles) < len(tiled._tiles)
    assert max(held) <= max_bytes
    copies = tiled._tiles.n[tiled.loaded_tiles].sum()
    ahead = [row for row in tiled._rows_ahead() if row not in tiled.loaded_tiles]
    copies += tiled._tiles.n[ahead].sum()
    assert tiled.memory == assets_bytes + copies * tiled_module._BYTES_COPY


def test_large_assets_count_with_every_tile_that_may_have_copies_of_them(many):
    tiled = load_world(many, max_bytes=3 * 2 * N_EACH * tiled_module._BYTES_EACH["gaussians"])
    assert tiled._assets_bytes == 0
    n, stored = tiled._tiles.n, np.minimum(tiled._tiles.elements, 2 * N_EACH)
    expected = n * tiled_module._BYTES_COPY + stored * tiled_module._BYTES_EACH["triangles"]
    np.testing.assert_array_equal(tiled._cost, expected)
    with pytest.raises(InputError, match=r"a single beam needs \d+ bytes, but only \d+ may be in memory"):
        load_world(many, max_bytes=1000).fire(drive())


# written tile by tile


def tiles_of(made):
    table = made.tables["instances"]
    tile = np.floor(table.centre_m()[:, :2] / made.header.tile_m)
    for here in np.unique(tile, axis=0):
        yield table[(tile == here).all(axis=1)]


def test_a_world_written_tile_by_tile_is_the_world(tmp_path):
    made = site()
    size = save_tiles(tmp_path / "tiles.world", made.header, tiles_of(made), made.assets)
    assert size == made.size() == load_world(tmp_path / "tiles.world").size()
    expected, found = (each.fire(drive(), 3).returns for each in (made, load_world(tmp_path / "tiles.world")))
    np.testing.assert_array_equal(found.range_m, expected.range_m)
    np.testing.assert_array_equal(found.object, expected.object)


def test_copies_of_assets_that_are_not_given_are_refused(tmp_path):
    made = site()
    with pytest.raises(InputError, match=r"instances\.asset: row \d+ is 1, but there are 1 assets"):
        save_tiles(tmp_path / "x.world", made.header, tiles_of(made), made.assets[:1])
    assert list(tmp_path.iterdir()) == []
