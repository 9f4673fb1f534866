# SPDX-License-Identifier: Apache-2.0
"""What is seen behind things: ground behind a chain-link fence, and points behind parked cars (Browning 2012 §6.2).

Beams pass a fence in part, so reality has ground strikes behind it, and a world without permeability has none
(Fig. 15). They do not pass cars, so reality has next to nothing behind them; nearest neighbours do (Fig. 17). The paper
shows both in pictures; here they are counted, over all beams of a drive.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.log import Beams
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.site import Site
from hedgerow.scenes.terrain import Terrain

BEHIND_FENCE_M = 0.3
"""A return this much farther than the fence is behind it: far more than the noise, less than the next thing there."""
BEHIND_CAR_M = 0.5
"""A return this much farther than where a beam meets a car is behind its side."""
GROUND_M = 0.3
"""A return this low above the terrain is a ground strike; grass stands on it."""
GROUND = ("ground", "road", "sidewalk", "trail", "grass")
"""Labels of the ground and of what grows on it."""

_FAR_M = 200.0


@dataclass(frozen=True)
class Obstacle:
    """Beams that meet one kind of thing, and from which range on a return is behind it."""

    met: str
    """What is met, for the heading of a table."""
    behind: str
    """What is counted behind it."""
    beam: NDArray[np.int64]
    """(M,) numbers of the beams that meet it."""
    far_m: Array
    """(M,) a return farther than this is behind it."""
    ground: Terrain | None
    """Only returns on this ground count; None: all."""

    def behind_it(self, beams: Beams, range_m: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which of the (M,) beams return from behind, for the (N,) ranges of all beams."""
        found = range_m[self.beam].astype(np.float64)
        behind = np.isfinite(found) & (found > self.far_m)
        if self.ground is not None:
            rows = self.beam[behind]
            points = beams.origin_m[rows] + found[behind, None] * beams.direction[rows]
            behind[behind] = points[:, 2] - _height_m(self.ground, points[:, :2]) < GROUND_M
        return behind


def find_obstacles(site: Site, beams: Beams) -> list[Obstacle]:
    """Return the fence and the parked cars of a scene, as far as it has them and beams meet them."""
    obstacles = [_fence(site, beams), _cars(site, beams)]
    return [each for each in obstacles if len(each.beam)]


def _fence(site: Site, beams: Beams) -> Obstacle:
    """Where beams cross the scene's fences, which are sheets, on their way to the ground."""
    nearest = np.full(len(beams), np.inf)
    for wall in site.file.walls.values():
        if wall.permeability == 0:
            continue
        for start, end in pairwise(wall.path_m):
            at_m = _crossings_m(beams, np.asarray(start), np.asarray(end), wall.height_m, site.terrain)
            nearest = np.minimum(nearest, at_m)
    beam = np.flatnonzero(np.isfinite(nearest))
    if len(beam):
        beam = beam[_reach_ground(site, beams[beam])]
    return Obstacle("the fence", "ground behind", beam, nearest[beam] + BEHIND_FENCE_M, site.terrain)


def _reach_ground(site: Site, beams: Beams) -> NDArray[np.bool_]:
    """Whether the axes of beams would end on the ground if there were no fence."""
    near_m, far_m = np.zeros(len(beams), np.float32), np.full(len(beams), _FAR_M, np.float32)
    hits = site.scene.first_behind(beams, near_m, far_m, [site.labels["fence"]])
    return np.isin(hits.label, [site.labels[name] for name in GROUND if name in site.labels]) & (hits.element >= 0)


def _crossings_m(beams: Beams, start: Array, end: Array, height_m: float, terrain: Terrain) -> Array:
    """Range at which beams cross an upright sheet between two places, inf where they do not [m]."""
    along, aim = end - start, beams.direction[:, :2].astype(np.float64)
    offset = beams.origin_m[:, :2] - start
    # origin + t aim = start + s along, solved by cross products.
    cross = aim[:, 0] * along[1] - aim[:, 1] * along[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -(offset[:, 0] * along[1] - offset[:, 1] * along[0]) / cross
        s = -(offset[:, 0] * aim[:, 1] - offset[:, 1] * aim[:, 0]) / cross
    meets = (t > 0) & (s >= 0) & (s <= 1)
    rows = np.flatnonzero(meets)
    foot = beams.origin_m[rows, :2] + t[rows, None] * aim[rows]
    above = beams.origin_m[rows, 2] + t[rows] * beams.direction[rows, 2] - _height_m(terrain, foot)
    meets[rows] = (above >= 0) & (above <= height_m)
    return np.where(meets, t, np.inf)


def _cars(site: Site, beams: Beams) -> Obstacle:
    """Where the axes of beams first meet a car."""
    hits = site.scene.fire(beams)
    beam = np.flatnonzero(hits.label == site.labels["car"])
    return Obstacle("a car", "returns behind", beam, hits.range_m[beam].astype(np.float64) + BEHIND_CAR_M, None)


def _height_m(terrain: Terrain, place_m: Array) -> Array:
    low_x, low_y, high_x, high_y = terrain.bounds_m
    return terrain.height_m(np.clip(place_m[:, 0], low_x, high_x), np.clip(place_m[:, 1], low_y, high_y))


def occlusion_table(obstacles: list[Obstacle], beams: Beams, ranges: Mapping[str, NDArray[np.float32]]) -> str:
    """Return how many beams each simulation returns from behind, in Markdown.

    Args:
        obstacles: fence, cars.
        beams: of the log.
        ranges: (N,) by name; the first is the real one.
    """
    head = [f"{each.behind} {each.met}, of the returns of {len(each.beam):,} beams" for each in obstacles]
    rows: list[tuple[str, ...]] = []
    for name, range_m in ranges.items():
        behind = [int(each.behind_it(beams, range_m).sum()) for each in obstacles]
        returns = [int(np.isfinite(range_m[each.beam]).sum()) for each in obstacles]
        cells = [f"{n:,} of {of:,} ({n / max(of, 1):.1%})" for n, of in zip(behind, returns, strict=True)]
        rows.append((name, *cells))
    return "**Seen behind things (Browning 2012 §6.2.2 and Fig. 17)**\n\n" + markdown_table(("", *head), rows)
