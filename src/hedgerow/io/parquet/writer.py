# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet logs, and the writer: sweep by sweep, in bounded memory, published only when it is complete.

There is one row per return, and one for a pulse without any (return_number 0, range_m inf). Rows are made and read by
whole columns; no Python loop runs over them.

`x.parquet` is one file; any other path is a folder of `part-00000.parquet`, `part-00001.parquet` and so on. Each sweep
of what is appended becomes a row group. Sweeps that are mixed within one `append` are sorted apart (stably); a sweep
that comes in several appends has several row groups. Both read back as one.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedgerow.base.arrays import first_row
from hedgerow.base.atomic import atomic_file, atomic_folder
from hedgerow.base.columns import require_agreement
from hedgerow.base.places import Address, Upload, as_place, uploading
from hedgerow.errors import InputError
from hedgerow.io.parquet.header import KEY, PARTS_KEY, Header
from hedgerow.io.source import LogSink, require_same_settings
from hedgerow.log import MISSING, Beams, Log, Returns

PART_PATTERN = "part-*.parquet"
_PART_NAME = re.compile(r"part-\d+\.parquet")
BEAM_TYPES = {
    "sweep": "int32",
    "pulse": "int64",
    "time_ns": "int64",
    "ring": "uint16",
    "origin_x": "double",
    "origin_y": "double",
    "origin_z": "double",
    "direction_x": "float",
    "direction_y": "float",
    "direction_z": "float",
}
RETURN_TYPES = {"return_number": "uint8", "range_m": "float"}
OPTIONAL_TYPES = {"intensity": "float", "label": "uint16", "element": "int64", "colour": "uint32", "object": "uint32"}
_AXES = ("x", "y", "z")
_BEAM_BYTES = 58  # all of BEAM_TYPES

# Measured on 1 M HDL-64E pulses, two cores: floats split into byte planes and counters into differences, then lz4,
# take 18 bytes per row (72 plain) and read fastest, 27 M rows/s; zstd saves 2 % more but reads at 16 M rows/s.
_COMPRESSION = "lz4"
_DICTIONARY = ("sweep", "ring", "return_number", "label")
_DIFFERENCES = ("pulse", "time_ns", "element")


def open_sink(path: str | Path, trajectory: object = None) -> "LogWriter":
    """Prepare to write a log to `*.parquet` or to a folder; a trajectory is not stored, beams have their origins."""
    return LogWriter(path)


class LogWriter(LogSink):
    """Appends logs to a file or folder that appears when the `with` block ends well, and only then.

    with LogWriter("drive.parquet") as writer:
        for sweep in sweeps:
            writer.append(sweep)
    """

    holds_misses = True

    def __init__(self, path: str | Path, *, rows_per_part: int = 8_000_000, durable: bool = False) -> None:
        """Prepare to write.

        Args:
            path: `*.parquet`, or a folder to make; an old log there is replaced.
            rows_per_part: a folder's next part begins with the sweep after this many rows.
            durable: also wait until the bytes are on the disk.
        """
        super().__init__(str(path))
        self.path = as_place(path)
        self._is_folder = self.path.suffix.lower() != ".parquet"
        self._rows_per_part = rows_per_part
        self._durable = durable
        self._temporary: Path | None = None
        self._upload: Upload | None = None
        self._like: Log | None = None
        self._part: _Part | None = None

    def _append(self, log: Log) -> None:
        """Write the pulses of a log; the first one sets the sensor, limits, metadata and which arrays there are.

        Raises:
            InputError: it differs from the first in one of these, or the writer is not open.
        """
        if self._temporary is None:
            raise InputError(f"{self.path}", "the writer is not open; use it as: with LogWriter(path) as writer")
        if self._like is None or self._part is None:
            self._like = log[:0]
            self._part = _Part(self._part_path(self._temporary, 0), Header.of(log), schema_of(log))
        _require_alike(self._like, log)
        for _, sweep in log.iter_sweeps():
            if self._is_folder and self._part.n_rows >= self._rows_per_part:
                number = self._part.header.part + 1
                self._finish(self._part)
                header = replace(Header.of(self._like), part=number)
                self._part = _Part(self._part_path(self._temporary, number), header, schema_of(log))
            self._part.write(sweep)

    @contextmanager
    def _writing(self) -> Generator[None]:
        with self._target() as self._temporary:
            try:
                yield
                if self._part is None:
                    raise InputError(f"{self.path}", "nothing was appended; append a log, an empty one if need be")
                self._finish(self._part, last=self._is_folder)
            finally:
                self._temporary = None
                if self._part is not None:
                    self._part.abandon()

    @contextmanager
    def _target(self) -> Generator[Path]:
        """Give a temporary file, or a folder of them, that becomes the log."""
        if isinstance(self.path, Address):
            first, own = ("part-00000.parquet", _PART_NAME) if self._is_folder else ("", None)
            with uploading(self.path, first, own) as self._upload:
                yield self._upload.here if self._is_folder else self._upload.here / self.path.name
        elif self._is_folder:
            with atomic_folder(self.path, replaces=[PART_PATTERN], durable=self._durable) as folder:
                yield folder
        else:
            with atomic_file(self.path, durable=self._durable) as file:
                yield file

    def _finish(self, part: "_Part", *, last: bool = False) -> None:
        """Close a part. One that belongs to an address goes there now, so that the disk need not hold all of them."""
        part.close(last=last)
        if self._upload is not None:
            self._upload.send(part.path)

    def _part_path(self, temporary: Path, number: int) -> Path:
        return temporary / f"part-{number:05d}.parquet" if self._is_folder else temporary


def write_part(path: Path, sweeps: Iterable[Log], number: int, *, is_last: bool) -> None:
    """Write one part of a log in a folder, whoever writes the others; `LogWriter` writes all of them in turn.

    Args:
        path: the file.
        sweeps: at least one log.
        number: which part it is, from 0.
        is_last: whether the log ends with it.

    Raises:
        InputError: the sweeps differ in what a log says once.
    """
    part: _Part | None = None
    first: Log | None = None
    try:
        for log in sweeps:
            if part is None or first is None:
                first, part = log[:0], _Part(path, replace(Header.of(log), part=number), schema_of(log))
            _require_alike(first, log)
            for _, sweep in log.iter_sweeps():
                part.write(sweep)
        assert part is not None
        part.close(last=is_last)
    finally:
        if part is not None:
            part.abandon()


class _Part:
    """One Parquet file being written."""

    def __init__(self, path: Path, header: Header, schema: pa.Schema) -> None:
        names = schema.names
        planes = dict.fromkeys(set(names).difference(_DICTIONARY, _DIFFERENCES), "BYTE_STREAM_SPLIT")
        differences = dict.fromkeys(set(names).intersection(_DIFFERENCES), "DELTA_BINARY_PACKED")
        repetitive = [name for name in names if name in _DICTIONARY]
        self.path = path
        self.header = header
        self.n_rows = 0
        self._schema = schema.with_metadata({KEY: header.to_json()})
        # Our own handle: it can be closed, and the file deleted, even when the writer cannot finish.
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression=_COMPRESSION,
            use_dictionary=repetitive,  # pyright: ignore[reportArgumentType]  # names of columns, or all
            column_encoding=planes | differences,
        )

    def write(self, sweep: Log) -> None:
        table = to_table(sweep, self._schema)
        self._writer.write_table(table, row_group_size=len(table))
        self.n_rows += len(table)

    def close(self, *, last: bool = False) -> None:
        if last:
            self._writer.add_key_value_metadata({PARTS_KEY.decode(): str(self.header.part + 1)})
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file if it is still open; the footer that this writes may fail, and is lost anyway."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False  # or it would try once more when it is collected
        self._file.close()


def _require_alike(like: Log, log: Log) -> None:
    require_same_settings(like, log)
    require_agreement([like.returns, log.returns], ["n_per_pulse"])
    if present(like) != present(log):
        raise InputError(
            "returns", f"the log has {present(log) or 'no other arrays'}, the first one had {present(like)}"
        )


def schema_of(log: Log) -> pa.Schema:
    """Return the Arrow schema of a log's rows."""
    types = BEAM_TYPES | RETURN_TYPES | {name: OPTIONAL_TYPES[name] for name in present(log)}
    return pa.schema(
        [
            pa.field(name, kind, nullable=False)  # pyright: ignore[reportArgumentType]  # the name of a type will do
            for name, kind in types.items()
        ]
    )


def present(log: Log) -> list[str]:
    """Name the arrays beside the ranges that a log has."""
    return [name for name in OPTIONAL_TYPES if getattr(log.returns, name) is not None]


def to_table(log: Log, schema: pa.Schema) -> pa.Table:
    """Return the rows of a log as an Arrow table."""
    beams, returns = log.beams, log.returns
    columns: dict[str, NDArray[Any]] = {name: getattr(beams, name) for name in ("sweep", "pulse", "time_ns", "ring")}
    columns |= {f"origin_{axis}": beams.origin_m[:, k] for k, axis in enumerate(_AXES)}
    columns |= {f"direction_{axis}": beams.direction[:, k] for k, axis in enumerate(_AXES)}
    beside: dict[str, NDArray[Any]] = {name: getattr(returns, name) for name in ("range_m", *present(log))}
    number = returns.hit.astype(np.uint8)
    if returns.n_per_pulse > 1:
        pulse, slot, number = _rows_of(returns)
        columns = {name: column[pulse] for name, column in columns.items()}
        beside = {name: column[pulse, slot] for name, column in beside.items()}
    rows = columns | {"return_number": number} | beside
    return pa.table({name: np.ascontiguousarray(column) for name, column in rows.items()}, schema=schema)


def _rows_of(returns: Returns) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.uint8]]:
    """Return for each row the pulse, which of its returns it is (from 0), and the return number (0 for a miss)."""
    n_returns = np.count_nonzero(returns.hit, axis=1)
    n_rows = np.maximum(n_returns, 1)
    pulse = np.repeat(np.arange(len(returns)), n_rows)
    slot = np.arange(len(pulse)) - (np.cumsum(n_rows) - n_rows)[pulse]
    return pulse, slot, np.minimum(n_returns[pulse], slot + 1).astype(np.uint8)


class Assembly:
    """Arrays being filled with rows, batch after batch, each checked while it is still in the cache."""

    def __init__(self, n_rows: int, returns_per_pulse: int, optional: list[str]) -> None:
        """Reserve room for as many pulses as there are rows; pages that stay unused cost nothing."""
        shape = (n_rows,) if returns_per_pulse == 1 else (n_rows, returns_per_pulse)
        self._beams: dict[str, NDArray[Any]] = {
            "origin_m": np.empty((n_rows, 3)),
            "direction": np.empty((n_rows, 3), np.float32),
            "time_ns": np.empty(n_rows, np.int64),
            "ring": np.empty(n_rows, np.uint16),
            "sweep": np.empty(n_rows, np.int32),
            "pulse": np.empty(n_rows, np.int64),
        }
        self._returns: dict[str, NDArray[Any]] = {"range_m": np.empty(shape, np.float32)}
        self._returns |= {name: np.empty(shape, MISSING[name].dtype) for name in optional}
        self._n_per_pulse = returns_per_pulse
        self._n_pulses = 0
        self._last_row = (0, 0)

    @staticmethod
    def pulse_bytes(returns_per_pulse: int, optional: list[str]) -> int:
        """Return how many bytes a pulse takes."""
        each = np.dtype(np.float32).itemsize + sum(MISSING[name].dtype.itemsize for name in optional)
        return _BEAM_BYTES + returns_per_pulse * each

    def add(self, table: pa.Table) -> None:
        """Append the rows of an Arrow table that has no missing values.

        Raises:
            InputError: the rows are no valid log.
        """
        rows: dict[str, NDArray[Any]] = {name: table.column(name).to_numpy() for name in table.column_names}
        number = rows["return_number"]
        self._require_in_turn(number, rows["pulse"], rows["range_m"])
        single = self._n_per_pulse == 1
        first = number <= 1
        start, stop = self._n_pulses, self._n_pulses + int(np.count_nonzero(first))
        chosen = slice(None) if single else first
        for name in ("sweep", "pulse", "time_ns", "ring"):
            self._beams[name][start:stop] = rows[name][chosen]
        for k, axis in enumerate(_AXES):
            self._beams["origin_m"][start:stop, k] = rows[f"origin_{axis}"][chosen]
            self._beams["direction"][start:stop, k] = rows[f"direction_{axis}"][chosen]
        for name, column in self._returns.items():
            if single:
                column[start:stop] = rows[name]
            else:
                column[start:stop] = MISSING.get(name, np.inf)
                # A batch may begin with the second return of the pulse before; that one's index is start - 1.
                column[start - 1 + np.cumsum(first), np.maximum(number, 1) - 1] = rows[name]
        self._n_pulses = stop
        self._check(max(start - 1, 0), stop)

    def finish(self) -> tuple[Beams, Returns]:
        """Return what was assembled."""
        beams = {name: column[: self._n_pulses] for name, column in self._beams.items()}
        returns = {name: column[: self._n_pulses] for name, column in self._returns.items()}
        return Beams.without_checks(beams), Returns.without_checks(returns)

    def _check(self, start: int, stop: int) -> None:
        Beams(**{name: column[start:stop] for name, column in self._beams.items()})
        Returns(**{name: column[start:stop] for name, column in self._returns.items()})

    def _require_in_turn(self, number: NDArray[Any], pulse: NDArray[Any], range_m: NDArray[Any]) -> None:
        """Refuse rows that were sorted or filtered so that the returns of a pulse no longer stand 1, 2, 3."""
        if not len(number):
            return
        previous_number = np.concatenate([[self._last_row[0]], number[:-1]])
        previous_pulse = np.concatenate([[self._last_row[1]], pulse[:-1]])
        follows = (number == previous_number + 1) & (pulse == previous_pulse)
        wrong = ~((number <= 1) | follows) | (number > self._n_per_pulse) | ((number == 0) != np.isinf(range_m))
        if wrong.any():
            row = first_row(wrong)
            found = f"return {number[row]} of pulse {pulse[row]} at {range_m[row]} m"
            raise InputError(
                "return_number", f"found {found} out of turn; expected 0 for no return, else 1, 2, ... in order"
            )
        self._last_row = (int(number[-1]), int(pulse[-1]))
