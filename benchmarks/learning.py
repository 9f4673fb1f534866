# SPDX-License-Identifier: Apache-2.0
"""Learning volumes from eight sweeps of an HDL-64E: statistics and permeability of voxels, top-down, bottom-up."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import sites
from measure import Result, at_least, best_seconds

from hedgerow import Scene, SceneWorld
from hedgerow.models.bottomup import BottomupParameters, fit_regions
from hedgerow.models.surface import fit_surface
from hedgerow.models.topdown import TopdownParameters, fit_clusters
from hedgerow.models.voxel import VoxelParameters, fit_voxels

FAR_M = 120.0
VOXEL_GOAL = 2.0  # M beams/s on two cores, statistics and permeability together
TOPDOWN_GOAL = 0.2  # M points/s
SURFACE_GOAL = 0.3  # M points/s
CELL_POINTS = 500_000
FEW_MANY = (8, 32)  # sweeps


@cache
def log(n_sweeps=8):
    world = SceneWorld(sites.gaussian_scene(), max_range_m=FAR_M)
    return world.fire(sites.drive(n_sweeps))


def parts(n_sweeps=8):
    return lambda: (part for _, part in log(n_sweeps).iter_sweeps())


def learn_and_count():
    """The voxel world with its permeabilities, one pass each."""
    found = fit_voxels(parts(), VoxelParameters())
    scene = Scene()
    found.add_to(scene)
    for part in parts()():
        scene.count(part.beams, part.returns.first_m, max_range_m=FAR_M)


@cache
def terrain_log():
    """Eight sweeps over rolling ground."""
    scene = Scene()
    scene.add_mesh(*sites.terrain(), noise=sites.NOISE)
    return SceneWorld(scene, max_range_m=FAR_M).fire(sites.drive())


def surface():
    fit_surface(lambda: (part for _, part in terrain_log().iter_sweeps()))


def results():
    n_beams, n_points = len(log()), int(log().returns.hit.sum())
    voxel_s, both_s, topdown_s, cells_s, bottomup_s = best_seconds(
        lambda: fit_voxels(parts(), VoxelParameters()),
        learn_and_count,
        lambda: fit_clusters(parts(), TopdownParameters()),
        lambda: fit_clusters(parts(), TopdownParameters(cell_points=CELL_POINTS // 2)),
        lambda: fit_regions(parts(), BottomupParameters()),
        rounds=3,
    )
    statistics = f"statistics alone {n_beams / voxel_s / 1e6:.1f}"
    yield at_least("voxel: learn and count, M beams/s", n_beams / both_s / 1e6, VOXEL_GOAL, statistics)
    in_cells = f"in cells {n_points / cells_s / 1e6:.2f}"
    yield at_least("topdown, M points/s", n_points / topdown_s / 1e6, TOPDOWN_GOAL, in_cells)
    (surface_s,) = best_seconds(surface, rounds=3)
    n_surface = int(terrain_log().returns.hit.sum())
    yield at_least("surface, M points/s", n_surface / surface_s / 1e6, SURFACE_GOAL)
    yield Result("bottomup, M points/s", f"{n_points / bottomup_s / 1e6:.2f}", "", None)
    for name in ("voxel", "topdown"):
        few, many = (peak_mb(name, n) for n in FEW_MANY)
        sizes = " and ".join(f"{n * n_beams / 8e6:.1f}" for n in FEW_MANY)
        yield Result(
            f"{name}: peak MB while learning from {sizes} M beams", f"{few:.0f} and {many:.0f}", "stated", None
        )


def peak_mb(name, n_sweeps):
    """Peak memory of a process that learns from sweeps which it fires one at a time."""
    command = [sys.executable, __file__, name, str(n_sweeps)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def memory_mb(line):
    text = Path("/proc/self/status").read_text()
    return int(text.partition(line + ":")[2].split()[0]) / 1024


def fire_and_learn(name, n_sweeps):
    """Learn from sweeps that are fired one at a time and not kept; print by how much memory rose on the way."""
    world = SceneWorld(sites.gaussian_scene(), max_range_m=FAR_M)
    eight = sites.drive()

    def one_at_a_time():
        for number in range(n_sweeps):
            yield world.fire(eight.select(sweep=int(number % 8)), seed=number)

    next(one_at_a_time())
    before = memory_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    if name == "voxel":
        fit_voxels(one_at_a_time, VoxelParameters())
    else:
        fit_clusters(one_at_a_time, TopdownParameters(cell_points=CELL_POINTS))
    print(memory_mb("VmHWM") - before)


if __name__ == "__main__":
    fire_and_learn(sys.argv[1], int(sys.argv[2]))
