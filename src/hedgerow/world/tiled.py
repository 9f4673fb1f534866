# SPDX-License-Identifier: Apache-2.0
"""TiledWorld: a world on the disk, of which only the tiles around the beams are in memory.

Beams are fired sweep by sweep. The tiles whose boxes touch the box around a sweep's beams are loaded, each as a scene
of its own, and placed side by side in one scene under their numbers in the world, so that rays cross from tile to tile
and coins fall as in the whole world: the answers are the same bytes, but where two triangles share an edge. Scenes of
tiles are cached as far as the memory goes; the longest unused is dropped first. A sweep that needs more than that is
cut into sectors of azimuth that need less.

Told where the coming sweeps will be fired (`expect`), the world reads their tiles in the background. These count as
those in use do: what is read ahead is what fits beside them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_whole, require_kind
from hedgerow.base.box import Box
from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.world.check import TABLES
from hedgerow.world.elements import Points
from hedgerow.world.learned import ElementWorld, Rows
from hedgerow.world.points import PointScene
from hedgerow.world.prefetch import SWEEPS_AHEAD, Prefetch
from hedgerow.world.scene import Scene, unfolds
from hedgerow.world.store.files import WorldFile
from hedgerow.world.target import Target
from hedgerow.world.tile_parts import TilePart, TileParts
from hedgerow.world.world import WorldSize

if TYPE_CHECKING:
    from hedgerow import _core

_BYTES_EACH = {"triangles": 260, "gaussians": 180, "points": 85, "instances": 120}
"""Memory per element once it has been fired at and scored: measured on a million of each, rounded up. Of triangles and
Gaussians, 30 are for labels: three labels take 28, one takes none. Of instances, each element of each copy counts."""
_BYTES_COPY = 1500
"""Memory per copy of an asset, where copies are not unfolded; the elements of the asset come on top, once."""
_ASSETS_SHARE = 4
"""Assets that take at most one in so many bytes of the budget stay in memory, and are counted once for all tiles."""


class TiledWorld(ElementWorld):
    """A learned world on the disk, with bounded memory."""

    def __init__(
        self,
        path: str | Path,
        *,
        resident_tiles: int | None = None,
        max_bytes: int | None = None,
        prefetch: bool = True,
    ) -> None:
        """Read the settings and the list of tiles; see `load_world`. Without `prefetch`, nothing is read ahead."""
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
        copies = self._tiles.table == list(TABLES).index("instances")
        self._unfolds = unfolds(int(self._tiles.elements[copies].sum()))
        self._assets_bytes = 0 if max_bytes is None else self._bytes_of_kept_assets(budget)
        self._cost = np.ones(len(copies), dtype=np.int64) if max_bytes is None else self._bytes_of_tiles(copies)
        self._budget = budget - self._assets_bytes
        self._parts = TileParts(self._file, keep_assets=self._assets_bytes > 0)
        self._loaded: OrderedDict[int, TilePart] = OrderedDict()
        self._ahead = Prefetch(self._parts.make) if prefetch else None
        self._expected: dict[int, int] = {}  # tiles of coming sweeps, and how soon
        self._last: tuple[NDArray[np.intp], Target] | None = None

    def _bytes_of_kept_assets(self, budget: int) -> int:
        """Return what the assets take that stay in memory: all, or none if they would take too much of the budget."""
        parts = [part for asset in self._file.assets for part in asset.parts]
        total = sum(_BYTES_EACH[part.table] * part.n for part in parts)
        return total if not self._unfolds and _ASSETS_SHARE * total <= budget else 0

    def _bytes_of_tiles(self, copies: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return what each tile takes; `copies` are those of instances."""
        each = np.array([_BYTES_EACH[self._tiles.name(row)] for row in range(len(copies))], dtype=np.int64)
        cost = each * self._tiles.elements
        if self._unfolds:
            return cost
        # Which assets a tile has copies of is not known before it is read: at most all of them, each once.
        stored = 0 if self._assets_bytes else sum(asset.n_elements for asset in self._file.assets)
        assets = np.minimum(self._tiles.elements, stored) * _BYTES_EACH["triangles"]
        return np.where(copies, _BYTES_COPY * self._tiles.n + assets, cost)

    def size(self) -> WorldSize:
        """Count elements, parameters and bytes, of the whole world."""
        return self._file.size

    @property
    def box(self) -> Box | None:
        """From where to where the tiles reach, map frame; None if there are none."""
        return Box(self._tiles.low_m.min(axis=0), self._tiles.high_m.max(axis=0)) if len(self._tiles) else None

    @property
    def loaded_tiles(self) -> list[int]:
        """Which tiles are in use: rows of the list of tiles, longest unused first."""
        return list(self._loaded)

    @property
    def memory(self) -> int:
        """What the tiles in memory take, those that are read ahead included: bytes by estimate, or tiles."""
        tiles = self._cost_of({*self._loaded, *self._rows_ahead()})
        return tiles + (self._assets_bytes if tiles else 0)

    def expect(self, origin_m: ArrayLike, reach_m: float) -> None:
        """Hear where the coming sweeps will be fired, and read their tiles in the background, as far as memory goes.

        Answers do not depend on it. A tile that cannot be read says so when beams need it.

        Args:
            origin_m: (K, 3) from where, map frame, that of the next sweep first [m].
            reach_m: how far; without an end, nothing is read ahead [m].

        Raises:
            InputError: an argument is no such numbers.
        """
        origins = arrays.as_floats("origin_m", origin_m, ("K", 3))
        require_kind("reach_m", reach_m, (int, float, np.integer, np.floating), "metres")
        if self._ahead is None or len(origins) == 0 or not np.isfinite(reach_m):
            return
        coming = self._coming(origins, reach_m)
        self._expected = {row: place for place, row in enumerate(coming)}
        kept: set[int] = set() if self._last is None else set(self._last[0].tolist())
        spent, chosen = self._cost_of(kept), list[int]()
        for row in coming:
            if row not in kept:
                spent += int(self._cost[row])
                if spent > self._budget:
                    break
                chosen.append(row)
        self._ahead.want(())  # what is not begun makes no other tile go
        self._make_room({*kept, *chosen})
        self._ahead.want(row for row in chosen if row not in self._loaded)

    def _coming(self, origin_m: NDArray[np.float64], reach_m: float) -> list[int]:
        """Return the tiles within reach of these places, in the order in which they come into it."""
        reach = reach_m + _margin(reach_m)
        near = self._tiles.within(origin_m.min(axis=0) - reach, origin_m.max(axis=0) + reach)
        low, high = self._tiles.low_m[near] - reach, self._tiles.high_m[near] + reach
        at_m = origin_m[:, None]
        inside: NDArray[np.bool_] = np.asarray(((low <= at_m) & (at_m <= high)).all(axis=2))
        if self._cost_of(near[inside[0]].tolist()) > self._budget:
            return []  # not even one sweep fits: what is read ahead would be dropped before its use
        reached = inside.any(axis=0)
        soonest = np.argsort(inside.argmax(axis=0)[reached], kind="stable")
        return near[reached][soonest].tolist()

    def _rows_ahead(self) -> list[int]:
        return [] if self._ahead is None else self._ahead.rows

    def _cost_of(self, rows: Iterable[int]) -> int:
        return int(self._cost[list(rows)].sum())

    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        sweeps = [rows for _, rows in arrays.group_rows(beams.sweep)]
        first_m = np.array([beams.origin_m[rows][0] for rows in sweeps]).reshape(-1, 3)
        for number, rows in enumerate(sweeps):
            if len(sweeps) > 1:
                self.expect(first_m[number : number + SWEEPS_AHEAD], max_range_m)
            for some, needed in self._groups(beams, rows, max_range_m):
                yield some, self._target(needed)

    def _groups(self, beams: Beams, rows: Rows, max_range_m: float) -> Iterator[tuple[Rows, NDArray[np.intp]]]:
        """Give beams with the tiles that they need, cut so that those fit into the budget."""
        reach_m = self._reach(beams, max_range_m)
        some = beams[rows]
        needed = self._tiles.within(*_wide_box(some, reach_m))
        if self._cost[needed].sum() > self._budget:
            needed = self._tiles.within(*_box(some, reach_m))
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
                f"a single beam needs {cost + self._assets_bytes} {unit}, but only "
                f"{self._budget + self._assets_bytes} may be in memory; "
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
        if self._last is not None and np.array_equal(self._last[0], needed):
            return self._last[1]
        self._last = None  # lets go of its tiles
        self._make_room(set(needed.tolist()))
        scene = Scene(self.header.origin_m, unfold=self._unfolds)
        clouds: list[_core.PointCloud] = []
        for row in needed.tolist():
            part = self._part(row).target
            if isinstance(part, Scene):
                scene.place(part, np.eye(4), first_element=int(self._first[row]))
            else:
                clouds.append(part)
        settings = self._file.settings("points") if clouds else None
        points = PointScene(clouds, self.header.origin_m, settings) if isinstance(settings, Points) else None
        target = Target(scene, points, self.beam)
        self._last = needed, target
        return target

    def _make_room(self, wanted: set[int]) -> None:
        """Drop tiles until those that are wanted fit beside the rest: the longest unused first, the next ones last."""
        ahead = self._rows_ahead()
        held = self._cost_of({*wanted, *self._loaded, *ahead})
        others = [row for row in (*self._loaded, *ahead) if row not in wanted]
        latest = len(self._expected)
        for row in sorted(others, key=lambda row: -self._expected.get(row, latest)):
            if held <= self._budget:
                break
            if self._loaded.pop(row, None) is None and self._ahead is not None:
                self._ahead.drop(row)
            held -= int(self._cost[row])

    def _part(self, row: int) -> TilePart:
        if row in self._loaded:
            self._loaded.move_to_end(row)
            return self._loaded[row]
        part = None if self._ahead is None else self._ahead.take(row)
        self._loaded[row] = part = self._parts.make(row) if part is None else part
        return part


def _box(beams: Beams, reach_m: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high corners of the box around beams of this length."""
    end = beams.origin_m + reach_m * beams.direction.astype(np.float64)
    low = np.minimum(beams.origin_m, end).min(axis=0)
    high = np.maximum(beams.origin_m, end).max(axis=0)
    return low - _margin(reach_m), high + _margin(reach_m)


def _wide_box(beams: Beams, reach_m: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of a box around that of `_box`, wider by as much as origins are apart, but found quickly."""
    low, high = np.empty(3), np.empty(3)
    for axis in range(3):
        origin, direction = beams.origin_m[:, axis], beams.direction[:, axis]
        low[axis] = origin.min() + reach_m * min(0.0, float(direction.min()))
        high[axis] = origin.max() + reach_m * max(0.0, float(direction.max()))
    return low - _margin(reach_m), high + _margin(reach_m)


def _margin(reach_m: float) -> float:
    return 1e-3 + 1e-6 * reach_m  # directions are float32
