# SPDX-License-Identifier: Apache-2.0
"""PLY and PCD files that Hedgerow wrote, read one sweep at a time: rows of fixed size, sweeps one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Numbers
from hedgerow.errors import FileError, InputError
from hedgerow.io.cloud_file import CloudFile
from hedgerow.io.cloud_header import header_of, settings_of, viewpoints_of
from hedgerow.io.columns import Columns, consecutive, named, to_log
from hedgerow.io.foreign import reading
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import SweepSource
from hedgerow.log import Log

_AT_ONCE = 1_000_000
_MOST_PIECES = 100_000  # of all sweeps; where they are mixed row by row the file is loaded whole

Pieces = dict[int, list[tuple[int, int]]]
"""First row and the one after the last, of each piece of each sweep."""


@dataclass(frozen=True, slots=True)
class RowFile:
    """The rows of a binary file."""

    path: Path
    offset: int
    """Bytes before the first row."""
    dtype: np.dtype[Any]
    """Structured, one field per column."""
    n_rows: int

    def read(self, start: int, stop: int) -> Columns:
        """Return the columns of some rows.

        Raises:
            FileError: the file ends before.
        """
        with reading(self.path, "a file of points"):
            rows = np.fromfile(self.path, self.dtype, stop - start, offset=self.offset + start * self.dtype.itemsize)
        if len(rows) < stop - start:
            raise FileError(f"{self.path}: ends after {start + len(rows):,} of {self.n_rows:,} points; is it cut off?")
        return {name: rows[name] for name in self.dtype.names or ()}

    def pieces(self) -> Pieces | None:
        """Find the rows of each sweep; None if they are mixed."""
        found: Pieces = {}
        last: int | None = None
        for start in range(0, self.n_rows, _AT_ONCE):
            stop = min(start + _AT_ONCE, self.n_rows)
            number: NDArray[np.int32] = self.read(start, stop)["sweep"].astype(np.int32)
            bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), stop - start]
            if len(bounds) + sum(map(len, found.values())) > _MOST_PIECES:
                return None
            for begin, end in pairwise(bounds):
                sweep, piece = int(number[begin]), (start + begin, start + end)
                if sweep == last:  # goes on from the rows read before
                    piece = found[sweep].pop()[0], piece[1]
                found.setdefault(sweep, []).append(piece)
                last = sweep
        return found


def open_rows(rows: RowFile, text: str, options: ReadOptions, name: str) -> SweepSource:
    """Open a file that Hedgerow wrote.

    Args:
        rows: its content.
        text: the line in its header.
        options: what the file does not say.
        name: of the format.

    Raises:
        FileError: no points, damaged, or shorter than its header says.
    """
    pieces = rows.pieces() if "sweep" in (rows.dtype.names or ()) else None
    if pieces is None or not rows.n_rows:
        return CloudFile(rows.path, rows.read(0, rows.n_rows), text, options, name)
    return _RowLog(rows, pieces, text, options, name)


class _RowLog(SweepSource):
    """A log in a file of rows."""

    def __init__(self, rows: RowFile, pieces: Pieces, text: str, options: ReadOptions, name: str) -> None:
        first = named(rows.read(0, min(rows.n_rows, 1000)), rows.path)
        super().__init__(rows.path, settings_of(header_of(text, rows.path), first, options, name))
        self._rows, self._pieces = rows, pieces
        self._viewpoints = viewpoints_of(options)
        self._viewpoints.of(first, rows.path)  # refuse now what cannot be placed

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return np.array(sorted(self._pieces), np.int32)

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        for number in self.wanted(sweeps):
            parts = [self._rows.read(*piece) for piece in self._pieces[number]]
            columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            kept = named(columns, self.path)
            self.n_left_out += len(columns["x"]) - len(kept["x"])
            try:
                origin_m = self._viewpoints.of(kept, self.path)
                yield number, to_log(kept, origin_m, consecutive(kept), self.settings, number, self.path)
            except InputError as error:
                raise FileError(f"{self.path}: {error}") from error
