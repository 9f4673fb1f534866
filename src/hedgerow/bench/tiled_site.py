# SPDX-License-Identifier: Apache-2.0
"""Sites of 1 to 10,000 tiles of Gaussians, as a drive teaches them, and a drive through the middle of each.

Every tile has as many elements, so worlds differ by their number of tiles alone. Tiles are made one by one, each from a
seed of its own, and written at once: the largest site is never in memory.
"""

from collections.abc import Iterator
from math import isqrt
from pathlib import Path

import numpy as np

from hedgerow.frames import Trajectory
from hedgerow.sensor import Sensor
from hedgerow.world.elements import Gaussians
from hedgerow.world.store.files import save_tiles
from hedgerow.world.store.header import Provenance, WorldHeader
from hedgerow.world.world import WorldSize

TILE_M = 32.0
_REACH_M = 70.0
_EYE_M = 2.0


def write_site(path: Path, n_tiles: int, gaussians_per_tile: int) -> WorldSize:
    """Write a site, as near to a square as the number of tiles allows, its middle at zero.

    Raises:
        FileError: it cannot be written.
    """
    long, wide = _sides(n_tiles)
    header = WorldHeader("voxel", max_range_m=_REACH_M, tile_m=TILE_M, provenance=Provenance(log="a made site"))

    def tiles() -> Iterator[Gaussians]:
        for x in range(-(long // 2), long - long // 2):
            for y in range(-(wide // 2), wide - wide // 2):
                yield _tile(x, y, gaussians_per_tile)

    return save_tiles(path, header, tiles())


def middle_drive(sensor: Sensor, sweeps: int, speed_mps: float) -> Trajectory:
    """Return a straight way of so many sweeps, and one more, whose middle is that of the sites."""
    half_m = speed_mps * sensor.sweep_s * (sweeps + 1.5) / 2
    at_m = TILE_M / 4  # not along a border of tiles, of which the middle is one in large sites
    return Trajectory.line((at_m - half_m, at_m, _EYE_M), (at_m + half_m, at_m, _EYE_M), speed_mps)


def _sides(n: int) -> tuple[int, int]:
    """Return two factors of a number that are as near to each other as can be, the larger one first."""
    wide = next(each for each in range(isqrt(n), 0, -1) if n % each == 0)
    return n // wide, wide


def _tile(x: int, y: int, n: int) -> Gaussians:
    """Make a tile: half of it ground that waves, in a grid, half of it plants on the ground."""
    rng = np.random.default_rng([x + 10**6, y + 10**6])
    side = max(1, isqrt(n // 2))
    grid = (np.arange(side) + 0.5) * TILE_M / side
    ground = np.stack([each.ravel() for each in np.meshgrid(grid, grid)], axis=1)
    n_plants = n - len(ground)
    bush = rng.uniform(2, TILE_M - 2, (1 + n_plants // 60, 2))
    plants = bush[rng.integers(0, len(bush), n_plants)] + rng.normal(scale=0.6, size=(n_plants, 2))
    at_m = np.clip(np.concatenate([ground, plants]), 0.01, TILE_M - 0.01) + TILE_M * np.array([x, y])
    up_m = np.concatenate([np.zeros(len(ground)), rng.uniform(0.1, 2.5, n_plants)])
    height_m = 0.5 * np.sin(at_m[:, 0] / 15) * np.cos(at_m[:, 1] / 11) + up_m
    flat = 0.3 * TILE_M / side
    sigma = np.concatenate([np.tile([flat, flat, 0.02], (len(ground), 1)), np.full((n_plants, 3), 0.12)])
    stop = np.concatenate([np.full(len(ground), 0.2), rng.uniform(0.5, 0.95, n_plants)]).astype(np.float32)
    return Gaussians.plain(np.column_stack([at_m, height_m]), sigma[:, :, None] ** 2 * np.eye(3), stop=stop)
