# SPDX-License-Identifier: Apache-2.0
"""LAS and LAZ files, read a million points at a time and written sweep by sweep, with laspy (LAZ by lazrs).

Returns of one pulse share their GPS time and have different return numbers; where the times are too coarse to tell
pulses apart, every point is a pulse of its own. Classes become labels. A pulse needs the place where it was fired: the
position of a scanner that stood still (scanner_m), or a trajectory by time (Unix time if the file has adjusted standard
GPS time, else seconds as in the file), both in the coordinates of the file.

Written files are LAS 1.4 with return numbers, classes and GPS time. Extra dimensions hold ring, sweep, label (classes
are one byte, labels may need two) and vp_x vp_y vp_z (where the pulse was fired), a record of the user "hedgerow" the
settings of the log. Missing returns have no place in such a file.
"""

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers, is_member
from hedgerow.base.atomic import atomic_file
from hedgerow.base.interrupt import delay_interrupt
from hedgerow.errors import FileError, HedgerowError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.formats import require_package
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import (
    TYPES,
    Columns,
    header_of,
    header_text,
    names_of,
    pulses_in_order,
    rename_columns,
    settings_of,
    to_columns,
    to_log,
    viewpoints_of,
)
from hedgerow.io.source import LogSink, SweepSource, require_same_settings, translate_errors
from hedgerow.log import Log

_AT_ONCE = 1_000_000
_MOST_POINTS_PER_BYTE = 200  # of LAZ: identical points pack well
_EXTRA = ("ring", "sweep", "label", "vp_x", "vp_y", "vp_z")
_USER_ID, _RECORD_ID = "hedgerow", 1
_STEP_M = 0.001  # as is usual; 32 bits reach 2,147 km
_GPS_START_S = 315_964_800  # 6 January 1980 in Unix time
_LEAP_S = 18  # GPS runs ahead of UTC by this since 2017
_ADJUSTED_S = 1_000_000_000
_MOST_RETURNS = 15


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
        with translate_errors(path, "a LAS or LAZ file"), self._laspy.open(path) as file:
            header = file.header
            _require_size(path, header)
            texts = [vlr.record_data for vlr in header.vlrs if (vlr.user_id, vlr.record_id) == (_USER_ID, _RECORD_ID)]
            self._standard_time = header.global_encoding.gps_time_type.value == 1
            self._n_points = int(header.point_count)
            n_returns = int(np.flatnonzero(np.asarray(header.number_of_points_by_return)).max(initial=0)) + 1
        self._own = header_of(texts[0].decode("utf-8", "replace"), path) if texts else {}
        self.path = path
        first = next(self._chunks(1000))
        known = {"n_per_pulse": n_returns} | self._own
        super().__init__(path, settings_of(known, first, options, "las"))
        self._viewpoints = viewpoints_of(options)
        self._viewpoints.of(first, path)  # refuse now what cannot be placed
        self._sweeps: NDArray[np.int32] | None = None

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending; the file is read through to find out, if Hedgerow wrote it."""
        if self._sweeps is None:
            numbers = np.arange(-(-self._n_points // _AT_ONCE), dtype=np.int32)
            if self._own:
                found = [np.unique(chunk["sweep"]) for chunk in self._chunks(_AT_ONCE) if "sweep" in chunk]
                numbers = np.unique(np.concatenate(found)).astype(np.int32) if found else np.zeros(1, np.int32)
            self._sweeps = numbers
        return self._sweeps

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        found = self._by_sweep() if self._own else enumerate(self._by_time())
        for number, columns in found:
            if not is_member(np.array([number]), sweeps)[0]:
                continue
            pulse = pulses_in_order(columns) if self._own else pulses_by_time(columns)
            try:
                origin_m = self._viewpoints.of(columns, self.path)
                yield number, to_log(columns, origin_m, pulse, self.settings, number, self.path)
            except InputError as error:
                raise FileError(f"{self.path}: {error}") from error

    def _by_time(self) -> Iterator[Columns]:
        """Give chunks that end between two pulses: rows of the last time wait for the next chunk."""
        waiting: Columns | None = None
        for chunk in self._chunks(_AT_ONCE):
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
        for chunk in self._chunks(_AT_ONCE):
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

    def _chunks(self, n_points: int) -> Iterator[Columns]:
        n_read = 0
        with translate_errors(self.path, "a LAS or LAZ file"), self._laspy.open(self.path) as file:
            chunks = file.chunk_iterator(n_points)
            while n_read < self._n_points:
                with delay_interrupt():  # lazrs takes an interrupt for damage
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
        columns["intensity"] = np.asarray(points["intensity"]) / float(self._own.get("intensity_scale", 1.0))
        columns["label"] = np.asarray(points["classification"])
        columns["return_number"] = np.maximum(np.asarray(points["return_number"]), 1)
        if "gps_time" in names:
            time_s = np.asarray(points["gps_time"])
            columns["time"] = _unix_s(time_s) if self._standard_time else time_s
        columns |= {name: np.asarray(points[name]) for name in _EXTRA if name in names}
        return rename_columns(columns, self.path)


def _unix_s(adjusted_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert adjusted standard GPS time to Unix time."""
    return adjusted_s + (_ADJUSTED_S + _GPS_START_S - _LEAP_S)


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


def _require_size(path: Path, header: Any) -> None:
    n_points, size = int(header.point_count), path.stat().st_size
    if n_points == 0:
        raise FileError(f"{path}: holds no points")
    most = size * _MOST_POINTS_PER_BYTE if header.are_points_compressed else size // int(header.point_format.size)
    if n_points > most:
        raise FileError(
            f"{path}: its header says {n_points:,} points, which {size:,} bytes cannot hold; is it cut off?"
        )


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "LasWriter":
    """Prepare to write a LAS or LAZ file; a trajectory is not needed, points have their viewpoints."""
    return LasWriter(path)


class LasWriter(LogSink):
    """Appends the points of logs to a LAS or LAZ file that appears when the `with` block ends well."""

    holds_misses = False

    def __init__(self, path: str | Path) -> None:
        """Prepare to write; the suffix says whether to compress."""
        super().__init__(path)
        self._target: BinaryIO | None = None
        self._laspy: Any = require_package("laspy", "las")
        self._file: Any = None
        self._like: Log | None = None
        self._scale = 1.0
        self._shift_s = 0.0

    def _append(self, log: Log) -> None:
        """Write the returns of a log.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, or lies too far from the map's origin.
        """
        if self._target is None:
            raise InputError(f"{self.path}", "the writer is not open; use it in a with block")
        if self._like is None:
            self._like = log[:0]
            self._open(self._target, log)
        require_same_settings(self._like, log)
        if names_of(log) != names_of(self._like):
            raise InputError("returns", f"the log has {names_of(log)}, the first one had {names_of(self._like)}")
        if np.count_nonzero(log.returns.hit):
            with self._compressing():
                self._file.write_points(self._record(log))

    @contextmanager
    def _compressing(self) -> Generator[None]:
        """Make sense of lazrs, which turns whatever happens while it writes, also Ctrl-C, into an error of its own."""
        with delay_interrupt():
            try:
                yield
            except (OSError, HedgerowError):
                raise
            except Exception as error:
                raise FileError(f"{self.path}: cannot write ({error}); is the disk full?") from error

    def _open(self, target: BinaryIO, log: Log) -> None:
        laspy = self._laspy
        header = laspy.LasHeader(point_format=6, version="1.4")
        header.offsets, header.scales = np.floor(log.map_origin_m), np.full(3, _STEP_M)
        extra = [name for name in _EXTRA if name in names_of(log)]
        header.add_extra_dims([laspy.ExtraBytesParams(name=name, type=TYPES[name]) for name in extra])
        intensity = log.returns.intensity
        # LAS has 16 bits: shares of 1 use all of them, counts stay as they are.
        share = intensity is not None and float(np.nanmax(intensity, initial=0)) <= 1
        self._scale = 65535.0 if share else 1.0
        if len(log) and int(log.beams.time_ns.min()) >= _GPS_START_S * 10**9:
            self._shift_s = float(_ADJUSTED_S + _GPS_START_S - _LEAP_S)
            header.global_encoding.gps_time_type = laspy.header.GpsTimeType.STANDARD
        text = header_text(log, intensity_scale=self._scale).encode()
        header.vlrs.append(laspy.VLR(_USER_ID, _RECORD_ID, "settings of the log", text))
        compress = self.path.suffix.lower() == ".laz"
        self._file = laspy.open(target, mode="w", header=header, do_compress=compress, closefd=False)

    def _record(self, log: Log) -> Any:
        columns = to_columns(log, log.map_origin_m)
        header = self._file.header
        for axis, offset in zip("xyz", header.offsets, strict=True):
            if np.abs(columns[axis] - offset).max(initial=0) >= 2**31 * _STEP_M:
                raise InputError(
                    "points", f"some lie more than {2**31 * _STEP_M:.0f} m from the map's origin in {axis}"
                )
        record = self._laspy.ScaleAwarePointRecord.zeros(len(columns["x"]), header=header)
        for axis in "xyz":
            record[axis] = columns[axis]
        hit = log.returns.hit.reshape(len(log), -1)
        n_returns = hit.sum(axis=1)[np.nonzero(hit)[0]]
        number = np.nonzero(hit)[1] + 1
        record["number_of_returns"] = np.minimum(n_returns, _MOST_RETURNS).astype(np.uint8)
        record["return_number"] = np.minimum(number, _MOST_RETURNS).astype(np.uint8)
        record["gps_time"] = columns["time"] - self._shift_s
        if "intensity" in columns:
            record["intensity"] = _two_bytes(columns["intensity"] * self._scale)
        if "label" in columns:
            record["classification"] = np.where(columns["label"] < 256, columns["label"], 0).astype(np.uint8)
        for name in _EXTRA:
            if name in columns:
                record[name] = columns[name]
        return record

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self.path) as temporary, temporary.open("w+b") as self._target:
            try:
                yield
                if self._file is None:
                    raise InputError(f"{self.path}", "nothing was appended; append at least one sweep")
                with self._compressing():
                    self._file.close()
            finally:
                self._file = self._target = None


def _two_bytes(values: NDArray[np.floating[Any]]) -> NDArray[np.uint16]:
    return np.clip(np.rint(np.nan_to_num(values)), 0, 65535).astype(np.uint16)
