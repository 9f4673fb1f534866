# SPDX-License-Identifier: Apache-2.0
"""A voxel world from more than 80 million points, as in Browning 2012 §6.4: 400 m of travel, from a Parquet log on the
disk.

    python benchmarks/large_scale.py [SWEEPS]

Takes some minutes and 2 GB of temporary disk; not part of run.py.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.io.parquet.reader import LogWriter

LENGTH_M = 400.0


def site(seed=0):
    """Flat ground elements every 0.3 m along a 400 m way, and clusters of vegetation."""
    rng = np.random.default_rng(seed)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(-60, LENGTH_M + 60, 0.3), np.arange(-40, 40, 0.3)))
    ground = np.c_[x, y, 0.5 * np.sin(x / 15) * np.cos(y / 11)]
    bushes = np.c_[rng.uniform(-60, LENGTH_M + 60, 1500), rng.uniform(-40, 40, 1500), rng.uniform(0.3, 3, 1500)]
    plants = bushes[rng.integers(0, 1500, 400_000)] + rng.normal(size=(400_000, 3)) * [1.0, 1.0, 0.7]
    sigma = np.concatenate([np.tile([[0.087, 0.087, 0.02]], (len(ground), 1)), np.full((len(plants), 3), 0.07)])
    covariance = sigma[:, :, None] ** 2 * np.eye(3)
    permeability = np.concatenate([np.full(len(ground), 0.2), rng.uniform(0.5, 0.95, len(plants))])
    scene = hr.Scene((LENGTH_M / 2, 0, 0))
    scene.add_gaussians(np.concatenate([ground, plants]), covariance, permeability=permeability)
    return hr.SceneWorld(scene)


def record(path, n_sweeps):
    """Write the drive, sweep by sweep."""
    sensor = hr.Sensor.named("hdl-64e-s2")
    trajectory = hr.Trajectory.line((0, 0, 2.2), (LENGTH_M, 0, 2.2), LENGTH_M / (n_sweeps * sensor.sweep_s + 0.01))
    world, n_points = site(), 0
    with LogWriter(path) as writer:
        for log in hr.simulate(world, sensor, trajectory, seed=1, sweeps=n_sweeps, noise=False):
            n_points += int(log.returns.hit.sum())
            writer.append(log)
    return n_points


def learn(path):
    """Learn in a process of its own, and print seconds and peak megabytes."""
    start = time.perf_counter()
    world = hr.learn(path, "voxel")
    took_s = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(took_s, peak_mb, world.size().elements)


def main(n_sweeps):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.log"
        n_points = record(path, n_sweeps)
        size_gb = sum(part.stat().st_size for part in path.iterdir()) / 1e9
        print(f"recorded {n_points / 1e6:.1f} M points, {size_gb:.2f} GB on the disk", flush=True)
        command = [sys.executable, __file__, "learn", path]
        took_s, peak_mb, n = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        print(f"voxel world of {int(n):,} Gaussians in {float(took_s):.0f} s, peak memory {float(peak_mb):,.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["learn"]:
        learn(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 680)
