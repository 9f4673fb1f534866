# SPDX-License-Identifier: Apache-2.0
"""Writes LAS 1.4 and LAZ files, sweep by sweep, in the words that other programs know.

    intensity               scaled to 16 bits, see `las_intensity`
    return number, count    of the pulse, up to 15
    classification          ASPRS codes, see `las_classes`; 0 (never classified) if the log has no labels
    GPS time                adjusted standard time if the log has Unix time, else its seconds
    scan angle              between the beam and straight down in the map; positive to the right of the way that the
                            sensor moved during the sweep, also if it did not move
    point source            1: a log is one route, or one setup
    red, green, blue        16 bits each, as LAS wants them, if the log has colours (points of format 7, else 6)

Extra dimensions hold ring, sweep, label (ours, two bytes) and vp_x vp_y vp_z (where the pulse was fired). A record of
the user "hedgerow" holds the settings of the log. The bit for a coordinate system in WKT is set, which points of format
6 need, but none is given: a log does not know which one its map is in. Nor is there a date: same log, same bytes.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import group_rows
from hedgerow.base.atomic import atomic_file
from hedgerow.base.interrupt import delay_interrupt
from hedgerow.base.rgb import unpack_rgb
from hedgerow.errors import FileError, HedgerowError, InputError
from hedgerow.io.formats import require_package
from hedgerow.io.points.columns import TYPES, Columns, header_text, names_of, to_columns
from hedgerow.io.points.las_classes import to_codes
from hedgerow.io.points.las_header import MOST_RECORD_BYTES
from hedgerow.io.points.las_intensity import Scaler, scale_of
from hedgerow.io.source import LogSink, require_same_settings
from hedgerow.log import Log

EXTRA = ("ring", "sweep", "label", "vp_x", "vp_y", "vp_z")
"""Extra dimensions."""
CHANNELS = ("red", "green", "blue")
USER_ID, RECORD_ID = "hedgerow", 1
"""Of the record with the settings of the log."""
RECORD_VERSION = 2
"""2: classification has ASPRS codes, and there are intensities only if there is a scale. Older records have no number;
their classification has our labels below 256."""
MOST_RETURNS = 15
UNIX_AHEAD_S = 1_000_000_000 + 315_964_800 - 18
"""What Unix time is ahead of adjusted standard GPS time: a billion, 6 January 1980, and leap seconds since 2017."""
STEP_M = 0.001
"""Of coordinates, as is usual; 32 bits reach 2,147 km."""
_GPS_START_NS = 315_964_800 * 10**9
_ANGLE_STEP_DEG = 0.006
_MOVED_M = 0.1  # less may be lasers that sit off the centre of a turning head
_DATE_AT = 90  # day and year, two bytes each


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
        self._scaler: Scaler | None = None
        self._record_text: bytes | None = None
        self._shift_s = 0.0
        self._n_beyond = 0

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
        header = laspy.LasHeader(point_format=6 if log.returns.colour is None else 7, version="1.4")
        header.offsets, header.scales = np.floor(log.map_origin_m), np.full(3, STEP_M)
        header.system_identifier = log.sensor.encode("ascii", "replace")[:32].decode("ascii")
        header.generating_software = "hedgerow"
        header.file_source_id = 1
        header.global_encoding.wkt = True
        extra = [name for name in EXTRA if name in names_of(log)]
        header.add_extra_dims([laspy.ExtraBytesParams(name=name, type=TYPES[name]) for name in extra])
        scale = scale_of(log)
        self._scaler = None if scale is None else Scaler(scale)
        if len(log) and int(log.beams.time_ns.min()) >= _GPS_START_NS:
            self._shift_s = float(UNIX_AHEAD_S)
            header.global_encoding.gps_time_type = laspy.header.GpsTimeType.STANDARD
        text = header_text(log, las_record=RECORD_VERSION, intensity_scale=scale).encode()
        if len(text) <= MOST_RECORD_BYTES:
            header.vlrs.append(self._settings_record(text))
        else:
            self._record_text = text  # written behind the points, where records may be longer
        compress = self.path.suffix.lower() == ".laz"
        self._file = laspy.open(target, mode="w", header=header, do_compress=compress, closefd=False)

    def _settings_record(self, text: bytes) -> Any:
        return self._laspy.VLR(USER_ID, RECORD_ID, "settings of the log", text)

    def _record(self, log: Log) -> Any:
        columns = to_columns(log, log.map_origin_m)
        header = self._file.header
        for axis, offset in zip("xyz", header.offsets, strict=True):
            if np.abs(columns[axis] - offset).max(initial=0) >= 2**31 * STEP_M:
                raise InputError("points", f"some lie more than {2**31 * STEP_M:.0f} m from the map's origin in {axis}")
        record = self._laspy.ScaleAwarePointRecord.zeros(len(columns["x"]), header=header)
        for axis in "xyz":
            record[axis] = columns[axis]
        self._number_returns(record, log)
        record["gps_time"] = columns["time"] - self._shift_s
        record["point_source_id"] = np.ones(len(columns["x"]), np.uint16)
        record["scan_angle"] = scan_angles(log)
        if self._scaler is not None:
            record["intensity"] = self._scaler.scaled(columns["intensity"])
        if "label" in columns:
            record["classification"] = _codes(columns)
        if "colour" in columns:
            for name, channel in zip(CHANNELS, unpack_rgb(columns["colour"]).T, strict=True):
                record[name] = channel.astype(np.uint16) * np.uint16(257)
        for name in EXTRA:
            if name in columns:
                record[name] = columns[name]
        return record

    def _number_returns(self, record: Any, log: Log) -> None:
        hit = log.returns.hit.reshape(len(log), -1)
        pulse, slot = np.nonzero(hit)
        self._n_beyond += int(np.count_nonzero(slot >= MOST_RETURNS))
        record["number_of_returns"] = np.minimum(hit.sum(axis=1)[pulse], MOST_RETURNS).astype(np.uint8)
        record["return_number"] = np.minimum(slot + 1, MOST_RETURNS).astype(np.uint8)

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self.path) as temporary, temporary.open("w+b") as self._target:
            try:
                yield
                if self._file is None:
                    raise InputError(f"{self.path}", "nothing was appended; append at least one sweep")
                with self._compressing():
                    self._finish(self._target)
            finally:
                self._file = self._target = None
        self._count_losses()

    def _finish(self, target: BinaryIO) -> None:
        if self._record_text is not None:
            records = self._laspy.vlrs.vlrlist.VLRList([self._settings_record(self._record_text)])
            self._file.write_evlrs(records)
        self._file.close()
        target.seek(_DATE_AT)
        target.write(bytes(4))

    def _count_losses(self) -> None:
        if self._scaler is not None:
            self.written.losses += self._scaler.losses()
        if self._n_beyond:
            self.written.losses.append(f"{self._n_beyond:,} returns beyond the 15th of their pulse have its number")


def _codes(columns: Columns) -> NDArray[np.uint8]:
    """Return ASPRS codes, sweep by sweep: plants are high or low above the ground that their sweep saw."""
    points = np.stack([columns[axis] for axis in "xyz"], axis=1)
    code = np.empty(len(points), np.uint8)
    for _, rows in group_rows(columns["sweep"]):
        code[rows] = to_codes(columns["label"][rows], points[rows])
    return code


def scan_angles(log: Log) -> NDArray[np.int16]:
    """Return the scan angle of each return, in LAS's steps of 0.006 degrees; see the top of this file."""
    beams = log.beams
    angle_deg = np.degrees(np.arccos(np.clip(-beams.direction[:, 2].astype(np.float64), -1, 1)))
    for _, rows in group_rows(beams.sweep):
        origin_m, time_ns = beams.origin_m[rows, :2], beams.time_ns[rows]
        forward = origin_m[np.argmax(time_ns)] - origin_m[np.argmin(time_ns)]
        if np.linalg.norm(forward) > _MOVED_M:
            rightward = beams.direction[rows, :2] @ np.array([forward[1], -forward[0]])
            angle_deg[rows] = np.where(rightward < 0, -angle_deg[rows], angle_deg[rows])
    pulse = np.nonzero(log.returns.hit)[0]
    return np.rint(angle_deg / _ANGLE_STEP_DEG).astype(np.int16)[pulse]
