# SPDX-License-Identifier: Apache-2.0
"""Write LAS 1.4 and LAZ files, sweep by sweep: return numbers, classes, GPS time, and the rest as extra dimensions.

Extra dimensions: ring, sweep, label (classes are one byte, labels may need two), vp_x vp_y vp_z (where the pulse was
fired). A record of the user "hedgerow" holds the settings of the log. Missing returns have no place in such a file.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, HedgerowError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.atomic import atomic_file
from hedgerow.io.columns import TYPES, header_text, names_of, to_columns
from hedgerow.io.formats import optional
from hedgerow.io.source import LogSink
from hedgerow.log import Log
from hedgerow.stop import undisturbed
from hedgerow.table import require_agreement

USER_ID, RECORD_ID = "hedgerow", 1
_STEP_M = 0.001  # as is usual; 32 bits reach 2,147 km
_GPS_START_S = 315_964_800  # 6 January 1980 in Unix time
_LEAP_S = 18  # GPS runs ahead of UTC by this since 2017
_ADJUSTED_S = 1_000_000_000
_MOST_RETURNS = 15


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "LasWriter":
    """Prepare to write a LAS or LAZ file; a trajectory is not needed, points have their viewpoints."""
    return LasWriter(path)


def unix_s(adjusted_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert adjusted standard GPS time to Unix time."""
    return adjusted_s + (_ADJUSTED_S + _GPS_START_S - _LEAP_S)


class LasWriter(LogSink):
    """Appends the points of logs to a LAS or LAZ file that appears when the `with` block ends well."""

    def __init__(self, path: str | Path) -> None:
        """Prepare to write; the suffix says whether to compress."""
        self._path = Path(path)
        self._target: BinaryIO | None = None
        self._laspy: Any = optional("laspy", "las")
        self._file: Any = None
        self._like: Log | None = None
        self._scale = 1.0
        self._shift_s = 0.0

    def append(self, log: Log) -> None:
        """Write the returns of a log.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays, or lies too far from the map's origin.
        """
        if self._target is None:
            raise InputError(f"{self._path}", "the writer is not open; use it in a with block")
        if self._like is None:
            self._like = log[:0]
            self._open(self._target, log)
        require_agreement([self._like, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])
        if names_of(log) != names_of(self._like):
            raise InputError("returns", f"the log has {names_of(log)}, the first one had {names_of(self._like)}")
        if np.count_nonzero(log.returns.hit):
            with self._compressing():
                self._file.write_points(self._record(log))

    @contextmanager
    def _compressing(self) -> Generator[None]:
        """Make sense of lazrs, which turns whatever happens while it writes, also Ctrl-C, into an error of its own."""
        with undisturbed():
            try:
                yield
            except (OSError, HedgerowError):
                raise
            except Exception as error:
                raise FileError(f"{self._path}: cannot write ({error}); is the disk full?") from error

    def _open(self, target: BinaryIO, log: Log) -> None:
        laspy = self._laspy
        header = laspy.LasHeader(point_format=6, version="1.4")
        header.offsets, header.scales = np.floor(log.map_origin_m), np.full(3, _STEP_M)
        extra = [name for name in ("ring", "sweep", "label", "vp_x", "vp_y", "vp_z") if name in names_of(log)]
        header.add_extra_dims([laspy.ExtraBytesParams(name=name, type=TYPES[name]) for name in extra])
        intensity = log.returns.intensity
        # LAS has 16 bits: shares of 1 use all of them, counts stay as they are.
        share = intensity is not None and float(np.nanmax(intensity, initial=0)) <= 1
        self._scale = 65535.0 if share else 1.0
        if len(log) and int(log.beams.time_ns.min()) >= _GPS_START_S * 10**9:
            self._shift_s = float(_ADJUSTED_S + _GPS_START_S - _LEAP_S)
            header.global_encoding.gps_time_type = laspy.header.GpsTimeType.STANDARD
        text = header_text(log, intensity_scale=self._scale).encode()
        header.vlrs.append(laspy.VLR(USER_ID, RECORD_ID, "settings of the log", text))
        compress = self._path.suffix.lower() == ".laz"
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
        for name in ("ring", "sweep", "label", "vp_x", "vp_y", "vp_z"):
            if name in columns:
                record[name] = columns[name]
        return record

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self._path) as temporary, temporary.open("w+b") as self._target:
            try:
                yield
                if self._file is None:
                    raise InputError(f"{self._path}", "nothing was appended; append at least one sweep")
                with self._compressing():
                    self._file.close()
            finally:
                self._file = self._target = None


def _two_bytes(values: NDArray[np.floating[Any]]) -> NDArray[np.uint16]:
    return np.clip(np.rint(np.nan_to_num(values)), 0, 65535).astype(np.uint16)
