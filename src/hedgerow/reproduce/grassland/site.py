# SPDX-License-Identifier: Apache-2.0
"""The site: rolling country of any size, of patches of grass and of plants, written tile by tile.

What lies in a tile follows from the seed and from where the tile is, not from its neighbours or from the extent of the
site. So tiles are made one after the other, memory does not grow with the site, and a small site is a piece of a large
one. The ground is not a mesh: it is the ground of the patches (compose/ground_patches.py), whose corners lie on it.

    rules = SiteRules(extent_m=3200)
    size = write_site(path, assets, rules, seed=1)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Length, Parameters
from hedgerow.compose.ground_patches import HALVES, lay_patches
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.reproduce.grassland.nursery import PATCH_M
from hedgerow.scenes.annotation import PLANT_CLASSES, label_of
from hedgerow.scenes.primitive import facts_of
from hedgerow.scenes.terrain import fractal_noise
from hedgerow.scenes.trail import Polyline
from hedgerow.world.assets import Asset, instances_of
from hedgerow.world.elements import Instances
from hedgerow.world.store.files import save_tiles
from hedgerow.world.store.header import Provenance, WorldHeader
from hedgerow.world.world import WorldSize

TILE_M = 64.0
"""Side of the tiles: twice the usual, since a tile of so few rows is mostly the frame of its file."""
PER_KM2 = {
    "large-tree": 500,
    "medium-tree": 700,
    "small-tree": 800,
    "large-shrub": 500,
    "medium-shrub": 1000,
    "small-shrub": 2000,
    "low-shrub": 4000,
}
"""Plants of each class, on average; they stand in groves."""
SPEED_MPS = 10.0
HEIGHT_M = 2.0
"""Of the sensor above the ground."""
_OPEN_M = 3.0
"""No plant reaches nearer to the middle of the way."""
_GROVES = 5.0
"""Times as dense as on average a grove may be."""
_HILLS, _GROVES_NOISE = 0, 1  # parts of the seed of noise
Numbers = NDArray[np.integer[Any]]
_PER_TILE = 2**22  # numbers of tiles stay below, to both sides


class SiteRules(Parameters):
    """How large the country is, and what it looks like."""

    extent_m: Length = 3200.0
    """Side of the square around (0, 0); rounded up to whole tiles."""
    relief_m: Length = 60.0
    """About twice this lies between the highest and the lowest place."""
    hills_m: Length = 700.0
    """Spacing of the largest hills."""
    groves_m: Length = 260.0
    """Spacing of groves."""
    way_m: Length = 1200.0
    """Length of the way that is kept free, through the middle of the site."""
    low_tile: tuple[int, int] | None = None
    """First tile, x and y, of a piece of the site. Default: all of it."""
    high_tile: tuple[int, int] | None = None
    """Last tile of the piece."""

    def tiles(self) -> list[tuple[int, int]]:
        """Return the tiles, by x, then y.

        Raises:
            InputError: there is none.
        """
        n = int(np.ceil(self.extent_m / (2 * TILE_M)))
        low, high = self.low_tile or (-n, -n), self.high_tile or (n - 1, n - 1)
        made = [(x, y) for x in range(low[0], high[0] + 1) for y in range(low[1], high[1] + 1)]
        if not made:
            raise InputError("low_tile, high_tile", f"no tile lies from {low} to {high}")
        return made

    @property
    def area_km2(self) -> float:
        """Area of all tiles."""
        return len(self.tiles()) * TILE_M**2 / 1e6

    def around(self, xy_m: Array, reach_m: float) -> "SiteRules":
        """Return the rules of the piece that holds all within reach of (K, 2) places."""
        low, high = xy_m.min(axis=0) - reach_m, xy_m.max(axis=0) + reach_m
        corners = np.floor(np.stack([low, high]) / TILE_M).astype(int).tolist()
        return self.model_copy(update={"low_tile": tuple(corners[0]), "high_tile": tuple(corners[1])})


def height_m(x_m: Array, y_m: Array, rules: SiteRules, seed: int) -> Array:
    """Return the height of the ground at places of any shape [m]."""
    noise = fractal_noise(x_m, y_m, 2 * seed + _HILLS, wavelength_m=rules.hills_m, octaves=4, roughness=0.38)
    return rules.relief_m * noise


def denseness(x_m: Array, y_m: Array, rules: SiteRules, seed: int) -> Array:
    """Return how dense plants are at places of any shape, 1 on average, up to `_GROVES`; large meadows have few."""
    noise = fractal_noise(x_m, y_m, 2 * seed + _GROVES_NOISE, wavelength_m=rules.groves_m, octaves=3, roughness=0.5)
    # Noise has a deviation of about 0.2; the exponential of it has the mean 1 that is asked for.
    return np.minimum(np.exp(6.0 * noise - 0.5 * (6.0 * 0.22) ** 2), _GROVES)


def way_of(rules: SiteRules) -> Polyline:
    """Return the way through the middle of the site: two bends."""
    x = np.linspace(-0.47, 0.47, 9) * rules.way_m
    return Polyline(
        np.column_stack([x, 0.06 * rules.way_m * np.sin(2 * np.pi * x / rules.way_m)]).tolist(), smooth=True
    )


def drive_of(rules: SiteRules, seed: int) -> Trajectory:
    """Return the drive along the way, over the ground, level from side to side."""
    line = way_of(rules)
    along = np.linspace(0, line.length_m, max(2, int(line.length_m)))
    xy = line.at(along)
    z = height_m(xy[:, 0], xy[:, 1], rules, seed) + HEIGHT_M
    yaw, pitch = np.unwrap(line.heading_rad(along)), -np.arctan(np.gradient(z, along))
    poses = [
        Pose.from_xyz_rpy(place, (0.0, float(b), float(c)))
        for place, b, c in zip(np.column_stack([xy, z]), pitch, yaw, strict=True)
    ]
    return Trajectory.from_poses(along / SPEED_MPS, poses)


@dataclass
class TileMaker:
    """Makes the instances of one tile after the other."""

    assets: Sequence[Asset]
    rules: SiteRules
    seed: int
    n_plants: int = 0
    """So far; each is an object."""
    _line: Polyline = field(init=False)
    _patches: int = field(init=False)
    _of_class: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        """Part the assets into patches and plants by class."""
        self._line = way_of(self.rules)
        self._patches = sum("patch" in asset.about for asset in self.assets) // HALVES
        self._of_class = {name: [] for name in PLANT_CLASSES}
        for number in range(HALVES * self._patches, len(self.assets)):
            asset = self.assets[number]
            self._of_class[facts_of(asset.name, asset.about).class_name].append(number)

    def tile(self, x: int, y: int) -> Instances:
        """Return the ground, the grass and the plants of a tile."""
        rng = np.random.default_rng([self.seed, x + _PER_TILE, y + _PER_TILE])
        low_m = (x * TILE_M, y * TILE_M)
        asset, place = self._ground(low_m, rng)
        plant, foot, class_label = self._plants(low_m, rng)
        object = np.concatenate([np.zeros(len(asset)), self.n_plants + 1 + np.arange(len(plant))])
        self.n_plants += len(plant)
        every: Numbers = np.concatenate([asset, plant])
        order = np.argsort(every, kind="stable")  # copies of one asset side by side are placed in one go
        return instances_of(
            self.assets,
            every[order],
            np.concatenate([place, foot])[order],
            class_label=np.concatenate([np.zeros(len(asset)), class_label])[order],
            object=object[order],
        )

    def _ground(self, low_m: tuple[float, float], rng: np.random.Generator) -> tuple[Numbers, Array]:
        n = round(TILE_M / PATCH_M)
        row, column = PATCH_M * np.indices((n + 1, n + 1))
        z = height_m(low_m[0] + column, low_m[1] + row, self.rules, self.seed)
        return lay_patches(z, low_m, PATCH_M, rng.integers(0, self._patches, (n, n)), rng.integers(0, 4, (n, n)))

    def _plants(self, low_m: tuple[float, float], rng: np.random.Generator) -> tuple[Numbers, Array, Numbers]:
        """Draw plants of all classes that the library has: which asset, where, and its class."""
        which: list[int] = []
        xy: list[Array] = [np.zeros((0, 2))]
        labels: list[int] = []
        for name, per_km2 in PER_KM2.items():
            known = self._of_class[name]
            n = rng.poisson(_GROVES * per_km2 * TILE_M**2 / 1e6) if known else 0
            at = np.asarray(low_m) + rng.uniform(0, TILE_M, (n, 2))
            at = at[rng.random(n) * _GROVES < denseness(at[:, 0], at[:, 1], self.rules, self.seed)]
            if not len(at):
                continue
            chosen = np.array(known)[rng.integers(0, len(known), len(at))]
            free = self._line.distance_m(at) > _OPEN_M + self._half_width_m(chosen)
            which += chosen[free].tolist()
            xy.append(at[free])
            labels += [label_of(name)] * int(free.sum())
        places = np.concatenate(xy)
        return np.array(which, dtype=np.int64), self._upright(places, rng), np.array(labels, dtype=np.int64)

    def _half_width_m(self, chosen: Numbers) -> Array:
        boxes = [self.assets[int(number)].box for number in chosen]
        return np.array([max(*box.high_m[:2], *-box.low_m[:2]) for box in boxes])

    def _upright(self, xy_m: Array, rng: np.random.Generator) -> Array:
        """Return (N, 4, 4) places of plants on the ground, turned and a little larger or smaller."""
        yaw, scale = rng.uniform(0, 2 * np.pi, len(xy_m)), rng.uniform(0.85, 1.15, len(xy_m))
        place = np.tile(np.eye(4), (len(xy_m), 1, 1))
        c, s = scale * np.cos(yaw), scale * np.sin(yaw)
        place[:, 0, 0], place[:, 0, 1], place[:, 1, 0], place[:, 1, 1] = c, -s, s, c
        place[:, 2, 2] = scale
        place[:, :2, 3] = xy_m
        if len(xy_m):
            place[:, 2, 3] = height_m(xy_m[:, 0], xy_m[:, 1], self.rules, self.seed)
        return place


def write_site(path: Path, assets: Sequence[Asset], rules: SiteRules, seed: int) -> WorldSize:
    """Write a site, tile by tile."""
    tiles = np.array(rules.tiles())
    middle = (tiles.min(axis=0) + tiles.max(axis=0) + 1) / 2 * TILE_M
    z = float(height_m(middle[:1], middle[1:], rules, seed)[0])
    header = WorldHeader(
        kind="composed",
        parameters={"site": rules.model_dump(mode="json"), "seed": seed},
        max_range_m=100.0,
        provenance=Provenance(log="grassland"),
        tile_m=TILE_M,
        origin_m=(float(np.rint(middle[0])), float(np.rint(middle[1])), float(np.rint(z))),
        classes={name: label_of(name) for name in PLANT_CLASSES},
    )
    maker = TileMaker(assets, rules, seed)

    def made() -> Iterator[Instances]:
        for x, y in rules.tiles():
            yield maker.tile(x, y)

    return save_tiles(path, header, made(), assets)
