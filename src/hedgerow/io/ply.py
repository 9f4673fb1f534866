# SPDX-License-Identifier: Apache-2.0
"""PLY files of points: read with trimesh (text and binary), written binary with every column of columns.py."""

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

_TYPES = {"f4": "float", "f8": "double", "u1": "uchar", "u2": "ushort", "i4": "int"}
_HEADER_BYTES = 1_000_000


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open a PLY file; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no points, or nothing tells where they were seen from.
    """
    path = Path(path)
    text, own = _checked(path)
    if own is not None and text is not None:
        return open_rows(own, text, options, "ply")
    loader: Any = optional("trimesh.exchange.ply", "ply")
    with reading(path, "a PLY file"), path.open("rb") as file:
        vertex = loader.load_ply(file)["metadata"]["_ply_raw"]["vertex"]
        data = vertex["data"]
        columns: Columns = {name: np.asarray(data[name]).reshape(-1) for name in vertex["properties"]}
    return CloudFile(path, columns, text, options, "ply")


def log_sink(path: str | Path, trajectory: Trajectory | None) -> "PlyWriter":
    """Prepare to write a PLY file; a trajectory is not needed, points have their viewpoints."""
    return PlyWriter(path)


class PlyWriter(CloudFileWriter):
    """Appends points to a binary PLY file."""

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header, the number of points padded to a fixed width."""
        kinds: Any = rows.dtype
        lines = ["ply", "format binary_little_endian 1.0", f"comment {MARK}{text}", f"element vertex {n_points:<15d}"]
        lines += [f"property {_TYPES[kinds[name].str[1:]]} {name}" for name in kinds.names]
        return ("\n".join([*lines, "end_header"]) + "\n").encode("ascii")


def _checked(path: Path) -> tuple[str | None, RowFile | None]:
    """Refuse a header that promises more points than the file can hold.

    Returns:
        The line that Hedgerow wrote into it, if any, and its rows if they are laid out as Hedgerow does.
    """
    with reading(path, "a PLY file"), path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    header, end, _ = head.partition(b"end_header")
    if not head.startswith(b"ply") or not end:
        raise FileError(f"{path}: not a PLY file, or damaged (no end_header)")
    found: str | None = None
    for line in header.decode("latin-1").splitlines():
        words = line.split()
        if words[:1] == ["element"]:
            if len(words) != 3 or not words[2].isdecimal() or int(words[2]) > path.stat().st_size:
                raise FileError(
                    f"{path}: damaged, '{line.strip()[:60]}' does not fit to its {path.stat().st_size} bytes"
                )
        elif line.startswith(f"comment {MARK}"):
            found = line.removeprefix(f"comment {MARK}")
    return found, _rows(path, header, len(header) + len(end) + 1)


def _rows(path: Path, header: bytes, offset: int) -> RowFile | None:
    """Return the rows of a file that holds nothing but binary points with plain numbers; None for others."""
    lines = [line.split() for line in header.decode("latin-1").splitlines() if not line.startswith("comment")]
    counts = [words[2] for words in lines if words[:2] == ["element", "vertex"]]
    fields = [words[1:] for words in lines if words[:1] == ["property"]]
    kinds = {name: kind for kind, name in _TYPES.items()}
    plain = len(lines) == 3 + len(fields) and all(len(each) == 2 and each[0] in kinds for each in fields)
    names = [each[-1] for each in fields]
    if len(counts) != 1 or not plain or ["format", "binary_little_endian", "1.0"] not in lines:
        return None
    if len(set(names)) < len(names) or not {"x", "y", "z"} <= set(names):
        return None
    dtype = np.dtype([(name, "<" + kinds[kind]) for kind, name in fields])
    return RowFile(path, offset, dtype, int(counts[0]))
