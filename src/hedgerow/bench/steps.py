# SPDX-License-Identifier: Apache-2.0
"""What is measured, step by step; each runs in a process of its own (process.py).

The steps are what the verbs `fire`, `learn` and `compare` do, with a clock around their stages: opening (a scene is
grown, a world is loaded), starting the workers, and the work itself, up to the output on the disk. A step takes plain
values and returns plain values. What an earlier, interrupted run left of the same step is deleted before: a part that
is found finished would cost nothing.
"""

import multiprocessing
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hedgerow.base.progress import progress_bar, step_bar
from hedgerow.bench.process import peak_mb, processor_s
from hedgerow.parallel import Engine, InProcess, Results

Found = dict[str, Any]


def fire(
    scene: str,
    output: str,
    *,
    sweeps: int,
    sensor: str | None = None,
    trajectory: str | None = None,
    start_s: float = 0.0,
    workers: int = 0,
    memory_bytes: int | None = None,
    way: str | None = None,
) -> Found:
    """Fire a drive into a folder of Parquet parts.

    Args:
        scene: a scene, or a learned world.
        output: the folder; it is deleted first.
        sweeps, sensor, trajectory, start_s, workers, memory_bytes: as of `hedgerow fire`.
        way: where to write the trajectory, if anywhere.
    """
    from hedgerow.drives import Drive, plan_drive, record_in_parts, stamp_of
    from hedgerow.io import write_trajectory
    from hedgerow.parallel.kept import keep

    shutil.rmtree(output, ignore_errors=True)
    drive = Drive(
        scene,
        sensor=sensor,
        trajectory=trajectory,
        sweeps=sweeps,
        start_s=start_s,
        memory_bytes=memory_bytes,
        stamp=stamp_of(scene, sensor, trajectory, None),
    )
    found: Found = {}
    with _engine(found, workers, output) as engine:
        clock = _Clock()
        with step_bar() as progress:
            planned = plan_drive(drive, engine, progress)
        found["open_s"] = clock.lap()["seconds"]
        with progress_bar("firing", planned.n_sweeps) as done:
            wrote = record_in_parts(drive, output, engine, n_sweeps=planned.n_sweeps, progress=done)
        found |= clock.lap()
    if way is not None:
        write_trajectory(keep("drive", repr(drive), lambda: drive.open()[0]).trajectory, way)
    return found | {"beams": wrote.n_beams, "simulated_s": planned.n_sweeps * drive.lidar.sweep_s}


def learn(log: str, output: str, *, model: str, workers: int = 0) -> Found:
    """Learn a world from a log and save it."""
    from hedgerow.models import learn as learn_world

    shutil.rmtree(output, ignore_errors=True)
    found: Found = {}
    with _engine(found, workers, output) as engine, step_bar() as progress:
        clock = _Clock()
        world = learn_world(log, model, progress=progress, engine=engine)
        world.save(output)
        found |= clock.lap()
    return found | {"beams": world.header.provenance.n_beams, "elements": world.size().elements}


def compare(log: str, world: str, *, memory_bytes: int) -> Found:
    """Score a world, of which so much may be in memory, against a log."""
    from hedgerow.inputs import open_log
    from hedgerow.metrics import compare as compare_logs
    from hedgerow.world import load_world

    clock = _Clock()
    real, simulated = open_log(log, "compare"), load_world(world, max_bytes=memory_bytes)
    open_s = clock.lap()["seconds"]
    with progress_bar("comparing", real.n_beams) as progress:
        compare_logs(real, simulated, progress=progress)
    return {"open_s": open_s, "beams": real.n_beams, **clock.lap()}


def write_tiles(world: str, *, n_tiles: int, gaussians_per_tile: int) -> Found:
    """Write a world of so many tiles."""
    from hedgerow.bench.tiled_site import write_site

    clock = _Clock()
    size = write_site(Path(world), n_tiles, gaussians_per_tile)
    found = clock.lap()
    n_bytes = sum(each.stat().st_size for each in Path(world).rglob("*") if each.is_file())
    return found | {"elements": size.elements, "disk_mb": n_bytes / 1e6}


def drive_tiles(world: str, *, sensor: str, sweeps: int, speed_mps: float, memory_bytes: int) -> Found:
    """Drive through the middle of a world of which so much may be in memory; nothing is written."""
    from hedgerow.bench.tiled_site import middle_drive
    from hedgerow.sensor import Sensor
    from hedgerow.simulate import simulate
    from hedgerow.world import load_world

    lidar = Sensor.named(sensor)
    clock = _Clock()
    opened = load_world(world, max_bytes=memory_bytes)
    way = middle_drive(lidar, sweeps, speed_mps)
    simulation = simulate(opened, lidar, way, seed=1, sweeps=sweeps + 1)
    open_s = clock.lap()["seconds"]
    simulation.sweep(0)  # reads the first tiles
    first_s = clock.lap()["seconds"]
    n_beams = n_hits = most = 0
    with progress_bar("driving", sweeps) as progress:
        for number in range(1, sweeps + 1):
            log = simulation.sweep(number)
            n_beams, n_hits = n_beams + len(log), n_hits + int(log.returns.hit.sum())
            most = max(most, opened.memory)
            progress(number)
    spent = {"open_s": open_s, "first_s": first_s, **clock.lap()}
    return spent | {"beams": n_beams, "hits": n_hits, "tiles_mb": most / 1e6}


STEPS: dict[str, Callable[..., Found]] = {
    "fire": fire,
    "learn": learn,
    "compare": compare,
    "write_tiles": write_tiles,
    "drive_tiles": drive_tiles,
}


class _Clock:
    """Tells the time since the last lap, on the clock and of the processors, that of workers included."""

    def __init__(self) -> None:
        self._at = self._now()

    def lap(self) -> Found:
        """Return `seconds`, and `processor_s`."""
        before, self._at = self._at, self._now()
        return {"seconds": self._at[0] - before[0], "processor_s": self._at[1] - before[1]}

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), processor_s(_worker_pids())


def _worker_pids() -> list[int]:
    return sorted(each.pid for each in multiprocessing.active_children() if each.pid is not None)


@contextmanager
def _engine(found: Found, workers: int, output: str) -> Generator[Engine]:
    """Give this process, or workers, to do the block; note how long they took to start, and their memory.

    Args:
        found: takes `start_s`, and `worker_mb`, the peak of each worker, empty without workers.
        workers: how many processes; 0: this one.
        output: what is made; finished parts are kept beside it meanwhile.
    """
    results = Results(f"{output}.parts")
    results.remove()
    begin_s = time.perf_counter()
    with _start(workers, results) as engine:
        if workers:
            list(engine.map(_LoadCode(), range(workers)))
        found |= {"start_s": time.perf_counter() - begin_s if workers else 0.0, "worker_mb": []}
        yield engine
        if workers:
            found["worker_mb"] = [peak for pid in _worker_pids() if (peak := peak_mb(pid)) is not None]
    results.remove()


def _start(workers: int, results: Results) -> Engine:
    from hedgerow.parallel.dask_engine import Workers

    return Workers(workers, results.folder) if workers else InProcess(results)


@dataclass(frozen=True, slots=True)
class _LoadCode:
    """Lets a worker import what the work needs, which is part of starting it."""

    def __call__(self, part: int) -> int:
        """Return the number of the part; it takes a moment, so that each worker gets one."""
        for name in ("hedgerow.drives", "hedgerow.models.registry", "hedgerow.world.tiled"):
            import_module(name)
        time.sleep(0.1)
        return part
