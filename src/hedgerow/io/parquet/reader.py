# SPDX-License-Identifier: Apache-2.0
"""Parquet logs: the native file of Hedgerow, which pandas, DuckDB and Dask read as well.

One row per return or missed pulse, one row group per sweep, in one file or a folder of parts (writer.py); settings as
JSON in the metadata (header.py). `open_log` looks only at the footers; sweeps are then read one by one, by number, or
all at once.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Numbers
from hedgerow.base.columns import Table
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.parquet.header import KEY, PARTS_KEY, Header
from hedgerow.io.parquet.writer import BEAM_TYPES, OPTIONAL_TYPES, PART_PATTERN, RETURN_TYPES, Assembly
from hedgerow.log import Log

_ROWS_AT_ONCE = 500_000  # many small sweeps are decoded together, up to this many rows


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    header: Header
    is_last: bool
    footer: pq.FileMetaData


@dataclass(frozen=True, slots=True, eq=False)
class _Groups(Table):
    """Row groups: which part, which one in it, how many rows, least and greatest sweep number."""

    part: NDArray[np.int64]
    index: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class LogFile:
    """A log on the disk, of which only the footers have been read.

    Attributes:
        path: the file or folder.
        sensor, min_range_m, max_range_m, map_origin_m, metadata: as in `Log`.
        n_per_pulse: returns that a pulse can have.
        arrays: which of intensity, label and element there are.
        written_by: version of Hedgerow that wrote it.
        trajectory: None; beams have their own origins.
    """

    def __init__(self, path: str | Path) -> None:
        """Read the footers.

        Raises:
            FileError: missing, damaged, or no Hedgerow log.
        """
        self.path = Path(path)
        self._parts = [_open_part(part) for part in _part_paths(self.path)]
        _require_whole(self.path, self._parts)
        header = self._parts[0].header
        self.sensor = header.sensor
        self.min_range_m, self.max_range_m = header.min_range_m, header.max_range_m
        self.map_origin_m = np.array(header.map_origin_m)
        self.metadata = header.metadata
        self.n_per_pulse = header.returns_per_pulse
        self.written_by = header.hedgerow
        self.arrays = _require_columns(self._parts)
        self.trajectory: Trajectory | None = None
        self._groups = _groups_of(self._parts)

    @property
    def n_beams(self) -> int:
        """How many pulses there are."""
        return len(self)

    def __len__(self) -> int:
        """Count the pulses."""
        if self.n_per_pulse == 1:
            return int(self._groups.n_rows.sum())
        # Rows are returns; every pulse has exactly one row with number 0 or 1.
        return sum(int(np.count_nonzero(rows["return_number"] <= 1)) for rows in self.batches(["return_number"]))

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        mixed = self._groups.low != self._groups.high
        tables = self._tables(self._groups[mixed], ["sweep"])
        numbers = [self._groups.low[~mixed], *(table.column("sweep").to_numpy() for table in tables)]
        return np.unique(np.concatenate(numbers)).astype(np.int32)

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read all sweeps, or those with the given numbers, in the order of the file.

        Raises:
            FileError: damaged, or the rows are no valid log.
        """
        mixed = self._groups.low != self._groups.high
        groups = self._groups[arrays.is_member(self._groups.low, sweeps) | mixed]
        assembly = Assembly(int(groups.n_rows.sum()), self.n_per_pulse, self.arrays)
        try:
            for table in self._tables(groups, [*BEAM_TYPES, *RETURN_TYPES, *self.arrays]):
                if sweeps is not None and mixed.any():
                    table = table.filter(arrays.is_member(table.column("sweep").to_numpy(), sweeps))
                assembly.add(table)
            limits = {"min_range_m": self.min_range_m, "max_range_m": self.max_range_m}
            beams, returns = assembly.finish()
            return Log(beams, returns, self.sensor, map_origin_m=self.map_origin_m, metadata=self.metadata, **limits)
        except InputError as error:
            raise FileError(f"{self.path}: {error}") from error

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time; default all."""
        numbers = self.sweeps
        for number in numbers[arrays.is_member(numbers, sweeps)].tolist():
            yield number, self.read(number)

    def batches(self, columns: list[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Give some columns of all rows (see writer.py), by name, a batch of rows at a time."""
        for table in self._tables(self._groups, columns):
            yield {name: table.column(name).to_numpy() for name in columns}

    @property
    def size_bytes(self) -> int:
        """Size on the disk."""
        return sum(part.path.stat().st_size for part in self._parts)

    @property
    def n_parts(self) -> int:
        """How many files it consists of."""
        return len(self._parts)

    def _tables(self, groups: _Groups, columns: list[str]) -> Iterator[pa.Table]:
        """Decode row groups in order, a batch at a time."""
        batch = np.cumsum(groups.n_rows) // _ROWS_AT_ONCE
        for number, in_part in arrays.group_rows(groups.part):
            part = self._parts[number]
            with _reading(part.path), pq.ParquetFile(part.path, metadata=part.footer) as file:
                for _, in_batch in arrays.group_rows(batch[in_part]):
                    yield file.read_row_groups(groups.index[in_part][in_batch].tolist(), columns)


def open_log(path: str | Path, options: object = None) -> LogFile:
    """Open a log to look at it, or to read it sweep by sweep; there are no options, the file says everything.

    Raises:
        FileError: missing, damaged, or no Hedgerow log.
    """
    return LogFile(path)


@contextmanager
def _reading(path: Path) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise FileError(f"{path}: not a Parquet file, or damaged ({reason})") from error


def _part_paths(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = sorted(path.glob(PART_PATTERN))
    if not parts:
        raise FileError(f"{path}: the folder holds no {PART_PATTERN}; is it a Hedgerow log?")
    return parts


def _open_part(path: Path) -> _Part:
    with _reading(path):
        if path.stat().st_size == 0:
            raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
        footer = pq.read_metadata(path)
    texts: dict[bytes, bytes] = footer.metadata or {}
    header = Header.from_json(path, texts.get(KEY))
    return _Part(path, header, texts.get(PARTS_KEY) == str(header.part + 1).encode(), footer)


def _require_whole(path: Path, parts: list[_Part]) -> None:
    for number, part in enumerate(parts):
        if part.header.part != number and path.is_dir():
            raise FileError(f"{path}: part-{number:05d}.parquet is missing or out of place (found {part.path.name})")
        if part.header.settings() != parts[0].header.settings():
            raise FileError(f"{part.path}: belongs to another log than {parts[0].path.name}")
    if path.is_dir() and not parts[-1].is_last:
        raise FileError(
            f"{path}: part-{len(parts):05d}.parquet is missing, the last one here is not the end of the log"
        )


def _require_columns(parts: list[_Part]) -> list[str]:
    """Check names and types of all columns; return which optional ones there are."""
    optional = [name for name in OPTIONAL_TYPES if name in parts[0].footer.schema.names]
    for part in parts:
        schema = part.footer.schema.to_arrow_schema()
        for name in (*BEAM_TYPES, *RETURN_TYPES, *optional):
            kind = (BEAM_TYPES | RETURN_TYPES | OPTIONAL_TYPES)[name]
            if name not in schema.names:
                raise FileError(f"{part.path}: column '{name}' is missing (has {', '.join(schema.names)})")
            if str(schema.field(name).type) != kind:
                raise FileError(f"{part.path}: column '{name}' is {schema.field(name).type}, expected {kind}")
    return optional


def _groups_of(parts: list[_Part]) -> _Groups:
    rows: list[tuple[int, int, int, int, int]] = []
    for number, part in enumerate(parts):
        column = part.footer.schema.names.index("sweep")
        for index in range(part.footer.num_row_groups):
            group = part.footer.row_group(index)
            sweep: Any = group.column(column).statistics
            if sweep is not None and sweep.has_min_max:
                rows.append((number, index, group.num_rows, sweep.min, sweep.max))
            else:  # it may hold any sweep
                rows.append((number, index, group.num_rows, -(2**31), 2**31 - 1))
    return _Groups(*np.array(rows, np.int64).reshape(-1, 5).T)
