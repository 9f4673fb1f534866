# SPDX-License-Identifier: Apache-2.0
"""TiledWorld: a world on the disk, of which only the tiles around the beams are in memory.

Beams are fired sweep by sweep. The tiles whose boxes touch the box around a sweep's beams are loaded, each as a scene
of its own, and placed side by side in one scene under their numbers in the world, so that rays cross from tile to tile
and coins fall as in the whole world: the answers are the same bytes, but where two triangles share an edge. Scenes of
tiles are cached as far as the memory goes; the longest unused is dropped first. A sweep that needs more than that is
cut into sectors of azimuth that need less.
"""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_whole
from hedgerow.base.box import Box
from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Instances, Points, Triangles
from hedgerow.world.learned import ElementWorld, Rows
from hedgerow.world.points import PointScene, build_cloud
from hedgerow.world.scene import Scene
from hedgerow.world.store.files import WorldFile
from hedgerow.world.target import Target
from hedgerow.world.world import WorldSize

if TYPE_CHECKING:
    from hedgerow import _core

_BYTES_EACH = {"triangles": 260, "gaussians": 180, "points": 85, "instances": 120}
"""Memory per element once it has been fired at and scored: measured on a million of each, rounded up. Of triangles and
Gaussians, 30 are for labels: three labels take 28, one takes none."""


class TiledWorld(ElementWorld):
    """A learned world on the disk, with bounded memory."""

    def __init__(self, path: str | Path, *, resident_tiles: int | None = None, max_bytes: int | None = None) -> None:
        """Read the settings and the list of tiles; see `load_world`."""
        if (resident_tiles is None) == (max_bytes is None):
            raise InputError("resident_tiles, max_bytes", "give one of the two")
        given = max_bytes if resident_tiles is None else resident_tiles
        budget = as_whole("resident_tiles, max_bytes", 0 if given is None else given, 1, 2**62, "1 or more")
        self._file = WorldFile(path)
        super().__init__(self._file.header, str(path))
        self._tiles = self._file.tiles
        if self._file.size.tables.get("beams"):
            raise InputError("world", f"{path} remembers beams, which are searched all at once; open it as a whole")
        self._first = self._tiles.first
        each = np.array([_BYTES_EACH[self._tiles.name(row)] for row in range(len(self._tiles))], dtype=np.int64)
        self._cost = np.ones(len(each), dtype=np.int64) if max_bytes is None else each * self._tiles.elements
        self._budget = budget
        self._assets: WeakValueDictionary[int, Asset] = WeakValueDictionary()  # those that loaded tiles have copies of
        self._of_tile: dict[int, list[Asset]] = {}
        self._loaded: OrderedDict[int, Scene | _core.PointCloud] = OrderedDict()
        self._last: tuple[bytes, Target] | None = None

    def size(self) -> WorldSize:
        """Count elements, parameters and bytes, of the whole world."""
        return self._file.size

    @property
    def box(self) -> Box | None:
        """From where to where the tiles reach, map frame; None if there are none."""
        return Box(self._tiles.low_m.min(axis=0), self._tiles.high_m.max(axis=0)) if len(self._tiles) else None

    @property
    def loaded_tiles(self) -> list[int]:
        """Which tiles are in memory: rows of the list of tiles, longest unused first."""
        return list(self._loaded)

    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        for _, rows in arrays.group_rows(beams.sweep):
            for some, needed in self._groups(beams, rows, max_range_m):
                yield some, self._target(needed)

    def _groups(self, beams: Beams, rows: Rows, max_range_m: float) -> Iterator[tuple[Rows, NDArray[np.intp]]]:
        """Give beams with the tiles that they need, cut so that those fit into the budget."""
        reach_m = self._reach(beams, max_range_m)
        some = beams[rows]
        needed = self._tiles.within(*_box(some, reach_m))
        if self._cost[needed].sum() > self._budget:
            needed = needed[[self._is_crossed(row, some, reach_m) for row in needed.tolist()]]
        cost = int(self._cost[needed].sum())
        if cost <= self._budget:
            yield rows, needed
            return
        each = np.arange(len(beams))[rows]
        if len(each) == 1:
            unit = "tiles" if self._cost.max() == 1 else "bytes"
            raise InputError(
                "world",
                f"a single beam needs {cost} {unit}, but only {self._budget} may be in memory; "
                f"allow more, or fire with a lower max_range_m",
            )
        direction = beams.direction[each]
        around = each[np.argsort(np.arctan2(direction[:, 1], direction[:, 0]), kind="stable")]
        for half in np.array_split(around, 2):
            yield from self._groups(beams, half, max_range_m)

    def _is_crossed(self, row: int, beams: Beams, reach_m: float) -> bool:
        """Tell whether a beam comes through the box of a tile."""
        margin = _margin(reach_m)
        near, far = np.zeros(len(beams)), np.full(len(beams), reach_m + margin)
        for axis in range(3):
            origin, direction = beams.origin_m[:, axis], beams.direction[:, axis].astype(np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                a = (self._tiles.low_m[row, axis] - margin - origin) / direction
                b = (self._tiles.high_m[row, axis] + margin - origin) / direction
            # NaN, of a beam that runs within the face of a box, narrows nothing.
            near, far = np.fmax(near, np.fmin(a, b)), np.fmin(far, np.fmax(a, b))
        return bool((near <= far).any())

    def _reach(self, beams: Beams, max_range_m: float) -> float:
        """Return how far beams need to be followed: no farther than the farthest corner of the world."""
        if np.isfinite(max_range_m) or len(self._tiles) == 0:
            return max_range_m if np.isfinite(max_range_m) else 0.0
        low = np.minimum(self._tiles.low_m.min(axis=0), beams.origin_m.min(axis=0))
        high = np.maximum(self._tiles.high_m.max(axis=0), beams.origin_m.max(axis=0))
        return float(np.linalg.norm(high - low))

    def _target(self, needed: NDArray[np.intp]) -> Target:
        key = needed.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self._last = None  # lets go of its tiles
        self._make_room(needed)
        scene = Scene(self.header.origin_m)
        clouds: list[_core.PointCloud] = []
        for row in needed.tolist():
            part = self._part(row)
            if isinstance(part, Scene):
                scene.place(part, np.eye(4), first_element=int(self._first[row]))
            else:
                clouds.append(part)
        settings = self._file.settings("points") if clouds else None
        points = PointScene(clouds, self.header.origin_m, settings) if isinstance(settings, Points) else None
        target = Target(scene, points, self.beam)
        self._last = key, target
        return target

    def _make_room(self, needed: NDArray[np.intp]) -> None:
        """Drop tiles, longest unused first, until those that are needed fit beside the rest."""
        wanted = set(needed.tolist())
        held = int(self._cost[list(wanted | set(self._loaded))].sum())
        for row in [row for row in self._loaded if row not in wanted]:
            if held <= self._budget:
                break
            del self._loaded[row]
            self._of_tile.pop(row, None)
            held -= int(self._cost[row])

    def _part(self, row: int) -> "Scene | _core.PointCloud":
        if row in self._loaded:
            self._loaded.move_to_end(row)
            return self._loaded[row]
        table = self._file.read_row(row)
        if isinstance(table, Instances):
            part = Scene(self.header.origin_m)
            assets = {number: self._asset(number) for number in np.unique(table.asset).tolist()}
            self._of_tile[row] = list(assets.values())
            scenes = {number: asset.scene for number, asset in assets.items()}
            table.place_in(part, [scenes.get(number, part) for number in range(len(self._file.assets))])
        elif isinstance(table, Points):
            part = build_cloud(table, self.header.origin_m, int(self._first[row]))
        else:
            # All tiles have the world's origin: placing them changes no number, and answers stay the same bits.
            part = Scene(self.header.origin_m)
            if isinstance(table, Triangles | Gaussians):
                table.add_to(part)
        self._loaded[row] = part
        return part

    def _asset(self, number: int) -> Asset:
        asset = self._assets.get(number)
        if asset is None:
            self._assets[number] = asset = self._file.read_asset(number)
        return asset


def _box(beams: Beams, reach_m: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high corners of the box around beams of this length."""
    end = beams.origin_m + reach_m * beams.direction.astype(np.float64)
    low = np.minimum(beams.origin_m, end).min(axis=0)
    high = np.maximum(beams.origin_m, end).max(axis=0)
    return low - _margin(reach_m), high + _margin(reach_m)


def _margin(reach_m: float) -> float:
    return 1e-3 + 1e-6 * reach_m  # directions are float32
