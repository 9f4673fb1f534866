# SPDX-License-Identifier: Apache-2.0
"""Tiles of a saved world as beams are fired at them: a scene, or a cloud of points, for each tile.

Nothing here remembers which tiles there are in memory (`TiledWorld` does), so that a thread in the background can make
them, too.
"""

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Instances, Points, Triangles
from hedgerow.world.points import build_cloud
from hedgerow.world.scene import Scene
from hedgerow.world.store.files import WorldFile

if TYPE_CHECKING:
    from hedgerow import _core


@dataclass(frozen=True, slots=True, eq=False)
class TilePart:
    """One tile of one table."""

    target: "Scene | _core.PointCloud"
    assets: tuple[Asset, ...] = ()
    """What it has copies of; they stay in memory as long as one such tile does."""


class TileParts:
    """Makes the tiles of one world, on any thread."""

    def __init__(self, file: WorldFile, *, keep_assets: bool = False) -> None:
        """Take the world on the disk; with `keep_assets`, an asset that was read stays in memory."""
        self._file = file
        self._first = file.tiles.first
        self._kept: list[Asset] | None = [] if keep_assets else None
        self._assets: WeakValueDictionary[int, Asset] = WeakValueDictionary()  # those that some tile has copies of
        self._reading_assets = Lock()

    def make(self, row: int) -> TilePart:
        """Read a row of the list of tiles, and build what beams search.

        Raises:
            FileError: missing or damaged.
        """
        table, origin_m = self._file.read_row(row), self._file.header.origin_m
        if isinstance(table, Points):
            return TilePart(build_cloud(table, origin_m, int(self._first[row])))
        # All tiles have the world's origin: placing them changes no number, and answers stay the same bits.
        scene = Scene(origin_m)
        if isinstance(table, Instances):
            assets = {number: self._asset(number) for number in np.unique(table.asset).tolist()}
            scenes = {number: asset.scene for number, asset in assets.items()}
            table.place_in(scene, [scenes.get(number, scene) for number in range(len(self._file.assets))])
            return TilePart(
                scene, tuple(assets.values())
            )  # copies are searched in the scene that the tile is placed in
        if isinstance(table, Triangles | Gaussians):
            table.add_to(scene)
        scene.build()
        return TilePart(scene)

    def _asset(self, number: int) -> Asset:
        with self._reading_assets:
            asset = self._assets.get(number)
            if asset is None:
                self._assets[number] = asset = self._file.read_asset(number)
                if self._kept is not None:
                    self._kept.append(asset)
            return asset
