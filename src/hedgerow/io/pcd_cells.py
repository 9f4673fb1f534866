# SPDX-License-Identifier: Apache-2.0
"""Organised PCD files: their cells, and a log of a single one that a scanner made which stood still."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.cloud_file import CloudFile
from hedgerow.io.columns import Columns, named, times_ns
from hedgerow.io.options import ReadOptions
from hedgerow.io.organised import Points, organised_source
from hedgerow.io.pcd import PcdFile
from hedgerow.io.point_times import times_of
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.source import SweepSource

_RELATIVE_S = 1e4  # smaller times are since the start of the sweep
_MARGIN_NS = 1_000_000_000


def cells_of(file: PcdFile, start_ns: int) -> Points:
    """Return the cells of an organised file; the start of its sweep is what small times count from."""
    columns = named(file.columns, file.path, every=True)
    shape = file.height, file.width

    def cells(name: str, dtype: Any) -> Any:
        return columns[name].astype(dtype).reshape(shape) if name in columns else None

    time_ns = point_times(columns, start_ns, file.path)
    with np.errstate(invalid="ignore"):  # what stands in empty cells does not matter
        return Points(
            np.stack([cells(axis, np.float64) for axis in "xyz"], axis=-1),
            cells("intensity", np.float32),
            cells("ring", np.int64),
            None if time_ns is None else time_ns.reshape(shape),
            cells("label", np.uint16),
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


def seen_from(file: PcdFile, cloud: CloudFile, options: ReadOptions) -> SweepSource:
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
    points = Points(xyz, points.intensity, points.ring, points.time_ns, points.label)
    times = np.zeros(1, np.int64) if points.time_ns is None or not hit.any() else points.time_ns[hit]
    span_ns = int(times.min()), int(times.max())
    pose = Pose.from_xyz_rpy((scanner_m - cloud.map_origin_m).tolist())
    ends = [span_ns[0] - _MARGIN_NS, span_ns[1] + _MARGIN_NS]
    standing = Trajectory.from_poses(ends, [pose, pose])

    def when_ns(number: int, points: Points) -> tuple[int, int]:
        return span_ns

    try:
        return organised_source(file.path, cloud.settings, standing, 1, lambda _: points, when_ns, [0])
    except NotRecovered as error:
        if options.recover == "yes":
            raise FileError(f"{file.path}: empty cells cannot be told where they point, {error}") from None
        return cloud
