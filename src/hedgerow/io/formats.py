# SPDX-License-Identifier: Apache-2.0
"""The table of log formats, and how one is told from another: by suffix for files, by content for folders.

Only data and path checks: listing the formats loads no reader. How to add one: see `hedgerow.io`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from hedgerow.base.arguments import require_kind
from hedgerow.base.places import Address, as_place
from hedgerow.errors import FileError, MissingPackage, shown

if TYPE_CHECKING:
    from hedgerow.io.options import ReadOptions
    from hedgerow.io.source import LogSink, LogSource

_PLACING = ("trajectory", "mount", "sensor", "min_range_m", "max_range_m", "map_origin_m")
_CLOUDS = ("recover", "deskewed", "elevation_bias_deg")
_BAG = (*_PLACING, "recover", "deskewed", "rate_hz", "static", "topic", "pose_topic", "map_frame", "metadata")
EXTRA = "formats"
"""Name of the optional dependencies that all formats need together."""


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table."""

    name: str
    """What --from and --to call it."""
    about: str
    """What it is, in a few words."""
    reader: str = ""
    """Where its reader is, `module:function`; called with (path, ReadOptions), returns a LogSource. Empty: not read."""
    writer: str = ""
    """Where its writer is, likewise; called with (path, trajectory or None), and WriteOptions if it takes any, returns
    a LogSink. Empty: not written."""
    suffixes: tuple[str, ...] = ()
    """Of files; and of folders that are written."""
    markers: tuple[str, ...] = ()
    """Patterns of which one must match something in a folder for it to be of this format."""
    magic: tuple[bytes, ...] = ()
    """How its files begin, if that tells."""
    options: tuple[str, ...] = ()
    """Fields of ReadOptions that reading takes."""
    write_options: tuple[str, ...] = ()
    """Fields of WriteOptions that writing takes."""
    packages: tuple[str, ...] = ()
    """Optional packages that it imports."""
    extra: str = EXTRA
    """Name of the optional dependencies that have them."""

    @property
    def reads(self) -> bool:
        """Whether logs of this format can be read."""
        return bool(self.reader)

    @property
    def writes(self) -> bool:
        """Whether logs can be written in this format."""
        return bool(self.writer)


FORMATS = (
    Format(
        "parquet",
        "Hedgerow's own: file *.parquet, or folder *.log of parts",
        reader="hedgerow.io.parquet.reader:open_log",
        writer="hedgerow.io.parquet.writer:open_sink",
        suffixes=(".parquet", ".log", ""),
        markers=("part-*.parquet",),
        magic=(b"PAR1",),
    ),
    Format(
        "kitti-360",
        "KITTI-360 drive folder (data_3d_raw/..._sync): velodyne_points; calibration and data_poses two folders up",
        reader="hedgerow.io.kitti360:open_log",
        markers=("../../calibration/calib_cam_to_velo.txt",),  # its drives look like those of KITTI raw
        options=(*_PLACING, *_CLOUDS, "rate_hz"),
    ),
    Format(
        "kitti-raw",
        "KITTI raw drive folder (..._sync): velodyne_points, oxts, calibration beside it",
        reader="hedgerow.io.kitti:open_raw",
        markers=("velodyne_points/data",),
        options=(*_PLACING, *_CLOUDS),
    ),
    Format(
        "kitti",
        "KITTI odometry or SemanticKITTI sequence folder: velodyne, poses.txt, times.txt, calib.txt, labels",
        reader="hedgerow.io.kitti:open_log",
        writer="hedgerow.io.kitti:open_sink",
        markers=("velodyne/*.bin",),
        options=(*_PLACING, *_CLOUDS, "rate_hz"),
    ),
    Format(
        "pcd-folder",
        "folder of PCD files, one per sweep in the frame of the sensor, and a trajectory (poses.tum in it)",
        reader="hedgerow.io.points.pcd_folder:open_log",
        writer="hedgerow.io.points.pcd_folder:open_sink",
        markers=("*.pcd",),
        options=(*_PLACING, *_CLOUDS, "rate_hz"),
        packages=("pypcd4",),
    ),
    Format(
        "pcd",
        "a single PCD file in map coordinates",
        reader="hedgerow.io.points.pcd:open_log",
        writer="hedgerow.io.points.pcd:open_sink",
        suffixes=(".pcd",),
        magic=(b"# .PCD", b"VERSION"),
        options=(*_PLACING, "scanner_m", "recover"),
        packages=("pypcd4",),
    ),
    Format(
        "ply",
        "a PLY file of points in map coordinates",
        reader="hedgerow.io.points.ply:open_log",
        writer="hedgerow.io.points.ply:open_sink",
        suffixes=(".ply",),
        magic=(b"ply",),
        options=(*_PLACING, "scanner_m"),
        packages=("trimesh",),
    ),
    Format(
        "las",
        "LAS or LAZ file: return numbers, classes, GPS time",
        reader="hedgerow.io.points.las:open_log",
        writer="hedgerow.io.points.las:open_sink",
        suffixes=(".las", ".laz"),
        magic=(b"LASF",),
        options=(*_PLACING, "scanner_m"),
        packages=("laspy",),
    ),
    Format(
        "mcap",
        "ROS 2 recording in one MCAP file: PointCloud2 or Velodyne packets, with TF, odometry or a trajectory",
        reader="hedgerow.io.ros.open:open_log",
        writer="hedgerow.io.ros.writer:open_sink",
        suffixes=(".mcap",),
        magic=(b"\x89MCAP0\r\n",),
        options=_BAG,
        write_options=("organised",),
        packages=("rosbags",),
        extra="ros",
    ),
    Format(
        "ros1",
        "ROS 1 bag: PointCloud2 or Velodyne packets, with TF, odometry or a trajectory",
        reader="hedgerow.io.ros.open:open_log",
        writer="hedgerow.io.ros.writer:open_sink",
        suffixes=(".bag",),
        magic=(b"#ROSBAG V2.0\n",),
        options=_BAG,
        write_options=("organised",),
        packages=("rosbags",),
        extra="ros",
    ),
    Format(
        "ros2",
        "ROS 2 recording: folder with metadata.yaml and .db3 or .mcap files, or one .db3 file",
        reader="hedgerow.io.ros.open:open_log",
        suffixes=(".db3",),
        markers=("metadata.yaml",),
        magic=(b"SQLite format 3\x00",),
        options=_BAG,
        packages=("rosbags",),
        extra="ros",
    ),
    Format(
        "pcap",
        "captured packets (pcap, pcapng) of a Velodyne, or of an Ouster with its metadata JSON; and a trajectory",
        reader="hedgerow.io.pcap.open:open_log",
        suffixes=(".pcap", ".pcapng"),
        magic=(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a"),
        options=(*_PLACING, "static", "metadata"),
    ),
)
BY_NAME = {each.name: each for each in FORMATS}


def format_of(path: str | Path, name: str | None = None, *, reading: bool) -> Format:
    """Find out the format of a file or folder.

    Args:
        path: to read, or to write.
        name: of the format, to say rather than guess.
        reading: whether it is to be read; then it must exist, and a folder is told by its content.

    Raises:
        FileError: it is missing, its format unknown, or not one that can be read or written.
    """
    path = as_place(path)
    if reading and not path.exists():
        raise FileError(f"{path}: no such file or folder")
    if name is not None:
        require_kind("format", name, str, "the name of a format")
        found = BY_NAME.get(name)
        if found is None:
            raise FileError(f"{shown(name)}: there is no such format; there are {', '.join(BY_NAME)}")
    else:
        found = _of_folder(path) if reading and path.is_dir() else _of_suffix(path, reading)
        if reading and path.is_file():
            _require_magic(path, found)
    if isinstance(path, Address) and found.name != "parquet":
        done = "read from" if reading else "written to"
        raise FileError(f"{path}: only Parquet logs are {done} an address; copy it, or use hedgerow convert")
    if not (found.reads if reading else found.writes):
        done = "read" if reading else "written"
        raise FileError(f"{path}: {found.name} cannot be {done}; use {_able(reading)}")
    return found


def load_reader(found: Format) -> "Callable[[str | Path, ReadOptions], LogSource]":
    """Import the reader of a format.

    Raises:
        MissingPackage: a package that it needs is not installed.
    """
    return _load(found, found.reader)


def load_writer(found: Format) -> "Callable[..., LogSink]":
    """Import the writer of a format.

    Raises:
        MissingPackage: a package that it needs is not installed.
    """
    return _load(found, found.writer)


def _load(found: Format, place: str) -> Any:
    for package in found.packages:
        require_package(package, found.name, found.extra)
    return resolve_name(place)


def require_package(name: str, wanted_for: str, extra: str = EXTRA) -> Any:
    """Import an optional package, or a module of one.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"{wanted_for}: needs the package {name.partition('.')[0]}, which is not installed; "
            f"install it with: pip install 'hedgerow[{extra}]'"
        ) from error


def suffixes(formats: Iterable[Format] = FORMATS) -> dict[str, Format]:
    """Return the format of each suffix; the first of the table wins."""
    return {suffix: each for each in reversed(tuple(formats)) for suffix in each.suffixes}


def _of_suffix(path: Path, reading: bool) -> Format:
    known = suffixes()
    suffix = path.suffix.lower()
    if suffix not in known:
        shown = repr(suffix[:20])[1:-1] or "(none)"
        raise FileError(f"{path}: unknown kind of file, suffix {shown}; known are {_able(reading)}")
    return known[suffix]


def _able(reading: bool) -> str:
    """List the suffixes that can be read or written, and the formats of folders that no suffix tells."""
    able = [each for each in FORMATS if (each.reads if reading else each.writes)]
    folders = [each.name for each in able if not each.suffixes]
    listed = ", ".join(sorted(suffix for suffix in suffixes(able) if suffix))
    return f"{listed}, and folders: {', '.join(folders)}" + ("" if reading else " (say which with --to, format=)")


def _of_folder(path: Path) -> Format:
    for each in FORMATS:
        if any(next(path.glob(marker), None) for marker in each.markers):
            return each
    looked = "; ".join(f"{each.name}: {' or '.join(each.markers)}" for each in FORMATS if each.markers)
    raise FileError(f"{path}: the folder holds no log that is known (looked for {looked})")


def _require_magic(path: Path, expected: Format) -> None:
    """Refuse a file that begins like one of another format: it was given the wrong suffix."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error
    if not expected.magic or head.startswith(expected.magic):
        return
    others = [each for each in FORMATS if each.magic and head.startswith(each.magic)]
    if head.startswith(b"PK\x03\x04"):
        raise FileError(f"{path}: is a zip archive, not {expected.name}; unpack it first")
    if others:
        kind, suffix = others[0].name, others[0].suffixes[0]
        raise FileError(f"{path}: is {kind} by its first bytes, not {expected.name}; rename it to {suffix}")
