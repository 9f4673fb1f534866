# SPDX-License-Identifier: Apache-2.0
"""Thinned points: the points of a log summed up over fine voxels, tile by tile, with bounded memory.

Points close together say the same about a surface, so models work on thinned points: one row per occupied voxel (and
label), with the number of points, their mean position, the direction to the sensor and their intensities. A parked
sensor that sees one wall a million times costs no more than one that drives past.

Thinned points can be merged: positions and directions are summed as whole numbers, so neither the order of the points
nor the chunks of the log change a bit of them. Intensities are summed as float64, exact but for rounding.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.errors import InputError
from hedgerow.log import Log

_UNIT = 1 << 20  # steps of offset per voxel and of direction per unit, as in cpp/learn/thin.hpp

THINNED_POINT = np.dtype(
    [
        ("count", np.int64),
        ("offset", np.int64, 3),
        ("toward", np.int64, 3),
        ("n_intensity", np.int64),
        ("intensity", np.float64),
        ("intensity_squared", np.float64),
        ("voxel", np.int32, 3),
        ("label", np.uint16),
        ("spare", np.uint16),
    ]
)
"""One row per thinned point, byte for byte the struct in cpp/learn/thin.hpp."""
ThinnedPoints = NDArray[np.void]
Tile = tuple[int, int]

_MAX_VOXELS = (1 << 21) - 8  # per axis in one call: the native code packs three of them into 64 bits
_POINTS_AT_ONCE = 2_000_000


def thin(
    position_m: NDArray[np.float64],
    toward: NDArray[np.float32],
    voxel_m: float,
    *,
    intensity: NDArray[np.float32] | None = None,
    label: NDArray[np.uint16] | None = None,
    threads: int = 0,
) -> tuple[ThinnedPoints, NDArray[np.uint32]]:
    """Sum up points over voxels.

    Args:
        position_m: (N, 3) map frame.
        toward: (N, 3) unit vectors from the point to the sensor, map frame.
        voxel_m: side of a voxel; the grid is anchored at the map's zero.
        intensity: (N,) NaN where unknown. Default: unknown.
        label: (N,). Default: 0.
        threads: 0 for all; the result does not depend on it.

    Returns:
        Thinned points ordered by voxel (z, y, x) and label, and the (N,) row of the one that each point went into.

    Raises:
        InputError: the points span more than two million voxels, or lie too far from the map's zero.
    """
    n = len(position_m)
    require_spread(position_m, voxel_m)
    rows, thinned_of = _core.thin(
        np.ascontiguousarray(position_m, dtype=np.float64),
        np.ascontiguousarray(toward, dtype=np.float32),
        np.full(n, np.nan, dtype=np.float32) if intensity is None else np.ascontiguousarray(intensity),
        np.zeros(n, dtype=np.uint16) if label is None else np.ascontiguousarray(label),
        voxel_m,
        threads,
    )
    return _as_thinned(rows), thinned_of


def merge_thinned(thinned: ThinnedPoints, *, threads: int = 0) -> ThinnedPoints:
    """Add up the thinned points of one voxel and label; the result is ordered as by `thin`."""
    return _as_thinned(_core.merge_thinned(as_bytes(thinned), threads))


def positions_m(thinned: ThinnedPoints, voxel_m: float) -> NDArray[np.float64]:
    """Return the (N, 3) mean position of the points in each voxel, map frame."""
    within = thinned["offset"] / (thinned["count"][:, None] * float(_UNIT))
    return (thinned["voxel"] + within) * voxel_m


def directions_to_sensor(thinned: ThinnedPoints) -> NDArray[np.float32]:
    """Return the (N, 3) mean direction from the points in each voxel to the sensor; shorter than 1 if they differ."""
    return (thinned["toward"] / (thinned["count"][:, None] * float(_UNIT))).astype(np.float32)


def as_bytes(thinned: ThinnedPoints) -> NDArray[np.uint8]:
    """Return the (N, 96) bytes of thinned points, as the native code takes them."""
    return np.ascontiguousarray(thinned).view(np.uint8).reshape(len(thinned), THINNED_POINT.itemsize)


def points_of(log: Log) -> dict[str, Any]:
    """Return the points of all returns of a log: position_m, toward, intensity and label (None where absent)."""
    hit = log.returns.hit
    pulse = np.nonzero(hit)[0]
    intensity, label = log.returns.intensity, log.returns.label
    return {
        "position_m": log.points(),
        "toward": -log.beams.direction[pulse],
        "intensity": None if intensity is None else intensity[hit],
        "label": None if label is None else label[hit],
    }


def require_spread(position_m: NDArray[np.float64], voxel_m: float) -> None:
    """Raise InputError if points are not finite, or too far apart or too far out for a grid of voxels."""
    if not len(position_m):
        return
    low, high = position_m.min(axis=0), position_m.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("position_m", "holds NaN or infinity; every number must be finite")
    extent_m = float((high - low).max())
    if extent_m >= _MAX_VOXELS * voxel_m:
        limit_km = _MAX_VOXELS * voxel_m / 1000
        raise InputError(
            "points",
            f"span {extent_m / 1000:.6g} km, but voxels of {voxel_m:g} m allow {limit_km:.0f} km; "
            "check the poses, or learn in parts",
        )
    if float(np.maximum(np.abs(low), np.abs(high)).max()) >= (2**31 - 2) * voxel_m:
        raise InputError("points", "lie too far from the map's zero; subtract a map origin first")


class ThinnedPointStore:
    """Thinned points by square tiles with a halo; held in memory up to a budget, in temporary files beyond it.

    A context manager: the files go when it is left.
    """

    def __init__(self, *, voxel_m: float, tile_m: float, halo_m: float, budget_bytes: float, threads: int = 0) -> None:
        """Make an empty store.

        Args:
            voxel_m: side of a voxel.
            tile_m: side of a tile in x and y; inf for a single tile. At least twice the halo.
            halo_m: each tile also holds what lies this close to it.
            budget_bytes: memory for thinned points before they go to files.
            threads: 0 for all.
        """
        if not tile_m >= 2 * halo_m:
            raise InputError("tile_m", f"is {tile_m:g}, expected at least {2 * halo_m:g}, twice the halo")
        self._voxel_m, self._tile_m, self._halo_m = voxel_m, tile_m, halo_m
        self._budget_bytes, self._threads = budget_bytes, threads
        self._pending: list[dict[str, Any]] = []
        self._n_pending = 0
        self._held: dict[Tile, list[ThinnedPoints]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._on_disk: dict[Tile, Path] = {}

    def __enter__(self) -> Self:
        """Use the store in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the temporary files."""
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, points: dict[str, Any]) -> None:
        """Add points as `points_of` gives them."""
        self._pending.append(points)
        self._n_pending += len(points["position_m"])
        if self._n_pending >= _POINTS_AT_ONCE:
            self._sum_up()

    def tiles(self) -> list[Tile]:
        """List the tiles that have points in themselves or in their halo, in order."""
        self._sum_up()
        return sorted(self._held.keys() | self._on_disk.keys())

    def points(self, tile: Tile) -> ThinnedPoints:
        """Return the merged thinned points of a tile and its halo."""
        stored = [np.fromfile(self._on_disk[tile], dtype=THINNED_POINT)] if tile in self._on_disk else []
        return merge_thinned(np.concatenate([*stored, *self._held.get(tile, [])]), threads=self._threads)

    def _sum_up(self) -> None:
        for group in _group_by_columns(self._pending):
            joined = {name: np.concatenate([columns[name] for columns in group]) for name in group[0]}
            thinned, _ = thin(voxel_m=self._voxel_m, threads=self._threads, **joined)
            for tile, rows in self._split(thinned):
                self._held.setdefault(tile, []).append(rows)
        self._pending, self._n_pending = [], 0
        if self._n_held_bytes() > self._budget_bytes:
            self._held = {tile: [merge_thinned(np.concatenate(rows))] for tile, rows in self._held.items()}
            if self._n_held_bytes() > self._budget_bytes / 2:  # less would soon be too much again
                self._spill()

    def _split(self, thinned: ThinnedPoints) -> Iterator[tuple[Tile, ThinnedPoints]]:
        if np.isinf(self._tile_m):
            yield (0, 0), thinned
            return
        at_m = (thinned["voxel"][:, :2] + 0.5) * self._voxel_m
        low = np.floor((at_m - self._halo_m) / self._tile_m).astype(np.int64)
        high = np.floor((at_m + self._halo_m) / self._tile_m).astype(np.int64)
        for x, y in ((False, False), (True, False), (False, True), (True, True)):
            # Near a border a point belongs to two tiles, near a corner to four.
            tile_x, tile_y = (high if x else low)[:, 0], (high if y else low)[:, 1]
            rows = np.nonzero((tile_x != low[:, 0]) | (not x))[0]
            rows = rows[(tile_y[rows] != low[rows, 1]) | (not y)]
            for tile, chosen in _groups(tile_x[rows], tile_y[rows]):
                yield tile, thinned[rows[chosen]]

    def _n_held_bytes(self) -> int:
        return sum(rows.nbytes for held in self._held.values() for rows in held)

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hedgerow-")
        for tile, held in self._held.items():
            path = Path(self._folder.name) / f"{tile[0]}_{tile[1]}.points"
            with path.open("ab") as file:
                for rows in held:
                    rows.tofile(file)
            self._on_disk[tile] = path
        self._held = {}


def _groups(x: NDArray[np.int64], y: NDArray[np.int64]) -> Iterator[tuple[Tile, NDArray[np.intp]]]:
    """Give each pair (x, y) that occurs and where, in order."""
    if not len(x):
        return
    x0, y0 = int(x.min()), int(y.min())
    width = int(x.max()) - x0 + 1
    number = (y - y0) * width + (x - x0)
    # Small integers sort in linear time.
    number = number.astype(np.uint16) if number.max() < 1 << 16 else number
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    start = 0
    for i, end in enumerate(ends.tolist()):
        if end > start:
            yield (i % width + x0, i // width + y0), order[start:end]
        start = end


def _group_by_columns(points: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group points in order by which columns they have: logs with and without labels do not concatenate."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for each in points:
        present = {name: column for name, column in each.items() if column is not None}
        groups.setdefault(tuple(present), []).append(present)
    return list(groups.values())


def _as_thinned(rows: Any) -> ThinnedPoints:
    return np.asarray(rows).reshape(-1).view(THINNED_POINT)
