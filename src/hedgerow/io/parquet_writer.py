# SPDX-License-Identifier: Apache-2.0
"""Write a log to Parquet sweep by sweep, with bounded memory, published only when it is complete.

`x.parquet` is one file; any other path is a folder of `part-00000.parquet`, `part-00001.parquet` and so on. Each sweep
of what is appended becomes a row group. Sweeps that are mixed within one `append` are sorted apart (stably); a sweep
that comes in several appends has several row groups. Both read back as one.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.errors import InputError
from hedgerow.io.atomic import atomic_file, atomic_folder
from hedgerow.io.parquet_header import KEY, PARTS_KEY, Header
from hedgerow.io.parquet_rows import present, schema_of, to_table
from hedgerow.io.source import LogSink
from hedgerow.log import Log
from hedgerow.table import require_agreement

PART_PATTERN = "part-*.parquet"

# Measured on 1 M HDL-64E pulses, two cores: floats split into byte planes and counters into differences, then lz4,
# take 18 bytes per row (72 plain) and read fastest, 27 M rows/s; zstd saves 2 % more but reads at 16 M rows/s.
_COMPRESSION = "lz4"
_DICTIONARY = ("sweep", "ring", "return_number", "label")
_DIFFERENCES = ("pulse", "time_ns", "element")


class LogWriter(LogSink):
    """Appends logs to a file or folder that appears when the `with` block ends well, and only then.

    with LogWriter("drive.parquet") as writer:
        for sweep in sweeps:
            writer.append(sweep)
    """

    def __init__(self, path: str | Path, *, rows_per_part: int = 8_000_000, durable: bool = False) -> None:
        """Prepare to write.

        Args:
            path: `*.parquet`, or a folder to make; an old log there is replaced.
            rows_per_part: a folder's next part begins with the sweep after this many rows.
            durable: also wait until the bytes are on the disk.
        """
        self._path = Path(path)
        self._is_folder = self._path.suffix.lower() != ".parquet"
        self._rows_per_part = rows_per_part
        self._durable = durable
        self._temporary: Path | None = None
        self._like: Log | None = None
        self._part: _Part | None = None

    def append(self, log: Log) -> None:
        """Write the pulses of a log; the first one sets the sensor, limits, metadata and which arrays there are.

        Raises:
            InputError: it differs from the first in one of these, or the writer is not open.
        """
        if self._temporary is None:
            raise InputError(f"{self._path}", "the writer is not open; use it as: with LogWriter(path) as writer")
        if self._like is None or self._part is None:
            self._like = log[:0]
            self._part = _Part(self._part_path(self._temporary, 0), Header.of(log), schema_of(log))
        _require_alike(self._like, log)
        for _, sweep in log.iter_sweeps():
            if self._is_folder and self._part.n_rows >= self._rows_per_part:
                number = self._part.header.part + 1
                self._part.close()
                header = replace(Header.of(self._like), part=number)
                self._part = _Part(self._part_path(self._temporary, number), header, schema_of(log))
            self._part.write(sweep)

    @contextmanager
    def _writing(self) -> Generator[None]:
        if self._is_folder:
            target = atomic_folder(self._path, replaces=[PART_PATTERN], durable=self._durable)
        else:
            target = atomic_file(self._path, durable=self._durable)
        with target as self._temporary:
            try:
                yield
                if self._part is None:
                    raise InputError(f"{self._path}", "nothing was appended; append a log, an empty one if need be")
                self._part.close(last=self._is_folder)
            finally:
                self._temporary = None
                if self._part is not None:
                    self._part.abandon()

    def _part_path(self, temporary: Path, number: int) -> Path:
        return temporary / f"part-{number:05d}.parquet" if self._is_folder else temporary


class _Part:
    """One Parquet file being written."""

    def __init__(self, path: Path, header: Header, schema: pa.Schema) -> None:
        names = schema.names
        planes = dict.fromkeys(set(names).difference(_DICTIONARY, _DIFFERENCES), "BYTE_STREAM_SPLIT")
        differences = dict.fromkeys(set(names).intersection(_DIFFERENCES), "DELTA_BINARY_PACKED")
        repetitive = [name for name in names if name in _DICTIONARY]
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
    require_agreement([like, log], ["sensor", "min_range_m", "max_range_m", "map_origin_m"])
    require_agreement([like.returns, log.returns], ["n_per_pulse"])
    if present(like) != present(log):
        raise InputError(
            "returns", f"the log has {present(log) or 'no other arrays'}, the first one had {present(like)}"
        )
