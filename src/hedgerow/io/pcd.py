# SPDX-License-Identifier: Apache-2.0
"""PCD files of the Point Cloud Library: read with pypcd4 (ascii, binary, compressed), written binary.

One file is a log in map coordinates with the columns of columns.py. A folder of files is a log of one file per sweep in
the frame of the sensor: see pcd_folder.py. Organised files (HEIGHT above 1) have a cell for every firing, and NaN in
those without a return: pcd_cells.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.cloud_file import CloudFile, CloudFileWriter
from hedgerow.io.cloud_header import MARK
from hedgerow.io.columns import Columns
from hedgerow.io.foreign import reading
from hedgerow.io.formats import optional
from hedgerow.io.options import ReadOptions
from hedgerow.io.row_file import RowFile, open_rows
from hedgerow.io.source import SweepSource

_HEADER_BYTES = 1_000_000
_MOST_COMPRESSED = 100  # LZF packs no more than 88 times


@dataclass(frozen=True, slots=True, eq=False)
class PcdFile:
    """What a PCD file holds."""

    path: Path
    columns: Columns
    """By name, one row per point."""
    text: str | None
    """The line that Hedgerow wrote into its header, if any."""
    height: int
    width: int
    """Of the grid of an organised file; height is 1 in others."""

    @property
    def is_organised(self) -> bool:
        """Whether it is a grid of lasers and columns."""
        return min(self.height, self.width) > 1


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open a single PCD file; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no points, or nothing tells where they were seen from.
    """
    header = _header(Path(path))
    if header.text is not None and header.rows is not None:
        return open_rows(header.rows, header.text, options, "pcd")
    file = read_pcd(Path(path))
    cloud = CloudFile(Path(path), file.columns, file.text, options, "pcd")
    if not file.is_organised or options.scanner_m is None or options.recover == "no":
        return cloud
    from hedgerow.io.pcd_cells import seen_from

    return seen_from(file, cloud, options)


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "PcdWriter":
    """Prepare to write a single PCD file; a trajectory is not needed, points have their viewpoints."""
    return PcdWriter(path)


class PcdWriter(CloudFileWriter):
    """Appends points to a binary PCD file."""

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header, the number of points padded to a fixed width."""
        return pcd_header(rows, n_points, text)


def pcd_header(rows: NDArray[Any], n_points: int, text: str = "") -> bytes:
    """Return the header of a binary PCD file; its length does not depend on the number of points."""
    kinds: Any = rows.dtype
    columns = [kinds[name] for name in kinds.names]
    lines = [
        "# .PCD v0.7 - Point Cloud Data file format",
        *([f"# {MARK}{text}"] if text else []),
        "VERSION 0.7",
        "FIELDS " + " ".join(kinds.names),
        "SIZE " + " ".join(str(each.itemsize) for each in columns),
        "TYPE " + " ".join(each.kind.upper() for each in columns),
        "COUNT " + " ".join("1" for _ in columns),
        f"WIDTH {n_points:<15d}",
        "HEIGHT 1",
        "VIEWPOINT 0 0 0 1 0 0 0",
        f"POINTS {n_points:<15d}",
        "DATA binary",
    ]
    return ("\n".join(lines) + "\n").encode("ascii")


def read_pcd(path: Path) -> PcdFile:
    """Read a PCD file.

    Raises:
        FileError: damaged, or shorter than its header says.
    """
    header = _header(path)
    n_points = header.height * header.width
    loader: Any = optional("pypcd4", "pcd")
    with reading(path, "a PCD file"):
        data = loader.PointCloud.from_path(path).pc_data
        names: tuple[str, ...] = data.dtype.names or ()
        columns: Columns = {
            name: np.atleast_1d(data[name]).astype(data[name].dtype.newbyteorder("=")) for name in names
        }
    if any(column.shape != (n_points,) for column in columns.values()):
        found = len(next(iter(columns.values()))) if columns else 0
        raise FileError(f"{path}: holds {found} points but its header says {n_points}; was its copying interrupted?")
    return PcdFile(path, columns, header.text, header.height, header.width)


@dataclass(frozen=True, slots=True)
class _Header:
    height: int
    width: int
    text: str | None
    rows: RowFile | None
    """Where the points are, if they are binary and every field is one number."""


def _header(path: Path) -> _Header:
    """Read the header, and refuse one that promises more than the file can hold."""
    with reading(path, "a PCD file"), path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if not head:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    fields: dict[str, list[str]] = {}
    text: str | None = None
    offset = 0
    for line in head.decode("latin-1").splitlines(keepends=True):
        offset += len(line)
        if line.startswith(f"# {MARK}"):
            text = line.removeprefix(f"# {MARK}").rstrip("\n")
        name, *words = line.split() or [""]
        fields.setdefault(name, words)
        if name == "DATA":
            break
    try:
        width, height = int(fields["WIDTH"][0]), int(fields.get("HEIGHT", ["1"])[0])
        n_points = int(fields["POINTS"][0]) if "POINTS" in fields else width * height
        counts = [int(each) for each in fields.get("COUNT", ["1"] * len(fields["SIZE"]))]
        n_bytes = n_points * sum(int(a) * b for a, b in zip(fields["SIZE"], counts, strict=True))
        kind = fields["DATA"][0].lower()
    except (KeyError, IndexError, ValueError) as error:
        raise FileError(f"{path}: not a PCD file, or its header is damaged ({error})") from None
    size = path.stat().st_size
    most = {"ascii": 8, "binary": 1, "binary_compressed": _MOST_COMPRESSED}.get(kind, 0) * size
    if n_points < 0 or not 0 <= n_bytes <= most:
        raise FileError(f"{path}: its header says {n_points} points, which {size} bytes cannot hold; is it cut off?")
    if height < 1 or height * width != n_points:
        height, width = 1, n_points
    plain = kind == "binary" and set(counts) == {1}
    dtype = _dtype(fields) if plain else None
    return _Header(height, width, text, None if dtype is None else RowFile(path, offset, dtype, n_points))


def _dtype(fields: dict[str, list[str]]) -> np.dtype[Any] | None:
    """Return the type of a row; None if the header does not make sense."""
    try:
        described = zip(fields["FIELDS"], fields["TYPE"], fields["SIZE"], strict=True)
        found = np.dtype([(name, f"<{kind.lower()}{size}") for name, kind, size in described])
    except (KeyError, TypeError, ValueError):
        return None
    return found if {"x", "y", "z"} <= set(found.names or ()) else None
