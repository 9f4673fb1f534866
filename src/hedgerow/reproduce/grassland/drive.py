# SPDX-License-Identifier: Apache-2.0
"""What it takes to build the site and to drive through it: time and memory, each measured in a process of its own.

A process that has grown a meadow holds memory that has nothing to do with a drive; so each measurement starts a new
Python, and tells the most memory that the system ever saw it hold.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from hedgerow.compose.ground_patches import HALVES
from hedgerow.reproduce.grassland.nursery import ASSETS, PATCH_M
from hedgerow.reproduce.grassland.site import SPEED_MPS, TILE_M, SiteRules, drive_of, write_site
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate
from hedgerow.world.load import load_world
from hedgerow.world.store.files import WorldFile
from hedgerow.world.tiled import TiledWorld

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Built:
    """A site on the disk."""

    area_km2: float
    n_instances: int
    n_copies: int
    """Elements of all instances."""
    n_plants: int
    disk_bytes: int
    took_s: float
    processor_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Driven:
    """A drive."""

    opened_s: float
    first_s: float
    """To read and build what the first sweep needs, and to fire it."""
    took_s: float
    """Of all further sweeps."""
    processor_s: float
    """The same in processor time of all threads: on a busy machine, that tells more."""
    n_beams: int
    """Of all further sweeps."""
    n_returns: int
    tiles_bytes: int
    """Most that tiles took at any time, by estimate; 0 for a world in memory."""
    peak_bytes: int
    """Most that the process held."""

    @property
    def beams_per_s(self) -> float:
        """Speed after the first sweep."""
        return self.n_beams / self.took_s

    @property
    def beams_per_processor_s(self) -> float:
        """The same by processor time."""
        return self.n_beams / self.processor_s


def in_own_process(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run a function in a new Python, and return what it gives."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def peak_bytes() -> int:
    """Return the most memory that this process ever held, as the system counts it."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def build(folder: Path, name: str, rules: SiteRules, seed: int) -> Built:
    """Write a site of the assets in a folder to a world beside them."""
    assets = load_world(folder / ASSETS).assets
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    size = write_site(folder / name, assets, rules, seed)
    took_s, processor_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    file = WorldFile(folder / name)
    n_patches = HALVES * len(rules.tiles()) * round(TILE_M / PATCH_M) ** 2
    return Built(
        area_km2=rules.area_km2,
        n_instances=size.elements,
        n_copies=int(file.tiles.elements.sum()),
        n_plants=size.elements - n_patches,
        disk_bytes=sum(path.stat().st_size for path in (folder / name).rglob("*") if path.is_file()),
        took_s=took_s,
        processor_s=processor_s,
        peak_bytes=peak_bytes(),
    )


def drive(
    path: Path, sensor: str, max_bytes: int | None, rules: SiteRules, seed: int, span_m: tuple[float, float]
) -> Driven:
    """Drive along a stretch of the way, sweep after sweep.

    Args:
        path: the world.
        sensor: a name of the catalogue.
        max_bytes: how much memory tiles may take; None opens the world as a whole.
        rules: of the site, also of the one that it is a piece of.
        seed: of the site, and of the returns.
        span_m: from where to where along the way.
    """
    begin_s = time.perf_counter()
    world = load_world(path, max_bytes=max_bytes)
    opened_s = time.perf_counter() - begin_s
    lidar, way = Sensor.named(sensor), drive_of(rules, seed)
    start_s = span_m[0] / SPEED_MPS
    n_sweeps = max(2, int((span_m[1] - span_m[0]) / SPEED_MPS / lidar.sweep_s))
    simulation = simulate(world, lidar, way, seed=seed, start_s=start_s, sweeps=n_sweeps)
    begin_s = time.perf_counter()
    simulation.sweep(0)
    first_s = time.perf_counter() - begin_s
    begin_s, begin_cpu_s, most, n_beams, n_returns = time.perf_counter(), time.process_time(), 0, 0, 0
    for number in range(1, n_sweeps):
        log = simulation.sweep(number)
        n_beams += len(log)
        n_returns += int(np.count_nonzero(log.returns.hit))
        most = max(most, world.memory) if isinstance(world, TiledWorld) else most
    took_s, processor_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    return Driven(opened_s, first_s, took_s, processor_s, n_beams, n_returns, most, peak_bytes())
