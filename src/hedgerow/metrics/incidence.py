# SPDX-License-Identifier: Apache-2.0
"""At which angle each beam of a sweep met a surface, from what the beams around it returned.

Around each return a plane is fitted to a stencil of three by three returns of its own sweep: on its own ring and on one
above and below, its own azimuth and one to either side. How many beams and rings apart they are follows from the range,
so that the stencil is about 0.2 m to either side where beams are dense enough: nearer, noise would tilt the plane; and
far away rings that are metres apart on the ground still give the ground's plane, where all returns within a fixed
radius lie on one line. Where rings are not known, the nearest returns are taken.

A plane counts if its returns scatter across it by less than a quarter of their second extent along it; elsewhere, in
foliage, at edges and where neighbours did not return, there is no angle.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams

HALF_WIDTH_M = 0.2
"""How far to either side of a return the stencil reaches, at least, where beams are dense enough."""
FLATNESS = 0.25
"""Deviation across the plane over the smaller one along it, at most."""
_MOST_BEAMS, _MOST_RINGS = 16, 4  # how many beams and rings apart the stencil may be
_FEWEST = 5  # returns of a plane
_NEAREST = 16  # returns of a plane where rings are not known
_AT_ONCE = 200_000


def incidence_deg(beams: Beams, range_m: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the angle between each beam and the normal of the surface that it met.

    Args:
        beams: N of one sweep, map frame.
        range_m: (N,) first ranges; inf is no return.

    Returns:
        (N,) from 0, square on, to 90, grazing [deg]; NaN where nothing returned, or no plane is there.
    """
    found = np.full(len(beams), np.nan)
    hit = np.flatnonzero(np.isfinite(range_m))
    if len(hit) < _FEWEST:
        return found
    points_m = np.full((len(beams), 3), np.nan)
    points_m[hit] = beams.origin_m[hit] + range_m[hit].astype(np.float64)[:, None] * beams.direction[hit]
    # Near 0, so that sums of squares keep their digits at map coordinates.
    points_m -= points_m[hit[0]]
    for rows, around in _stencils(beams, range_m, points_m, hit):
        normal = _normals(points_m[around], around >= 0)
        cosine = np.abs(np.einsum("ij,ij->i", normal, beams.direction[rows].astype(np.float64)))
        found[rows] = np.degrees(np.arccos(np.minimum(cosine, 1.0)))
    return found


def _stencils(
    beams: Beams, range_m: NDArray[np.float32], points_m: NDArray[np.float64], hit: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give (M,) rows of beams that returned, and the (M, S) rows around each, -1 where there is none."""
    rings = _Rings(beams)
    tree = None
    if rings.n < 3:
        from scipy.spatial import cKDTree

        tree = cKDTree(points_m[hit], balanced_tree=False, compact_nodes=False)
    for begin in range(0, len(hit), _AT_ONCE):
        rows = hit[begin : begin + _AT_ONCE]
        if tree is not None:
            _, nearest = tree.query(points_m[rows], k=min(_NEAREST, len(hit)), workers=-1)
            yield rows, hit[nearest]
        else:
            around = rings.around(rows, range_m[rows].astype(np.float64))
            yield rows, np.where((around >= 0) & np.isfinite(range_m[around]), around, -1)


class _Rings:
    """Beams of one sweep by ring, in the order of their azimuth in the map."""

    def __init__(self, beams: Beams) -> None:
        direction = beams.direction.astype(np.float64)
        self._azimuth = np.arctan2(direction[:, 1], direction[:, 0])
        elevation = np.arcsin(np.clip(direction[:, 2], -1, 1))
        names, of = np.unique(beams.ring, return_inverse=True)
        self.n = len(names)
        middle = np.array([np.median(elevation[of == ring]) for ring in range(self.n)])
        by_height = np.argsort(middle, kind="stable")
        rank = np.empty(self.n, dtype=np.int64)
        rank[by_height] = np.arange(self.n)
        self._ring = rank[of]
        """(N,) from the lowest up."""
        self._order = np.lexsort((self._azimuth, self._ring))
        self._count = np.bincount(self._ring, minlength=self.n)
        self._first = np.cumsum(self._count) - self._count
        self._place = np.empty(len(beams), dtype=np.int64)
        self._place[self._order] = np.arange(len(beams))
        spacing = np.diff(middle[by_height])
        self._spacing_rad = float(np.median(spacing)) if self.n > 1 else 0.0
        # Azimuths of one ring after the other, each ring 10 rad further, so that one search finds a place on any ring.
        self._key = self._azimuth[self._order] + 10.0 * self._ring[self._order]
        step = np.diff(self._key)
        step = step[(step > 0) & (step < np.pi)]
        self._step_rad = float(np.median(step)) if len(step) else 2 * np.pi

    def around(self, rows: NDArray[np.int64], range_m: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the (M, 9) rows of the stencils; -1 where there is no beam."""
        beside = np.clip(np.rint(HALF_WIDTH_M / (range_m * self._step_rad)), 1, _MOST_BEAMS).astype(np.int64)
        above = np.clip(np.rint(HALF_WIDTH_M / (range_m * max(self._spacing_rad, 1e-6))), 1, _MOST_RINGS)
        columns: list[NDArray[np.int64]] = []
        for up in (-1, 0, 1):
            ring = self._ring[rows] + up * above.astype(np.int64)
            is_there = (ring >= 0) & (ring < self.n)
            ring = np.where(is_there, ring, self._ring[rows])
            place = self._place[rows] if up == 0 else self._nearest_on(ring, self._azimuth[rows])
            for along in (-1, 0, 1):
                turned = (place - self._first[ring] + along * beside) % self._count[ring]
                row = self._order[self._first[ring] + turned]
                # A ring may have gaps, or end: what follows beyond is no neighbour.
                apart = np.abs(np.remainder(self._azimuth[row] - self._azimuth[rows] + np.pi, 2 * np.pi) - np.pi)
                is_near = apart <= 2 * (beside + 1) * self._step_rad
                columns.append(np.where(is_there & is_near, row, -1))
        return np.stack(columns, axis=1)

    def _nearest_on(self, ring: NDArray[np.int64], azimuth: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the places of the beams of a ring that are nearest in azimuth."""
        first, last = self._first[ring], self._first[ring] + self._count[ring] - 1
        right = np.clip(np.searchsorted(self._key, azimuth + 10.0 * ring), first, last)
        left = np.maximum(right - 1, first)
        nearer = azimuth + 10.0 * ring - self._key[left] < self._key[right] - azimuth - 10.0 * ring
        return np.where(nearer, left, right)


def _normals(points_m: NDArray[np.float64], is_there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Fit planes to (M, S, 3) points; returns (M, 3) normals, NaN where there are too few points or no plane."""
    count = is_there.sum(axis=1)
    kept = np.where(is_there[:, :, None], points_m, 0.0)
    mean = kept.sum(axis=1) / np.maximum(count, 1)[:, None]
    apart = np.where(is_there[:, :, None], points_m - mean[:, None, :], 0.0)
    covariance = np.einsum("msi,msj->mij", apart, apart) / np.maximum(count, 1)[:, None, None]
    values, vectors = np.linalg.eigh(covariance)
    across, along = np.sqrt(np.maximum(values[:, 0], 0)), np.sqrt(np.maximum(values[:, 1], 0))
    is_plane = (count >= _FEWEST) & (along > 0) & (across < FLATNESS * along)
    return np.where(is_plane[:, None], vectors[:, :, 0], np.nan)
