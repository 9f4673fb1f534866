# SPDX-License-Identifier: Apache-2.0
"""A drive through a world ten times as large as the memory that it may take, beside one with the world in memory.

    python benchmarks/paging.py [--length 3000] [--share 10] [--speed 10] [--tiles 12] [--folder out/paging]

The world is a corridor of Gaussians, 150 m wide, as a drive teaches it: ground every 0.3 m, and bushes. It stays in the
folder. Each contender is a process of its own, so that peak memory is its own. They drive the same stretches, one tile
long each, in turns; whoever has no turn is stopped, threads in the background included. Opening the world and the first
sweep, which builds what firing needs, are told apart. Processor time is that of all threads: on a busy machine, where
there is no core to spare, the time of a drive follows it. Takes two minutes; not part of run.py.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HALF_WIDTH_M = 75.0
SENSOR = "hdl-32e"
TILE_M = 32.0
CONTENDERS = ("in memory", "paged", "paged, prefetch")
BYTES_EACH = 180  # of a Gaussian, as world/tiled.py counts
GOAL = 1.3
COLUMNS = ("opening [s]", "first sweep [s]", "drive [s]", "ratio", "median of stretches", "ratio of processor time")
COLUMNS += ("tiles [MB]", "peak memory [MB]")


def corridor(path, length_m, seed=0):
    """Save the world, if it is not there; return its number of elements."""
    from hedgerow.world import Gaussians, LearnedWorld
    from hedgerow.world.load import is_world
    from hedgerow.world.store.files import WorldFile

    if not is_world(path):
        rng = np.random.default_rng(seed)
        ends = (-HALF_WIDTH_M, length_m + HALF_WIDTH_M)
        x, y = (a.ravel() for a in np.meshgrid(np.arange(*ends, 0.3), np.arange(-HALF_WIDTH_M, HALF_WIDTH_M, 0.3)))
        ground = np.c_[x, y, 0.5 * np.sin(x / 15) * np.cos(y / 11)]
        n_bushes, n_plants = int(1.5 * length_m), int(300 * length_m)
        bushes = np.c_[
            rng.uniform(*ends, n_bushes), rng.uniform(4, HALF_WIDTH_M, n_bushes), rng.uniform(0.3, 3, n_bushes)
        ]
        bushes[:, 1] *= rng.choice([-1, 1], n_bushes)
        plants = bushes[rng.integers(0, n_bushes, n_plants)] + rng.normal(size=(n_plants, 3)) * [1.0, 1.0, 0.7]
        sigma = np.concatenate([np.tile([[0.087, 0.087, 0.02]], (len(ground), 1)), np.full((n_plants, 3), 0.07)])
        stop = np.concatenate([np.full(len(ground), 0.2), rng.uniform(0.5, 0.95, n_plants)]).astype(np.float32)
        table = Gaussians.plain(np.concatenate([ground, plants]), sigma[:, :, None] ** 2 * np.eye(3), stop=stop)
        LearnedWorld(table, kind="voxel", max_range_m=70.0, tile_m=TILE_M).save(path)
    return WorldFile(path).size.elements


def drive(name, path, max_bytes, length_m, speed_mps):
    """Open the world, then fire the stretches whose numbers come in, and say how long each took [s]."""
    import hedgerow as hr
    from hedgerow.world.tiled import TiledWorld

    sensor = hr.Sensor.named(SENSOR)
    way = hr.Trajectory.line((0, 0, 2), (length_m, 0, 2), speed_mps)
    start = time.perf_counter()
    whole = name == CONTENDERS[0]
    world = hr.load_world(path) if whole else TiledWorld(path, max_bytes=max_bytes, prefetch=name == CONTENDERS[2])
    simulation = hr.simulate(world, sensor, way, seed=1, start_s=length_m / 3 / speed_mps)
    opened = time.perf_counter()
    simulation.sweep(0)
    print(opened - start, time.perf_counter() - opened, flush=True)
    each, most = round(TILE_M / (speed_mps * sensor.sweep_s)), 0
    for line in sys.stdin:
        first = 1 + each * int(line)
        start, start_cpu = time.perf_counter(), time.process_time()
        n_hits = sum(int(simulation.sweep(number).returns.hit.sum()) for number in range(first, first + each))
        took_s = time.perf_counter() - start
        most = max(most, world.memory) if isinstance(world, TiledWorld) else most
        print(took_s, n_hits, most, peak_mb(), time.process_time() - start_cpu, flush=True)


def peak_mb():
    """Largest memory that this process ever held, as the system counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this system does not count VmHWM")


class Contender:
    """A process that drives when it is told to, and stands still otherwise."""

    def __init__(self, name, given, max_bytes, path):
        self.name = name
        words = [sys.executable, __file__, "--drive", name, "--folder", path, "--bytes", str(max_bytes)]
        words += ["--length", str(given.length), "--speed", str(given.speed)]
        self.process: Any = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.opened_s, self.first_s = self._answer()

    def fire(self, stretch):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(f"{stretch}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with {self.process.wait()}")
        os.kill(self.process.pid, signal.SIGSTOP)
        return [float(word) for word in line.split()]

    def end(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def measure(given):
    """Print the table: time of all stretches, ratio to the world in memory by stretch, and memory."""
    path = given.folder / f"corridor-{given.length:g}.world"
    given.folder.mkdir(parents=True, exist_ok=True)
    n = corridor(path, given.length)
    max_bytes = int(n * BYTES_EACH / given.share)
    print(
        f"{n:,} Gaussians, {n * BYTES_EACH / 1e6:,.0f} MB; paged within {max_bytes / 1e6:,.0f} MB; {given.speed:g} m/s"
    )
    contenders = [Contender(name, given, max_bytes, path) for name in CONTENDERS]
    found = np.array([[each.fire(stretch) for each in contenders] for stretch in range(given.tiles)])
    for each in contenders:
        each.end()
    if (found[:, :, 1] != found[:, :1, 1]).any():
        raise SystemExit("the contenders do not have the same returns")
    took_s = found[:, :, 0]
    ratio = took_s / took_s[:, :1]
    print(f"| | {' | '.join(COLUMNS)} |\n|{' --- |' * (1 + len(COLUMNS))}")
    for k, each in enumerate(contenders):
        cells = [f"{each.opened_s:.1f}", f"{each.first_s:.1f}", f"{took_s[:, k].sum():.1f}"]
        cells += [f"{took_s[:, k].sum() / took_s[:, 0].sum():.2f}", f"{np.median(ratio[:, k]):.2f}"]
        cells += [f"{found[:, k, 4].sum() / found[:, 0, 4].sum():.2f}"]
        cells += [f"{found[-1, k, 2] / 1e6:,.0f}" if k else "all", f"{found[-1, k, 3]:,.0f}"]
        print(f"| {each.name} | {' | '.join(cells)} |")
    reached = np.median(ratio[:, 2])
    print(f"goal: at most {GOAL}: {'yes' if reached <= GOAL else 'NO'} ({reached:.2f}); load {os.getloadavg()[0]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=float, default=3000.0, help="of the way [m]")
    parser.add_argument("--share", type=float, default=10.0, help="how many times the memory the world is")
    parser.add_argument("--speed", type=float, default=10.0, help="[m/s]")
    parser.add_argument("--tiles", type=int, default=12, help="stretches of one tile to drive")
    parser.add_argument("--folder", type=Path, default=Path("out/paging"))
    parser.add_argument("--anew", action="store_true", help="make the world anew")
    parser.add_argument("--drive", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive:
        drive(given.drive, given.folder, given.bytes, given.length, given.speed)
        return
    if given.anew:
        shutil.rmtree(given.folder / f"corridor-{given.length:g}.world", ignore_errors=True)
    measure(given)


if __name__ == "__main__":
    main()
