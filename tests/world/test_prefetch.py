# SPDX-License-Identifier: Apache-2.0
"""Tiles of coming sweeps are read in the background: sooner, within the same memory, and with the same answers."""

import subprocess
import sys
import threading
import time
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
from small_worlds import gaussians, rays, triangles, world

import hedgerow as hr
from hedgerow import FileError, InputError
from hedgerow.world import load_world
from hedgerow.world import tiled as tiled_module
from hedgerow.world.prefetch import Foresees, Prefetch
from hedgerow.world.tile_parts import TileParts
from hedgerow.world.tiled import TiledWorld

THREAD = "hedgerow-prefetch"
REACH_M = 20.0
WAY = hr.Trajectory.line((-150, 3, 1), (150, 3, 1), 150.0)
"""15 m, half a tile, for each sweep of a tenth of a second."""
SENSOR = hr.Sensor.named("vlp-16").with_range(max_m=REACH_M)


@pytest.fixture
def site(tmp_path):
    """A world of 13 x 4 tiles, as it is in memory and on the disk."""
    rng = np.random.default_rng(5)
    table = gaussians(6000, extent=60.0)
    table.mean_m[:, 0] = rng.uniform(-200, 200, 6000)
    made = world(table, triangles(300, extent=60.0), max_range_m=REACH_M)
    made.save(tmp_path / "site.world")
    return made, tmp_path / "site.world"


def until(settled, limit_s=30.0):
    """Wait for what another thread does; only a failure takes long."""
    end_s = time.monotonic() + limit_s
    while not settled():
        assert time.monotonic() < end_s
        time.sleep(0.002)


def idle(tiled):
    return not tiled._ahead._works


# what is the same


@pytest.mark.parametrize("resident", [14, 24, 400])
def test_a_drive_has_the_same_bytes_in_memory_and_paged_with_and_without_prefetch(site, resident):
    whole, path = site
    worlds = [whole, *(TiledWorld(path, resident_tiles=resident, prefetch=ahead) for ahead in (False, True))]
    drives = [hr.simulate(each, SENSOR, WAY, seed=2) for each in worlds]
    n_hits = 0
    for number in range(len(drives[0])):
        expected, *others = (drive.sweep(number) for drive in drives)
        n_hits += int(expected.returns.hit.sum())
        for found in others:
            for name in ("range_m", "intensity", "label", "element"):
                assert getattr(found.returns, name).tobytes() == getattr(expected.returns, name).tobytes()
    assert n_hits > 1000


def test_sweeps_fired_together_are_read_ahead_too_and_answer_alike(site, monkeypatch):
    whole, path = site
    by = record_threads(monkeypatch)
    beams = rays(9000, sweeps=9, origin=(-120.0, 0.0, 1.0), step=(30.0, 0.0, 0.0))
    assert load_world(path, resident_tiles=24).fire(beams, seed=3).equal(whole.fire(beams, seed=3))
    assert any(name.startswith(THREAD) for name in by)


def test_worlds_in_memory_are_not_told(site):
    whole, path = site
    assert isinstance(load_world(path, resident_tiles=9), Foresees)
    assert not isinstance(whole, Foresees)


def test_the_box_that_is_found_quickly_holds_the_exact_one():
    beams = rays(500, sweeps=5, origin=(3.0, -2.0, 1.0), step=(4.0, 1.0, 0.0))
    narrow = beams[(beams.direction[:, 0] > 0.5) & (beams.direction[:, 1] > 0)]
    for some in (beams, narrow, narrow[:1]):
        (low, high), (wide_low, wide_high) = tiled_module._box(some, 30.0), tiled_module._wide_box(some, 30.0)
        assert (wide_low <= low + 1e-9).all() and (high - 1e-9 <= wide_high).all()
        apart = np.ptp(some.origin_m, axis=0)
        assert (low - wide_low <= apart + 1e-5).all() and (wide_high - high <= apart + 1e-5).all()


def test_a_sweep_beyond_the_trajectory_is_refused_when_it_is_fired_and_not_before(site):
    tiled = load_world(site[1], resident_tiles=400)
    start_ns = np.array([0, WAY.end_ns + 1_000_000_000])
    simulation = hr.Simulation(tiled, SENSOR, WAY, start_ns)
    assert len(simulation.sweep(0)) > 0
    with pytest.raises(InputError, match="does not lie on the trajectory"):
        simulation.sweep(1)


def test_a_mount_is_part_of_where_beams_come_from(site, monkeypatch):
    told = []
    monkeypatch.setattr(TiledWorld, "expect", lambda self, origin_m, reach_m: told.append((origin_m, reach_m)))
    mount = hr.Pose.from_xyz_rpy((0, 2, 0.5))
    simulation = hr.simulate(load_world(site[1], resident_tiles=400), SENSOR, WAY, mount=mount)
    simulation.sweep(3)
    origin_m, reach_m = told[0]
    assert len(origin_m) == len(simulation) - 3 and reach_m == REACH_M
    np.testing.assert_allclose(origin_m[:2], [[-105, 5, 1.5], [-90, 5, 1.5]], atol=1e-6)


# memory


def test_no_more_tiles_live_than_allowed_those_read_ahead_included(site, monkeypatch):
    _, path = site
    alive, most = WeakSet(), []
    make = TileParts.make

    def counted(self, row):
        part = make(self, row)
        alive.add(part.target)
        most.append(len(alive))
        return part

    monkeypatch.setattr(TileParts, "make", counted)
    tiled = load_world(path, resident_tiles=14)
    for _ in hr.simulate(tiled, SENSOR, WAY, seed=2):
        assert tiled.memory <= 14
    assert len(most) > 25  # tiles came and went
    assert max(most) <= 14


def test_bytes_stay_within_the_budget_while_reading_ahead(site):
    _, path = site
    tiled = load_world(path, max_bytes=400_000)
    held = []
    for _ in hr.simulate(tiled, SENSOR, WAY, seed=2):
        until(lambda: idle(tiled))
        held.append(tiled.memory)
    assert max(held) <= 400_000
    assert max(held) > 200_000  # and it is used


# that it helps


def record_threads(monkeypatch):
    """Note the name of the thread that makes each tile."""
    by = []
    make = TileParts.make

    def noted(self, row):
        by.append(threading.current_thread().name)
        return make(self, row)

    monkeypatch.setattr(TileParts, "make", noted)
    return by


def test_given_time_all_tiles_but_those_of_the_first_sweep_are_read_in_the_background(site, monkeypatch):
    _, path = site
    by = record_threads(monkeypatch)
    tiled = load_world(path, resident_tiles=20)
    slow = hr.Trajectory.line((-150, 3, 1), (50, 3, 1), 50.0)  # 5 m for each sweep
    simulation = hr.simulate(tiled, SENSOR, slow, seed=2)
    simulation.sweep(0)
    until(lambda: idle(tiled))
    n_first = len(by)
    for number in range(1, len(simulation)):
        simulation.sweep(number)
        until(lambda: idle(tiled))
    assert len(by) - n_first > 4
    assert all(name.startswith(THREAD) for name in by[n_first:])
    assert len(by) <= len(tiled._tiles)  # none is read twice on a straight way


def test_tiles_are_expected_in_the_order_in_which_they_come_into_reach(site):
    _, path = site
    tiled = load_world(path, resident_tiles=400)
    places = np.array([[-150.0, 0, 1], [-50.0, 0, 1], [50.0, 0, 1]])
    coming = tiled._coming(places, REACH_M)
    near = [
        [(tiled._tiles.low_m[row] - 21 <= place) & (place <= tiled._tiles.high_m[row] + 21) for place in places]
        for row in coming
    ]
    soonest = [next(k for k, inside in enumerate(each) if inside.all()) for each in near]
    assert soonest == sorted(soonest)
    assert set(soonest) == {0, 1, 2}


def test_nothing_is_read_ahead_if_not_even_one_sweep_fits_or_there_is_no_reach(site, monkeypatch):
    _, path = site
    by = record_threads(monkeypatch)
    load_world(path, resident_tiles=3).expect([[0.0, 0.0, 1.0]], REACH_M)
    tiled = load_world(path, resident_tiles=300)
    tiled.expect([[0.0, 0.0, 1.0]], np.inf)
    tiled.expect(np.zeros((0, 3)), REACH_M)
    TiledWorld(path, resident_tiles=300, prefetch=False).expect([[0.0, 0.0, 1.0]], REACH_M)
    assert tiled.memory == 0 and by == []
    with pytest.raises(InputError, match="origin_m"):
        tiled.expect([1.0, 2.0], REACH_M)
    far: Any = "far"
    with pytest.raises(InputError, match="reach_m"):
        tiled.expect([[0.0, 0.0, 1.0]], far)


# faults and ends


def test_a_tile_damaged_in_the_background_is_refused_when_beams_need_it_and_not_before(site):
    whole, path = site
    tiled = load_world(path, resident_tiles=400)
    bad = next(iter((path / "gaussians").glob("2_0.parquet")))
    bad.write_bytes(b"")
    tiled.expect([[80.0, 10.0, 1.0]], REACH_M)
    until(lambda: idle(tiled))
    far = rays(500, origin=(-120.0, 0.0, 1.0))
    assert tiled.fire(far, seed=1).equal(whole.fire(far, seed=1))
    for _ in range(2):
        with pytest.raises(FileError, match=r"2_0\.parquet: damaged, or changed since"):
            tiled.fire(rays(500, origin=(80.0, 10.0, 1.0)))


def test_the_end_of_the_program_waits_for_one_tile_at_most(site):
    _, path = site
    code = (
        "import sys, time\n"
        "from hedgerow.world import load_world\n"
        "from hedgerow.world.tile_parts import TileParts\n"
        "make = TileParts.make\n"
        "TileParts.make = lambda self, row: (time.sleep(1), make(self, row))[1]\n"
        "world = load_world(sys.argv[1], resident_tiles=400)\n"
        "world.expect([[0.0, 0.0, 1.0]], 200.0)\n"
        "time.sleep(0.2)\n"
        "print(world.memory, flush=True)\n"
        "print(time.time())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60, check=True)
    n, ended_s = done.stdout.split()
    assert int(n) > 20  # each takes a second
    assert time.time() - float(ended_s) < 10
    assert done.stderr == ""


def test_the_thread_ends_with_the_world(site):
    before = set(threading.enumerate())

    def threads():
        return [each for each in threading.enumerate() if each.name.startswith(THREAD) and each not in before]

    tiled = load_world(site[1], resident_tiles=400)
    tiled.expect([[0.0, 0.0, 1.0]], 200.0)
    assert len(threads()) == 1
    del tiled
    until(lambda: not threads())


# the queue


def test_parts_are_made_in_order_and_given_away_once():
    made = []
    prefetch = Prefetch[int](lambda row: made.append(row) or row * 10)
    prefetch.want([3, 1, 2])
    until(lambda: not prefetch._works)
    assert made == [3, 1, 2] == prefetch.rows
    assert [prefetch.take(row) for row in (1, 1, 3)] == [10, None, 30]
    assert prefetch.rows == [2]
    prefetch.drop(2)
    assert prefetch.rows == []


def test_a_part_that_is_being_made_is_waited_for_and_a_queued_one_is_left_to_the_caller():
    begun, go_on = threading.Event(), threading.Event()

    def make(row):
        begun.set()
        go_on.wait(30)
        return row

    prefetch = Prefetch[int](make)
    prefetch.want([7, 8, 9])
    assert begun.wait(30)
    assert prefetch.take(8) is None
    prefetch.want([])  # neither is 9 wanted any more
    threading.Timer(0.05, go_on.set).start()
    assert prefetch.take(7) == 7
    assert prefetch.rows == []


def test_what_fails_is_tried_once_and_left_to_the_caller():
    tried = []

    def make(row):
        tried.append(row)
        raise MemoryError if row == 1 else FileError("bad")

    prefetch = Prefetch[int](make)
    for _ in range(3):
        prefetch.want([1, 2])
        until(lambda: not prefetch._works)
    assert tried == [1, 2]
    assert prefetch.rows == []
    assert prefetch.take(1) is None
