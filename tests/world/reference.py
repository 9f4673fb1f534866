# SPDX-License-Identifier: Apache-2.0
"""The slow, obvious simulator: walk the elements of a ray front to back, throw a coin at each, stop at the first.

Float64 NumPy, one ray at a time, straight from the formulas. Triangles and Gaussians are given in one flat list each,
in map coordinates; the numbering of the elements is the caller's (`number`).
"""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Reference:
    """All elements of a small scene, flattened."""

    triangles: list = field(default_factory=list)  # (corners (3, 3), permeability, sigma0, sigma_a, number)
    gaussians: list = field(default_factory=list)  # (mean, covariance, tau, law, stop, number)

    def crossings(self, origin, direction, max_range_m=np.inf):
        """Elements met by one ray, nearest first: list of (mean, sigma, pass probability, number)."""
        found = [c for t in self.triangles if (c := _triangle(origin, direction, *t)) is not None]
        found += [c for g in self.gaussians if (c := _gaussian(origin, direction, *g)) is not None]
        return sorted((c for c in found if c[0] <= max_range_m), key=lambda c: (c[0], c[3]))

    def fire(self, origin, direction, n, rng, min_range_m=0.0, max_range_m=np.inf):
        """Fire one ray n times: element numbers (-1: none) and ranges (inf: none)."""
        element, range_m = np.full(n, -1), np.full(n, np.inf)
        walking = np.ones(n, dtype=bool)
        for mean, sigma, passing, number in self.crossings(origin, direction, max_range_m):
            stops = walking & (rng.random(n) >= passing)
            drawn = mean + sigma * rng.standard_normal(n)
            seen = stops & (drawn > 0) & (drawn >= min_range_m) & (drawn <= max_range_m)
            element[seen], range_m[seen] = number, drawn[seen]
            walking &= ~stops
        return element, range_m


def _triangle(origin, direction, corners, permeability, sigma0, sigma_a, number):
    a, b, c = np.asarray(corners, dtype=np.float64)
    matrix = np.stack([-direction, b - a, c - a], axis=1)
    if abs(np.linalg.det(matrix)) < 1e-14:
        return None
    t, u, v = np.linalg.solve(matrix, origin - a)
    if t <= 0 or u < 0 or v < 0 or u + v > 1:
        return None
    normal = np.cross(b - a, c - a)
    cosine = max(abs(normal @ direction) / np.linalg.norm(normal), np.cos(np.radians(85)))
    slope = np.sqrt(max(0, 1 - cosine**2)) / cosine**2
    return t, np.hypot(sigma0, sigma_a * slope), permeability, number


def _gaussian(origin, direction, mean, covariance, tau, law, stop, number):
    inverse = np.linalg.inv(covariance)
    a = direction @ inverse @ direction
    t = direction @ inverse @ (mean - origin) / a
    offset = origin + t * direction - mean
    distance_squared = offset @ inverse @ offset
    if t <= 0 or distance_squared > tau**2:
        return None
    sigma = 1 / np.sqrt(a)
    passing = {
        "permeability": stop,
        "extinction": np.exp(-stop * sigma * np.exp(-distance_squared / 2)),
        "depth": np.exp(-stop * (1 - distance_squared / tau**2) ** 2),
    }[law]
    return t, sigma, passing, number
