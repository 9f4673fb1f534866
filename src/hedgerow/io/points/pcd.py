# SPDX-License-Identifier: Apache-2.0
"""PCD files of the Point Cloud Library: read with pypcd4 (ascii, binary, compressed), written binary.

One file is a log in map coordinates with the columns of columns.py. A folder of files is a log of one file per sweep in
the frame of the sensor: see pcd_folder.py. Organised files (HEIGHT above 1) have a cell for every firing, and NaN in
those without a return.
"""

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.rgb import as_float_bits
from hedgerow.errors import FileError, one_line
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.beams.motion import times_of
from hedgerow.io.beams.organised import PointGrid, organised_source
from hedgerow.io.formats import require_package
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import (
    LOADING_FACTOR,
    MARK,
    CloudFile,
    CloudFileWriter,
    Columns,
    rename_columns,
    times_ns,
)
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.source import SweepSource, require_memory, require_rows, translate_errors

_HEADER_BYTES = 1_000_000
_MOST_COMPRESSED = 100  # LZF packs no more than 88 times
_MOST_VALUES = 100_000  # of one field of a point
_LINES = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_KINDS = ("I1", "I2", "I4", "I8", "U1", "U2", "U4", "U8", "F4", "F8")
_RELATIVE_S = 1e4  # smaller times are since the start of the sweep
_MARGIN_NS = 1_000_000_000


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
    file = read_pcd(Path(path))
    cloud = CloudFile(Path(path), file.columns, file.text, options, "pcd")
    if not file.is_organised or options.scanner_m is None or options.recover == "no":
        return cloud
    return _seen_from(file, cloud, options)


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "PcdWriter":
    """Prepare to write a single PCD file; a trajectory is not needed, points have their viewpoints."""
    return PcdWriter(path)


class PcdWriter(CloudFileWriter):
    """Appends points to a binary PCD file."""

    def own_words(self, columns: Columns) -> Columns:
        """Return the columns, with PCL's rgb for the colour."""
        return with_pcl_rgb(columns)

    def header(self, rows: NDArray[Any], n_points: int, text: str) -> bytes:
        """Return the header, the number of points padded to a fixed width."""
        return pcd_header(rows, n_points, text)


def with_pcl_rgb(columns: Columns) -> Columns:
    """Return the columns, with PCL's rgb for the colour: its bits, called a float."""
    if "colour" not in columns:
        return columns
    return {("rgb" if name == "colour" else name): column for name, column in columns.items()} | {
        "rgb": as_float_bits(columns["colour"])
    }


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
        FileError: damaged, shorter than its header says, or too large for the memory.
    """
    header = _checked_header(path)
    require_memory(path, int(LOADING_FACTOR * max(header.n_bytes, path.stat().st_size)))
    n_points = header.height * header.width
    loader: Any = require_package("pypcd4", "pcd")
    with translate_errors(path, "a PCD file"):
        data = loader.PointCloud.from_path(path).pc_data
        names: tuple[str, ...] = data.dtype.names or ()
        columns: Columns = {
            name: np.atleast_1d(data[name]).astype(data[name].dtype.newbyteorder("=")) for name in names
        }
        n_bytes = data.dtype.itemsize * n_points
    if n_bytes != header.n_bytes:
        raise FileError(f"{path}: not a PCD file, or damaged (FIELDS, SIZE and TYPE do not go together)")
    if any(column.shape != (n_points,) for column in columns.values()):
        found = len(next(iter(columns.values()))) if columns else 0
        raise FileError(f"{path}: holds {found} points but its header says {n_points}; was its copying interrupted?")
    return PcdFile(path, columns, header.text, header.height, header.width)


@dataclass(frozen=True, slots=True)
class _Header:
    height: int
    width: int
    text: str | None
    n_bytes: int
    """Of the points, unpacked."""


def _checked_header(path: Path) -> _Header:
    """Read the header, and refuse one that promises more than the file can hold."""
    with translate_errors(path, "a PCD file"), path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if not head:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    words, text, offset = _header_words(path, head)
    try:
        sizes = _numbers(words, "SIZE", 1, 8)
        counts = _numbers(words, "COUNT", 1, _MOST_VALUES) if "COUNT" in words else [1] * len(sizes)
        if {len(words["FIELDS"]), len(words["TYPE"]), len(counts)} != {len(sizes)}:
            raise ValueError("FIELDS, SIZE, TYPE and COUNT are not equally many")
        kinds = [f"{kind}{size}" for kind, size in zip(words["TYPE"], sizes, strict=True)]
        wrong = next((kind for kind in kinds if kind not in _KINDS), None)
        if wrong is not None:
            raise ValueError(f"there is no type {wrong[:20]!r}; expected I, U or F of 1 to 8 bytes")
        row_bytes = sum(size * count for size, count in zip(sizes, counts, strict=True))
        width, height = _numbers(words, "WIDTH")[0], (_numbers(words, "HEIGHT") if "HEIGHT" in words else [1])[0]
        n_points = _numbers(words, "POINTS")[0] if "POINTS" in words else width * height
        encoding = words["DATA"][0].lower()
    except KeyError as error:
        raise FileError(f"{path}: not a PCD file, or damaged (no line {error.args[0]} in its header)") from None
    except (IndexError, ValueError) as error:
        raise FileError(f"{path}: not a PCD file, or damaged ({one_line(str(error), 100)})") from None
    _require_held(path, encoding, offset, row_bytes, n_points)
    if height < 1 or height * width != n_points:
        height, width = 1, n_points
    return _Header(height, width, text, n_points * row_bytes)


def _header_words(path: Path, head: bytes) -> tuple[dict[str, list[str]], str | None, int]:
    """Return the words of each line by its first, the line of Hedgerow, and where the points begin."""
    words: dict[str, list[str]] = {}
    text: str | None = None
    offset = 0
    for line in head.split(b"\n"):
        offset += len(line) + 1
        decoded = line.decode("latin-1")
        if decoded.startswith(f"# {MARK}"):
            text = decoded.removeprefix(f"# {MARK}")
        name, *rest = decoded.split() or [""]
        if not name or name.startswith("#"):
            continue
        if name not in _LINES or name in words:  # pypcd4 takes the last of two, others the first
            raise FileError(f"{path}: not a PCD file, or damaged ({name[:40]!r} in its header)")
        words[name] = rest
        if name == "DATA":
            break
    return words, text, offset


def _numbers(words: dict[str, list[str]], name: str, least: int = 0, most: int = 2**40) -> list[int]:
    """Return the whole numbers of a line. Raises ValueError if there are none, or other words."""
    found: list[int] = []
    for word in words[name]:
        if not (word.isascii() and word.isdecimal() and len(word) <= 15 and least <= int(word) <= most):
            raise ValueError(f"{name} is {word[:20]!r}; expected a whole number from {least} to {most}")
        found.append(int(word))
    if not found:
        raise ValueError(f"{name} is empty")
    return found


def _require_held(path: Path, encoding: str, offset: int, row_bytes: int, n_points: int) -> None:
    """Raise FileError unless the file is as long as its header says, whatever the encoding."""
    size, n_bytes = path.stat().st_size, n_points * row_bytes
    most = {"ascii": 8, "binary": 1, "binary_compressed": _MOST_COMPRESSED}.get(encoding)
    if most is None:
        raise FileError(f"{path}: DATA is {encoding[:20]!r}; expected ascii, binary or binary_compressed")
    if n_bytes > most * size:
        raise FileError(f"{path}: its header says {n_points} points, which {size} bytes cannot hold; is it cut off?")
    if encoding == "binary":
        require_rows(path, offset, row_bytes, n_points)
    elif encoding == "binary_compressed" and n_points:
        with path.open("rb") as file:
            file.seek(offset)
            sizes = file.read(8)
        packed, unpacked = struct.unpack("<II", sizes) if len(sizes) == 8 else (0, 0)
        if unpacked != n_bytes or packed > size - offset - 8:
            raise FileError(f"{path}: its packed points are not the {n_points} of its header; is it cut off?")


def cells_of(file: PcdFile, start_ns: int) -> PointGrid:
    """Return the cells of an organised file; the start of its sweep is what small times count from."""
    columns = rename_columns(file.columns, file.path, every=True)
    shape = file.height, file.width

    def cells(name: str, dtype: Any) -> Any:
        return columns[name].astype(dtype).reshape(shape) if name in columns else None

    time_ns = point_times(columns, start_ns, file.path)
    with np.errstate(invalid="ignore"):  # what stands in empty cells does not matter
        return PointGrid(
            np.stack([cells(axis, np.float64) for axis in "xyz"], axis=-1),
            cells("intensity", np.float32),
            cells("ring", np.int64),
            None if time_ns is None else time_ns.reshape(shape),
            cells("label", np.uint16),
            colour=cells("colour", np.uint32),
        )


def point_times(columns: Columns, start_ns: int, path: object) -> NDArray[np.int64] | None:
    """Return when each point of a file was measured [ns], or None if it does not say.

    Args:
        columns: by our names.
        start_ns: when the sweep began, which whole numbers (nanoseconds) and small ones (seconds) count from.
        path: for the error.

    Raises:
        FileError: they are not in seconds.
    """
    values = columns.get("time")
    if values is None or values.dtype.kind in "iu":
        return times_of(values, start_ns)
    values = np.nan_to_num(values, posinf=0, neginf=0)
    time_ns = times_ns(values, path)
    is_relative = np.abs(values).max(initial=0) < _RELATIVE_S and start_ns > 2 * _RELATIVE_S * 1e9
    return time_ns + start_ns if is_relative else time_ns


def _seen_from(file: PcdFile, cloud: CloudFile, options: ReadOptions) -> SweepSource:
    """Open an organised file in map coordinates whose scanner stood at `options.scanner_m`, level with the map.

    Args:
        file: with a cell for every firing.
        cloud: the same file as plain points, which it stays if the cells do not show lasers and columns.
        options: has the position of the scanner.

    Raises:
        FileError: the cells do not show that, and options.recover is yes.
    """
    points = cells_of(file, 0)
    scanner_m = np.array(options.scanner_m, np.float64)
    hit = points.hit
    xyz = np.where(hit[..., None], points.xyz - scanner_m, np.nan)
    points = replace(points, xyz=xyz)
    times = np.zeros(1, np.int64) if points.time_ns is None or not hit.any() else points.time_ns[hit]
    span_ns = int(times.min()), int(times.max())
    pose = Pose.from_xyz_rpy((scanner_m - cloud.map_origin_m).tolist())
    ends = [span_ns[0] - _MARGIN_NS, span_ns[1] + _MARGIN_NS]
    standing = Trajectory.from_poses(ends, [pose, pose])

    def when_ns(number: int, points: PointGrid) -> tuple[int, int]:
        return span_ns

    try:
        return organised_source(file.path, cloud.settings, standing, 1, lambda _: points, when_ns, [0])
    except NotRecovered as error:
        if options.recover == "yes":
            raise FileError(f"{file.path}: empty cells cannot be told where they point, {error}") from None
        return cloud
