# SPDX-License-Identifier: Apache-2.0
"""LearnedWorld: tables of elements that beams are fired at, the same for every model; only the learner differs.

Elements are numbered through: triangles, then Gaussians, then points, each tile by tile, so the tables of a world may
be in another order than those it was made of. Worlds in memory and on the disk (`TiledWorld`) share numbers, and with
them random numbers: both are an `ElementWorld`, which fires at one `Target` after the other. A world in memory is one
target; of a world on the disk, the tiles around the beams of the moment are one.

Equations: docs/models.md §5.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_number, as_positive, as_whole, require_each, require_kind
from hedgerow.base.box import Box
from hedgerow.base.places import as_place, is_address
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.log import MISSING, Beams, Log, Returns, require_limits
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.sensor import Sensor
from hedgerow.world.assets import Asset, instances_of, require_assets, spread_instances
from hedgerow.world.check import TABLES, check_table, name_of
from hedgerow.world.elements import Elements, Gaussians, Instances, Points, RememberedBeams, Triangles
from hedgerow.world.forecast import Forecast, join_forecasts
from hedgerow.world.points import PointScene, Remembered, build_cloud
from hedgerow.world.scene import Scene, unfolds
from hedgerow.world.store.header import Position, Provenance, WorldHeader
from hedgerow.world.store.tiles import in_tile_order
from hedgerow.world.target import RangeDensity, Target, mix_densities, options_of
from hedgerow.world.world import Answered, Shot, World, WorldSize, require_end_of_range, require_far_limit

_LEAST_TILE_M = 0.001
Rows = slice | NDArray[np.intp]
"""Some of the beams."""


class _Joined:
    """Answers of some beams at a time, put together in the order of the beams."""

    def __init__(self, n: int) -> None:
        self.done = 0
        self._n = n
        self._only: Answered | None = None
        self._columns: dict[str, NDArray[Any]] = {}
        self._noisy: NDArray[np.bool_] | None = None

    def add(self, rows: Rows, n_rows: int, answered: Answered) -> None:
        self.done += n_rows
        if isinstance(rows, slice) and n_rows == self._n:  # nothing to put together: spare the copy
            self._only = answered
            return
        for each in fields(answered.returns):
            column: NDArray[Any] | None = getattr(answered.returns, each.name)
            if column is None:
                continue
            if each.name not in self._columns:
                missing = MISSING.get(each.name, np.float32(np.inf))
                self._columns[each.name] = np.full((self._n, *column.shape[1:]), missing)
            self._columns[each.name][rows] = column
        if answered.noisy is not None:
            if self._noisy is None:
                self._noisy = np.zeros(self._n, dtype=bool)
            self._noisy[rows] = answered.noisy

    def answered(self) -> Answered:
        if self._only is not None:
            return self._only
        nothing = {"range_m": np.float32(np.inf), **{name: MISSING[name] for name in ("intensity", "label", "element")}}
        empty = {name: np.full(self._n, missing) for name, missing in nothing.items()}
        return Answered(Returns.without_checks(empty | self._columns), self._noisy)


BEAM = "beam"
"""Name of the settings of pulses among a world's parameters."""


class ElementWorld(World):
    """A learned world, in memory or on the disk."""

    has_likelihood = True

    def __init__(self, header: WorldHeader, path: str = "") -> None:
        """Take over what the world says about itself, and where it was read from."""
        super().__init__(min_range_m=header.min_range_m, max_range_m=header.max_range_m)
        self.header = header
        self.path = path
        # Meshes among the elements have no noise of their own; each return then says whether it has.
        self.has_noise = self.axis_answers = BEAM not in header.parameters

    @property
    def kind(self) -> str:
        """Name of the model."""
        return self.header.kind

    @abstractmethod
    def size(self) -> WorldSize:
        """Count elements, parameters and bytes."""

    @abstractmethod
    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        """Give the beams, each once, with what they can meet."""

    @property
    def map_origin_m(self) -> NDArray[np.float64]:
        """(3,) that of the log it was learned from [m]."""
        return np.array(self.header.map_origin_m)

    def provenance(self) -> dict[str, Any]:
        """Return which model it is, and where it was read from."""
        read_from = {"path": self.path} if self.path else {}
        return {"kind": self.kind, **read_from, "learned_from": self.header.provenance.log}

    @property
    def classes(self) -> dict[str, int]:
        """Numbers of the classes that its labels are of, by name."""
        return self.header.classes

    @cached_property
    def beam(self) -> BeamSettings:
        """How pulses are sampled and received, where meshes stand among the elements."""
        return BeamSettings.parse(self.header.parameters.get(BEAM, {}), "the world's beam")

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Return what comes back of each beam: range, intensity, label, element, and object where there are any."""
        return self.answered(beams, shot).returns

    def answered(self, beams: Beams, shot: Shot) -> Answered:
        """Return what comes back, and which of it has noise: what was learned has, meshes have not."""
        joined = _Joined(len(beams))
        for rows, target in self._targets(beams, shot.max_range_m):
            some = beams[rows]
            joined.add(rows, len(some), target.answered(some, shot, _after(joined.done, shot.progress)))
            del target  # its tiles may have to go before the next ones come
        return joined.answered()

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each pulse's first return, or of its absence, within the log's own limits.

        A world of points is sure of a return or of none (Browning 2012 §6.2.5).

        Returns:
            (N,) natural logarithms; -inf where the world says that this cannot be.

        Raises:
            InputError: the log has missing returns but no maximal range, or the world mixes points with others.
        """
        require_end_of_range(log)
        as_number("min_sigma_m", min_sigma_m, 0, arrays.FARTHEST_M)
        sensor = Sensor.of(log)
        out = np.empty(len(log))
        done = 0
        for rows, target in self._targets(log.beams, log.max_range_m):
            some = log[rows]
            how: dict[str, Any] = {"min_sigma_m": min_sigma_m, "threads": threads, "progress": _after(done, progress)}
            out[rows] = target.log_likelihood(some, sensor, **how)
            done += len(some)
            del target
        return out

    def _forecast(self, beams: Beams, shot: Shot, range_m: NDArray[np.float32] | None, draws: int) -> Forecast:
        if self.vegetation is not None:
            return super()._forecast(beams, shot, range_m, draws)
        require_far_limit(shot.max_range_m)
        found: list[tuple[Rows, Forecast]] = []
        done = 0
        for rows, target in self._targets(beams, shot.max_range_m):
            if not target.knows_forecast:
                return super()._forecast(beams, shot, range_m, draws)
            some = beams[rows]
            options = options_of(shot.min_range_m, shot.max_range_m, shot.threads, _after(done, shot.progress))
            found.append((rows, target.scene.forecast(some, None if range_m is None else range_m[rows], **options)))
            done += len(some)
            del target
        return join_forecasts(found, len(beams))

    def pdf(
        self, beam: Beams, range_m: ArrayLike, *, sensor: Sensor | None = None, min_sigma_m: float = 0.001
    ) -> RangeDensity:
        """Return the density of the range along one beam, and the probability of no return.

        Args:
            beam: one pulse, for example `beams[7:8]`.
            range_m: (M,) ranges at which to evaluate [m].
            sensor: sets the range limits; the world's own if None.
            min_sigma_m: sharper elements, such as noiseless triangles, count as this wide.

        Raises:
            InputError: not exactly one pulse.
        """
        require_kind("beam", beam, Beams, "Beams, one of them")
        if len(beam) != 1:
            raise InputError("beam", f"expected one pulse, found {len(beam)}; use beams[i:i+1]")
        require_kind("sensor", sensor, (Sensor, NoneType), "a Sensor")
        as_positive("min_sigma_m", min_sigma_m)
        low, high = self._limits(sensor)
        ranges = arrays.as_floats("range_m", range_m, ("M",))
        ((_, target),) = self._targets(beam, high)
        return mix_densities(target.crossings(beam, options_of(low, high, 0, None)), ranges, low, high, min_sigma_m)


class LearnedWorld(ElementWorld):
    """A learned world in memory."""

    def __init__(
        self,
        *tables: Gaussians | Triangles | Points | RememberedBeams | Instances,
        kind: str,
        assets: Sequence[Asset] = (),
        classes: Mapping[str, int] | None = None,
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
            assets: what its instances are copies of; without instances, a library.
            classes: numbers of the classes that its labels are of, by name.
            parameters: parameters of the model; must fit into JSON, entries that are None are left out.
            min_range_m, max_range_m: range limits where no sensor is named [m].
            map_origin_m: (3,) as in `Log`.
            provenance: what it was learned from.
            tile_m: side of the tiles on the disk [m].

        Raises:
            InputError: a table, column, row or setting is wrong; names it.
        """
        require_limits(min_range_m, max_range_m)
        as_number("tile_m", tile_m, _LEAST_TILE_M, arrays.FARTHEST_M)
        require_kind("kind", kind, str, "the name of a model")
        require_kind("parameters", parameters, (Mapping, NoneType), "values by name")
        require_kind("provenance", provenance, (Provenance, NoneType), "a Provenance")
        header = WorldHeader(
            kind=kind,
            parameters=dict(parameters or {}),
            min_range_m=min_range_m,
            max_range_m=max_range_m,
            map_origin_m=_position("map_origin_m", map_origin_m),
            provenance=provenance or Provenance(),
            tile_m=tile_m,
            classes=dict(classes or {}),
        )
        self.tables: dict[str, Elements] = {}
        self.assets = tuple(assets)
        require_each("assets", self.assets, Asset)
        for table in tables:
            name = name_of(table)
            if name in self.tables:
                raise InputError(name, "given twice; expected at most one table of each kind")
            self.tables[name] = in_tile_order(check_table(table), tile_m)
        self.tables = {name: self.tables[name] for name in TABLES if name in self.tables}
        require_assets(self.assets, self.tables.get("instances"))
        super().__init__(replace(header, origin_m=_middle(self.tables)))

    @classmethod
    def without_checks(
        cls, header: WorldHeader, tables: Mapping[str, Elements], path: str = "", assets: Sequence[Asset] = ()
    ) -> Self:
        """Make a world of tables that are right by construction: checked, and in tile order."""
        new = cls.__new__(cls)
        ElementWorld.__init__(new, header, path)
        new.tables = dict(tables)
        new.assets = tuple(assets)
        return new

    def size(self) -> WorldSize:
        """Count elements, parameters and bytes."""
        return WorldSize(
            {name: len(table) for name, table in self.tables.items()},
            sum(table.n_parameters() for table in (*self.tables.values(), *self.assets)),
            sum(column.nbytes for table in self.tables.values() for column in table.columns().values())
            + sum(asset.n_bytes() for asset in self.assets),
        )

    def spread(self, most: int = 2_000_000) -> dict[str, Elements]:
        """Return the tables with all copies of assets as elements of their own, for pictures, by name.

        Of more than `most` elements of copies, some are left out, evenly.
        """
        own = {name: table for name, table in self.tables.items() if not isinstance(table, Instances)}
        instances = self.tables.get("instances")
        return own | (spread_instances(self.assets, instances, most) if isinstance(instances, Instances) else {})

    def coarser(self, elements: int) -> "LearnedWorld":
        """Return this world with about so many elements, merged by what it costs in likelihood (world/coarser.py).

        Tables of the world and each of its assets keep the same share of their elements; instances stay as they are.

        Raises:
            InputError: `elements` is no number above 0.
        """
        from hedgerow.world.coarser import coarser_tables

        as_whole("elements", elements, 1, 2**40, "1 or more")
        own = {name: table for name, table in self.tables.items() if not isinstance(table, Instances)}
        n_own, n_assets = sum(map(len, own.values())), sum(asset.n_elements for asset in self.assets)
        share = min(1.0, elements / max(1, n_own + n_assets))
        tables = coarser_tables(own, max(1, round(share * n_own))) if n_own else own
        assets = [_coarser_asset(asset, share) for asset in self.assets]
        instances = self.tables.get("instances")
        if isinstance(instances, Instances):
            placed = (instances.asset, instances.transform)
            kept = {name: getattr(instances, name) for name in ("label", "class_label", "object")}
            tables = {**tables, "instances": instances_of(assets, *placed, **kept)}
        ordered = {name: in_tile_order(check_table(tables[name]), self.header.tile_m) for name in self.tables}
        return LearnedWorld.without_checks(self.header, ordered, assets=assets)

    def save(self, path: str | Path) -> None:
        """Write the world to a folder, by custom `NAME.world`, completely or not at all; an old world is replaced.

        Raises:
            FileError: the folder holds something else, or the system refuses to write.
        """
        from hedgerow.world.store.files import save_world

        save_world(path, self.header, self.tables, self.size(), self.assets)
        self.path = str(as_place(path)) if is_address(path) else str(path)

    @property
    def box(self) -> Box | None:
        """From where to where the elements reach, map frame; None if there are none."""
        return self._box

    @cached_property
    def _box(self) -> Box | None:
        remembered = [table for table in self.tables.values() if isinstance(table, Points | RememberedBeams)]
        bounds = [table.bounds_m() for table in remembered if len(table)]
        return Box.joined([self.scene.box, *(Box(low.min(axis=0), high.max(axis=0)) for low, high in bounds)])

    @property
    def scene(self) -> Scene:
        """The triangles and Gaussians, as the core has them."""
        return self._target.scene

    def labelled_scene(self) -> Scene:
        """Return the scene. Raises InputError if the world remembers points, which have nothing behind them."""
        if self._target.points is not None:
            raise InputError(
                "world", "remembers points, behind which nothing is known; learn another model than points"
            )
        return self.scene

    def scene_of(self, new_scene: Callable[[], Scene]) -> Scene:
        """Return the triangles, Gaussians and instances as a scene of another kind; `new_scene` makes an empty one."""
        return self._fill(new_scene(), [asset.scene_of(new_scene) for asset in self.assets])

    def _fill(self, scene: Scene, assets: Sequence[Scene]) -> Scene:
        for table in self.tables.values():
            if isinstance(table, Triangles | Gaussians):
                table.add_to(scene)
        if isinstance(instances := self.tables.get("instances"), Instances):
            instances.place_in(scene, assets)
        return scene

    @cached_property
    def _target(self) -> Target:
        own = sum(len(table) for table in self.tables.values() if isinstance(table, Triangles | Gaussians))
        remembered = self._remembered(own)
        if remembered is not None and len(self.tables.get("instances", ())):
            raise InputError("world", "remembers points or beams, which cannot stand beside instances of assets")
        instances = self.tables.get("instances")
        n_copies = int(instances.n_elements().sum()) if instances is not None else 0
        empty = Scene(self.header.origin_m, unfold=unfolds(n_copies))
        scene = self._fill(empty, [asset.scene for asset in self.assets])
        return Target(scene, remembered, self.beam)

    def _remembered(self, first: int) -> Remembered | None:
        """The remembered points or beams, numbered from `first`; None if there are none."""
        points, beams = self.tables.get("points"), self.tables.get("beams")
        if isinstance(points, Points) and len(points):
            cloud = build_cloud(points, self.header.origin_m, first)
            return PointScene([cloud], self.header.origin_m, points)
        if isinstance(beams, RememberedBeams) and len(beams):
            from hedgerow.world.remembered_beams import BeamScene  # here: SciPy's trees take a while to import

            return BeamScene(beams, self.header.origin_m, first)
        return None

    def _targets(self, beams: Beams, max_range_m: float) -> Iterator[tuple[Rows, Target]]:
        yield slice(None), self._target


def _coarser_asset(asset: Asset, share: float) -> Asset:
    from hedgerow.world.coarser import coarser_tables

    parts: list[Triangles | Gaussians] = []
    for part in asset.parts:
        name = name_of(part)
        merged = coarser_tables({name: part}, max(1, round(share * len(part))))[name] if len(part) else part
        assert isinstance(merged, Triangles | Gaussians)
        parts.append(merged)
    return Asset(asset.name, tuple(parts), asset.about)


def _position(name: str, values: ArrayLike) -> Position:
    """Return three coordinates; raises InputError if they are none."""
    numbers = arrays.as_floats(name, values, (3,))
    arrays.require_coordinates(name, numbers)
    x, y, z = numbers.tolist()
    return x, y, z


def _middle(tables: Mapping[str, Elements]) -> Position:
    """The middle of all centres, to whole metres: exact in every float."""
    full = [table.centre_m() for table in tables.values() if len(table)]
    if not full:
        return 0.0, 0.0, 0.0
    low = np.min([centre.min(axis=0) for centre in full], axis=0)
    high = np.max([centre.max(axis=0) for centre in full], axis=0)
    x, y, z = np.rint((low + high) / 2).tolist()
    return x, y, z


def _after(done: int, progress: Progress | None) -> Progress | None:
    return None if progress is None else lambda more: progress(done + more)
