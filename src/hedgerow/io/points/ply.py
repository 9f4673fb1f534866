# SPDX-License-Identifier: Apache-2.0
"""PLY files of points: read with trimesh (text and binary), written binary with every column of columns.py."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.formats import require_package
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import LOADING_FACTOR, MARK, CloudFile, CloudFileWriter, Columns
from hedgerow.io.source import require_memory, require_rows, translate_errors

_TYPES = {"f4": "float", "f8": "double", "u1": "uchar", "u2": "ushort", "i4": "int"}
_BYTES = {
    **{"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4, "double": 8},
    **{f"{kind}{8 * n}": n for kind in ("int", "uint", "float") for n in (1, 2, 4, 8)},
}
_HEADER_BYTES = 1_000_000


def open_log(path: str | Path, options: ReadOptions) -> CloudFile:
    """Open a PLY file; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no points, or nothing tells where they were seen from.
    """
    path = Path(path)
    text = _checked_header(path)
    require_memory(path, int(LOADING_FACTOR * path.stat().st_size))
    loader: Any = require_package("trimesh.exchange.ply", "ply")
    with translate_errors(path, "a PLY file"), path.open("rb") as file:
        vertex = loader.load_ply(file, skip_materials=True)["metadata"]["_ply_raw"]["vertex"]
        data = vertex["data"]
        columns: Columns = {name: np.asarray(data[name]).reshape(-1) for name in vertex["properties"]}
    return CloudFile(path, columns, text, options, "ply")


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "PlyWriter":
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


def _checked_header(path: Path) -> str | None:
    """Refuse a header that promises more points than the file can hold; return the line of Hedgerow in it, if any."""
    with translate_errors(path, "a PLY file"), path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    header, end, _ = head.partition(b"end_header")
    if not head.startswith(b"ply") or not end:
        raise FileError(f"{path}: not a PLY file, or damaged (no end_header)")
    found: str | None = None
    elements: list[tuple[int, list[list[str]]]] = []  # how many there are, and their properties
    size = path.stat().st_size
    lines = header.decode("latin-1").splitlines()
    is_binary = not any(line.split()[:2] == ["format", "ascii"] for line in lines)
    for line in lines:
        words = line.split()
        if words[:1] == ["element"]:
            if len(words) != 3 or not words[2].isdecimal() or int(words[2]) > size:
                raise FileError(f"{path}: damaged, '{line.strip()[:60]}' does not fit to its {size} bytes")
            elements.append((int(words[2]), []))
        elif words[:1] == ["property"] and elements:
            elements[-1][1].append(words[1:])
        elif line.startswith(f"comment {MARK}"):
            found = line.removeprefix(f"comment {MARK}")
    if is_binary and len(elements) == 1:  # points alone
        n_points, properties = elements[0]
        require_rows(path, len(header) + len(end) + 1, sum(_BYTES.get(each[0], 0) for each in properties), n_points)
    return found
