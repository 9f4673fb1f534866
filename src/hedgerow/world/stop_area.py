# SPDX-License-Identifier: Apache-2.0
"""How much a Gaussian stops: the area that it takes out of beams from all sides, by any of the three laws.

Beams of one direction d, spread evenly over the plane across it, meet a Gaussian of covariance S at places whose
squared Mahalanobis distance δ² is that of the plane's own 2 x 2 covariance, with determinant det S / σ² (σ the length
scale along d, docs/models.md §3). So the area that is stopped is

    R(d) = a F(k l),   a = √det S / σ = √(dᵀ adj(S) d),   F(x) = ∫ 1 - exp(-x f(δ)) over the disk δ ≤ τ

with the profile f and the length l of the law: f = 1, l = 1, k = -log q (permeability); f = exp(-δ²/2), l = σ
(extinction); f = (1 - δ²/τ²)², l = 1 (depth). The stop area is the mean of R(d) over all directions: how many returns
the element has if nothing is in front of it, and a beam comes through every square metre from everywhere. What two
elements stop together is the sum less what both would stop, ∫ (1 - exp(-u₁)) (1 - exp(-u₂)).

Thin elements stop in proportion to their optical depth: then R is k √det S times a constant under extinction,
whatever the direction, and k a times a constant under the other laws.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.world.elements import Gaussians, Law

Floats = NDArray[np.float64]

MAX_DEPTH = 1e5
"""Most that `solve_depth` gives; nothing passes long before."""
_OPAQUE = 50.0
"""Optical depth of what nothing passes."""
_LEAST, _MOST = 1e-9, 1e7
"""Depths of the table; below, areas are in proportion to the depth."""
_HALVINGS = 40
_STEPS = (np.arange(800) + 0.5) / 800
"""Shares of the disk's area at which F is summed up."""
_AT_ONCE = 16_384
"""Pairs; each takes some kilobytes."""


def _directions() -> tuple[Floats, Floats]:
    """Return 13 axes and their weights, with which even polynomials up to degree 7 have their mean over the sphere.

    They are the faces, edges and corners of a cube (Lebedev 1976).
    """
    steps = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], dtype=np.float64)
    axes = steps[14:]  # the other half are the same axes, turned around
    length = np.linalg.norm(axes, axis=1)
    weight = np.choose(np.rint(length**2).astype(int) - 1, [2 / 21, 8 / 105, 27 / 420])
    return axes / length[:, None], weight


DIRECTIONS, WEIGHTS = _directions()


def _across(direction: Floats) -> Floats:
    """Return (2, 3) unit vectors that span the plane across a direction."""
    return np.linalg.svd(direction[None])[2][1:]


def _disk() -> tuple[Floats, Floats]:
    """Return points of the unit disk and their shares of its area: six angles on each of four radii."""
    node, share = np.polynomial.legendre.leggauss(4)
    radius = np.sqrt((node + 1) / 2)
    angle = np.pi / 3 * np.arange(6)[None] + np.pi / 12 * np.arange(4)[:, None]
    points = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return points.reshape(-1, 2), np.repeat(share / 12, 6)


_PLACES, _SHARES = _disk()


@dataclass(frozen=True)
class StopProfile:
    """A law with its limit tau, and the table of F."""

    law: Law
    tau: float
    log_depth: Floats
    log_area: Floats

    @classmethod
    def of(cls, law: Law, tau: float) -> "StopProfile":
        """Tabulate F."""
        empty = np.empty(0)
        depth = np.geomspace(_LEAST, _MOST, 2000)
        profile = cls(law, tau, empty, empty).at(tau**2 * _STEPS)
        area = np.pi * tau**2 * -np.expm1(-depth[:, None] * profile).mean(axis=1)
        return cls(law, tau, np.log(depth), np.log(area))

    @property
    def full_area(self) -> float:
        """F of what nothing passes."""
        return np.pi * self.tau**2

    @property
    def spread(self) -> float:
        """How much wider than S the returns of a thin element lie, mean over the directions: (1 + 2 c) / 3.

        Along the beam they have the variance of S, across it c times that: c = τ²/4 where the depth is even
        (permeability), τ²/8 by depth, a little below 1 by extinction.
        """
        square = self.tau**2 * _STEPS
        profile = self.at(square)
        return (1 + float((profile * square).sum() / profile.sum())) / 3

    def at(self, square: Floats) -> Floats:
        """Return f at squared Mahalanobis distances."""
        if self.law == "permeability":
            inside = np.ones_like(square)
        elif self.law == "extinction":
            inside = np.exp(-0.5 * np.minimum(square, self.tau**2))
        else:
            inside = np.square(1 - square / self.tau**2)
        return np.where(square <= self.tau**2, inside, 0.0)

    def area(self, depth: Floats) -> Floats:
        """Return F at optical depths of the middle."""
        known = np.interp(np.log(np.maximum(depth, _LEAST)), self.log_depth, self.log_area)
        return np.exp(known) * np.minimum(depth / _LEAST, 1.0)

    def depths(self, stop: NDArray[np.floating]) -> Floats:
        """Return k of the numbers in a table."""
        numbers = stop.astype(np.float64)
        if self.law != "permeability":
            return numbers
        return -np.log(np.maximum(numbers, np.exp(-_OPAQUE)))

    def stops(self, depth: Floats) -> NDArray[np.float32]:
        """Return the numbers of a table that have these k."""
        if self.law != "permeability":
            return depth.astype(np.float32)
        return np.where(depth >= _OPAQUE, 0.0, np.exp(-depth)).astype(np.float32)


def profile_of(gaussians: Gaussians) -> StopProfile:
    """Return the law of a table."""
    return StopProfile.of(gaussians.law, gaussians.tau)


def stop_area_m2(covariance_m2: Floats, depth: Floats, profile: StopProfile) -> Floats:
    """Return the (N,) stop areas of Gaussians.

    Args:
        covariance_m2: (N, 3, 3), of full rank.
        depth: (N,) k as in `StopProfile.depths`.
        profile: the law.
    """
    area, length = _shadows(covariance_m2, profile.law)
    return (area * profile.area(depth[:, None] * length)).sum(axis=1)


def solve_depth(covariance_m2: Floats, stop_area: Floats, profile: StopProfile) -> Floats:
    """Return the (N,) k with which Gaussians have given stop areas [m²]; at most `MAX_DEPTH`."""
    area, length = _shadows(covariance_m2, profile.law)
    low, high = np.full(len(area), np.log(_LEAST)), np.full(len(area), np.log(MAX_DEPTH))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = (area * profile.area(np.exp(middle)[:, None] * length)).sum(axis=1) >= stop_area
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(stop_area > 0, np.exp(high), 0.0)


def _shadows(covariance_m2: Floats, law: Law) -> tuple[Floats, Floats]:
    """Return the (N, D) weighted a and l by direction; one for all where the direction does not matter to l."""
    adjugate = _adjugate(covariance_m2)
    area = np.sqrt(np.maximum(np.einsum("di,nij,dj->nd", DIRECTIONS, adjugate, DIRECTIONS, optimize=True), 0))
    if law != "extinction":
        total = area @ WEIGHTS
        return total[:, None], np.ones((len(area), 1))
    volume = np.sqrt(np.maximum((covariance_m2[:, 0] * adjugate[:, :, 0]).sum(axis=1), 0))
    return area * WEIGHTS, np.divide(volume[:, None], area, out=np.zeros_like(area), where=area > 0)


def _adjugate(matrix: Floats) -> Floats:
    """Return the (N, 3, 3) determinants times inverses, of symmetric matrices."""
    x, y, z = matrix[:, 0], matrix[:, 1], matrix[:, 2]
    return np.stack([np.cross(y, z), np.cross(z, x), np.cross(x, y)], axis=1)


def shared_area_m2(
    apart_m: Floats, covariance_m2: tuple[Floats, Floats], depth: tuple[Floats, Floats], profile: StopProfile
) -> Floats:
    """Return the (N,) areas that both of two Gaussians would stop, mean over all directions.

    Args:
        apart_m: (N, 3) from the mean of the first to that of the second.
        covariance_m2: (N, 3, 3) of the first, which should be the smaller: places are tried within it; of the second.
        depth: (N,) k of the first; of the second.
        profile: the law.
    """
    out = np.zeros(len(apart_m))
    for begin in range(0, len(apart_m), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        for direction, weight in zip(DIRECTIONS, WEIGHTS, strict=True):
            out[some] += weight * _shared_along(
                direction,
                apart_m[some],
                (covariance_m2[0][some], covariance_m2[1][some]),
                (depth[0][some], depth[1][some]),
                profile,
            )
    return out


def _shared_along(
    direction: Floats,
    apart_m: Floats,
    covariance_m2: tuple[Floats, Floats],
    depth: tuple[Floats, Floats],
    profile: StopProfile,
) -> Floats:
    """Return the (N,) areas that both would stop of beams of one direction."""
    across = _across(direction)
    (xx, xy, yy), (uu, uv, vv) = (_flatten(across, covariance) for covariance in covariance_m2)
    side = np.sqrt(xx)
    lean, rest = xy / side, np.sqrt(np.maximum(yy - xy**2 / xx, 0))
    shift = apart_m @ across.T
    x = side[:, None] * (profile.tau * _PLACES[:, 0]) - shift[:, :1]
    y = lean[:, None] * (profile.tau * _PLACES[:, 0]) + rest[:, None] * (profile.tau * _PLACES[:, 1]) - shift[:, 1:]
    size = np.maximum(uu * vv - uv**2, 1e-300)
    square = (vv / size)[:, None] * x**2 - (2 * uv / size)[:, None] * x * y + (uu / size)[:, None] * y**2
    own = profile.at(profile.tau**2 * (_PLACES**2).sum(axis=1))
    one, two = depth[0], depth[1]
    if profile.law == "extinction":
        one, two = (k * _along(direction, covariance) for k, covariance in zip(depth, covariance_m2, strict=True))
    both = np.expm1(-one[:, None] * own) * np.expm1(-two[:, None] * profile.at(square))
    return profile.full_area * side * rest * (both @ _SHARES)


def _flatten(across: Floats, covariance_m2: Floats) -> tuple[Floats, Floats, Floats]:
    """Return xx, xy and yy of covariances in a plane."""
    x, y = covariance_m2 @ across[0], covariance_m2 @ across[1]
    return x @ across[0], x @ across[1], y @ across[1]


def _along(direction: Floats, covariance_m2: Floats) -> Floats:
    """Return the length scale of Gaussians along a direction."""
    adjugate = _adjugate(covariance_m2)
    volume = (covariance_m2[:, 0] * adjugate[:, :, 0]).sum(axis=1)
    return np.sqrt(volume / (adjugate @ direction @ direction))
