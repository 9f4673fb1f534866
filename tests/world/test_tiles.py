# SPDX-License-Identifier: Apache-2.0
"""Tiles page in and out around the beams, and the answers are those of the whole world."""

import numpy as np
import pytest
from small_worlds import gaussians, mixtures, modes, points, rays, triangles, world

from hedgerow import FileError, InputError, _core
from hedgerow.world import Gaussians, Scene, Triangles, World, load_world
from hedgerow.world.store.tiles import in_tile_order, list_tiles, tile_of


def saved(path, *tables, **settings):
    made = world(*tables, **settings)
    made.save(path / "site.world")
    return made, path / "site.world"


def drive(n=6000, sweeps=6, **more):
    """A sensor that crosses several tiles."""
    return rays(n, sweeps=sweeps, origin=(-60.0, -20.0, 1.0), step=(24.0, 8.0, 0.0), **more)


def scattered(extent=90.0, permeable=True):
    same = {"extent": extent, "permeable": permeable}
    return triangles(500, label=mixtures(500), **same), gaussians(900, label=mixtures(900), **same)


# the list of tiles


def test_tiles_hold_the_elements_whose_centres_they_contain():
    centre = np.array([[0.0, 0.0, 9.0], [31.9, -0.1, 0.0], [32.0, 64.5, 0.0], [-32.0, -32.1, 0.0]])
    np.testing.assert_array_equal(tile_of(centre, 32.0), [[0, 0], [0, -1], [1, 2], [-1, -2]])


def test_tile_order_is_by_x_then_y_and_keeps_the_order_inside():
    table = gaussians(500, extent=80.0)
    ordered = in_tile_order(table, 32.0)
    assert isinstance(ordered, Gaussians)
    keys = np.c_[tile_of(ordered.mean_m, 32.0), [np.flatnonzero((table.mean_m == m).all(1))[0] for m in ordered.mean_m]]
    assert keys.tolist() == sorted(keys.tolist())
    assert in_tile_order(ordered, 32.0) is ordered


def test_boxes_of_tiles_hold_all_that_rays_can_meet():
    tables = {"triangles": triangles(300), "gaussians": gaussians(300), "points": points(300, reach_m=0.2)}
    tables = {name: in_tile_order(table, 32.0) for name, table in tables.items()}
    tiles = list_tiles(tables, 32.0)
    assert tiles.n.sum() == 900
    np.testing.assert_array_equal(tiles.first, np.cumsum(tiles.n) - tiles.n)
    table = tables["gaussians"]
    assert isinstance(table, Gaussians)
    for row in np.flatnonzero(tiles.table == 1).tolist():
        start = int(tiles.first[row]) - 300
        for element in range(start, start + int(tiles.n[row])):
            # Extent of an ellipsoid along an axis: tau times the square root of that variance.
            half = table.tau * np.sqrt(np.diag(table.covariance_m2[element]))
            assert (table.mean_m[element] - half >= tiles.low_m[row]).all()
            assert (table.mean_m[element] + half <= tiles.high_m[row]).all()
    faces = tables["triangles"]
    assert isinstance(faces, Triangles)
    assert faces.corners_m.min() >= tiles.low_m[tiles.table == 0].min()


# the same answers


@pytest.mark.parametrize("permeable", [False, True])
@pytest.mark.parametrize("resident", [12, 40, 500])
def test_worlds_answer_byte_for_byte_whatever_is_in_memory(tmp_path, resident, permeable):
    whole, path = saved(tmp_path, *scattered(permeable=permeable))
    tiled = load_world(path, resident_tiles=resident)
    beams = drive()
    expected, found = whole.fire(beams, seed=3), tiled.fire(beams, seed=3)
    assert expected.returns.hit.mean() > 0.3
    for name in ("range_m", "intensity", "label", "element"):
        assert getattr(found.returns, name).tobytes() == getattr(expected.returns, name).tobytes()
    assert found.equal(expected)
    assert len(tiled.loaded_tiles) <= resident
    assert isinstance(tiled, World)


@pytest.mark.parametrize("pick", ["nearest", "first"])
@pytest.mark.parametrize("resident", [6, 500])
def test_points_answer_byte_for_byte_whatever_is_in_memory(tmp_path, pick, resident):
    whole, path = saved(tmp_path, points(20_000, extent=90.0, reach_m=0.2, pick=pick), max_range_m=30.0)
    expected = whole.fire(drive(), seed=3)
    assert expected.returns.hit.mean() > 0.2
    assert load_world(path, resident_tiles=resident).fire(drive(), seed=3).equal(expected)


def test_mixed_worlds_answer_alike(tmp_path):
    whole, path = saved(tmp_path, *scattered(), points(20_000, extent=90.0, reach_m=0.02), max_range_m=30.0)
    expected = whole.fire(drive(), seed=3)
    assert load_world(path, resident_tiles=30).fire(drive(), seed=3).equal(expected)


@pytest.mark.parametrize("resident", [12, 500])
def test_likelihood_is_that_of_the_whole_world(tmp_path, resident):
    whole, path = saved(tmp_path, triangles(400, extent=90.0), gaussians(800, extent=90.0))
    log = whole.fire(drive(2000), seed=1)
    tiled = load_world(path, resident_tiles=resident)
    # Nothing is random here; only the order in which equal densities are summed could differ, and it does not.
    np.testing.assert_array_equal(tiled.log_likelihood(log), whole.log_likelihood(log))
    beam, ranges = log.beams[7:8], np.linspace(1, 50, 99)
    mine, theirs = tiled.pdf(beam, ranges), whole.pdf(beam, ranges)
    np.testing.assert_array_equal(mine.density_per_m, theirs.density_per_m)
    assert mine.no_return == theirs.no_return


def test_element_numbers_are_those_of_the_whole_world(tmp_path):
    whole, path = saved(tmp_path, triangles(400, extent=90.0), gaussians(800, extent=90.0))
    log = load_world(path, resident_tiles=12).fire(drive(), seed=3)
    label = modes(*whole.tables.values())
    hit = log.returns.hit
    assert log.returns.element is not None and log.returns.label is not None
    np.testing.assert_array_equal(label[log.returns.element[hit]], log.returns.label[hit])
    tiled_centre = np.concatenate([table.centre_m() for table in whole.tables.values()])[log.returns.element[hit]]
    assert np.linalg.norm(tiled_centre - log.points(), axis=1).max() < 12  # of something that close by


def test_beams_in_any_order_and_without_a_maximal_range(tmp_path):
    whole, path = saved(tmp_path, *scattered(), max_range_m=np.inf)
    beams = drive()[np.random.default_rng(0).permutation(6000)]
    assert load_world(path, resident_tiles=500).fire(beams, seed=3).equal(whole.fire(beams, seed=3))


def test_empty_world_and_no_beams(tmp_path):
    whole, path = saved(tmp_path)
    tiled = load_world(path, resident_tiles=1)
    assert tiled.fire(drive(), seed=3).equal(whole.fire(drive(), seed=3))
    assert len(tiled.fire(drive()[:0])) == 0
    assert tiled.size() == whole.size()
    assert tiled.pdf(rays(1), [1.0]).no_return == 1


# memory


def test_no_more_tiles_are_held_than_allowed(tmp_path):
    whole, path = saved(tmp_path, *scattered(extent=200.0), max_range_m=20.0)
    tiled = load_world(path, resident_tiles=12)
    held = []
    for sweep in range(6):
        beams = drive().select(sweep=sweep)
        assert tiled.fire(beams, seed=3).equal(whole.fire(beams, seed=3))
        held.append(tiled.loaded_tiles)
    assert all(0 < len(rows) <= 12 for rows in held)
    assert set(held[0]) != set(held[-1])  # the first ones have gone


def test_memory_of_the_engine_stays_below_that_of_the_whole_world(tmp_path):
    whole, path = saved(tmp_path, gaussians(3000, extent=300.0), max_range_m=20.0)
    before = _core.embree_bytes()
    tiled = load_world(path, max_bytes=60_000)  # 333 Gaussians of 180 bytes
    beams = drive(2000)
    tiled.fire(beams)
    some = _core.embree_bytes() - before
    whole.fire(beams)
    everything = _core.embree_bytes() - before - some
    assert 0 < some < everything / 2
    del tiled
    assert _core.embree_bytes() - before == everything


def test_a_beam_that_needs_too_much_is_refused(tmp_path):
    _, path = saved(tmp_path, *scattered())
    with pytest.raises(InputError, match=r"a single beam needs \d+ tiles, but only 1 may be in memory; allow more"):
        load_world(path, resident_tiles=1).fire(drive())
    with pytest.raises(InputError, match=r"a single beam needs \d+ bytes, but only 100 may be"):
        load_world(path, max_bytes=100).fire(drive())


def test_a_tile_that_is_damaged_later_is_refused_when_it_is_needed(tmp_path):
    _, path = saved(tmp_path, *scattered())
    tiled = load_world(path, resident_tiles=500)
    for file in (path / "gaussians").iterdir():
        file.write_bytes(b"")
    with pytest.raises(FileError, match=r"gaussians.*damaged, or changed since"):
        tiled.fire(drive())


def test_progress_counts_all_beams(tmp_path):
    _, path = saved(tmp_path, *scattered())
    seen = []
    load_world(path, resident_tiles=12).fire(drive(), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 6000


# given numbers


def test_a_scene_placed_under_given_numbers_throws_the_coins_of_those_numbers():
    table = gaussians(60, extent=20.0)
    whole, part, alone = Scene(), Scene(), Scene()
    table.add_to(whole)
    table[40:].add_to(part)
    alone.place(part, np.eye(4), first_element=40)
    beams = rays(20_000)
    late, found = whole.fire(beams, seed=1), alone.fire(beams, seed=1)
    stopped = late.element >= 40
    assert stopped.sum() > 100
    np.testing.assert_array_equal(found.element[stopped], late.element[stopped])
    np.testing.assert_array_equal(found.range_m[stopped], late.range_m[stopped])
    assert found.element.max() < 60 == alone.n_elements
    hits, passes = alone.count(beams, found.range_m, max_range_m=50.0)
    assert len(hits) == len(passes) == 60
    assert not hits[:40].any()


def test_given_numbers_that_cannot_be_are_refused():
    scene, part = Scene(), Scene()
    gaussians(5).add_to(scene)
    gaussians(3).add_to(part)
    with pytest.raises(InputError, match="first_element: expected 0 or more and one transform"):
        scene.place(part, [np.eye(4), np.eye(4)], first_element=9)
    with pytest.raises(InputError, match="first_element: expected 0 or more"):
        scene.place(part, np.eye(4), first_element=-3)
    scene.place(part, np.eye(4), first_element=4)
    with pytest.raises(ValueError, match="first_element: is the number of another element"):
        scene.build()
    outer, inner = Scene(), Scene()
    inner.place(part, np.eye(4), first_element=7)
    with pytest.raises(ValueError, match="has given numbers, which placing would change"):
        outer.place(inner, np.eye(4))
