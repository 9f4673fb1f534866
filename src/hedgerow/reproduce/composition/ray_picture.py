# SPDX-License-Identifier: Apache-2.0
"""Single rays drawn from the side, with every element beside them (as Tallavajhula 2018 Figs. 4.20 to 4.23).

The picture is the upright plane of the ray: across runs the range, upwards the height above the ray. A Gaussian is the
ellipse of its deviation in that plane: filled if the ray meets it, the darker the more it stops; else an outline, if it
lies within a deviation of the plane. Triangles that the plane cuts near the ray are lines.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.learned import LearnedWorld

HEIGHT_M = 1.6
"""What is drawn above and below the ray."""
_BESIDE_M = 0.25
"""Measured points as near as this to the plane are drawn."""


@dataclass(frozen=True, eq=False)
class Ray:
    """One ray, what it really measured, and what else was measured around it."""

    origin_m: Array
    direction: Array
    """(3,) of unit length."""
    real_m: float
    """inf: no return."""
    points_m: Array
    """(M, 3) measured points, map frame."""

    @property
    def axes(self) -> Array:
        """(3, 3) rows: along the ray, up from it in its upright plane, and to its side."""
        side = np.cross(self.direction, [0.0, 0.0, 1.0])
        length = np.linalg.norm(side)
        side = side / length if length > 1e-9 else np.array([0.0, 1.0, 0.0])
        return np.stack([self.direction, np.cross(side, self.direction), side])

    def local(self, places_m: Array) -> Array:
        """Return (N, 3) places as range, height above the ray, and distance to its side."""
        return (places_m - self.origin_m) @ self.axes.T


@dataclass(frozen=True, eq=False)
class Slice:
    """The elements of a world that lie on a ray or beside it."""

    middle: Array
    """(G, 2) range and height of Gaussians."""
    covariance: Array
    """(G, 2, 2) in the plane."""
    stop: Array
    """(G,) share of the light that is stopped, 0 to 1."""
    is_met: NDArray[np.bool_]
    """(G,) whether the ray meets it."""
    lines: Array
    """(L, 2, 2) ends of what the plane cuts out of triangles."""


def slice_along(world: LearnedWorld, ray: Ray, reach_m: float) -> Slice:
    """Cut the elements of a world along a ray, up to a range."""
    middle, covariance, stop = [np.zeros((0, 2))], [np.zeros((0, 2, 2))], [np.zeros(0)]
    is_met, lines = [np.zeros(0, dtype=np.bool_)], [np.zeros((0, 2, 2))]
    for table in world.spread().values():
        if isinstance(table, Gaussians):
            near = table[np.flatnonzero(np.linalg.norm(table.mean_m - ray.origin_m, axis=1) < reach_m + 5)]
            met, stopped = _met(near, ray)
            place = ray.local(near.mean_m)
            side_m2 = np.einsum("i,nij,j->n", ray.axes[2], near.covariance_m2, ray.axes[2])
            shown = met | ((place[:, 2] ** 2 < side_m2) & (np.abs(place[:, 1]) < HEIGHT_M) & (place[:, 0] > 0))
            middle.append(place[shown, :2])
            covariance.append(ray.axes[:2] @ near.covariance_m2[shown] @ ray.axes[:2].T)
            stop.append(stopped[shown])
            is_met.append(met[shown])
        elif isinstance(table, Triangles):
            lines.append(_cut(table, ray, reach_m))
    return Slice(
        np.concatenate(middle),
        np.concatenate(covariance),
        np.concatenate(stop),
        np.concatenate(is_met),
        np.concatenate(lines),
    )


def _met(table: Gaussians, ray: Ray) -> tuple[NDArray[np.bool_], Array]:
    """Return which Gaussians the ray meets, and (N,) how much each stops."""
    if not len(table):
        return np.zeros(0, dtype=np.bool_), np.zeros(0)
    inverse = np.linalg.inv(table.covariance_m2 + table.min_sigma_m**2 * np.eye(3))
    off = table.mean_m - ray.origin_m
    a = np.einsum("i,nij,j->n", ray.direction, inverse, ray.direction)
    b = np.einsum("i,nij,nj->n", ray.direction, inverse, off)
    c = np.einsum("ni,nij,nj->n", off, inverse, off)
    distance2 = c - b**2 / a
    met = (distance2 < table.tau**2) & (b / a > 0)
    stop = np.asarray(table.stop, dtype=np.float64)
    if table.law == "permeability":
        return met, 1 - stop
    thick_m = 1 / np.sqrt(a) if table.law == "extinction" else 1.0
    return met, 1 - np.exp(-stop * thick_m)


def _cut(table: Triangles, ray: Ray, reach_m: float) -> Array:
    """Return (L, 2, 2) where the upright plane of the ray cuts triangles near it."""
    corners = ray.local(table.corners_m.reshape(-1, 3)).reshape(-1, 3, 3)
    low, high = corners.min(axis=1), corners.max(axis=1)
    near = (low[:, 2] < 0) & (high[:, 2] > 0) & (high[:, 0] > 0) & (low[:, 0] < reach_m)
    near &= (high[:, 1] > -HEIGHT_M) & (low[:, 1] < HEIGHT_M)
    found: list[Array] = []
    for each in corners[near]:
        ends = [
            each[i, :2] + (each[k, :2] - each[i, :2]) * each[i, 2] / (each[i, 2] - each[k, 2])
            for i, k in ((0, 1), (1, 2), (2, 0))
            if each[i, 2] * each[k, 2] < 0
        ] + [corner[:2] for corner in each if corner[2] == 0]
        if len(ends) == 2:
            found.append(np.array(ends))
    return np.array(found).reshape(-1, 2, 2)


def draw_ray(axes: Any, ray: Ray, world: LearnedWorld, drawn_m: Array, span_m: tuple[float, float]) -> None:
    """Draw a ray with a world's elements: measured points grey, the real return a ring, simulated ones crosses.

    Args:
        axes: of matplotlib.
        ray: the ray.
        world: whose elements are drawn.
        drawn_m: (K,) simulated ranges; inf is no return.
        span_m: ranges from and to which is drawn.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Ellipse

    cut = slice_along(world, ray, span_m[1])
    seen = ray.local(ray.points_m)
    seen = seen[(np.abs(seen[:, 2]) < _BESIDE_M) & (np.abs(seen[:, 1]) < HEIGHT_M)]
    axes.plot(seen[:, 0], seen[:, 1], ".", color="0.72", markersize=1.2)
    for middle, covariance, stop, is_met in zip(cut.middle, cut.covariance, cut.stop, cut.is_met, strict=True):
        value, vector = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(vector[1, 1], vector[0, 1]))
        width, height = 2 * np.sqrt(np.maximum(value[::-1], 1e-6))
        look = {"alpha": float(0.2 + 0.6 * stop), "facecolor": "C2"} if is_met else {"alpha": 0.5, "fill": False}
        axes.add_patch(Ellipse(middle, width, height, angle=angle, edgecolor="C2", linewidth=0.6, **look))
    axes.add_collection(LineCollection(list(cut.lines), colors="C1", linewidths=1.0))
    axes.axhline(0, color="0.3", linewidth=0.6)
    hits = drawn_m[np.isfinite(drawn_m)]
    axes.plot(hits, np.zeros(len(hits)), "x", color="C3", markersize=7, markeredgewidth=1.6)
    if np.isfinite(ray.real_m):
        axes.plot(ray.real_m, 0, "o", markerfacecolor="none", color="C0", markersize=9, markeredgewidth=1.6)
    axes.set(xlim=span_m, ylim=(-HEIGHT_M, HEIGHT_M))
    axes.tick_params(labelsize=6)


def choose_span(real_m: float, drawn_m: NDArray[np.floating], most_m: float = 40.0) -> tuple[float, float]:
    """Return from where to where a ray is drawn: around all that returned, the nearest first if that is too much."""
    ranges = np.array([real_m, *drawn_m.ravel()])
    ranges = np.sort(ranges[np.isfinite(ranges)])
    if not len(ranges):
        return 0.0, most_m
    low = max(0.0, float(ranges[0]) - 3)
    return low, float(min(ranges[-1] + 3, low + most_m))
