# SPDX-License-Identifier: Apache-2.0
"""What is in a file, in a few labelled lines: the content of `hedgerow info FILE`.

Logs are scanned a batch of rows at a time, three columns only, so a large one needs neither memory nor patience.
"""

import json
from pathlib import Path

import numpy as np

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io import LOG_FORMATS, TRAJECTORY_FORMATS, open_log, read_trajectory
from hedgerow.io.plain_poses import is_kitti
from hedgerow.io.pose_text import stamp_text


def describe(path: str | Path) -> dict[str, str]:
    """Describe a log or a trajectory.

    Args:
        path: a file or folder.

    Returns:
        Label and text of each line, in the order to show them.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
    """
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in LOG_FORMATS:
        return _describe_log(path)
    if suffix in TRAJECTORY_FORMATS:
        return _describe_trajectory(path)
    known = ", ".join(name for name in [*LOG_FORMATS, *TRAJECTORY_FORMATS] if name)
    raise FileError(f"{path}: unknown kind of file, suffix {suffix}; known are {known}")


def _describe_log(path: Path) -> dict[str, str]:
    file = open_log(path)
    n_returns = n_hit = 0
    start_ns, end_ns, near_m, far_m = 2**63, -(2**63), np.inf, 0.0
    for rows in file.batches(["time_ns", "return_number", "range_m"]):
        number, hit = rows["return_number"], rows["return_number"] > 0
        n_returns += int(np.count_nonzero(hit))
        n_hit += int(np.count_nonzero(number == 1))
        start_ns, end_ns = min(start_ns, int(rows["time_ns"].min())), max(end_ns, int(rows["time_ns"].max()))
        near_m = min(near_m, float(rows["range_m"].min()))
        far_m = max(far_m, float(rows["range_m"].max(where=hit, initial=0)))
    sweeps, metadata = file.sweeps, dict(file.metadata)
    share = f", {100 * n_hit / len(file):.1f} % of the beams have one" if len(file) else ""
    per_beam = f", up to {file.n_per_pulse} each" if file.n_per_pulse > 1 else ""
    limits = f"limits {file.min_range_m:g} to {file.max_range_m:g} m"
    seed = {"Seed": str(metadata.pop("seed"))} if "seed" in metadata else {}
    return {
        "File": f"{path}, log in {_count(file.n_parts, 'Parquet file')}, {_size(file.size_bytes)}",
        "Sensor": file.sensor or "unknown",
        "Beams": f"{len(file):,} in {_count(len(sweeps), 'sweep')}"
        + (f" ({sweeps[0]} to {sweeps[-1]})" if len(sweeps) else ""),
        "Time": _span(start_ns, end_ns) if len(file) else "none",
        "Returns": f"{n_returns:,}{share}{per_beam}",
        "Ranges": (f"{near_m:.3f} to {far_m:.3f} m" if n_returns else "none") + f" ({limits})",
        "Arrays": ", ".join(["range_m", *file.arrays]),
        "Map origin": " ".join(f"{value:.15g}" for value in file.map_origin_m) + " m",
        **seed,
        **({"Metadata": json.dumps(metadata)} if metadata else {}),
        "Written by": f"Hedgerow {file.written_by}",
    }


def _describe_trajectory(path: Path) -> dict[str, str]:
    kitti = path.suffix.lower() == ".kitti" or (path.suffix.lower() == ".txt" and is_kitti(path))
    # KITTI files have no times; any rate lets the poses be read, and the times are not shown.
    trajectory = read_trajectory(path, rate_hz=1.0 if kitti else None)
    kind = "KITTI" if kitti else "TUM"
    lines = {
        "File": f"{path}, trajectory in {kind} text, {_size(path.stat().st_size)}",
        "Poses": f"{len(trajectory):,}",
        "Time": "none in the file" if kitti else _span(trajectory.start_ns, trajectory.end_ns),
        "Length": f"{trajectory.length_m:.3f} m",
    }
    duration_s = (trajectory.end_ns - trajectory.start_ns) / 1e9
    if duration_s > 0 and not kitti:
        lines["Mean speed"] = f"{trajectory.length_m / duration_s:.3f} m/s"
    return lines | {"Extent": _extent(trajectory)}


def _extent(trajectory: Trajectory) -> str:
    low, high = trajectory.position_m.min(axis=0), trajectory.position_m.max(axis=0)
    return ", ".join(f"{axis} {low[k]:.3f} to {high[k]:.3f} m" for k, axis in enumerate("xyz"))


def _span(start_ns: int, end_ns: int) -> str:
    return f"{stamp_text(start_ns)} to {stamp_text(end_ns)} s ({(end_ns - start_ns) / 1e9:.6g} s)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(n_bytes: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes} bytes"
