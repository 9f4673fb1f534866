# SPDX-License-Identifier: Apache-2.0
"""Points with names: what PLY, PCD and LAS files hold, one column per property, one row per return.

    x y z            where the return is, in the coordinates of the file [m]
    intensity        as the sensor reports it
    label            semantic class
    colour           0xRRGGBB; files have it in their own words: rgb (PCD), or red green blue (PLY, LAS)
    ring, time       of the pulse; time in seconds
    return_number    1, 2, ... of the pulse; the rows of a pulse follow each other
    sweep            number of the sweep
    vp_x vp_y vp_z   where the pulse was fired (PCL's name for it, viewpoint)

Missing returns have no place and are not stored. Read back, beams need the place where they began: vp_*, or the
position of a scanner that stood still, or a trajectory and times. What else a log needs, Hedgerow writes into the
header of the file as one line of JSON.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Numbers
from hedgerow.base.atomic import atomic_file
from hedgerow.base.rgb import COLOURS, from_bits, from_channels
from hedgerow.errors import FileError, InputError, one_line
from hedgerow.frames import Trajectory
from hedgerow.io.notes import HeaderNotes, to_json, values_of
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import LogSink, Settings, SweepSource, pulse_ids, require_memory, require_same_settings
from hedgerow.log import MEASURED, MISSING, Beams, Log, Returns

Columns = dict[str, NDArray[Any]]
TYPES = {
    "x": "<f8",
    "y": "<f8",
    "z": "<f8",
    "intensity": "<f4",
    "label": "<u2",
    "colour": "<u4",
    "ring": "<u2",
    "time": "<f8",
    "return_number": "|u1",
    "sweep": "<i4",
    "vp_x": "<f8",
    "vp_y": "<f8",
    "vp_z": "<f8",
}
_ALIASES = {
    "i": "intensity",
    "reflectance": "intensity",
    "scalar_intensity": "intensity",
    "classification": "label",
    "class": "label",
    "t": "time",
    "timestamp": "time",
    "gps_time": "time",
    "gpstime": "time",
}
"""What others call the columns."""
MARK = "hedgerow "
"""Begins the comment in a header that holds the line of Hedgerow."""
LOADING_FACTOR = 2.5
"""Bytes of memory that loading a binary file takes at most, for each byte of its unpacked points."""
_LOG_BYTES = 220  # for each point of a sweep while a log is made of it, measured
_SLOT_BYTES = 40  # and for each further return that its pulse can have
_LONGEST_BEAM_M = 1e5
_LONGEST_HEADER = 900_000  # bytes; readers look for the end of the header within a million
_FAR = 1e18  # no coordinate or time is as large; squares still fit into float64


def names_of(log: Log) -> list[str]:
    """Name the columns that a log has."""
    absent = {name for name in MEASURED if getattr(log.returns, name) is None}
    if log.returns.n_per_pulse == 1:
        absent.add("return_number")
    return [name for name in TYPES if name not in absent]


def to_columns(log: Log, offset_m: NDArray[np.float64] | float = 0.0) -> Columns:
    """Return the rows of a log's returns, with `offset_m` added to its coordinates."""
    hit = log.returns.hit
    pulse = np.nonzero(hit)[0]
    points, origin_m = log.points() + offset_m, log.beams.origin_m[pulse] + offset_m
    columns: Columns = dict(zip("xyz", points.T, strict=True))
    columns |= {name: getattr(log.returns, name)[hit] for name in MEASURED if name in names_of(log)}
    columns |= {"ring": log.beams.ring[pulse], "time": log.beams.time_ns[pulse] / 1e9, "sweep": log.beams.sweep[pulse]}
    if hit.ndim == 2:
        columns["return_number"] = np.nonzero(hit)[1] + 1
    columns |= {f"vp_{axis}": origin_m[:, k] for k, axis in enumerate("xyz")}
    return {name: columns[name].astype(kind) for name, kind in TYPES.items() if name in columns}


def _whole(values: NDArray[Any], least: int, most: int) -> NDArray[np.int64]:
    """Return whole numbers within bounds, whatever a column of another program holds; NaN becomes the least."""
    with np.errstate(invalid="ignore"):
        return np.clip(np.nan_to_num(values.astype(np.float64), nan=least), least, most).astype(np.int64)


def to_rows(columns: Columns) -> NDArray[Any]:
    """Return columns as one structured array."""
    kinds = [(name, column.dtype) for name, column in columns.items()]
    rows = np.empty(len(columns["x"]), kinds)
    for name, column in columns.items():
        rows[name] = column
    return rows


@np.errstate(invalid="ignore", over="ignore")  # NaN of any kind is left out below
def rename_columns(columns: Columns, path: object, *, every: bool = False) -> Columns:
    """Give columns our names, and leave out points that are not finite unless `every` is true.

    Raises:
        FileError: x, y or z is missing, or a column is no list of numbers.
    """
    lower = {name.lower(): column for name, column in columns.items()}
    found = {_ALIASES.get(name, name): column for name, column in lower.items()} | {
        name: column for name, column in lower.items() if name in TYPES
    }
    colour = _colour_of(lower)
    if colour is not None:
        found["colour"] = colour
    for axis in "xyz":
        if axis not in found:
            raise FileError(f"{path}: field '{axis}' is missing (has {one_line(', '.join(columns), 100) or 'none'})")
    kept = {name: np.asarray(column) for name, column in found.items() if name in TYPES}
    n = len(kept["x"])
    for name, column in kept.items():
        if column.shape != (n,) or column.dtype.kind not in "biuf":
            raise FileError(f"{path}: field '{name}' is no list of {n} numbers")
    if every:
        return kept
    good = np.ones(n, np.bool_)
    for name in ("x", "y", "z", "time", "vp_x", "vp_y", "vp_z"):
        if name in kept:
            good &= np.abs(kept[name].astype(np.float64)) < _FAR  # also drops NaN
    return kept if good.all() else {name: column[good] for name, column in kept.items()}


def _colour_of(columns: Columns) -> NDArray[np.uint32] | None:
    """Return the colours of points by the names that other programs have for them; None if there are none."""
    for name in ("rgb", "rgba"):
        if name in columns and columns[name].ndim == 1 and columns[name].dtype.kind in "iuf":
            return from_bits(columns[name])
    channels = [columns[name] for name in ("red", "green", "blue") if name in columns]
    if len(channels) == 3 and all(each.ndim == 1 and each.dtype.kind in "iuf" for each in channels):
        return from_channels(*channels) if len({len(each) for each in channels}) == 1 else None
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Viewpoints:
    """Where beams began, of points that do not say so themselves, in the coordinates of the file."""

    scanner_m: NDArray[np.float64] | None = None
    """(3,) of a scanner that stood still."""
    trajectory: Trajectory | None = None
    """Of a moving one; points need times."""

    def of(self, columns: Columns, path: object) -> NDArray[np.float64]:
        """Return (N, 3) origins.

        Raises:
            FileError: nothing tells where the points were seen from, they lie outside the trajectory's times, or that
                place is too far from them to be meant.
        """
        if self.trajectory is not None:
            name, origin_m = "the trajectory", self._on_trajectory(self.trajectory, columns, path)
        elif self.scanner_m is not None:
            name, origin_m = "scanner_m", np.broadcast_to(self.scanner_m, (len(columns["x"]), 3))
        elif all(f"vp_{axis}" in columns for axis in "xyz"):
            name = "the viewpoint (vp_x, vp_y, vp_z)"
            origin_m = np.stack([columns[f"vp_{axis}"].astype(np.float64) for axis in "xyz"], axis=1)
        else:
            raise FileError(
                f"{path}: holds points but not where they were seen from; give scanner_m=[x, y, z] or a trajectory"
            )
        _require_near(name, origin_m, columns, path)
        return origin_m

    @staticmethod
    def _on_trajectory(trajectory: Trajectory, columns: Columns, path: object) -> NDArray[np.float64]:
        if "time" not in columns:
            raise FileError(f"{path}: its points have no times to find them on the trajectory; give scanner_m=")
        time_ns = times_ns(columns["time"], path)
        first, last = trajectory.start_ns, trajectory.end_ns
        outside = int(np.count_nonzero((time_ns < first) | (time_ns > last)))
        if outside:
            raise FileError(
                f"{path}: {outside:,} of {len(time_ns):,} points have times outside the trajectory, which spans "
                f"{first / 1e9:.3f} to {last / 1e9:.3f} s (the points {time_ns.min() / 1e9:.3f} to "
                f"{time_ns.max() / 1e9:.3f} s); give one that covers them"
            )
        return trajectory.at(time_ns)[0]


def _require_near(name: str, origin_m: NDArray[np.float64], columns: Columns, path: object) -> None:
    """Refuse a place that no beam can have come from: it is in other coordinates than the points."""
    if not len(origin_m):
        return
    square: NDArray[np.float64] = np.zeros(len(origin_m))
    for k, axis in enumerate("xyz"):
        square += (columns[axis].astype(np.float64) - origin_m[:, k]) ** 2
    worst = int(np.argmax(square))
    apart_m = float(square[worst]) ** 0.5
    if apart_m <= _LONGEST_BEAM_M:
        return
    n_far = int(np.count_nonzero(square > _LONGEST_BEAM_M**2))
    here, there = origin_m[worst], [columns[axis][worst] for axis in "xyz"]
    raise FileError(
        f"{path}: {name} is at {_place(here)}, {apart_m / 1e3:,.0f} km from the point at {_place(there)} ({n_far:,} of "
        f"{len(square):,} points are more than {_LONGEST_BEAM_M / 1e3:.0f} km away); give both in the same coordinates"
    )


def _place(position_m: Iterable[float]) -> str:
    return "(" + ", ".join(f"{float(each):.8g}" for each in position_m) + ") m"


def times_ns(time_s: NDArray[Any], path: object) -> NDArray[np.int64]:
    """Convert seconds to nanoseconds. Raises FileError if they do not fit."""
    if np.abs(time_s).max(initial=0) > 9e9:
        raise FileError(f"{path}: field 'time' is not in seconds (found {np.abs(time_s).max():g})")
    return np.rint(time_s.astype(np.float64) * 1e9).astype(np.int64)


@np.errstate(invalid="ignore", over="ignore")
def pulses_in_order(columns: Columns) -> NDArray[np.int64]:
    """Return the pulse of each row, counted from 0: a new one begins at return 1, at another time, ring or sweep."""
    number = columns.get("return_number")
    if number is None:
        return np.arange(len(columns["x"]))
    starts = number[1:].astype(np.int64) != number[:-1].astype(np.int64) + 1
    for name in ("time", "ring", "sweep"):
        if name in columns:
            starts |= columns[name][1:] != columns[name][:-1]
    return np.concatenate([[0], np.cumsum(starts)])[: len(columns["x"])].astype(np.int64)


@np.errstate(invalid="ignore", over="ignore")  # an intensity, label or ring may be NaN, or too large for its type
def to_log(
    columns: Columns,
    origin_m: NDArray[np.float64],
    pulse: NDArray[np.int64],
    settings: Settings,
    sweep: int,
    path: object,
) -> Log:
    """Make a log of one sweep.

    Args:
        columns: rows of returns, in the coordinates of the file.
        origin_m: (N, 3) where their beams began, in the same coordinates.
        pulse: (N,) which pulse each row belongs to.
        settings: limits and map origin, which is subtracted.
        sweep: its number.
        path: for errors.
    """
    points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    along = points - origin_m
    range_m = np.linalg.norm(along, axis=1)
    inside = (range_m > max(settings.min_range_m, 1e-4)) & (range_m <= settings.max_range_m)
    columns = {name: column[inside] for name, column in columns.items()}
    along, range_m, origin_m, pulse = along[inside], range_m[inside], origin_m[inside], pulse[inside]
    order = np.lexsort([range_m, pulse])
    first = np.concatenate([[True], np.diff(pulse[order]) > 0])[: len(order)]
    row_pulse = np.cumsum(first) - 1
    head = order[first]
    slot = np.arange(len(order)) - np.flatnonzero(first)[row_pulse] if len(order) else row_pulse
    last = order[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(order) - 1]])] if len(order) else order
    time_ns = times_ns(columns["time"][head], path) if "time" in columns else np.zeros(len(head), np.int64)
    ring = columns["ring"][head] if "ring" in columns else np.zeros(len(head))
    beams = Beams(
        origin_m[head] - settings.map_origin_m,
        # The farthest return tells the direction best: coordinates are rounded.
        (along[last] / range_m[last, None]).astype(np.float32),
        time_ns,
        np.clip(ring, 0, 65535).astype(np.uint16),
        np.full(len(head), sweep, np.int32),
        pulse_ids(sweep, len(head)),
    )
    keep = slot < settings.n_per_pulse
    at = row_pulse[keep], slot[keep]
    return settings.log(beams, _returns(columns, order[keep], range_m, at, len(head), settings))


def _returns(
    columns: Columns,
    rows: NDArray[np.intp],
    range_m: NDArray[np.float64],
    at: tuple[NDArray[np.intp], NDArray[np.intp]],
    n_pulses: int,
    settings: Settings,
) -> Returns:
    shape = (n_pulses, settings.n_per_pulse)
    grid = np.full(shape, np.inf, np.float32)
    grid[at] = range_m[rows]
    beside: dict[str, NDArray[Any]] = {}
    for name in settings.arrays:
        column = np.full(shape, MISSING[name])
        values = columns[name][rows]
        most = {"label": 65535, "colour": COLOURS}.get(name)
        column[at] = values if most is None else np.clip(values, 0, most)
        beside[name] = column
    if settings.n_per_pulse == 1:
        grid, beside = grid[:, 0], {name: column[:, 0] for name, column in beside.items()}
    return Returns(grid, **beside)


def header_text(log: Log, **more: Any) -> str:
    """Return the line for a log.

    Raises:
        InputError: the metadata do not fit into it.
    """
    values = values_of(log) | {"n_per_pulse": log.returns.n_per_pulse} | more
    HeaderNotes.parse(values, "the header")
    text = to_json(values)
    if len(text) > _LONGEST_HEADER:
        raise InputError("metadata", f"has {len(text):,} bytes, too many for the header of a file; shorten it")
    return text


def header_of(text: str | None, path: object) -> dict[str, Any]:
    """Read the line back; {} if there is none.

    Raises:
        FileError: it is damaged.
    """
    return {} if text is None else HeaderNotes.from_json(text, path).model_dump()


def settings_of(header: dict[str, Any], columns: Columns, options: ReadOptions, name: str) -> Settings:
    """Put together what the header, the first points and the options say."""
    far = header.get("max_range_m") if options.max_range_m is None else options.max_range_m
    origin_m = options.map_origin_m or header.get("map_origin_m") or _near(columns)
    numbers = columns.get("return_number")
    most = 1 if numbers is None else int(_whole(numbers, 1, 255).max(initial=1))
    note = {"read_from": name, "recovery": {"method": "none", "summary": "not recovered, every beam has a return"}}
    return Settings(
        sensor=options.sensor or header.get("sensor", ""),
        min_range_m=float(options.min_range_m if options.min_range_m is not None else header.get("min_range_m", 0.0)),
        max_range_m=float("inf") if far is None else float(far),
        map_origin_m=np.array(origin_m, np.float64),
        metadata=header.get("metadata", {}) | note,
        n_per_pulse=max(1, 1 if numbers is None else int(header.get("n_per_pulse", most))),
        arrays=[each for each in MEASURED if each in columns],
    )


def viewpoints_of(options: ReadOptions) -> Viewpoints:
    """Return what the options say about where beams began."""
    scanner = None if options.scanner_m is None else np.array(options.scanner_m)
    return Viewpoints(scanner, options.sensor_trajectory())


def _near(columns: Columns) -> list[float]:
    """Return a round place near the first point if it is far out, as in UTM; else 0."""
    if not len(columns["x"]):
        return [0.0, 0.0, 0.0]
    first = [float(columns[axis][0]) for axis in "xyz"]
    return [round(each, -3) for each in first[:2]] + [0.0] if max(map(abs, first)) > 1e4 else [0.0, 0.0, 0.0]


class CloudFile(SweepSource):
    """A log read from one file of points, which is loaded whole; sweeps are told by their column."""

    def __init__(self, path: Path, columns: Columns, header: str | None, options: ReadOptions, name: str) -> None:
        """Check what the file holds.

        Args:
            path: of the file.
            columns: its content.
            header: the line that Hedgerow wrote into it, if any.
            options: what the file does not say.
            name: of the format.

        Raises:
            FileError: no points, a field is missing or damaged, nothing tells where they were seen from, or the
                memory does not hold a sweep.
        """
        self._columns = rename_columns(columns, path)
        if not len(self._columns["x"]):
            raise FileError(f"{path}: holds no points")
        super().__init__(path, settings_of(header_of(header, path), self._columns, options, name))
        self._n_not_finite = len(next(iter(columns.values()))) - len(self._columns["x"])
        self._origin_m = viewpoints_of(options).of(self._columns, path)
        sweep = self._columns.get("sweep")
        number = np.zeros(len(self._origin_m), np.int64) if sweep is None else _whole(sweep, -(2**31), 2**31 - 1)
        self._groups = dict(arrays.group_rows(number.astype(np.int32)))
        row_bytes = _LOG_BYTES + _SLOT_BYTES * (self.n_per_pulse - 1)
        require_memory(path, row_bytes * int(np.unique(number, return_counts=True)[1].max()))

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return np.array(list(self._groups), np.int32)

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order."""
        self.n_left_out = self._n_not_finite
        for number in self.selected_sweeps(sweeps):
            rows = self._groups[number]
            columns = {name: column[rows] for name, column in self._columns.items()}
            try:
                log = to_log(columns, self._origin_m[rows], pulses_in_order(columns), self.settings, number, self.path)
            except InputError as error:
                raise FileError(f"{self.path}: {error}") from error
            self.n_left_out += len(columns["x"]) - int(np.count_nonzero(log.returns.hit))
            yield number, log


class CloudFileWriter(LogSink):
    """Appends the points of logs to one binary file; subclasses give the header, of fixed length."""

    holds_misses = False

    def __init__(self, path: str | Path) -> None:
        """Prepare to write."""
        super().__init__(path)
        self._file: BinaryIO | None = None
        self._like: Log | None = None
        self._text = ""
        self._n_points = 0

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header for rows of this type; its length must not depend on `n_points`."""
        raise NotImplementedError

    def own_words(self, columns: Columns) -> Columns:
        """Return the columns by the names, and with the values, that the format has for them."""
        raise NotImplementedError

    def _append(self, log: Log) -> None:
        """Write the returns of a log, map frame plus map origin; missing returns have no place in a cloud.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays.
        """
        if self._file is None:
            raise InputError(f"{self.path}", "the writer is not open; use it in a with block")
        rows = to_rows(self.own_words(to_columns(log, log.map_origin_m)))
        if self._like is None:
            self._like, self._text = log[:0], header_text(log)
            self._file.write(self.header(rows, 0, self._text))
        require_same_settings(self._like, log)
        if names_of(log) != names_of(self._like):
            raise InputError("returns", f"the log has {names_of(log)}, the first one had {names_of(self._like)}")
        self._file.write(rows.tobytes())
        self._n_points += len(rows)

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self.path) as temporary, temporary.open("w+b") as self._file:
            try:
                yield
                if self._like is None:
                    raise InputError(f"{self.path}", "nothing was appended; append a log, an empty one if need be")
                self._file.seek(0)
                self._file.write(
                    self.header(to_rows(self.own_words(to_columns(self._like))), self._n_points, self._text)
                )
            finally:
                self._file.close()
                self._file = None
