# SPDX-License-Identifier: Apache-2.0
"""Beams, Returns and Log: what a lidar fired and what came back. Read this file first.

A simulator is a function from beams to returns, and a recording is beams with their returns, so real and simulated
data are one type, `Log`. All arrays have one row per pulse and are in the map frame (REP 103: x forward or east, y
left or north, z up; metres, right-handed). They are checked once, when the object is made, and are read-only and
C-ordered from then on; selections of checked data are not checked again.

    log = Log.from_arrays(origins=origins, directions=directions, ranges=ranges, max_range_m=100)
    near = log[log.returns.first_m < 10]
    cloud = log.select(sweep=range(5, 10), ring=3).points()
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_number, require_each, require_kind
from hedgerow.base.arrays import Index, Numbers
from hedgerow.base.columns import Table, require_agreement, set_fields
from hedgerow.base.rgb import COLOURS, pack_rgb, unpack_rgb
from hedgerow.errors import InputError

_Missing = np.float32 | np.uint16 | np.uint32 | np.int64
MISSING: dict[str, _Missing] = {
    "intensity": np.float32(np.nan),
    "label": np.uint16(0),
    "colour": np.uint32(0),
    "element": np.int64(-1),
    "object": np.uint32(0),
}
"""What the columns of `Returns` hold where the range is inf. One fixed value makes equal data equal bit for bit."""
MEASURED = ("intensity", "label", "colour")
"""Columns of `Returns` that recordings have beside the range."""


@dataclass(frozen=True, slots=True, eq=False)
class Beams(Table):
    """N laser pulses in the map frame.

    The constructor takes arrays of exactly these types; `from_arrays` converts. Raises InputError naming the array
    and the row where a type, a shape or a value is wrong; coordinates lie within ±1e8 m of the map's zero.
    `beams[...]` takes a slice, a mask or positions.
    """

    origin_m: NDArray[np.float64]
    """(N, 3) where each pulse left the sensor [m]."""
    direction: NDArray[np.float32]
    """(N, 3) of unit length."""
    time_ns: NDArray[np.int64]
    """(N,) when it was fired [ns]."""
    ring: NDArray[np.uint16]
    """(N,) laser or channel, numbered as the sensor's driver does."""
    sweep: NDArray[np.int32]
    """(N,) the turn or frame it belongs to."""
    pulse: NDArray[np.int64]
    """(N,) identity: random numbers are keyed by it, so firing a slice gives the slice of the firing."""

    def __post_init__(self) -> None:
        """Check every value once."""
        origin_m = arrays.require("origin_m", self.origin_m, np.float64, ("N", 3))
        n = len(origin_m)
        direction = arrays.require("direction", self.direction, np.float32, (n, 3))
        arrays.require_coordinates("origin_m", origin_m)
        arrays.require_unit("direction", direction)
        checked = {"origin_m": origin_m, "direction": direction}
        for name, dtype in (("time_ns", np.int64), ("ring", np.uint16), ("sweep", np.int32), ("pulse", np.int64)):
            checked[name] = arrays.require(name, getattr(self, name), dtype, (n,))
        arrays.require_times("time_ns", checked["time_ns"])
        set_fields(self, checked)

    @classmethod
    def from_arrays(
        cls,
        *,
        origins: ArrayLike,
        directions: ArrayLike,
        times: ArrayLike | None = None,
        rings: ArrayLike | None = None,
        sweeps: ArrayLike | None = None,
        pulses: ArrayLike | None = None,
    ) -> Self:
        """Make beams from plain arrays or lists.

        Args:
            origins: (N, 3), or (3,) for one origin of all, map frame [m].
            directions: (N, 3), map frame; lengths within 1e-3 of 1 are made exact.
            times: (N,) or one number; floats are seconds, integers nanoseconds. Default 0.
            rings, sweeps: (N,) or one number. Default 0.
            pulses: (N,). Default 0 to N - 1.

        Raises:
            InputError: wrong shape or value; names the argument and the row.
        """
        direction = arrays.as_units("directions", directions)
        n = len(direction)
        return cls(
            origin_m=np.broadcast_to(arrays.as_floats("origins", origins, (3,), (n, 3)), (n, 3)),
            direction=direction,
            time_ns=arrays.as_time_ns("times", 0 if times is None else times, n),
            ring=arrays.as_integers("rings", 0 if rings is None else rings, (n,), np.uint16),
            sweep=arrays.as_integers("sweeps", 0 if sweeps is None else sweeps, (n,), np.int32),
            pulse=arrays.as_integers("pulses", np.arange(n) if pulses is None else pulses, (n,), np.int64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join beams in the given order; pulse ids are kept if the parts' id intervals do not overlap.

        Otherwise the pulses are numbered anew from 0, so that no two share their random numbers.
        """
        joined = cls.join(parts)  # which checks them
        spans = sorted((part.pulse.min(), part.pulse.max()) for part in parts if len(part))
        if all(last < first for (_, last), (first, _) in pairwise(spans)):
            return joined
        return cls.without_checks(joined.columns() | {"pulse": np.arange(len(joined), dtype=np.int64)})

    def select(self, *, sweep: Numbers | None = None, ring: Numbers | None = None) -> Self:
        """Keep the pulses of these sweeps and rings: a number, a range or a list of each."""
        return self[arrays.is_member(self.sweep, sweep) & arrays.is_member(self.ring, ring)]

    @property
    def time_s(self) -> NDArray[np.float64]:
        """(N,) firing times [s]; of Unix times float64 keeps microseconds, `time_ns` is exact."""
        return self.time_ns / 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Returns(Table):
    """What came back: (N,) arrays for one return per pulse, (N, R) for R >= 2 of them, nearest first.

    Where nothing came back the range is inf, the intensity NaN, label, colour and object 0 and the element -1. An array
    is None if nothing is known of it. Raises InputError naming the array and the row that is wrong.
    """

    range_m: NDArray[np.float32]
    """Distance along the beam [m], above 0; inf is no return."""
    intensity: NDArray[np.float32] | None = None
    """As the sensor reports it; NaN is none."""
    label: NDArray[np.uint16] | None = None
    """Semantic class; 0 is unlabelled."""
    element: NDArray[np.int64] | None = None
    """Which element of the simulated world made the return; -1 is none."""
    colour: NDArray[np.uint32] | None = None
    """What a camera saw there, 0xRRGGBB; black, 0, without a return. `rgb` parts it."""
    object: NDArray[np.uint32] | None = None
    """Which plant or thing made the return; 0 is none. One number is one object through the whole log."""

    def __post_init__(self) -> None:
        """Check every value once."""
        range_m = arrays.require("range_m", self.range_m, np.float32, ("N",), ("N", "R"))
        _require_ranges("range_m", range_m)
        intensity = _require_return_column("intensity", self.intensity, range_m, MISSING["intensity"])
        label = _require_return_column("label", self.label, range_m, MISSING["label"])
        element = _require_return_column("element", self.element, range_m, MISSING["element"])
        colour = _require_return_column("colour", self.colour, range_m, MISSING["colour"])
        if colour is not None and (colour > COLOURS).any():
            row = arrays.first_row(colour > COLOURS)
            raise arrays.RowError("colour", row, f"is {colour[row].tolist()}; expected at most 0xFFFFFF")
        set_fields(self, {"range_m": range_m, "intensity": intensity, "label": label, "element": element})
        objects = _require_return_column("object", self.object, range_m, MISSING["object"])
        set_fields(self, {"colour": colour, "object": objects})

    @classmethod
    def from_arrays(
        cls,
        *,
        ranges: ArrayLike,
        intensities: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        colours: ArrayLike | None = None,
    ) -> Self:
        """Make returns from plain arrays or lists, all (N,) or all (N, R); see `Log.from_arrays`."""
        range_m = _as_ranges("ranges", ranges)
        return cls(
            range_m=range_m,
            intensity=_as_return_column("intensities", intensities, range_m, MISSING["intensity"]),
            label=_as_return_column("labels", labels, range_m, MISSING["label"]),
            colour=None if colours is None else _as_colours("colours", colours, range_m),
        )

    @property
    def first_m(self) -> NDArray[np.float32]:
        """(N,) range of the nearest return of each pulse [m], inf if there is none."""
        return self.range_m if self.range_m.ndim == 1 else self.range_m[:, 0]

    def first(self, name: str) -> NDArray[Any] | None:
        """Return the (N,) column of this name, for example intensity, of the nearest returns; None if it is unknown."""
        column = getattr(self, name)
        return column if column is None or column.ndim == 1 else column[:, 0]

    @property
    def n_per_pulse(self) -> int:
        """How many returns a pulse can have, R."""
        return 1 if self.range_m.ndim == 1 else self.range_m.shape[1]

    @property
    def rgb(self) -> NDArray[np.uint8] | None:
        """Red, green and blue of each return, (N, 3) or (N, R, 3); None if no colour is known."""
        return None if self.colour is None else unpack_rgb(self.colour)

    def where(self, mine: NDArray[np.bool_], other: Self) -> Self:
        """Return these returns where a mask over the pulses is True, and the other's, of the same arrays, elsewhere."""
        columns = {each.name: (getattr(self, each.name), getattr(other, each.name)) for each in fields(self)}
        chosen: dict[str, Any] = {
            name: None if a is None else np.where(mine if a.ndim == 1 else mine[:, None], a, b)
            for name, (a, b) in columns.items()
        }
        return type(self)(**chosen)

    @property
    def hit(self) -> NDArray[np.bool_]:
        """True where there is a return, in the shape of `range_m`."""
        return np.isfinite(self.range_m)


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Beams with their returns, real or simulated.

    "No return" means that nothing came back from within the range limits, so no finite range lies outside them.
    Raises InputError if beams and returns differ in length, or a range lies outside the limits.
    """

    beams: Beams
    returns: Returns
    sensor: str = ""
    """Name of the lidar; empty if unknown."""
    min_range_m: float = 0.0
    max_range_m: float = float("inf")
    map_origin_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) what to add to map coordinates to get the outer frame, for example UTM [m]."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """Whatever else belongs to the log (seed, settings); must fit into JSON to be stored."""

    def __post_init__(self) -> None:
        """Check every value once."""
        require_kind("beams", self.beams, Beams, "Beams")
        require_kind("returns", self.returns, Returns, "Returns")
        require_kind("sensor", self.sensor, str, "the name of a lidar")
        require_kind("metadata", self.metadata, Mapping, "values by name")
        if len(self.beams) != len(self.returns):
            raise InputError("log", f"{len(self.beams)} beams but {len(self.returns)} returns; expected equal lengths")
        _require_within("range_m", self.returns.range_m, self.min_range_m, self.max_range_m)
        origin_m = arrays.as_floats("map_origin_m", self.map_origin_m, (3,))
        arrays.require_coordinates("map_origin_m", origin_m)
        set_fields(self, {"min_range_m": float(self.min_range_m), "max_range_m": float(self.max_range_m)})
        set_fields(self, {"map_origin_m": arrays.read_only(origin_m.copy()), "metadata": dict(self.metadata)})

    @classmethod
    def from_arrays(
        cls,
        *,
        origins: ArrayLike,
        directions: ArrayLike,
        ranges: ArrayLike,
        times: ArrayLike | None = None,
        rings: ArrayLike | None = None,
        sweeps: ArrayLike | None = None,
        intensities: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        colours: ArrayLike | None = None,
        max_range_m: float = float("inf"),
        min_range_m: float = 0.0,
        sensor: str = "",
        map_origin_m: ArrayLike | None = None,
    ) -> Self:
        """Make a log from plain arrays or lists; what is not listed here is as in `Beams.from_arrays`.

        Args:
            ranges: (N,), or (N, R) nearest first [m]; inf is no return, and what stands beside it is dropped.
            intensities, labels: in the shape of `ranges`.
            colours: red, green and blue, 0 to 255, in the last axis; else in the shape of `ranges`.
            max_range_m, min_range_m: nothing farther or nearer is seen [m].
            sensor: name of the lidar.
            map_origin_m: (3,) offset of the map in the outer frame [m]. Default 0.

        Raises:
            InputError: wrong shape or value; names the argument and the row.
        """
        return cls(
            Beams.from_arrays(origins=origins, directions=directions, times=times, rings=rings, sweeps=sweeps),
            Returns.from_arrays(ranges=ranges, intensities=intensities, labels=labels, colours=colours),
            sensor=sensor,
            min_range_m=min_range_m,
            max_range_m=max_range_m,
            map_origin_m=np.zeros(3) if map_origin_m is None else arrays.as_numbers("map_origin_m", map_origin_m),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join logs of one sensor in the given order; pulse ids as in `Beams.concatenate`.

        Metadata stays where all parts agree. Raises InputError naming what differs: sensor, range limits, map origin,
        returns per pulse, or which arrays there are.
        """
        require_each("parts", parts, cls)
        require_agreement(parts, ("sensor", "min_range_m", "max_range_m", "map_origin_m"))
        beams = Beams.concatenate([part.beams for part in parts])
        returns = Returns.join([part.returns for part in parts])
        agreed = [item for item in parts[0].metadata.items() if all(item in part.metadata.items() for part in parts)]
        return replace(parts[0], beams=beams, returns=returns, metadata=dict(agreed))

    def __len__(self) -> int:
        """Count the pulses."""
        return len(self.beams)

    def __getitem__(self, index: Index) -> Self:
        """Select pulses by slice, mask or positions."""
        new = object.__new__(type(self))
        set_fields(new, {each.name: getattr(self, each.name) for each in fields(self)})
        set_fields(new, {"beams": self.beams[index], "returns": self.returns[index]})
        return new

    def select(self, *, sweep: Numbers | None = None, ring: Numbers | None = None) -> Self:
        """Keep the pulses of these sweeps and rings: a number, a range or a list of each."""
        return self[arrays.is_member(self.beams.sweep, sweep) & arrays.is_member(self.beams.ring, ring)]

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return arrays.distinct(self.beams.sweep)

    def iter_sweeps(self) -> Iterator[tuple[int, Self]]:
        """Give (sweep number, its log) in ascending order; without copying if the sweeps lie in order."""
        for number, rows in arrays.group_rows(self.beams.sweep):
            yield number, self[rows]

    def points(self) -> NDArray[np.float64]:
        """Return the (M, 3) points of all returns, map frame [m], by pulse and then nearest first.

        Other arrays follow in the same order as `log.returns.label[log.returns.hit]`.
        """
        hit = self.returns.hit
        pulse = np.nonzero(hit)[0]
        along = self.returns.range_m[hit].astype(np.float64)[:, None] * self.beams.direction[pulse]
        return self.beams.origin_m[pulse] + along

    def with_returns(self, returns: Returns) -> Self:
        """Return this log with other returns of the same beams, for example simulated ones."""
        return replace(self, returns=returns)

    def equal(self, other: Self) -> bool:
        """Tell whether both hold the same values, settings and metadata; NaN equals NaN."""
        require_kind("other", other, Log, "a Log")
        same_data = self.beams.equal(other.beams) and self.returns.equal(other.returns)
        mine, theirs = ((log.sensor, log.min_range_m, log.max_range_m, log.metadata) for log in (self, other))
        return same_data and mine == theirs and np.array_equal(self.map_origin_m, other.map_origin_m)


def require_limits(min_range_m: float, max_range_m: float) -> None:
    """Raise InputError unless something can lie between the range limits."""
    low, high = (as_number("range limits", limit_m) for limit_m in (min_range_m, max_range_m))
    if not 0 <= low < high or low > arrays.FARTHEST_M or arrays.FARTHEST_M < high < np.inf:
        said = "expected 0 <= min_range_m < max_range_m"
        most = f", at most {arrays.FARTHEST_M:g} m or inf" if high > arrays.FARTHEST_M else ""
        raise InputError("range limits", f"{said}{most}, found {min_range_m}, {max_range_m}")


def _as_ranges(name: str, values: ArrayLike) -> NDArray[np.float32]:
    """Convert (N,) or (N, R) ranges to checked float32; (N, 1) becomes (N,)."""
    range_m = arrays.as_floats(name, values, ("N",), ("N", "R"), dtype=np.float32)
    if range_m.ndim == 2 and range_m.shape[1] == 1:
        range_m = range_m[:, 0]
    _require_ranges(name, range_m)
    return range_m


def _as_return_column(
    name: str, values: ArrayLike | None, range_m: NDArray[np.float32], missing: _Missing
) -> NDArray[Any] | None:
    """Convert a column in the shape of the ranges to the type of `missing`, which it gets where there is no return."""
    if values is None:
        return None
    array = arrays.as_numbers(name, values)
    if range_m.ndim == 1 and array.shape == (len(range_m), 1):
        array = array[:, 0]
    if isinstance(missing, np.floating):
        column = arrays.as_floats(name, array, range_m.shape, dtype=type(missing))
    else:
        column = arrays.as_integers(name, array, range_m.shape, type(missing))
    return np.where(np.isinf(range_m), missing, column)


def _as_colours(name: str, rgb: ArrayLike, range_m: NDArray[np.float32]) -> NDArray[Any] | None:
    """Convert red, green and blue in the last axis to colours in the shape of the ranges."""
    return _as_return_column(name, pack_rgb(name, rgb), range_m, MISSING["colour"])


def _require_ranges(name: str, range_m: NDArray[np.floating]) -> None:
    """Raise InputError unless (N,) or (N, R) ranges are above 0 or inf and, in each row, nearest first."""
    if range_m.ndim == 2 and range_m.shape[1] < 2:
        raise InputError(name, f"expected (N,), or (N, R) with R of 2 or more, found shape {range_m.shape}")
    wrong = ~(range_m > 0)
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {range_m[row].tolist()}; a range is above 0 m, use inf for no return")
    wrong = (range_m > arrays.FARTHEST_M) & (range_m < np.inf)
    if wrong.any():
        row = arrays.first_row(wrong)
        said = f"a range is at most {arrays.FARTHEST_M:,.0f} m, use inf for no return"
        raise arrays.RowError(name, row, f"is {range_m[row].tolist()}; {said}")
    if range_m.ndim == 2:
        wrong = range_m[:, 1:] < range_m[:, :-1]
        if wrong.any():
            row = arrays.first_row(wrong)
            raise arrays.RowError(name, row, f"is {range_m[row].tolist()}; sort its returns nearest first, inf last")


def _require_within(name: str, range_m: NDArray[np.float32], min_range_m: float, max_range_m: float) -> None:
    """Raise InputError unless the limits are in order and every finite range lies between them."""
    require_limits(min_range_m, max_range_m)
    # Limits are rounded like the ranges, so that a range equal to its limit stays inside.
    for limit, outside in (
        (f"max_range_m = {max_range_m} m", np.isfinite(range_m) & (range_m > np.float32(max_range_m))),
        (f"min_range_m = {min_range_m} m", range_m < np.float32(min_range_m)),
    ):
        if outside.any():
            row, count = arrays.first_row(outside), int(outside.sum())
            raise InputError(
                name,
                f"{count} ranges beyond {limit}, the first in row {row} ({range_m[row].tolist()}); "
                "set them to inf (no return) or widen the limit",
            )


def _require_return_column(
    name: str, column: object, range_m: NDArray[np.float32], missing: _Missing
) -> NDArray[Any] | None:
    """Return a read-only view of a column that must be in the shape of the ranges, and `missing` without a return."""
    if column is None:
        return None
    checked = arrays.require(name, column, type(missing), range_m.shape)
    missed = np.isinf(range_m)
    wrong = missed & (~np.isnan(checked) if np.isnan(missing) else checked != missing)
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {checked[row].tolist()} without a return; expected {missing} there")
    return checked
