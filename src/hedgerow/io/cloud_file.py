# SPDX-License-Identifier: Apache-2.0
"""A log in one file of points: PLY, or a single PCD. The file is loaded as a whole; sweeps are told by their column."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hedgerow import arrays
from hedgerow.arrays import Numbers
from hedgerow.errors import FileError, InputError
from hedgerow.io.atomic import atomic_file
from hedgerow.io.cloud_header import header_of, header_text, settings_of, viewpoints_of
from hedgerow.io.columns import Columns, consecutive, named, names_of, to_columns, to_log, to_rows
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import LogSink, SweepSource
from hedgerow.log import Log
from hedgerow.table import require_agreement


class CloudFile(SweepSource):
    """A log read from one file of points."""

    def __init__(self, path: Path, columns: Columns, header: str | None, options: ReadOptions, name: str) -> None:
        """Check what the file holds.

        Args:
            path: of the file.
            columns: its content, as in columns.py.
            header: the line that Hedgerow wrote into it, if any.
            options: what the file does not say.
            name: of the format.

        Raises:
            FileError: no points, a field is missing or damaged, or nothing tells where they were seen from.
        """
        self._columns = named(columns, path)
        if not len(self._columns["x"]):
            raise FileError(f"{path}: holds no points")
        super().__init__(path, settings_of(header_of(header, path), self._columns, options, name))
        self.n_left_out = len(next(iter(columns.values()))) - len(self._columns["x"])
        self._origin_m = viewpoints_of(options).of(self._columns, path)
        sweep = self._columns.get("sweep")
        number: NDArray[Any] = np.zeros(len(self._origin_m), np.int32) if sweep is None else sweep
        self._groups = dict(arrays.groups(number.astype(np.int32)))

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return np.array(list(self._groups), np.int32)

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order."""
        for number in self.wanted(sweeps):
            rows = self._groups[number]
            columns = {name: column[rows] for name, column in self._columns.items()}
            try:
                log = to_log(columns, self._origin_m[rows], consecutive(columns), self.settings, number, self.path)
            except InputError as error:
                raise FileError(f"{self.path}: {error}") from error
            yield number, log


class CloudFileWriter(LogSink):
    """Appends the points of logs to one binary file; subclasses give the header, of fixed length."""

    def __init__(self, path: str | Path) -> None:
        """Prepare to write."""
        self._path = Path(path)
        self._file: BinaryIO | None = None
        self._like: Log | None = None
        self._text = ""
        self._n_points = 0

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header for rows of this type; its length must not depend on `n_points`."""
        raise NotImplementedError

    def append(self, log: Log) -> None:
        """Write the returns of a log, map frame plus map origin; missing returns have no place in a cloud.

        Raises:
            InputError: it differs from the first in sensor, limits or arrays.
        """
        if self._file is None:
            raise InputError(f"{self._path}: the writer is not open; use it in a with block")
        rows = to_rows(to_columns(log, log.map_origin_m))
        if self._like is None:
            self._like, self._text = log[:0], header_text(log)
            self._file.write(self.header(rows, 0, self._text))
        require_agreement([self._like, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])
        if names_of(log) != names_of(self._like):
            raise InputError(f"returns: the log has {names_of(log)}, the first one had {names_of(self._like)}")
        self._file.write(rows.tobytes())
        self._n_points += len(rows)

    @contextmanager
    def _writing(self) -> Generator[None]:
        with atomic_file(self._path) as temporary, temporary.open("w+b") as self._file:
            try:
                yield
                if self._like is None:
                    raise InputError(f"{self._path}: nothing was appended; append a log, an empty one if need be")
                self._file.seek(0)
                self._file.write(self.header(to_rows(to_columns(self._like)), self._n_points, self._text))
            finally:
                self._file.close()
                self._file = None
