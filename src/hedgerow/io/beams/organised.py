# SPDX-License-Identifier: Apache-2.0
"""Organised clouds: a cell for every firing, so that an empty cell is a missing return.

Where an empty cell pointed follows from the others: all cells of a laser share an elevation, an azimuth to the rotor
and a delay, all cells of a column the angle of the rotor and the time. How well the cells with points keep to that
tells how sure the directions of the empty ones are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.firings import Firings, FiringSource
from hedgerow.io.recovery.lasers import fit_line
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.source import Settings

SURE_RAD = np.deg2rad(0.3)
"""Root mean square error of the directions above which empty cells are not believed: about a step of most lidars."""
_NO_PLACE_M = 1e18  # numbers beyond mark an empty cell; squares of smaller ones fit into float64
_FAR_M = 1e5  # from the sensor; nothing returns from there
_MIN_POINTS = 20  # of a laser, to know where it points
_MIN_COLUMNS = 8
_ROUNDS = 8  # columns and lasers in turn; each is several times nearer than the one before


@dataclass(frozen=True, slots=True, eq=False)
class PointGrid:
    """The points of one cloud as it is stored, a grid (height, width); height is 1 if it is not organised."""

    xyz: NDArray[np.float64]
    """(H, W, 3) frame of the cloud [m]; NaN, zero or a huge number is no return."""
    intensity: NDArray[np.float32] | None
    ring: NDArray[np.int64] | None
    time_ns: NDArray[np.int64] | None
    label: NDArray[np.uint16] | None
    return_number: NDArray[np.int64] | None = None
    """(H, W) which return of its pulse a point is: 1 is the nearest."""
    colour: NDArray[np.uint32] | None = None
    """(H, W) 0xRRGGBB."""

    @property
    def hit(self) -> NDArray[np.bool_]:
        """(H, W) whether there is a point."""
        largest_m = np.abs(self.xyz).max(axis=-1, initial=0)
        return (largest_m > 1e-3) & (largest_m < _NO_PLACE_M)  # NaN is neither


@dataclass(frozen=True, slots=True, eq=False)
class OrganisedSweep:
    """The firings of a sweep, and how far the model of the grid is off where there are points."""

    firings: Firings
    rms_rad: float
    share_empty: float


def organised_source(
    path: Path,
    settings: Settings,
    trajectory: Trajectory,
    count: int,
    load: Callable[[int], PointGrid],
    span_ns: Callable[[int, PointGrid], tuple[int, int]],
    looked_at: Sequence[int],
) -> FiringSource:
    """Make a log of organised clouds.

    Args:
        path: of the recording.
        settings: sensor name, limits, map origin, arrays; what is known about missing returns is noted here.
        trajectory: T_map_sensor.
        count: how many clouds there are.
        load: gives a cloud by its number, in the sensor frame of the instant of each point.
        span_ns: tells when a cloud began and ended.
        looked_at: clouds that must keep to the grid, or nothing is made of it.

    Raises:
        NotRecovered: those looked at do not.
    """

    def complete(number: int) -> OrganisedSweep:
        points = lasers_in_rows(load(number))
        return fill_missing(points, *span_ns(number, points))

    def firings(number: int) -> Firings:
        try:
            return complete(number).firings
        except NotRecovered as error:
            raise FileError(f"{path}, sweep {number}: {error}; read it with recover=no") from None

    recovery = _quality([complete(number) for number in looked_at])
    settings = replace(settings, n_per_pulse=1, metadata=settings.metadata | {"recovery": recovery})
    return FiringSource(path, settings, trajectory, range(count), firings)


def _quality(sweeps: list[OrganisedSweep]) -> dict[str, Any]:
    rms_deg = float(np.rad2deg(np.sqrt(np.mean([each.rms_rad**2 for each in sweeps]))))
    share = float(np.mean([each.share_empty for each in sweeps]))
    summary = (
        f"kept, {share:.1%} of the cells of the organised clouds are empty; directions {rms_deg:.3f} degrees rms off"
    )
    return {"method": "organised cloud", "rms_deg": round(rms_deg, 5), "empty": round(share, 5), "summary": summary}


def is_organised(points: PointGrid) -> bool:
    """Tell whether a cloud is a grid of lasers and columns."""
    return min(points.xyz.shape[:2]) > 1


def lasers_in_rows(points: PointGrid) -> PointGrid:
    """Return the cloud with one laser per row: Velodyne's driver has them in columns, Ouster's in rows."""
    height, width = points.xyz.shape[:2]
    swapped = height > width
    if points.ring is not None:
        swapped = bool((points.ring[0] != points.ring[0, :1]).any()) and bool(
            (points.ring[:, 0] == points.ring[0, 0]).all()
        )
    if not swapped:
        return points
    return PointGrid(
        points.xyz.swapaxes(0, 1),
        _transposed(points.intensity),
        _transposed(points.ring),
        _transposed(points.time_ns),
        _transposed(points.label),
        colour=_transposed(points.colour),
    )


def _transposed(values: Any) -> Any:
    return None if values is None else values.T


def fill_missing(points: PointGrid, start_ns: int, end_ns: int) -> OrganisedSweep:
    """Work out every firing of an organised cloud.

    Args:
        points: in the sensor frame of their own instants; one laser per row.
        start_ns, end_ns: when the sweep began and ended, for clouds without times.

    Raises:
        NotRecovered: the cells do not show lasers and columns.
    """
    hit = points.hit & (np.abs(points.xyz).max(axis=-1, initial=0) < _FAR_M)
    if hit.shape[1] < _MIN_COLUMNS or hit.sum() < _MIN_POINTS:
        raise NotRecovered(
            f"the cloud is a grid of {hit.shape[0]} by {hit.shape[1]} cells with {int(hit.sum())} points"
        )
    origin, seen, model, known = _modelled(points.xyz, hit)
    range_m = np.linalg.norm(seen, axis=-1)
    seen = seen / np.where(range_m > 0, range_m, 1)[..., None]
    rms = _rms((seen - model)[hit & known[:, None]])
    if not rms < SURE_RAD:
        raise NotRecovered(
            f"the cells are {np.rad2deg(rms):.2f} degrees off the grid (needs {np.rad2deg(SURE_RAD):.1f})"
        )
    keep = hit | known[:, None]
    time_ns = _cell_times(points.time_ns, hit, start_ns, end_ns)
    order = np.argsort(time_ns[keep], kind="stable")

    def in_order(values: Any) -> Any:
        return None if values is None else values[keep][order]

    firings = Firings(
        in_order(origin),
        in_order(np.where(hit[..., None], seen, model)),
        in_order(np.where(hit, range_m, np.inf)[..., None]),
        in_order(_rings(points.ring, hit)),
        in_order(time_ns),
        in_order(None if points.intensity is None else points.intensity[..., None]),
        in_order(None if points.label is None else points.label[..., None]),
        in_order(None if points.colour is None else points.colour[..., None]),
    )
    return OrganisedSweep(firings, rms, float(1 - hit[keep].mean()))


def _modelled(xyz: Array, hit: NDArray[np.bool_]) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return origins, points seen from there, modelled directions, (K, C, 3) each, and (K,) lasers that are known."""
    xyz = np.where(hit[..., None], xyz, np.nan)
    elevation, up, known = _elevations(xyz, hit)
    model = _directions(elevation, _azimuths(np.arctan2(xyz[..., 1], xyz[..., 0]), hit))
    origin = np.zeros_like(xyz)
    origin[..., 2] = up[:, None]
    return origin, xyz - origin, model, known


def _rms(vectors: Array) -> float:
    return float(np.linalg.norm(vectors)) / len(vectors) ** 0.5 if len(vectors) else float("inf")


def _elevations(xyz: Array, hit: NDArray[np.bool_]) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return elevation and height of each laser, and whether it has points enough to tell."""
    n = len(xyz)
    elevation, up = np.zeros(n), np.zeros(n)
    known: NDArray[np.bool_] = np.count_nonzero(hit, axis=1) >= _MIN_POINTS
    for k in np.flatnonzero(known):
        elevation[k], up[k], _ = fit_line(xyz[k][hit[k]])
    return elevation, up, known


def _azimuths(azimuth: Array, hit: NDArray[np.bool_]) -> Array:
    """Return the (K, C) azimuths of all cells: the rotor's at each column and a constant for each laser."""
    of_laser = np.zeros(len(azimuth))
    rotor, there = np.zeros(azimuth.shape[1]), _any(hit)
    for _ in range(_ROUNDS):
        rotor[there] = np.unwrap(_mean_angle(azimuth - of_laser[:, None], hit, axis=0)[there])
        rotor = _interpolate(rotor, there)
        of_laser = np.where(hit.any(axis=1), _mean_angle(azimuth - rotor, hit, axis=1), 0.0)
    return rotor + of_laser[:, None]


def _any(hit: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the (C,) columns with a point."""
    return np.count_nonzero(hit, axis=0) > 0


def _mean_angle(angle: Array, hit: NDArray[np.bool_], axis: int) -> Array:
    """Return the mean direction of angles where there are some."""
    phase = np.where(hit, np.exp(1j * np.nan_to_num(angle)), 0)
    return np.angle(phase.sum(axis=axis))


def _interpolate(values: Array, there: NDArray[np.bool_]) -> Array:
    """Fill in columns without any point: evenly between the others, and at the usual step beyond them."""
    columns = np.flatnonzero(there)
    known = values[there]
    every = np.arange(len(values))
    step = float(known[-1] - known[0]) / max(int(columns[-1] - columns[0]), 1)
    before, after = np.minimum(every - columns[0], 0), np.maximum(every - columns[-1], 0)
    return np.interp(every, columns, known) + step * (before + after)


def _directions(elevation: Array, azimuth: Array) -> Array:
    flat = np.cos(elevation)[:, None]
    up = np.broadcast_to(np.sin(elevation)[:, None], azimuth.shape)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), up], axis=-1)


def _cell_times(
    time_ns: NDArray[np.int64] | None, hit: NDArray[np.bool_], start_ns: int, end_ns: int
) -> NDArray[np.int64]:
    """Return when each cell was fired; drivers do not all fill in the time of empty ones."""
    n_columns = hit.shape[1]
    if time_ns is None:
        even = start_ns + np.linspace(0, end_ns - start_ns, n_columns, endpoint=False).astype(np.int64)
        return np.broadcast_to(even, hit.shape).copy()
    base = int(time_ns[hit].min())
    since = np.where(hit, time_ns - base, 0).astype(np.float64)
    there, late, column = _any(hit), np.zeros(len(hit)), np.zeros(n_columns)
    for _ in range(_ROUNDS):
        each = np.where(hit, since - late[:, None], 0).sum(axis=0) / np.maximum(hit.sum(axis=0), 1)
        column = _interpolate(each, there)
        late = np.where(hit, since - column, 0).sum(axis=1) / np.maximum(hit.sum(axis=1), 1)
    model = base + np.rint(column + late[:, None]).astype(np.int64)
    return np.where(hit, time_ns, model)


def _rings(ring: NDArray[np.int64] | None, hit: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the ring of each cell: its row, or what the driver says; empty cells have that of their row."""
    of_row: NDArray[np.int64] = np.arange(len(hit), dtype=np.int64)
    if ring is not None:
        for k in np.flatnonzero(hit.any(axis=1)):
            of_row[k] = np.clip(np.median(ring[k][hit[k]]), 0, 65535)
    return np.broadcast_to(of_row[:, None], hit.shape)
