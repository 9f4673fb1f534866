# SPDX-License-Identifier: Apache-2.0
"""Box: from where to where something reaches, and how far that is from somewhere else.

Scenes and worlds know theirs, so that a trajectory in another frame is noticed before it is fired along.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from hedgerow.base.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box along the axes of the map."""

    low_m: Array
    """(3,) lowest corner [m]."""
    high_m: Array
    """(3,) highest corner [m]."""

    @classmethod
    def around(cls, points_m: Array, half_m: Array | float = 0.0) -> Self:
        """Make the box around (N, 3) points, or around boxes of (N, 3) half sides there; at least one."""
        return cls((points_m - half_m).min(axis=0), (points_m + half_m).max(axis=0))

    @classmethod
    def joined(cls, boxes: "Iterable[Box | None]") -> "Box | None":
        """Make the box around boxes; None if there are none but those of nothing, which are None."""
        full = [box for box in boxes if box is not None]
        if not full:
            return None
        return Box(np.min([box.low_m for box in full], axis=0), np.max([box.high_m for box in full], axis=0))

    @property
    def middle_m(self) -> Array:
        """(3,) its middle [m]."""
        return self.low_m + (self.high_m - self.low_m) / 2

    def distance_m(self, points_m: Array, until_m: Array | None = None) -> Array:
        """Return the (N,) distances of (N, 3) points from the box, 0 inside [m].

        With (N, 3) `until_m` they are those of straight ways from the points to there, or less: of boxes around these.
        """
        low_m, high_m = points_m, points_m
        if until_m is not None:
            low_m, high_m = np.minimum(points_m, until_m), np.maximum(points_m, until_m)
        gap_m = np.maximum(np.maximum(self.low_m - high_m, low_m - self.high_m), 0.0)
        return np.sqrt(np.einsum("ij,ij->i", gap_m, gap_m))

    def text(self) -> str:
        """Say from where to where it reaches, in whole metres."""
        sides = zip("xyz", self.low_m, self.high_m, strict=True)
        return ", ".join(f"{axis} {low:.0f} to {high:.0f}" for axis, low, high in sides) + " m"


def distance_text(distance_m: float) -> str:
    """Say how far something is: metres, and from 10 km on kilometres."""
    return f"{distance_m:,.0f} m" if distance_m < 1e4 else f"{distance_m / 1e3:,.0f} km"
