# SPDX-License-Identifier: Apache-2.0
"""Parquet logs: the native file of Hedgerow, which pandas, DuckDB and Dask read as well.

One row per return or missed pulse, one row group per sweep, in one file or a folder of parts (writer.py); settings as
JSON in the metadata (header.py). `open_log` looks only at the footers; sweeps are then read one by one, by number, or
all at once.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Numbers
from hedgerow.base.columns import Table
from hedgerow.base.places import as_place
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.parquet.guarded import group_rows_of, open_parquet, reading, require_columns
from hedgerow.io.parquet.header import KEY, PARTS_KEY, Header
from hedgerow.io.parquet.writer import BEAM_TYPES, OPTIONAL_TYPES, PART_PATTERN, RETURN_TYPES, Assembly
from hedgerow.io.source import free_memory_bytes
from hedgerow.log import Log

_ROWS_AT_ONCE = 500_000  # many small sweeps are decoded together, up to this many rows


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    header: Header
    is_last: bool
    footer: pq.FileMetaData
    n_bytes: int
    changed_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class _Groups(Table):
    """Row groups that have rows: which part, which one in it, how many rows."""

    part: NDArray[np.int64]
    index: NDArray[np.int64]
    n_rows: NDArray[np.int64]


class _SweepIndex(NamedTuple):
    """Which sweeps there are, and where."""

    low: NDArray[np.int64]
    """(G,) least sweep number in each row group."""
    high: NDArray[np.int64]
    numbers: NDArray[np.int32]
    """Those that occur, ascending."""


class LogFile:
    """A log on the disk, of which only the footers have been read.

    Attributes:
        path: the file or folder; an `Address` if it lies in a store.
        sensor, min_range_m, max_range_m, map_origin_m, metadata: as in `Log`.
        n_per_pulse: returns that a pulse can have.
        arrays: which of intensity, label, element and colour there are.
        written_by: version of Hedgerow that wrote it.
        trajectory: None; beams have their own origins.
    """

    def __init__(self, path: str | Path) -> None:
        """Read the footers.

        Raises:
            FileError: missing, damaged, or no Hedgerow log.
        """
        self.path = as_place(path)
        self._parts = [_open_part(part) for part in _part_paths(self.path)]
        _require_whole(self.path, self._parts)
        header = self._parts[0].header
        self.sensor = header.sensor
        self.min_range_m, self.max_range_m = header.min_range_m, header.max_range_m
        self.map_origin_m = np.array(header.map_origin_m)
        self.metadata = header.metadata
        self.n_per_pulse = header.returns_per_pulse
        self.written_by = header.hedgerow
        with reading(self._parts[0].path):
            names = self._parts[0].footer.schema.to_arrow_schema().names
        self.arrays = [name for name in OPTIONAL_TYPES if name in names]
        self.trajectory: Trajectory | None = None
        self._groups = _groups_of(self._parts, [*BEAM_TYPES, *RETURN_TYPES, *self.arrays])

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
        return self._sweep_index.numbers

    @cached_property
    def _sweep_index(self) -> _SweepIndex:
        """Look through the column of sweep numbers, the smallest of all; the footer's statistics cannot be trusted."""
        parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        for groups, table in self._tables(self._groups, ["sweep"]):
            sweep = table.column("sweep").to_numpy()
            starts = np.cumsum(groups.n_rows) - groups.n_rows
            low, high = np.minimum.reduceat(sweep, starts), np.maximum.reduceat(sweep, starts)
            parts.append((low, high, np.unique(low if (low == high).all() else sweep)))
        if not parts:
            return _SweepIndex(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))
        low, high, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
        return _SweepIndex(low.astype(np.int64), high.astype(np.int64), np.unique(numbers))

    def beams_per_sweep(self) -> dict[int, int]:
        """Count the pulses of each sweep, by ascending number; of all columns only the smallest are read."""
        several = self.n_per_pulse > 1
        total: dict[int, int] = {}
        for rows in self.batches(["sweep", "return_number"] if several else ["sweep"]):
            # Every pulse has exactly one row with number 0 or 1.
            sweep = rows["sweep"][rows["return_number"] <= 1] if several else rows["sweep"]
            for number, n in zip(*(each.tolist() for each in np.unique(sweep, return_counts=True)), strict=True):
                total[number] = total.get(number, 0) + n
        return dict(sorted(total.items()))

    def count_returned(self, sweeps: Numbers) -> int:
        """Count the pulses of some sweeps that returned; of all columns only the smallest are read.

        Raises:
            FileError: damaged.
        """
        index = self._sweep_index
        groups = self._groups[arrays.is_member(index.low, sweeps) | (index.low != index.high)]
        n = 0
        for _, table in self._tables(groups, ["sweep", "range_m", "return_number"]):
            columns = {name: table.column(name).to_numpy() for name in table.column_names}
            first = np.isfinite(columns["range_m"]) & (columns["return_number"] <= 1)
            n += int(np.count_nonzero(first & arrays.is_member(columns["sweep"], sweeps)))
        return n

    @property
    def stamp(self) -> str:
        """Tells this content from what may later be written to the same path: size and time of every file."""
        said = ",".join(f"{part.n_bytes}-{part.changed_ns}" for part in self._parts)
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read all sweeps, or those with the given numbers, in the order of the file.

        Raises:
            FileError: damaged, or the rows are no valid log.
        """
        groups, mixed = self._groups, False
        if sweeps is not None:
            is_mixed = self._sweep_index.low != self._sweep_index.high
            mixed = bool(is_mixed.any())
            groups = groups[arrays.is_member(self._sweep_index.low, sweeps) | is_mixed]
        n_rows = int(groups.n_rows.sum())
        self._require_memory(n_rows)
        try:
            with reading(self.path):
                assembly = Assembly(n_rows, self.n_per_pulse, self.arrays)
            for _, table in self._tables(groups, [*BEAM_TYPES, *RETURN_TYPES, *self.arrays]):
                if sweeps is not None and mixed:
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
        """Give some columns of all rows (see writer.py), by name, a batch of rows at a time.

        Raises:
            FileError: damaged, or a pulse has more returns than the file says.
        """
        for _, table in self._tables(self._groups, columns):
            rows = {name: table.column(name).to_numpy() for name in columns}
            if "return_number" in rows and (most := int(rows["return_number"].max())) > self.n_per_pulse:
                said = f"says {self.n_per_pulse} returns per pulse, but a row has return_number {most}"
                raise FileError(f"{self.path}: {said}; is it damaged?")
            yield rows

    @property
    def size_bytes(self) -> int:
        """Size on the disk."""
        return sum(part.path.stat().st_size for part in self._parts)

    @property
    def n_parts(self) -> int:
        """How many files it consists of."""
        return len(self._parts)

    def _require_memory(self, n_rows: int) -> None:
        """Refuse what cannot fit into memory, even if every pulse has all its returns, each a row."""
        needed = n_rows // self.n_per_pulse * Assembly.pulse_bytes(self.n_per_pulse, self.arrays)
        free = free_memory_bytes()
        if free is not None and needed > free:
            amount = f"{needed / 1e9:.1f} GB of the {free / 1e9:.1f} GB of free memory"
            raise FileError(f"{self.path}: {n_rows:,} rows need {amount}; read it sweep by sweep (iter_sweeps)")

    def _tables(self, groups: _Groups, columns: list[str]) -> Iterator[tuple[_Groups, pa.Table]]:
        """Decode row groups in order, a batch at a time; no value is missing, and no row."""
        batch = np.cumsum(groups.n_rows) // _ROWS_AT_ONCE
        for number, in_part in arrays.group_rows(groups.part):
            part = self._parts[number]
            with open_parquet(part.path, footer=part.footer) as file:
                for _, in_batch in arrays.group_rows(batch[in_part]):
                    some = groups[in_part][in_batch]
                    with reading(part.path):
                        table = file.read_row_groups(some.index.tolist(), columns)
                    _require_full(part.path, table, columns, int(some.n_rows.sum()))
                    yield some, table


def open_log(path: str | Path, options: object = None) -> LogFile:
    """Open a log to look at it, or to read it sweep by sweep; there are no options, the file says everything.

    Raises:
        FileError: missing, damaged, or no Hedgerow log.
    """
    return LogFile(path)


def _part_paths(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = sorted(path.glob(PART_PATTERN))
    if not parts:
        raise FileError(f"{path}: the folder holds no {PART_PATTERN}; is it a Hedgerow log?")
    return parts


def _open_part(path: Path) -> _Part:
    with reading(path), open_parquet(path) as file:
        footer = file.metadata
        texts: dict[bytes, bytes] = footer.metadata or {}
        found = path.stat()
    header = Header.from_json(path, texts.get(KEY))
    return _Part(
        path, header, texts.get(PARTS_KEY) == str(header.part + 1).encode(), footer, found.st_size, found.st_mtime_ns
    )


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


def _groups_of(parts: list[_Part], columns: list[str]) -> _Groups:
    """Check the footers; return where the rows are."""
    types = BEAM_TYPES | RETURN_TYPES | OPTIONAL_TYPES
    rows: list[tuple[int, int, int]] = []
    for number, part in enumerate(parts):
        require_columns(part.path, part.footer, {name: types[name] for name in columns})
        counts = group_rows_of(part.path, part.footer, part.n_bytes)
        rows += [(number, index, n_rows) for index, n_rows in enumerate(counts) if n_rows]
    return _Groups(*np.array(rows, np.int64).reshape(-1, 3).T)


def _require_full(path: Path, table: pa.Table, columns: list[str], n_rows: int) -> None:
    for name in columns:
        column = table.column(name)
        if column.null_count:
            raise FileError(f"{path}: column '{name}': has missing values; use range_m = inf for no return")
        if len(column) != n_rows:
            raise FileError(f"{path}: damaged: column '{name}' has {len(column):,} of {n_rows:,} values")
