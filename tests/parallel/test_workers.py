# SPDX-License-Identifier: Apache-2.0
"""Parts on Dask workers: the same bytes as in one process, what is finished is kept, and what goes wrong is said."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.parallel import log_parts
from hedgerow.parallel.engine import InProcess, using
from hedgerow.parallel.log_parts import cut_log
from hedgerow.parallel.results import Results

pytest.importorskip("distributed")
from hedgerow.parallel.dask_engine import Workers


@dataclass(frozen=True)
class Square:
    """Squares a number, and leaves a file for every time that it was asked to."""

    folder: str

    def __call__(self, number):
        (Path(self.folder) / f"{number}-{time.time_ns()}").touch()
        return np.array([number**2])


@dataclass(frozen=True)
class DieOnce:
    """Kills its own process in the middle of one part, the first time."""

    folder: str

    def __call__(self, number):
        marker = Path(self.folder) / "died"
        if number == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number


@dataclass(frozen=True)
class Always:
    """Does with one part what it is told, every time."""

    what: str

    def __call__(self, number):
        if number == 1 and self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 1 and self.what == "input":
            raise InputError("number", "is one")
        if number == 1 and self.what == "file":
            raise FileError("drive.parquet: cannot be read")
        return number


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    with Workers(2, tmp_path_factory.mktemp("parts")) as engine:
        yield engine


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    """A log of eight sweeps among posts, of two returns, with labels and intensities that no float can sum exactly."""
    rng = np.random.default_rng(3)
    n = 24_000
    direction = np.c_[rng.normal(size=(n, 2)), rng.normal(0, 0.15, n)]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    first = np.where(rng.random(n) < 0.2, np.inf, rng.choice([4.0, 6.0, 9.0], n) + rng.normal(0, 0.1, n))
    sweep = np.arange(n) // 3000
    log = hr.Log.from_arrays(
        origins=np.c_[sweep * 1.0, np.zeros(n), np.zeros(n)],
        directions=direction,
        ranges=first,
        intensities=rng.random(n),
        labels=rng.integers(0, 4, n),
        sweeps=sweep,
        max_range_m=30,
        sensor="vlp-16",
    )
    path = tmp_path_factory.mktemp("drive") / "drive.parquet"
    hr.write_log(log, path)
    return path


def saved_bytes(world, folder):
    world.save(folder)
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("voxel", {"side_m": 0.5}),
        ("voxel", {"side_m": 0.5, "credit": "share"}),
        ("topdown", {}),
        ("topdown", {"cell_points": 2000, "sample_points": 1000}),
        ("hybrid", {}),
        ("refined", {"rounds": 2, "epochs": 1, "min_steps": 2, "held_out_every": 4}),
        ("refined", {"rounds": 1, "epochs": 1, "min_steps": 2, "held_out_end_share": 0.25, "widths": [0, 2]}),
    ],
)
def test_a_world_has_the_same_bytes_whoever_learned_it(workers, drive, tmp_path, monkeypatch, model, settings):
    alone = saved_bytes(hr.learn(drive, model, **settings), tmp_path / "alone.world")
    monkeypatch.setattr(log_parts, "BEAMS_PER_PART", 7000)  # four parts instead of one
    assert len(list(cut_log(drive).parts())) == 4
    assert saved_bytes(hr.learn(drive, model, **settings), tmp_path / "parts.world") == alone
    spread = saved_bytes(hr.learn(drive, model, engine=workers, **settings), tmp_path / "spread.world")
    assert spread == alone


def test_results_come_in_the_order_of_the_parts_and_are_never_computed_again(workers, tmp_path):
    numbers = list(range(20))
    for _ in range(2):
        assert [int(found[0]) for found in workers.map(Square(str(tmp_path)), numbers)] == [n**2 for n in numbers]
    assert len(list(tmp_path.iterdir())) == 20


def test_a_stopped_job_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.parallel.engine._WORTH_KEEPING_S", 0.0)
    parts, counts = Results(tmp_path / "parts"), tmp_path / "counts"
    counts.mkdir()
    first = InProcess(parts).map(Square(str(counts)), range(8))
    assert [int(next(first)[0]) for _ in range(3)] == [0, 1, 4]
    del first
    assert [int(found[0]) for found in InProcess(parts).map(Square(str(counts)), range(8))] == [n**2 for n in range(8)]
    assert len(list(counts.iterdir())) == 8


def test_a_part_whose_worker_is_killed_is_done_by_another(workers, tmp_path):
    assert list(workers.map(DieOnce(str(tmp_path)), range(6))) == list(range(6))
    assert (tmp_path / "died").exists()


def test_a_part_that_kills_every_worker_is_named_with_a_remedy(workers):
    with pytest.raises(FileError, match=r"1: its worker ended 3 times.*fewer workers or more memory.*run the same"):
        list(workers.map(Always("die"), range(4)))


@pytest.mark.parametrize(
    ("what", "kind", "said"),
    [("input", InputError, "number: is one"), ("file", FileError, "drive.parquet: cannot be read")],
)
def test_what_a_part_refuses_is_said_as_it_would_be_here(workers, what, kind, said):
    with pytest.raises(kind, match=said):
        list(workers.map(Always(what), range(4)))


def test_logs_in_memory_and_all_work_of_a_block_are_spread_too(workers, drive, tmp_path, monkeypatch):
    alone = saved_bytes(hr.learn(drive, "topdown"), tmp_path / "alone.world")
    monkeypatch.setattr(log_parts, "BEAMS_PER_PART", 7000)
    asked = []
    monkeypatch.setattr(workers, "_hand_out", lambda job, once=workers._hand_out: (asked.append(job), once(job)))
    with using(workers):
        spread = saved_bytes(hr.learn(hr.read_log(drive), "topdown"), tmp_path / "spread.world")
    assert spread == alone and asked


def test_a_scheduler_that_does_not_answer_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.parallel.dask_engine._CONNECT_S", 1)
    with pytest.raises(FileError, match=r"tcp://127.0.0.1:9: no Dask scheduler answers there.*dask scheduler"):
        Workers(scheduler="tcp://127.0.0.1:9", folder=tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        b"cos\nsystem\n",
        b"cnumpy.testing._private.utils\nrunstring\n",
        b"\x80\x04\x8c\x19hedgerow.parallel.results\x8c\x0dshutil.rmtree\x93",  # through a module of our own
        b"chedgerow.parallel.kept\nkeep\n",  # a function, not a class
    ],
)
def test_a_result_that_would_call_a_function_is_not_read(tmp_path, call):
    (tmp_path / "part-x").write_bytes(call + b"(S'nothing'\ntR.")
    with pytest.raises(FileError, match="a finished part is damaged; delete") as told:
        Results(tmp_path).get("part-x")
    assert "is not a class that results have" in str(told.value.__cause__)


def test_a_log_that_changed_since_it_was_cut_is_refused(drive, tmp_path):
    path = tmp_path / "drive.parquet"
    path.write_bytes(drive.read_bytes())
    parts = list(cut_log(path).parts())
    os.utime(path, ns=(1, 1))
    with pytest.raises(FileError, match="changed while it was being read"):
        parts[0].read()


@dataclass(frozen=True)
class Reserve:
    """Takes more memory than a worker may have, in one part."""

    def __call__(self, number):
        held = [np.ones(20_000_000) for _ in range(60)] if number == 1 else []
        if held:
            time.sleep(20)  # until somebody notices
        return len(held)


def test_a_part_over_the_memory_of_its_worker_is_named_with_a_remedy(tmp_path):
    started = time.monotonic()
    with (
        Workers(1, tmp_path, memory=700_000_000) as engine,
        pytest.raises(FileError, match=r"^1: its worker ended 3 times.*want of memory.*more memory each"),
    ):
        list(engine.map(Reserve(), range(3)))
    assert time.monotonic() - started < 60


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and a worker of their own, as on a cluster: (address, processes)."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    file = tmp_path / "scheduler.json"
    # Classes of this file are pickled by reference: the others must find it.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    scheduler = subprocess.Popen([*dask, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)], **quiet)
    for _ in range(200):
        if file.exists() and file.read_text():
            break
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen(command, **quiet)
    yield address, scheduler
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Slow:
    """Takes its time."""

    def __call__(self, number):
        time.sleep(0.3)
        return number


def test_a_scheduler_that_is_killed_ends_the_job_in_a_sentence_and_nothing_finished_is_lost(cluster, tmp_path):
    address, scheduler = cluster
    finished = []

    def kill_after_three(number):
        finished.append(number)
        if len(finished) == 3:
            scheduler.kill()

    with (
        Workers(scheduler=address, folder=tmp_path / "parts") as engine,
        pytest.raises(FileError, match=r"the Dask scheduler was lost.*run the same command: \d+ parts are finished"),
    ):
        list(engine.map(Slow(), range(40), kill_after_three))
    kept = len(list((tmp_path / "parts").glob("part-*")))
    assert 3 <= kept < 40
    # The same job, on workers of this machine: only what is left is done.
    again = []
    with Workers(2, tmp_path / "parts") as engine:
        started = time.monotonic()
        assert list(engine.map(Slow(), range(40), again.append)) == list(range(40))
    assert len(again) == 40 and len(list((tmp_path / "parts").glob("part-*"))) == 40
    assert time.monotonic() - started < 60


@dataclass(frozen=True)
class Large:
    """A result of a megabyte; leaves a file for every time that it was asked for."""

    folder: str

    def __call__(self, number):
        (Path(self.folder) / f"{number}-{time.time_ns()}").touch()
        return np.full(1_000_000, number, dtype=np.uint8)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes, and what makes it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options):
        return subprocess.run(["mount", *options, "-t", "tmpfs", "tmpfs", str(place)], capture_output=True).returncode

    if mount("-o", "size=4m"):
        pytest.skip("file systems cannot be mounted here")
    yield place, lambda: mount("-o", "remount,size=64m")
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_ends_the_job_in_a_sentence_and_with_room_it_goes_on(small_disk, tmp_path):
    disk, enlarge = small_disk
    asked = tmp_path / "asked"
    asked.mkdir()
    with Workers(2, disk / "parts") as engine:
        with pytest.raises(FileError, match=r"parts: a finished part cannot be kept \(No space left on device\)"):
            list(engine.map(Large(str(asked)), range(12)))
        kept = {path.name for path in (disk / "parts").iterdir()}
        assert 1 <= len(kept) < 12 and all(name.startswith("part-") for name in kept)  # nothing half written
        n_before = len(list(asked.iterdir()))
        assert enlarge() == 0
        found = list(engine.map(Large(str(asked)), range(12)))
    assert [int(each[0]) for each in found] == list(range(12))
    assert len(list(asked.iterdir())) == n_before + 12 - len(kept)  # what was finished was not asked for again


def test_a_damaged_part_of_a_log_is_named_and_the_rest_is_kept(workers, drive, tmp_path, monkeypatch):
    monkeypatch.setattr(log_parts, "BEAMS_PER_PART", 3000)  # a sweep each
    path, good = tmp_path / "drive.parquet", drive.read_bytes()
    path.write_bytes(good)
    stamp = path.stat().st_mtime_ns
    sixth = _row_group_start(path, 5)
    path.write_bytes(good[:sixth] + bytes(200) + good[sixth + 200 :])
    os.utime(path, ns=(stamp, stamp))
    with pytest.raises(FileError, match=r"drive\.parquet: .*damaged"):
        hr.learn(path, "voxel", side_m=0.5, engine=workers)
    path.write_bytes(good)
    os.utime(path, ns=(stamp, stamp))
    alone = saved_bytes(hr.learn(drive, "voxel", side_m=0.5), tmp_path / "alone.world")
    mended = saved_bytes(hr.learn(path, "voxel", side_m=0.5, engine=workers), tmp_path / "mended.world")
    assert mended == alone


def _row_group_start(path, number):
    import pyarrow.parquet as pq

    return min(
        chunk.dictionary_page_offset or chunk.data_page_offset
        for chunk in (pq.read_metadata(path).row_group(number).column(k) for k in range(3))
    )
