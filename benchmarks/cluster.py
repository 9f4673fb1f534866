# SPDX-License-Identifier: Apache-2.0
"""Where a cluster of 8 to 64 workers stops getting faster: Dask's own scheduler and workers, work replaced by sleep.

    python benchmarks/cluster.py [PARTS]

First a part of a log of a million beams is summed into voxels, counted and merged here, on one thread: these are the
durations. Then as many workers sleep instead of working, while handing out, keeping results and merging are real.
Prints the speed-up against one worker, and what limits it. Not part of run.py.
"""

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["HEDGEROW_THREADS"] = "1"

import numpy as np
from distributed import LocalCluster

import hedgerow as hr
from hedgerow.models.steps.moments import VoxelStatistics
from hedgerow.parallel.dask_engine import Workers

WORKERS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Sleep:
    """Takes as long as the work does, and gives a result as large."""

    seconds: float
    n_bytes: int

    def __call__(self, part):
        time.sleep(self.seconds)
        return np.zeros(self.n_bytes, dtype=np.uint8)


def measured():
    """Return seconds to read and sum up a part of a million beams, seconds to merge it, and bytes of its sums."""
    sensor = hr.Sensor.named("hdl-32e")
    way = hr.Trajectory.line((0, 0, 2), (10, 0, 2), 6.0)
    log = hr.Log.concatenate(list(hr.simulate(ground(), sensor, way, sweeps=14)))
    total, part = VoxelStatistics(0.3), VoxelStatistics(0.3)
    with tempfile.TemporaryDirectory() as folder:
        hr.write_log(log, Path(folder) / "part.parquet")
        start = time.perf_counter()
        part.add(hr.read_log(Path(folder) / "part.parquet"), threads=1)
        summed = time.perf_counter()
    total.merge(part)
    table = part.__getstate__()["table"]
    return summed - start, time.perf_counter() - summed, sum(column.nbytes for column in table.values())


def ground():
    """Rolling ground with bushes on it, 120 m wide."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(-60, 70, 0.4), np.arange(-60, 60, 0.4)))
    rng = np.random.default_rng(1)
    bush = np.c_[rng.uniform(-60, 70, (900, 1)), rng.uniform(-60, 60, (900, 1)), np.full((900, 1), 1.0)]
    mean = np.concatenate(
        [np.c_[x, y, 0.3 * np.sin(x / 15)], np.repeat(bush, 20, axis=0) + rng.normal(0, 0.6, (18_000, 3))]
    )
    sigma = np.concatenate([np.tile([0.15, 0.15, 0.02], (len(x), 1)), np.full((18_000, 3), 0.1)])
    scene = hr.Scene((0, 0, 0))
    scene.add_gaussians(mean, sigma[:, :, None] ** 2 * np.eye(3), permeability=np.full(len(mean), 0.5))
    return hr.SceneWorld(scene)


def run(n_workers, n_parts, work, merge_s):
    """Return the seconds that a job takes."""
    settings: Any = {
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": 50,
    }
    cluster: Any = LocalCluster(n_workers=n_workers, **settings)
    with (
        cluster,
        tempfile.TemporaryDirectory() as folder,
        Workers(scheduler=cluster.scheduler_address, folder=Path(folder)) as engine,
    ):
        start = time.perf_counter()
        for _ in engine.map(work, range(n_parts)):
            time.sleep(merge_s)
        return time.perf_counter() - start


def main(n_parts):
    sum_s, merge_s, n_bytes = measured()
    print(f"a part of 1 M beams: {sum_s:.2f} s to read and sum up, {1e3 * merge_s:.0f} ms to merge")
    print(f"its sums have {n_bytes / 1e6:.1f} MB")
    limit = sum_s / merge_s
    print(f"merging alone limits the speed-up to {limit:.0f}; {n_parts} parts for each")
    overhead = run(8, 200, Sleep(0.0, 100), 0.0) / 200
    print(f"a task that does nothing takes {1e3 * overhead:.1f} ms")
    alone_s = n_parts * sum_s
    for n_workers in WORKERS:
        took_s = run(n_workers, n_parts, Sleep(sum_s, n_bytes), merge_s)
        print(f"{n_workers:3} workers: {took_s:6.1f} s, {alone_s / took_s:5.1f} times one", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
