# SPDX-License-Identifier: Apache-2.0
"""What must not change a learned surface: tiles, partitions, threads, memory, thinning, duplicates, far-away places."""

from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from surface_clouds import assert_same, hills, in_order, learn, plain_columns, seen

from hedgerow import Log, Scene
from hedgerow.models.steps import thinning
from hedgerow.models.surface import SurfaceParameters, fit_surface


def test_tiles_give_the_bytes_of_one_piece():
    beside = {"intensities": np.linspace(0, 1, 40_000), "labels": np.arange(40_000) % 5}
    log = seen(hills(np.random.default_rng(5)), (0, 0, 5), noise_m=0.02, **beside)
    whole = learn(log, tile_m=np.inf)
    for tile_m in (3.1, 6.0):
        assert_same(learn(log, tile_m=tile_m), whole)


def test_partitions_and_their_order_do_not_change_the_surface():
    log = seen(hills(np.random.default_rng(6), n=20_000), (0, 0, 5), noise_m=0.02, labels=np.arange(20_000) % 5)
    cut = [log[i::7] for i in range(7)]
    assert_same(fit_surface(lambda: reversed(cut)), learn(log))


def test_surface_does_not_depend_on_the_number_of_threads():
    log = seen(hills(np.random.default_rng(7)), (0, 0, 5), noise_m=0.02, labels=np.arange(40_000) % 5)
    one = learn(log, threads=1)
    assert one.label.mixed().mean() > 0.9
    for threads in (2, 8):
        other = learn(log, threads=threads)
        for name, column in plain_columns(one).items():
            assert_array_equal(plain_columns(other)[name], column)


def test_small_memory_goes_through_files_and_leaves_none(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(thinning, "_POINTS_AT_ONCE", 5000)
    log = seen(hills(np.random.default_rng(8), n=20_000), (0, 0, 5))
    cut = [log[i::8] for i in range(8)]
    spilled: list[int] = []
    spill = thinning.ThinnedPointStore._spill

    def watched(store):
        spill(store)
        spilled.append(len(list(Path(tmp_path).glob("*/*.points"))))

    monkeypatch.setattr(thinning.ThinnedPointStore, "_spill", watched)
    small = fit_surface(lambda: cut, SurfaceParameters(budget_mb=0.5, tile_m=4))
    assert max(spilled) > 4
    assert list(tmp_path.iterdir()) == []
    assert_same(small, fit_surface(lambda: cut, SurfaceParameters(tile_m=4)))


def test_thinning_does_not_move_the_surface():
    points = hills(np.random.default_rng(9), n=80_000, size=3.0)
    log = seen(points, (0, 0, 5), noise_m=0.015)
    scenes = Scene(), Scene()
    learn(log).add_to(scenes[0])
    learn(log, voxel_m=0.005).add_to(scenes[1])  # nearly every point on its own
    thin, fine = (scene.fire(log.beams[::20]).range_m for scene in scenes)
    both = np.isfinite(thin) & np.isfinite(fine)
    assert both.mean() > 0.999
    assert np.abs(thin - fine)[both].mean() < 0.001  # a fifteenth of the noise of a single point
    assert np.quantile(np.abs(thin - fine)[both], 0.99) < 0.005


def test_duplicate_points_change_nothing():
    log = seen(hills(np.random.default_rng(10), n=5000, size=3.0), (0, 0, 5))
    once, often = learn(log), learn(Log.concatenate([log] * 9))
    assert len(often) == len(once)
    assert_allclose(in_order(often)["corners_m"], in_order(once)["corners_m"], atol=1e-5)  # weights of 9 round anew


def test_utm_coordinates_cost_no_precision():
    points = hills(np.random.default_rng(11), n=30_000, size=4.0)
    offset = np.array([468_000.0, 5_460_000.0, 300.0])  # whole nodes and voxels
    here = seen(points, (0, 0, 5))
    there = Log.from_arrays(
        origins=np.add(offset, (0, 0, 5)), directions=here.beams.direction, ranges=here.returns.range_m
    )
    near, far = learn(here), learn(there)
    scenes = Scene(), Scene(offset)
    near.add_to(scenes[0])
    far.add_to(scenes[1])
    apart = scenes[0].fire(here.beams).range_m - scenes[1].fire(there.beams).range_m
    # Float64 steps by 1e-9 m there, so a point in a thousand changes its voxel; the surface moves by micrometres.
    assert np.nanmax(np.abs(apart[np.isfinite(apart)])) < 2e-3
    assert np.isfinite(apart).mean() > 0.999
    assert abs(len(near) - len(far)) <= len(near) // 200
