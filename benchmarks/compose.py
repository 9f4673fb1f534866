# SPDX-License-Identifier: Apache-2.0
"""Copies of learned plants: as instances, in one search tree, in patches of ten, and flat; 1,000 and 10,000 of them.

The default is one search tree (`MOST_UNFOLDED` of world/scene.py), unless there are too many. The goals: firing within
1.3 of the flat world, and under 300 MB beside the assets at 10,000 plants of 300 Gaussians.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import Result, best_seconds

from hedgerow import Beams, Scene, Sensor, Trajectory
from hedgerow.world import Gaussians, LearnedWorld
from hedgerow.world import scene as scene_module
from hedgerow.world.assets import Asset, instances_of

N_TREES, N_GAUSSIANS = 10, 300
SPACING_M = 6.0
GOAL = 1.3


@dataclass(frozen=True)
class Forest:
    """Where copies of trees stand."""

    trees: list[Gaussians]
    which: np.ndarray
    matrices: np.ndarray


def make_tree(rng: np.random.Generator) -> Gaussians:
    """300 Gaussians of decimetres in a crown of 3 m by 5 m."""
    mean = rng.normal(size=(N_GAUSSIANS, 3)) * [1.2, 1.2, 1.5] + [0, 0, 4]
    root = 0.12 * rng.normal(size=(N_GAUSSIANS, 3, 3))
    covariance = root @ root.transpose(0, 2, 1) + 1e-4 * np.eye(3)
    return Gaussians.plain(mean, covariance, stop=rng.uniform(0.3, 0.9, N_GAUSSIANS).astype(np.float32))


def make_forest(n: int) -> Forest:
    """Place n copies of ten trees at random over a square."""
    rng = np.random.default_rng(0)
    side = np.sqrt(n) * SPACING_M
    yaw = rng.uniform(0, 2 * np.pi, n)
    matrices = np.tile(np.eye(4), (n, 1, 1))
    matrices[:, 0, 0] = matrices[:, 1, 1] = np.cos(yaw)
    matrices[:, 1, 0], matrices[:, 0, 1] = np.sin(yaw), -np.sin(yaw)
    matrices[:, :2, 3] = rng.uniform(-side / 2, side / 2, (n, 2))
    return Forest([make_tree(rng) for _ in range(N_TREES)], np.arange(n) % N_TREES, matrices)


def flat(forest: Forest) -> Scene:
    """All Gaussians in one table of the map."""
    scene = Scene((0, 0, 0))
    copies = [forest.trees[k].transformed(matrix) for k, matrix in zip(forest.which, forest.matrices, strict=True)]
    Gaussians.join(copies).add_to(scene)
    return scene


def instanced(forest: Forest) -> Scene:
    """One scene for each tree, placed."""
    scene = Scene((0, 0, 0))
    for k, tree in enumerate(forest.trees):
        asset = Scene((0, 0, 0))
        tree.add_to(asset)
        scene.place(asset, forest.matrices[forest.which == k])
    return scene


def patched(forest: Forest) -> Scene:
    """Neighbouring trees merged ten by ten, each patch placed once."""
    scene = Scene((0, 0, 0))
    cell = np.floor(forest.matrices[:, :2, 3] / (SPACING_M * np.sqrt(10))).astype(np.int64)
    _, group = np.unique(cell, axis=0, return_inverse=True)
    for number in range(int(group.max()) + 1):
        rows = np.flatnonzero(group.ravel() == number)
        patch = Scene((0, 0, 0))
        Gaussians.join([forest.trees[forest.which[k]].transformed(forest.matrices[k]) for k in rows]).add_to(patch)
        scene.place(patch, np.eye(4))
    return scene


def megabytes() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def at_most(what: str, ratio: float, goal: float, detail: str) -> Result:
    return Result(what, f"{ratio:.2f} ({detail})", f"<= {goal:g}", ratio <= goal)


def build(make: Callable[[Forest], Scene], forest: Forest, most_unfolded: int) -> tuple[Scene, float, float]:
    """Build a scene; return it with the seconds and the megabytes that it took."""
    scene_module.MOST_UNFOLDED = most_unfolded
    gc.collect()
    before, start = megabytes(), time.perf_counter()
    scene = make(forest)
    scene.build()
    took = time.perf_counter() - start
    gc.collect()
    return scene, took, megabytes() - before


def sweeps() -> Beams:
    """Three sweeps of an HDL-64E in the middle."""
    sensor, path = Sensor.named("hdl-64e"), Trajectory.line((-5, 0, 2), (5, 0, 2), speed_mps=10)
    return Beams.concatenate([sensor.sweep_at(path, k, k * 100_000_000) for k in range(3)])


def results():
    beams, default = sweeps(), scene_module.MOST_UNFOLDED
    for n in (1000, 10_000):
        forest = make_forest(n)
        kinds = {"one search tree": (instanced, default), "instances": (instanced, 0)}
        kinds |= {"patches of ten": (patched, 0), "flat": (flat, default)}
        built = {name: build(make, forest, most) for name, (make, most) in kinds.items()}
        scene_module.MOST_UNFOLDED = default
        scenes = [scene for scene, _, _ in built.values()]
        best = best_seconds(*(lambda scene=scene: scene.fire(beams, max_range_m=100.0) for scene in scenes))
        for (name, (_, took, size)), fired in zip(built.items(), best, strict=True):
            what = f"{n:,} copies of trees of 300 Gaussians, {name}: time of firing / flat"
            detail = f"{len(beams) / fired / 1e6:.1f} M pulses/s; built in {took:.1f} s, {size:.0f} MB"
            yield (
                at_most(what, fired / best[-1], GOAL, detail)
                if name == "one search tree"
                else Result(what, f"{fired / best[-1]:.2f} ({detail})", "", None)
            )
        del built, scenes
    took = compose_seconds(make_forest(10_000))
    what = "a world of 10,000 instances of ten trees: made, checked, built"
    yield Result(what, f"{took:.1f} s", "<= 10 s", took <= 10)


def compose_seconds(forest: Forest) -> float:
    start = time.perf_counter()
    assets = [Asset(f"tree-{k}", (tree,)) for k, tree in enumerate(forest.trees)]
    order = np.argsort(forest.which, kind="stable")
    copies = instances_of(assets, forest.which[order], forest.matrices[order])
    LearnedWorld(copies, kind="composed", assets=assets).scene.build()
    return time.perf_counter() - start
