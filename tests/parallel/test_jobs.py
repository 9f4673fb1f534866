# SPDX-License-Identifier: Apache-2.0
"""Verbs on workers: recordings and comparisons have the same bytes as in one process, and stopped ones go on."""

import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.drives import Drive, cut_drive, record_in_parts, stamp_of
from hedgerow.metrics import compare
from hedgerow.metrics.in_parts import compare_in_parts
from hedgerow.parallel import InProcess, Results, log_parts

pytest.importorskip("distributed")
from hedgerow.parallel.dask_engine import Workers

DRIVE = Drive("shrub", sensor="vlp-16", sweeps=5, seed=4)


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of two sweeps of a vlp-16, here; workers are given theirs."""
    monkeypatch.setattr(log_parts, "BEAMS_PER_PART", 60_000)


@pytest.fixture(scope="module")
def simulation():
    return DRIVE.open()[0]


def test_a_recording_has_the_same_bytes_whoever_fires_it(tmp_path, small_parts, simulation):
    assert [len(part) for part in cut_drive(DRIVE, len(simulation))] == [2, 2, 1]
    wrote = record_in_parts(DRIVE, tmp_path / "here", InProcess(Results(tmp_path / "a")), n_sweeps=len(simulation))
    with Workers(2, tmp_path / "b") as engine:
        record_in_parts(DRIVE, tmp_path / "there", engine, n_sweeps=len(simulation))
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert sorted(files(tmp_path / "here")) == [f"part-0000{k}.parquet" for k in range(3)]
    log = hr.read_log(tmp_path / "there")
    assert (len(log), log.sweeps.tolist()) == (wrote.n_beams, [0, 1, 2, 3, 4])
    alone = hr.Log.concatenate(list(simulation))
    assert (alone.returns.range_m == log.returns.range_m).all()


def test_a_recording_that_was_stopped_goes_on(tmp_path, small_parts, simulation, monkeypatch):
    results = Results(tmp_path / "parts")
    monkeypatch.setattr("hedgerow.parallel.engine._WORTH_KEEPING_S", 0.0)
    fired = []

    def stop_in_the_third(done):
        fired.append(done)
        if len(fired) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_in_parts(
            DRIVE, tmp_path / "log", InProcess(results), n_sweeps=len(simulation), progress=stop_in_the_third
        )
    assert not (tmp_path / "log").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in results.folder.glob("log-*")}
    assert len(kept) == 2
    record_in_parts(DRIVE, tmp_path / "log", InProcess(results), n_sweeps=len(simulation))
    assert len(files(tmp_path / "log")) == 3
    assert {name: (results.folder / name).stat().st_mtime_ns for name in kept} == kept  # not fired again


def test_a_comparison_has_the_same_numbers_on_workers(tmp_path, small_parts, simulation):
    real = tmp_path / "real.parquet"
    hr.write_log(hr.Log.concatenate(list(simulation)), real)
    world = tmp_path / "site.world"
    hr.learn(real, "voxel").save(world)
    again = tmp_path / "again.parquet"
    hr.write_log(hr.replay(hr.load_world(world), hr.read_log(real), seed=3), again)
    here = compare(hr.open_log(real), {"site": hr.load_world(world), "again": hr.open_log(again)}, seed=1, floors=True)
    with Workers(2, tmp_path / "parts") as engine:
        there = compare_in_parts(real, {"site": world, "again": again}, engine, seed=1, floors=True)
    assert there.to_json() == here.to_json()


def test_options_of_workers_that_do_not_go_together_are_refused(tmp_path):
    assert_refused(
        run("fire", "shrub", "-o", "x.parquet", "--workers", "2", cwd=tmp_path), "workers", "folder of Parquet"
    )
    assert_refused(run("fire", "shrub", "-o", "x", "--worker-memory", "2G", cwd=tmp_path), "worker-memory", "only with")
    both = ("fire", "shrub", "-o", "x", "--workers", "2", "--scheduler", "tcp://127.0.0.1:9")
    assert_refused(run(*both, cwd=tmp_path), "scheduler", "leave --workers out")
    assert_refused(run("fire", "shrub", "-o", "x", "--memory", "lots", cwd=tmp_path), "memory", "such as 500M or 2G")
    assert_refused(run("fire", "shrub", "-o", "x", "--memory", "2G", cwd=tmp_path), "memory", "only for learned worlds")
    assert not list(tmp_path.iterdir())


def test_a_file_that_changed_since_has_another_stamp(tmp_path):
    scene, way = tmp_path / "own.toml", tmp_path / "way.tum"
    for path in (scene, way):
        path.write_text("a")
    before = stamp_of(scene, "vlp-16", way, None)
    assert stamp_of(scene, "vlp-16", way, None) == before
    way.write_text("longer")
    assert stamp_of(scene, "vlp-16", way, None) != before
