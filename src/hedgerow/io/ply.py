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

_TYPES = {"f4": "float", "f8": "double", "u1": "uchar", "u2": "ushort", "i4": "int"}
_HEADER_BYTES = 1_000_000


def open_log(path: str | Path, options: ReadOptions) -> CloudFile:
    """Open a PLY file; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no points, or nothing tells where they were seen from.
    """
    path = Path(path)
    text = _require_size(path)
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


def _require_size(path: Path) -> str | None:
    """Refuse a header that promises more points than the file can hold; return the line of Hedgerow in it, if any."""
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
    return found
