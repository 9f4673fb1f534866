# SPDX-License-Identifier: Apache-2.0
"""Organised clouds: a cell for every firing, so that an empty cell is a missing return.

Where an empty cell pointed follows from the others: all cells of a laser share an elevation, an azimuth to the rotor
and a delay, all cells of a column the angle of the rotor and the time. How well the cells with points keep to that
tells how sure the directions of the empty ones are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.io.firings import Firings
from hedgerow.io.recovery.lasers import fit_line
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.ros.points import Points

SURE_RAD = np.deg2rad(0.3)
"""Root mean square error of the directions above which empty cells are not believed: about a step of most lidars."""
_MIN_POINTS = 20  # of a laser, to know where it points
_MIN_COLUMNS = 8
_ROUNDS = 8  # columns and lasers in turn; each is several times nearer than the one before

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """The firings of a sweep, and how far the model of the grid is off where there are points."""

    firings: Firings
    rms_rad: float
    share_empty: float


def is_organised(points: Points) -> bool:
    """Tell whether a cloud is a grid of lasers and columns."""
    return min(points.xyz.shape[:2]) > 1


def by_laser(points: Points) -> Points:
    """Return the cloud with one laser per row: Velodyne's driver has them in columns, Ouster's in rows."""
    height, width = points.xyz.shape[:2]
    turned = height > width
    if points.ring is not None:
        turned = bool((points.ring[0] != points.ring[0, :1]).any()) and bool(
            (points.ring[:, 0] == points.ring[0, 0]).all()
        )
    if not turned:
        return points
    return Points(
        points.xyz.swapaxes(0, 1),
        *(None if each is None else each.T for each in (points.intensity, points.ring, points.time_ns, points.label)),
    )


def fill(points: Points, start_ns: int, end_ns: int) -> Filled:
    """Work out every firing of an organised cloud.

    Args:
        points: in the sensor frame of their own instants; one laser per row.
        start_ns, end_ns: when the sweep began and ended, for clouds without times.

    Raises:
        NotRecovered: the cells do not show lasers and columns.
    """
    hit = points.hit
    n_lasers, n_columns = hit.shape
    if n_columns < _MIN_COLUMNS or hit.sum() < _MIN_POINTS:
        raise NotRecovered(f"the cloud is a grid of {n_lasers} by {n_columns} cells with {int(hit.sum())} points")
    xyz = np.where(hit[..., None], points.xyz, np.nan)
    elevation, up, known = _elevations(xyz, hit)
    azimuth = _azimuths(np.arctan2(xyz[..., 1], xyz[..., 0]), hit)
    model = _directions(elevation, azimuth)
    origin = np.zeros((n_lasers, n_columns, 3))
    origin[..., 2] = up[:, None]
    along = xyz - origin
    range_m = np.linalg.norm(along, axis=-1)
    off = np.linalg.norm((along / range_m[..., None] - model)[hit & known[:, None]], axis=-1)
    rms = float(np.sqrt(np.mean(off**2))) if len(off) else np.inf
    if not rms < SURE_RAD:
        raise NotRecovered(
            f"the cells are {np.rad2deg(rms):.2f} degrees off the grid (needs {np.rad2deg(SURE_RAD):.1f})"
        )
    direction = np.where(hit[..., None], along / range_m[..., None], model)
    time_ns = _cell_times(points.time_ns, hit, start_ns, end_ns)
    keep = hit | known[:, None]
    ring = np.broadcast_to(np.arange(n_lasers)[:, None], hit.shape) if points.ring is None else _rings(points.ring, hit)
    order = np.argsort(time_ns[keep], kind="stable")
    sorted_: list[NDArray[np.generic] | None] = [
        None if each is None else each[keep][order][:, None] for each in (points.intensity, points.label)
    ]
    firings = Firings(
        origin[keep][order],
        direction[keep][order],
        np.where(hit, range_m, np.inf)[keep][order][:, None],
        ring[keep][order],
        time_ns[keep][order],
        sorted_[0],  # pyright: ignore[reportArgumentType] # still floats
        sorted_[1],  # pyright: ignore[reportArgumentType] # still integers
    )
    return Filled(firings, rms, float(1 - hit[keep].mean()))


def _elevations(xyz: Floats, hit: NDArray[np.bool_]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return elevation and height of each laser, and whether it has points enough to tell."""
    n = len(xyz)
    elevation, up, known = np.zeros(n), np.zeros(n), hit.sum(axis=1) >= _MIN_POINTS
    for k in np.flatnonzero(known):
        elevation[k], up[k], _ = fit_line(xyz[k][hit[k]])
    return elevation, up, known


def _azimuths(azimuth: Floats, hit: NDArray[np.bool_]) -> Floats:
    """Return the (K, C) azimuths of all cells: the rotor's at each column and a constant for each laser."""
    of_laser = np.zeros(len(azimuth))
    rotor, there = np.zeros(azimuth.shape[1]), hit.any(axis=0)
    for _ in range(_ROUNDS):
        rotor[there] = np.unwrap(_mean_angle(azimuth - of_laser[:, None], hit, axis=0)[there])
        rotor = _filled(rotor, there)
        of_laser = np.where(hit.any(axis=1), _mean_angle(azimuth - rotor, hit, axis=1), 0.0)
    return rotor + of_laser[:, None]


def _mean_angle(angle: Floats, hit: NDArray[np.bool_], axis: int) -> Floats:
    """Return the mean direction of angles where there are some."""
    phase = np.where(hit, np.exp(1j * np.nan_to_num(angle)), 0)
    return np.angle(phase.sum(axis=axis))


def _filled(values: Floats, there: NDArray[np.bool_]) -> Floats:
    """Fill in columns without any point: evenly between the others, and at the usual step beyond them."""
    columns = np.flatnonzero(there)
    known = values[there]
    every = np.arange(len(values))
    step = float(known[-1] - known[0]) / max(int(columns[-1] - columns[0]), 1)
    before, after = np.minimum(every - columns[0], 0), np.maximum(every - columns[-1], 0)
    return np.interp(every, columns, known) + step * (before + after)


def _directions(elevation: Floats, azimuth: Floats) -> Floats:
    flat = np.cos(elevation)[:, None]
    up = np.broadcast_to(np.sin(elevation)[:, None], azimuth.shape)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), up], axis=-1)


def _cell_times(
    time_ns: NDArray[np.int64] | None, hit: NDArray[np.bool_], start_ns: int, end_ns: int
) -> NDArray[np.int64]:
    """Return when each cell was fired; drivers do not all fill in the time of empty ones."""
    n_columns = hit.shape[1]
    if time_ns is None:
        even = start_ns + (np.arange(n_columns) * (end_ns - start_ns) // n_columns).astype(np.int64)
        return np.broadcast_to(even, hit.shape).copy()
    base = int(time_ns[hit].min())
    since = np.where(hit, time_ns - base, 0).astype(np.float64)
    there, late, column = hit.any(axis=0), np.zeros(len(hit)), np.zeros(n_columns)
    for _ in range(_ROUNDS):
        each = np.where(hit, since - late[:, None], 0).sum(axis=0) / np.maximum(hit.sum(axis=0), 1)
        column = _filled(each, there)
        late = np.where(hit, since - column, 0).sum(axis=1) / np.maximum(hit.sum(axis=1), 1)
    model = base + np.rint(column + late[:, None]).astype(np.int64)
    return np.where(hit, time_ns, model)


def _rings(ring: NDArray[np.int64], hit: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the ring of each cell; empty ones have that of their row."""
    of_row = [
        int(np.median(row[seen])) if seen.any() else k for k, (row, seen) in enumerate(zip(ring, hit, strict=True))
    ]
    return np.broadcast_to(np.clip(of_row, 0, 65535)[:, None], hit.shape)
