# SPDX-License-Identifier: Apache-2.0
"""Segmentation of ten million points of a forest: how long it takes and how much memory it holds.

python benchmarks/segmentation.py [MILLIONS]

The log is written sweep by sweep and read from the file in a process of its own.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Result

from hedgerow.io import open_sink
from hedgerow.log import Log

N_SWEEPS = 100
SIZE_M = (300.0, 100.0)
N_TREES, N_SHRUBS = 600, 600
SECONDS, MEGABYTES = 120.0, 2000.0
PROGRAM = "from hedgerow.cli import main; main()"


def sweep_points(rng: np.random.Generator, trees: np.ndarray, shrubs: np.ndarray, n: int) -> np.ndarray:
    """Points of one sweep: half of them ground, a third trees, the rest shrubs."""
    ground = np.column_stack([rng.uniform(-0.5, 0.5, (n // 2, 2)) * SIZE_M, rng.normal(0, 0.02, n // 2)])
    which = trees[rng.integers(0, len(trees), n // 3)]
    direction = rng.normal(size=(len(which), 3))
    direction *= rng.random((len(which), 1)) ** (1 / 3) / np.linalg.norm(direction, axis=1, keepdims=True)
    crown = which[:, :3] * [1, 1, 0] + direction * which[:, 3:6] + [0, 0, 1] * (which[:, 6:7] - which[:, 5:6])
    on_stem = rng.random(len(which)) < 0.15
    height = rng.uniform(0, 1, on_stem.sum()) * (which[on_stem, 6] - which[on_stem, 5])
    crown[on_stem] = np.column_stack([which[on_stem, :2] + rng.normal(0, 0.08, (on_stem.sum(), 2)), height])
    bush = shrubs[rng.integers(0, len(shrubs), n - n // 2 - n // 3)]
    leaves = rng.uniform(-1, 1, (len(bush), 3)) * [1, 1, 0.5] + [0, 0, 0.5]
    return np.concatenate([ground, crown, bush[:, :3] + leaves * bush[:, 3:6]])


def write_forest(path: Path, n_points: int) -> None:
    """Write a log of a forest."""
    rng = np.random.default_rng(1)
    high = rng.uniform(5, 14, N_TREES)
    trees = np.column_stack([rng.uniform(-0.48, 0.48, (N_TREES, 2)) * SIZE_M, 0 * high, 0.2 * high, 0.2 * high])
    trees = np.column_stack([trees, 0.35 * high, high])
    size = rng.uniform(0.6, 3, N_SHRUBS)
    shrubs = np.column_stack([rng.uniform(-0.48, 0.48, (N_SHRUBS, 2)) * SIZE_M, 0 * size, size / 2, size / 2, size])
    with open_sink(path) as sink:
        for sweep in range(N_SWEEPS):
            points = sweep_points(rng, trees, shrubs, n_points // N_SWEEPS)
            n = len(points)
            sink.append(
                Log.from_arrays(
                    origins=points + np.array([0, 0, 1.0]),
                    directions=np.tile([0.0, 0.0, -1.0], (n, 1)),
                    ranges=np.ones(n),
                    sweeps=np.full(n, sweep),
                )
            )


def measured(n_points: int) -> tuple[float, float, str]:
    """Return seconds, peak memory [MB] and what the verb says last."""
    with tempfile.TemporaryDirectory() as folder:
        write_forest(Path(folder) / "forest.parquet", n_points)
        words = [sys.executable, "-c", PROGRAM, "segment", "forest.parquet", "-o", "out.parquet"]
        start = time.perf_counter()
        with (Path(folder) / "said.txt").open("w+") as said:
            process = subprocess.Popen(words, cwd=folder, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            said.seek(0)
            text = said.read()
        if status != 0:
            raise SystemExit(text)
    return time.perf_counter() - start, used.ru_maxrss / 1024, text.splitlines()[-2]


def results(millions: float = 10.0):
    seconds, megabytes, said = measured(int(1e6 * millions))
    what = f"segmentation of {millions:g} million points"
    yield Result(what, f"{seconds:.0f} s", f"< {SECONDS:g} s", seconds < SECONDS)
    yield Result(f"{what}: peak memory", f"{megabytes:,.0f} MB", f"< {MEGABYTES:,.0f} MB", megabytes < MEGABYTES)
    yield Result(f"{what}: found", said, "", None)


if __name__ == "__main__":
    for result in results(*map(float, sys.argv[1:2])):
        print(result.what, result.value)
