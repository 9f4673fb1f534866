# SPDX-License-Identifier: Apache-2.0
"""What is in a file, in a few labelled lines: the content of `hedgerow info FILE`.

Parquet logs are scanned a batch of rows at a time, three columns only, and of other logs a few sweeps are read, so a
large one needs neither memory nor patience.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.places import as_place
from hedgerow.errors import FileError, one_line
from hedgerow.io import TRAJECTORY_FORMATS, open_log, read_trajectory
from hedgerow.io.formats import format_of, suffixes
from hedgerow.io.parquet.reader import LogFile
from hedgerow.io.source import LogSource
from hedgerow.io.trajectory import is_kitti, stamp_text

_SWEEPS_LOOKED_AT = 5
_LONGEST_METADATA = 4000


def describe(path: str | Path, **options: Any) -> dict[str, str]:
    """Describe a log or a trajectory.

    Args:
        path: a file or folder.
        options: of a log that does not say all itself, as in `open_log`; a trajectory takes none.

    Returns:
        Label and text of each line, in the order to show them.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
    """
    path = as_place(path)
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in suffixes():
        return _describe_log(path, options)
    if suffix in TRAJECTORY_FORMATS:
        return _describe_trajectory(path)
    known = ", ".join(name for name in [*suffixes(), *TRAJECTORY_FORMATS] if name)
    raise FileError(f"{path}: unknown kind of file, suffix {suffix}; known are {known}")


def recovery_text(metadata: dict[str, Any]) -> str:
    """Say in one line how the missing returns of a log were found; empty if the log does not tell."""
    recovery: object = metadata.get("recovery")
    return one_line(str(cast("dict[str, Any]", recovery).get("summary", ""))) if isinstance(recovery, dict) else ""


@dataclass(slots=True)
class _Totals:
    """Sums over pulses and returns."""

    n_beams: int = 0
    n_returns: int = 0
    n_hit: int = 0
    start_ns: int = 2**63
    end_ns: int = -(2**63)
    near_m: float = np.inf
    far_m: float = 0.0
    first: dict[int, NDArray[np.float64]] = field(default_factory=dict[int, NDArray[np.float64]])
    """Where the first beam of each sweep was fired."""

    def add_sweeps(self, sweep: NDArray[np.int32], origin_m: NDArray[np.float64]) -> None:
        numbers, rows = np.unique(sweep, return_index=True)
        for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
            self.first.setdefault(number, origin_m[row])

    def path_text(self) -> str:
        """Say how far the sensor went, from sweep to sweep."""
        way_m = np.diff(np.array([self.first[number] for number in sorted(self.first)]).reshape(-1, 3), axis=0)
        return f"{np.linalg.norm(way_m, axis=1).sum():,.1f} m from sweep to sweep"

    def add(self, time_ns: NDArray[np.int64], range_m: NDArray[np.float32], n_hit: int) -> None:
        finite = np.isfinite(range_m)
        self.n_returns += int(np.count_nonzero(finite))
        self.n_hit += n_hit
        self.start_ns = min(self.start_ns, int(time_ns.min(initial=2**63 - 1)))
        self.end_ns = max(self.end_ns, int(time_ns.max(initial=-(2**63))))
        self.near_m = min(self.near_m, float(range_m.min(initial=np.inf)))
        self.far_m = max(self.far_m, float(range_m.max(where=finite, initial=0)))


def _describe_log(path: Path, options: dict[str, Any]) -> dict[str, str]:
    if format_of(path, reading=True).name == "pcap" and "trajectory" not in options:
        options = {"static": True} | options  # packets come without poses, which nothing here depends on
    file = open_log(path, **options)
    totals, looked, sweeps = _count_returns(file)
    metadata = dict(file.metadata)
    summary = recovery_text(metadata)
    metadata.pop("recovery", None)
    share = f", {100 * totals.n_hit / totals.n_beams:.1f} % of the beams have one" if totals.n_beams else ""
    per_beam = f", up to {file.n_per_pulse} each" if file.n_per_pulse > 1 else ""
    limits = f"limits {file.min_range_m:g} to {file.max_range_m:g} m"
    origin = _origin_lines(metadata)
    of_sweeps = f"{totals.n_beams:,} in {count(looked, 'sweep')}"
    numbers = f" ({sweeps[0]} to {sweeps[-1]})" if len(sweeps) else ""
    if looked < len(sweeps):
        of_sweeps += f" looked at, of {count(len(sweeps), 'sweep')}"
    ranges = f"{totals.near_m:.3f} to {totals.far_m:.3f} m" if totals.n_returns else "none"
    return {
        "File": _file_text(path, file),
        "Sensor": one_line(file.sensor) or "unknown",
        "Beams": of_sweeps + numbers,
        "Time": _span(totals.start_ns, totals.end_ns) if totals.n_beams else "none",
        "Path": totals.path_text(),
        "Returns": f"{totals.n_returns:,}{share}{per_beam}",
        **({"Missing returns": summary} if summary else {}),
        "Ranges": f"{ranges} ({limits})",
        "Arrays": ", ".join(["range_m", *file.arrays]),
        "Map origin": position_text(file.map_origin_m),
        **origin,
        **({"Metadata": one_line(json.dumps(metadata), _LONGEST_METADATA)} if metadata else {}),
        **({"Written by": f"Hedgerow {file.written_by}"} if isinstance(file, LogFile) else {}),
    }


_ORIGIN = ("origin_x", "origin_y", "origin_z")
_ERRORS = ("_sigma_m", "_sigma_deg", "_offset_m", "_rpy_deg")


def _origin_lines(metadata: dict[str, Any]) -> dict[str, str]:
    """Say what a simulated log was fired at and how; takes these entries out of the metadata."""
    lines: dict[str, str] = {}
    world, trajectory = metadata.pop("world", None), metadata.pop("trajectory", None)
    if isinstance(classes := metadata.pop("classes", None), dict):
        lines["Classes"] = f"{count(len(cast('dict[str, Any]', classes)), 'name')} of labels"
    if isinstance(world, dict):
        said = cast("dict[str, Any]", world)
        name = said.get("scene") or said.get("path", "")
        grown = f", seed {said['seed']}" if "seed" in said else ""
        lines["Fired at"] = one_line(" ".join(filter(None, (f"{said.get('kind', 'world')}", f"{name}{grown}"))))
    if isinstance(trajectory, dict):
        lines["Trajectory"] = one_line(str(cast("dict[str, Any]", trajectory).get("source") or "given in memory"))
    if "seed" in metadata:
        lines["Seed"] = one_line(str(metadata.pop("seed")))
    if "noise" in metadata:
        lines["Sensor noise"] = "added" if metadata.pop("noise") else "not added"
    if isinstance(errors := metadata.pop("pose_errors", None), dict):
        wrong = [f"{name} {value}" for name, value in cast("dict[str, Any]", errors).items() if name.endswith(_ERRORS)]
        lines["Pose errors"] = one_line(", ".join(wrong))
    for key in ("hedgerow", "sensor", "aim", "mount"):  # for programs; log.metadata has them
        metadata.pop(key, None)
    return lines


def _count_returns(file: LogSource) -> tuple[_Totals, int, NDArray[np.int32]]:
    """Look through a Parquet log, or a few sweeps of another, which takes longer to read."""
    totals, sweeps = _Totals(), file.sweeps
    if isinstance(file, LogFile):
        for rows in file.batches(["sweep", "time_ns", "return_number", "range_m", *_ORIGIN]):
            if not (rows["range_m"] > 0).all():
                raise FileError(f"{file.path}: damaged: holds ranges that are not above 0 m")
            totals.add(rows["time_ns"], rows["range_m"], int(np.count_nonzero(rows["return_number"] == 1)))
            totals.add_sweeps(rows["sweep"], np.stack([rows[name] for name in _ORIGIN], axis=1))
        totals.n_beams = len(file)
        return totals, len(sweeps), sweeps
    chosen = np.unique(np.linspace(0, len(sweeps) - 1, min(_SWEEPS_LOOKED_AT, len(sweeps))).round().astype(int))
    for _, log in file.iter_sweeps(sweeps[chosen]):
        totals.add(log.beams.time_ns, log.returns.range_m, int(np.count_nonzero(np.isfinite(log.returns.first_m))))
        totals.add_sweeps(log.beams.sweep, log.beams.origin_m)
        totals.n_beams += len(log)
    return totals, len(chosen), sweeps


def _file_text(path: Path, file: LogSource) -> str:
    if isinstance(file, LogFile):
        return f"{path}, log in {count(file.n_parts, 'Parquet file')}, {size_text(file.size_bytes)}"
    return f"{path}, log in {format_of(path, reading=True).name}, {size_text(bytes_of(path))}"


def _describe_trajectory(path: Path) -> dict[str, str]:
    kitti = path.suffix.lower() == ".kitti" or (path.suffix.lower() == ".txt" and is_kitti(path))
    # KITTI files have no times; any rate lets the poses be read, and the times are not shown.
    trajectory = read_trajectory(path, rate_hz=1.0 if kitti else None)
    kind = "KITTI" if kitti else "TUM"
    lines = {
        "File": f"{path}, trajectory in {kind} text, {size_text(path.stat().st_size)}",
        "Poses": f"{len(trajectory):,}",
        "Time": "none in the file" if kitti else _span(trajectory.start_ns, trajectory.end_ns),
        "Length": f"{trajectory.length_m:.3f} m",
    }
    duration_s = (trajectory.end_ns - trajectory.start_ns) / 1e9
    if duration_s > 0 and not kitti:
        lines["Mean speed"] = f"{trajectory.length_m / duration_s:.3f} m/s"
    return lines | {"Extent": extent_text(trajectory.position_m, trajectory.position_m)}


def _span(start_ns: int, end_ns: int) -> str:
    return f"{stamp_text(start_ns)} to {stamp_text(end_ns)} s ({(end_ns - start_ns) / 1e9:.6g} s)"


def count(number: int, noun: str) -> str:
    """Say how many, with the noun in the plural unless it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def extent_text(low_m: NDArray[np.float64], high_m: NDArray[np.float64]) -> str:
    """Say from where to where (N, 3) boxes, or points, reach."""
    low, high = low_m.min(axis=0), high_m.max(axis=0)
    return ", ".join(f"{axis} {low[k]:.3f} to {high[k]:.3f} m" for k, axis in enumerate("xyz"))


def position_text(position_m: Sequence[float] | NDArray[np.float64]) -> str:
    """Say where a point is, in all digits."""
    return " ".join(f"{value:.15g}" for value in position_m) + " m"


def bytes_of(path: Path) -> int:
    """Return how large a file is, or all files of a folder."""
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


def size_text(n_bytes: int) -> str:
    """Say how large a file is, in three digits."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes} bytes"
