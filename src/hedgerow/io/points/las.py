# SPDX-License-Identifier: Apache-2.0
"""LAS and LAZ files, read a million points at a time with laspy (LAZ by lazrs); written by `las_writer`.

Returns of one pulse share their GPS time and have different return numbers; where the times are too coarse to tell
pulses apart, every point is a pulse of its own. ASPRS classes become our labels. A pulse needs the place where it was
fired: the position of a scanner that stood still (scanner_m), or a trajectory by time (Unix time if the file has
adjusted standard GPS time, else seconds as in the file), both in the coordinates of the file.

Files that Hedgerow wrote say all of that themselves. Headers and sizes are checked before laspy and lazrs see them
(`las_header`, `laz_chunks`), which would hang, or end the process, on a damaged file.
"""

import logging
import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers, is_member
from hedgerow.base.interrupt import delay_interrupt
from hedgerow.base.rgb import pack_rgb
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.formats import require_package
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import (
    Columns,
    header_of,
    pulses_in_order,
    rename_columns,
    settings_of,
    to_log,
    viewpoints_of,
)
from hedgerow.io.points.las_classes import to_labels
from hedgerow.io.points.las_header import read_header
from hedgerow.io.points.las_writer import (
    CHANNELS,
    EXTRA,
    MOST_RETURNS,
    RECORD_ID,
    RECORD_VERSION,
    STEP_M,
    UNIX_AHEAD_S,
    USER_ID,
    LasWriter,
)
from hedgerow.io.points.laz_chunks import require_sound_chunks
from hedgerow.io.points.rust import calling_rust
from hedgerow.io.source import Settings, SweepSource, translate_errors
from hedgerow.log import Log

_AT_ONCE = 1_000_000
_MOST_BYTES_AT_ONCE = 2**28  # a point may have 65,535 bytes
_WHOLE = {"ring": np.uint16, "sweep": np.int32, "label": np.uint16}


def open_log(path: str | Path, options: ReadOptions) -> "LasFile":
    """Open a LAS or LAZ file; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no points, or nothing tells where they were seen from.
    """
    return LasFile(Path(path), options)


class LasFile(SweepSource):
    """A log read from a LAS or LAZ file: sweeps as Hedgerow wrote them, else a sweep for each million points."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Read the header and the first points."""
        self._laspy: Any = require_package("laspy", "las")
        logging.getLogger("laspy").addHandler(logging.NullHandler())  # it would print what is raised anyway
        self.path = path
        header = read_header(path)
        if header.is_compressed:
            lazrs = require_package("lazrs", "laz")
            with translate_errors(path, "a LAZ file"), calling_rust(path):
                require_sound_chunks(header, lazrs)
        text = header.content(USER_ID, RECORD_ID)
        self._own = {} if text is None else header_of(text.decode("utf-8", "replace"), path)
        self._intensity_scale = _intensity_scale(self._own, path)
        self._colour_step: int | None = 257 if self._own else None
        self._n_points, self._most_at_once = header.n_points, max(1, _MOST_BYTES_AT_ONCE // header.point_bytes)
        with self._opened() as file:
            self._standard_time = file.header.global_encoding.gps_time_type.value == 1
            by_return = np.asarray(file.header.number_of_points_by_return)
        first = next(self._chunks(1000))
        known = {"n_per_pulse": int(np.flatnonzero(by_return).max(initial=0)) + 1} | self._own
        super().__init__(path, settings_of(known, first, options, "las"))
        self._viewpoints = viewpoints_of(options)
        self._viewpoints.of(first, path)  # refuse now what cannot be placed
        self._sweeps: NDArray[np.int32] | None = None

    @property
    def has_sweeps(self) -> bool:
        """Whether sweeps are those of the sensor; in files of others they are cut anywhere."""
        return bool(self._own)

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending; the file is read through to find out, if Hedgerow wrote it."""
        if self._sweeps is None:
            numbers = np.arange(-(-self._n_points // self._at_once), dtype=np.int32)
            if self._own:
                found = [np.unique(chunk["sweep"]) for chunk in self._chunks(self._at_once) if "sweep" in chunk]
                numbers = np.unique(np.concatenate(found)).astype(np.int32) if found else np.zeros(1, np.int32)
            self._sweeps = numbers
        return self._sweeps

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        self.n_left_out = 0
        found = self._by_sweep() if self._own else enumerate(self._by_time())
        for number, columns in found:
            if not is_member(np.array([number]), sweeps)[0]:
                continue
            pulse = own_pulses(columns) if self._own else pulses_by_time(columns)
            try:
                origin_m = self._viewpoints.of(columns, self.path)
                if self._own:
                    columns = _moved_inside(columns, origin_m, self.settings)
                log = to_log(columns, origin_m, pulse, self.settings, number, self.path)
            except InputError as error:
                raise FileError(f"{self.path}: {error}") from error
            self.n_left_out += len(columns["x"]) - int(np.count_nonzero(log.returns.hit))
            yield number, log

    def _by_time(self) -> Iterator[Columns]:
        """Give chunks that end between two pulses: rows of the last time wait for the next chunk."""
        waiting: Columns | None = None
        for chunk in self._chunks(self._at_once):
            if waiting is None:
                waiting = chunk
                continue
            cut = len(waiting["x"])
            if "time" in waiting and cut:
                other = np.flatnonzero(waiting["time"] != waiting["time"][-1])
                cut = int(other[-1]) + 1 if len(other) else cut
            yield {name: column[:cut] for name, column in waiting.items()}
            waiting = _joined([{name: column[cut:] for name, column in waiting.items()}, chunk])
        if waiting is not None:
            yield waiting

    def _by_sweep(self) -> Iterator[tuple[int, Columns]]:
        """Give the sweeps that Hedgerow wrote one after the other."""
        waiting: list[Columns] = []
        for chunk in self._chunks(self._at_once):
            if not len(chunk["x"]):
                continue
            number = chunk["sweep"] if "sweep" in chunk else np.zeros(len(chunk["x"]), np.int32)
            bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
            for start, stop in pairwise(bounds):
                part = {name: column[start:stop] for name, column in (chunk | {"sweep": number}).items()}
                if waiting and waiting[-1]["sweep"][-1] != number[start]:
                    yield int(waiting[0]["sweep"][0]), _joined(waiting)
                    waiting = []
                waiting.append(part)
        if waiting:
            yield int(waiting[0]["sweep"][0]), _joined(waiting)

    @property
    def _at_once(self) -> int:
        """How many points are read at a time."""
        return min(_AT_ONCE, self._most_at_once)

    @contextmanager
    def _opened(self) -> Generator[Any]:
        """Give laspy's reader. Records behind the points are not of its business: they are read already."""
        with translate_errors(self.path, "a LAS or LAZ file"):
            backends = self._laspy.LazBackend.LazrsParallel, self._laspy.LazBackend.Lazrs
            with self._laspy.open(self.path, laz_backend=backends, read_evlrs=False) as file:
                yield file

    def _chunks(self, n_points: int) -> Iterator[Columns]:
        n_read = 0
        with self._opened() as file:
            chunks = file.chunk_iterator(n_points)
            while n_read < self._n_points:
                with delay_interrupt(), calling_rust(self.path):  # lazrs takes an interrupt for damage
                    points = next(chunks, None)
                if points is None or not len(points):
                    raise FileError(
                        f"{self.path}: ends after {n_read:,} of {self._n_points:,} points; was its copying interrupted?"
                    )
                n_read += len(points)
                yield self._columns(points)

    def _columns(self, points: Any) -> Columns:
        names = set(points.point_format.dimension_names)
        columns: Columns = {axis: np.asarray(getattr(points, axis)) for axis in "xyz"}
        if self._intensity_scale is not None:
            columns["intensity"] = np.asarray(points["intensity"]) / self._intensity_scale
        columns["return_number"] = np.maximum(np.asarray(points["return_number"]), 1)
        if "gps_time" in names:
            time_s = np.asarray(points["gps_time"])
            columns["time"] = time_s + UNIX_AHEAD_S if self._standard_time else time_s
        if names.issuperset(CHANNELS):
            columns["colour"] = self._colour(points)
        columns |= {name: _extra(name, points[name]) for name in EXTRA if name in names}
        if "label" not in columns and self._own.get("las_record") != RECORD_VERSION:
            code = np.asarray(points["classification"])
            columns["label"] = code if self._own else to_labels(code)
        kept = rename_columns(columns, self.path)
        self.n_left_out += len(points) - len(kept["x"])
        return kept

    def _colour(self, points: Any) -> NDArray[np.uint32]:
        """Return colours; LAS wants 16 bits of each channel, but some programs write 8, which the first points show."""
        channels = np.stack([np.asarray(points[name]) for name in CHANNELS], axis=-1)
        if self._colour_step is None:
            self._colour_step = 1 if 0 < channels.max(initial=0) <= 255 else 257
        return pack_rgb("colour", np.minimum(channels // self._colour_step, 255))


def _intensity_scale(own: dict[str, Any], path: Path) -> float | None:
    """Return what intensities were multiplied by; None if the log had none.

    Raises:
        FileError: the header has no such number.
    """
    scale: Any = own.get("intensity_scale", 1.0)
    if scale is None:
        return None
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not (math.isfinite(scale) and scale > 0):
        raise FileError(f"{path}: what Hedgerow wrote into its header is damaged (intensity_scale)")
    return float(scale)


def _extra(name: str, values: Any) -> NDArray[Any]:
    """Return an extra dimension; others may hold whole numbers as fractions, or scaled."""
    column = np.asarray(values)
    if name in _WHOLE and column.dtype.kind == "f":
        limits = np.iinfo(_WHOLE[name])
        return np.clip(np.nan_to_num(column), limits.min, limits.max).astype(_WHOLE[name])
    return column


def _moved_inside(columns: Columns, origin_m: NDArray[np.float64], settings: Settings) -> Columns:
    """Take back points that rounding to millimetres moved out of the range limits; they would be left out."""
    along = np.stack([columns[axis] for axis in "xyz"], axis=1) - origin_m
    range_m = np.linalg.norm(along, axis=1)
    near_m, far_m = settings.min_range_m * (1 + 1e-7), settings.max_range_m * (1 - 1e-7)
    limited_m = np.clip(range_m, near_m, far_m)
    moved = (np.abs(limited_m - range_m) < STEP_M) & (limited_m != range_m) & (range_m > 0)
    if not moved.any():
        return columns
    factor = np.where(moved, limited_m / np.where(moved, range_m, 1), 1)
    points = origin_m + along * factor[:, None]
    return columns | {axis: np.where(moved, points[:, k], columns[axis]) for k, axis in enumerate("xyz")}


def own_pulses(columns: Columns) -> NDArray[np.int64]:
    """Return the pulse of each row of a file that Hedgerow wrote, in which the 15th return and all later are 15."""
    number = columns["return_number"].astype(np.int64)
    last = number == MOST_RETURNS
    row = np.arange(len(number))
    begin = np.maximum.accumulate(np.where(last & np.concatenate([[False], last[:-1]])[: len(row)], 0, row))
    return pulses_in_order(columns | {"return_number": number + row - begin})


def pulses_by_time(columns: Columns) -> NDArray[np.int64]:
    """Return which pulse each row belongs to: rows of one time with different return numbers are one pulse."""
    if "time" not in columns:
        return pulses_in_order(columns)
    n = len(columns["x"])
    order = np.lexsort([columns["return_number"], columns["time"]])
    time, number = columns["time"][order], columns["return_number"][order]
    starts = np.concatenate([[True], time[1:] != time[:-1]])[:n]
    group = np.cumsum(starts) - 1
    again = np.concatenate([[False], ~starts[1:] & (number[1:] == number[:-1])])[:n]
    coarse = np.zeros(int(group[-1]) + 1 if n else 0, np.bool_)
    coarse[group[again]] = True
    pulse = np.empty(n, np.int64)
    pulse[order] = np.cumsum(starts | coarse[group])
    return pulse


def _joined(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "LasWriter":
    """Prepare to write a LAS or LAZ file; a trajectory is not needed, points have their viewpoints."""
    return LasWriter(path)
