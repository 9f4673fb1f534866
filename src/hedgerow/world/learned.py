# SPDX-License-Identifier: Apache-2.0
"""LearnedWorld: tables of elements that beams are fired at. Every model shares this one; its learner fills the tables.

Elements are numbered through: triangles, then Gaussians, then points, each tile by tile, so the tables of a world may
be in another order than those it was made of. What is in memory and what is on the disk number, and randomise, alike.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import arrays
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.sensor import Sensor
from hedgerow.world.check import TABLES, checked, name_of
from hedgerow.world.density import RangeDensity, mixture
from hedgerow.world.elements import Elements, Gaussians, Points, Triangles
from hedgerow.world.header import Position, Provenance, WorldHeader
from hedgerow.world.points import PointScene, build_cloud
from hedgerow.world.scene import Progress, Scene
from hedgerow.world.target import Options, Target
from hedgerow.world.tiles import in_tile_order
from hedgerow.world.world import Shot, World, WorldSize, require_end_of_range

Rows = slice | NDArray[np.intp]


class ElementWorld(World):
    """What worlds of elements can do, wherever the elements are kept."""

    has_noise = True
    has_likelihood = True

    def __init__(self, header: WorldHeader, path: str = "") -> None:
        """Take over what the world says about itself, and where it was read from."""
        super().__init__(min_range_m=header.min_range_m, max_range_m=header.max_range_m)
        self.header = header
        self.path = path

    @property
    def kind(self) -> str:
        """Name of the model."""
        return self.header.kind

    @abstractmethod
    def size(self) -> WorldSize:
        """Count elements, parameters and bytes."""

    @abstractmethod
    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        """Give beams (each once) with all that they can meet."""

    @property
    def map_origin_m(self) -> NDArray[np.float64]:
        """(3,) that of the log it was learned from [m]."""
        return np.array(self.header.map_origin_m)

    def provenance(self) -> dict[str, Any]:
        """Say which model it is, and where it was read from."""
        read_from = {"path": self.path} if self.path else {}
        return {"kind": self.kind, **read_from, "learned_from": self.header.provenance.log}

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Give the first return of each beam: range, intensity, label and element."""
        n = len(beams)
        columns: dict[str, NDArray[Any]] = {
            "range_m": np.empty(n, np.float32),
            "intensity": np.empty(n, np.float32),
            "label": np.empty(n, np.uint16),
            "element": np.empty(n, np.int64),
        }
        done = 0
        for rows, target in self._targets(beams, shot.max_range_m):
            some = beams[rows]
            progress = _after(done, shot.progress)
            options = _options(shot.min_range_m, shot.max_range_m, shot.threads, progress)
            hits = target.fire(some, shot.seed, options)
            at_once = isinstance(rows, slice) and len(some) == len(beams)  # nothing to put together: spare the copy
            for name, column in columns.items():
                if at_once:
                    columns[name] = getattr(hits, name)
                else:
                    column[rows] = getattr(hits, name)
            done += len(some)
            del target  # its tiles may have to go before the next ones come
        return Returns.trusted(columns)

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Give the log density of each pulse's first return, or of its absence, within the log's own limits.

        A world of points is sure of a return or of none (000 §6.2.5).

        Returns:
            (N,) natural logarithms; -inf where the world says it cannot be.

        Raises:
            InputError: the log has missing returns but no maximal range, or the world mixes points with others.
        """
        require_end_of_range(log)
        range_m = np.ascontiguousarray(log.returns.first_m)
        out = np.empty(len(log))
        done = 0
        for rows, target in self._targets(log.beams, log.max_range_m):
            some = log.beams[rows]
            options = _options(log.min_range_m, log.max_range_m, threads, _after(done, progress))
            out[rows] = target.log_likelihood(some, np.ascontiguousarray(range_m[rows]), min_sigma_m, options)
            done += len(some)
            del target
        return out

    def pdf(
        self, beam: Beams, range_m: ArrayLike, *, sensor: Sensor | None = None, min_sigma_m: float = 0.001
    ) -> RangeDensity:
        """Give the density of the range along one beam, and the probability of no return.

        Args:
            beam: one pulse, for example `beams[7:8]`.
            range_m: (M,) ranges at which to evaluate [m].
            sensor: sets the range limits; the world's own if None.
            min_sigma_m: sharper elements, such as noiseless triangles, count as this wide.

        Raises:
            InputError: not exactly one pulse.
        """
        if len(beam) != 1:
            raise InputError("beam", f"expected one pulse, found {len(beam)}; use beams[i:i+1]")
        low, high = self._limits(sensor)
        ranges = arrays.as_floats("range_m", range_m, ("M",))
        ((_, target),) = self._targets(beam, high)
        return mixture(target.crossings(beam, _options(low, high, 0, None)), ranges, low, high, min_sigma_m)


class LearnedWorld(ElementWorld):
    """A learned world in memory."""

    def __init__(
        self,
        *tables: Gaussians | Triangles | Points,
        kind: str,
        parameters: Mapping[str, Any] | None = None,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        map_origin_m: ArrayLike = (0.0, 0.0, 0.0),
        provenance: Provenance | None = None,
        tile_m: float = 32.0,
    ) -> None:
        """Make a world of at most one table of each kind; without any element it is empty space.

        Args:
            tables: what the learner made, map frame.
            kind: name of the model: lower-case letters, digits and dashes.
            parameters: what the learner was told; must fit into JSON, entries that are None are left out.
            min_range_m, max_range_m: range limits where no sensor is named [m].
            map_origin_m: (3,) as in `Log`.
            provenance: what it was learned from.
            tile_m: side of the tiles on the disk [m].

        Raises:
            InputError: a table, column, row or setting is wrong; names it.
        """
        header = WorldHeader(
            kind=kind,
            parameters=dict(parameters or {}),
            min_range_m=min_range_m,
            max_range_m=max_range_m,
            map_origin_m=tuple(np.asarray(map_origin_m).tolist()),
            provenance=provenance or Provenance(),
            tile_m=tile_m,
        )
        self.tables: dict[str, Elements] = {}
        for table in tables:
            name = name_of(table)
            if name in self.tables:
                raise InputError(name, "given twice; expected at most one table of each kind")
            self.tables[name] = in_tile_order(checked(table), tile_m)
        self.tables = {name: self.tables[name] for name in TABLES if name in self.tables}
        super().__init__(replace(header, origin_m=_middle(self.tables)))

    @classmethod
    def trusted(cls, header: WorldHeader, tables: Mapping[str, Elements], path: str = "") -> Self:
        """Make a world of tables that are right by construction: checked, and in tile order."""
        new = cls.__new__(cls)
        ElementWorld.__init__(new, header, path)
        new.tables = dict(tables)
        return new

    def size(self) -> WorldSize:
        """Count elements, parameters and bytes."""
        return WorldSize(
            {name: len(table) for name, table in self.tables.items()},
            sum(table.n_parameters() for table in self.tables.values()),
            sum(column.nbytes for table in self.tables.values() for column in table.columns().values()),
        )

    def save(self, path: str | Path) -> None:
        """Write the world to a folder, by custom `NAME.world`, completely or not at all; an old world is replaced.

        Raises:
            FileError: the folder holds something else, or the system refuses to write.
        """
        from hedgerow.world.store import save_world

        save_world(path, self.header, self.tables, self.size())
        self.path = str(path)

    @property
    def scene(self) -> Scene:
        """The triangles and Gaussians as the engine has them."""
        return self._target.scene

    def labelled_scene(self) -> Scene:
        """Return the scene. Raises InputError if the world remembers points, which have nothing behind them."""
        if len(self.tables.get("points", ())) > 0:
            raise InputError(
                "world", "remembers points, behind which nothing is known; learn another model than points"
            )
        return self.scene

    @cached_property
    def _target(self) -> Target:
        scene = Scene(self.header.origin_m)
        for table in self.tables.values():
            if isinstance(table, Triangles | Gaussians):
                table.add_to(scene)
        points = self.tables.get("points")
        if not isinstance(points, Points) or len(points) == 0:
            return Target(scene)
        cloud = build_cloud(points, self.header.origin_m, scene.n_elements)
        return Target(scene, PointScene([cloud], self.header.origin_m, points))

    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        yield slice(None), self._target


def _middle(tables: Mapping[str, Elements]) -> Position:
    """The middle of all centres, to whole metres: exact in every float."""
    full = [table.centre_m() for table in tables.values() if len(table)]
    if not full:
        return 0.0, 0.0, 0.0
    low = np.min([centre.min(axis=0) for centre in full], axis=0)
    high = np.max([centre.max(axis=0) for centre in full], axis=0)
    x, y, z = np.rint((low + high) / 2).tolist()
    return x, y, z


def _options(low: float, high: float, threads: int, progress: Progress | None) -> Options:
    if not 0 <= threads <= 1024:
        raise InputError("threads", f"expected 0 (all) to 1024, found {threads}")
    return {"min_range_m": low, "max_range_m": high, "threads": threads, "progress": progress}


def _after(done: int, progress: Progress | None) -> Progress | None:
    return None if progress is None else lambda more: progress(done + more)
