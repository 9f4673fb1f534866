# SPDX-License-Identifier: Apache-2.0
"""PLY files of points: read with trimesh (text and binary), written binary with every column of columns.py."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.rgb import unpack_rgb
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

    def own_words(self, columns: Columns) -> Columns:
        """Return the columns, with red, green and blue for the colour."""
        if "colour" not in columns:
            return columns
        channels = unpack_rgb(columns["colour"]).T
        others = {name: column for name, column in columns.items() if name != "colour"}
        return others | dict(zip(("red", "green", "blue"), channels, strict=True))

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header, the number of points padded to a fixed width."""
        kinds: Any = rows.dtype
        lines = ["ply", "format binary_little_endian 1.0", f"comment {MARK}{text}", f"element vertex {n_points:<15d}"]
        lines += [f"property {_TYPES[kinds[name].str[1:]]} {name}" for name in kinds.names]
        return ("\n".join([*lines, "end_header"]) + "\n").encode("ascii")


@dataclass(slots=True)
class _Element:
    """A table in a PLY file."""

    count: int
    row_bytes: int = 0
    """Of the properties that are no lists; a list has at least its length."""


def _checked_header(path: Path) -> str | None:
    """Refuse a header that promises more points than the file can hold; return the line of Hedgerow in it, if any."""
    with translate_errors(path, "a PLY file"), path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    header, end, _ = head.partition(b"end_header")
    if not head.startswith(b"ply") or not end:
        raise FileError(f"{path}: not a PLY file, or damaged (no end_header)")
    found: str | None = None
    elements: list[_Element] = []
    size = path.stat().st_size
    lines = [line.rstrip("\r") for line in header.decode("latin-1").split("\n")]
    for line in lines:
        words = line.split()
        if words[:1] == ["element"]:
            elements.append(_element(path, words, size))
        elif words[:1] == ["property"] and elements:
            elements[-1].row_bytes += _property_bytes(path, words)
        elif line.startswith(f"comment {MARK}"):
            found = line.removeprefix(f"comment {MARK}")
    is_text = any(line.split()[:2] == ["format", "ascii"] for line in lines)
    if not is_text and len(elements) == 1:  # points alone
        require_rows(path, len(header) + len(end) + 1, elements[0].row_bytes, elements[0].count)
    # Written as text, a number and what parts it from the next take two bytes or more, in memory eight.
    n_bytes = sum(each.count * each.row_bytes for each in elements)
    if n_bytes > size * (4 if is_text else 1):
        raise FileError(f"{path}: its header says more than its {size:,} bytes can hold; is it cut off?")
    return found


def _element(path: Path, words: list[str], size: int) -> _Element:
    count = words[2] if len(words) == 3 else ""
    if not (count.isascii() and count.isdecimal() and len(count) <= 15 and int(count) <= size):
        raise FileError(f"{path}: damaged, {' '.join(words)[:60]!r} does not fit to its {size:,} bytes")
    return _Element(int(count))


def _property_bytes(path: Path, words: list[str]) -> int:
    is_list = words[1:2] == ["list"]
    kinds = words[2:4] if is_list else words[1:2]
    if len(words) != (5 if is_list else 3) or any(kind not in _BYTES for kind in kinds):
        raise FileError(f"{path}: damaged, {' '.join(words)[:60]!r} is no property of numbers")
    return _BYTES[kinds[0]]
