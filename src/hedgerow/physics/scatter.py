# SPDX-License-Identifier: Apache-2.0
"""How far the ranges of selected returns lie from those of their neighbours (004 §3.1), in sums that add over sweeps.

A mean of n neighbours scatters by itself: noise of variance s² shows as s² (1 + 1/n) in the difference of a range to
it, which 004 does not say. So every difference is also summed divided by the root of that factor.
"""

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log

_SAME_ORIGIN_M, _SAME_DIRECTION = 0.001, 1e-4
_APART_RAD = 10.0
"""Added between rings, so that no window reaches from one into the next."""


@dataclass(frozen=True)
class Selection:
    """Which returns are vegetation: in a box, of some labels, or both."""

    box_m: tuple[float, float, float, float, float, float] | None = None
    """Lowest x, y, z and highest x, y, z, map frame [m]."""
    labels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what selects nothing or everything."""
        if self.box_m is None and not self.labels:
            raise InputError("selection", "give a box or a label, else every return would be vegetation")
        if self.box_m is not None:
            low, high = np.array(self.box_m[:3]), np.array(self.box_m[3:])
            if len(self.box_m) != 6 or not np.isfinite(self.box_m).all() or (low >= high).any():
                raise InputError(
                    "box", f"expected x0 y0 z0 x1 y1 z1 with each first below its second, found {self.box_m}"
                )
        wrong = [label for label in self.labels if not 0 <= label <= 65535]
        if wrong:
            raise InputError("label", f"expected 0 to 65535, found {wrong[0]}")

    def rows(self, log: Log, name: str) -> NDArray[np.intp]:
        """Return which pulses have a first return that is selected.

        Raises:
            InputError: a label is asked for and the log `name` has none.
        """
        range_m = log.returns.first_m
        chosen = np.isfinite(range_m)
        if self.labels:
            if log.returns.label is None:
                raise InputError(name, "has no labels; select by a box instead")
            label = log.returns.label if log.returns.label.ndim == 1 else log.returns.label[:, 0]
            chosen &= np.isin(label, self.labels)
        rows = np.flatnonzero(chosen)
        if self.box_m is None:
            return rows
        points = log.beams.origin_m[rows] + range_m[rows].astype(np.float64)[:, None] * log.beams.direction[rows]
        return rows[((points >= self.box_m[:3]) & (points <= self.box_m[3:])).all(axis=1)]


@dataclass(frozen=True)
class Scatter:
    """Sums over differences of measured and expected range; those of two parts of a log add."""

    n_selected: int = 0
    n: int = 0
    """Returns that had neighbours."""
    n_neighbours: int = 0
    """Neighbours of all of them."""
    sum_m: float = 0.0
    squares_m2: float = 0.0
    scaled_m: float = 0.0
    scaled_squares_m2: float = 0.0
    """Of differences divided by the root of 1 + 1/n."""

    def __add__(self, other: "Scatter") -> "Scatter":
        """Add what two parts found."""
        return Scatter(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def mean_m(self) -> float:
        """Mean difference, measured minus expected [m]."""
        return self.sum_m / self.n

    @property
    def variance_m2(self) -> float:
        """Variance of the difference, as in 004 Table 1 [m²]."""
        return max(0.0, self.squares_m2 / self.n - self.mean_m**2)

    @property
    def own_variance_m2(self) -> float:
        """Variance without what the neighbours' mean adds [m²]."""
        return max(0.0, self.scaled_squares_m2 / self.n - (self.scaled_m / self.n) ** 2)


def scatter_of(log: Log, rows: NDArray[np.intp], window_rad: float) -> Scatter:
    """Compare the first ranges of some pulses of one sweep with those of their neighbours.

    Args:
        log: one sweep.
        rows: which pulses are vegetation.
        window_rad: neighbours are at most this far off, on the same ring, in angle [rad].
    """
    beams, range_m = log.beams[rows], log.returns.first_m[rows].astype(np.float64)
    # In firing order; logs without times fall back to the azimuth.
    azimuth = np.arctan2(beams.direction[:, 1], beams.direction[:, 0])
    order = np.lexsort((azimuth, beams.time_ns, beams.ring))
    direction, ring, range_m = beams.direction[order].astype(np.float64), beams.ring[order], range_m[order]
    # The way along the ring, from one selected beam to the next: a chord and its arc differ by 1e-4 at 3 degrees.
    step = np.linalg.norm(np.diff(direction, axis=0), axis=1) + _APART_RAD * (np.diff(ring) != 0)
    way = np.concatenate([[0.0], np.cumsum(step)])[: len(rows)]
    first, end = np.searchsorted(way, way - window_rad), np.searchsorted(way, way + window_rad, side="right")
    n = end - first - 1
    total = np.concatenate([[0.0], np.cumsum(range_m)])
    has = n > 0
    n, others = n[has], (total[end] - total[first])[has] - range_m[has]
    difference = range_m[has] - others / n
    scaled = difference * np.sqrt(n / (n + 1))
    return Scatter(
        n_selected=len(rows),
        n=len(n),
        n_neighbours=int(n.sum()),
        sum_m=float(difference.sum()),
        squares_m2=float(difference @ difference),
        scaled_m=float(scaled.sum()),
        scaled_squares_m2=float(scaled @ scaled),
    )


@dataclass(frozen=True)
class Offset:
    """Sums over measured minus simulated range of the same beams, where both hit vegetation."""

    n: int = 0
    sum_m: float = 0.0
    squares_m2: float = 0.0

    def __add__(self, other: "Offset") -> "Offset":
        """Add what two parts found."""
        return Offset(self.n + other.n, self.sum_m + other.sum_m, self.squares_m2 + other.squares_m2)

    @property
    def mean_m(self) -> float:
        """Mean difference [m]."""
        return self.sum_m / self.n

    @property
    def variance_m2(self) -> float:
        """Variance of the difference [m²]."""
        return max(0.0, self.squares_m2 / self.n - self.mean_m**2)


def offset_of(sweep: Log, rows: NDArray[np.intp], answer: Log, answered: NDArray[np.intp]) -> Offset:
    """Compare beam by beam; pulses are matched by their ids, and nothing is said if one of them points elsewhere."""
    _, mine, theirs = np.intersect1d(sweep.beams.pulse[rows], answer.beams.pulse[answered], return_indices=True)
    real, other = rows[mine], answered[theirs]
    moved = np.abs(sweep.beams.origin_m[real] - answer.beams.origin_m[other]).max(initial=0)
    turned = np.abs(sweep.beams.direction[real] - answer.beams.direction[other]).max(initial=0)
    if moved > _SAME_ORIGIN_M or turned > _SAME_DIRECTION:
        return Offset()
    difference = sweep.returns.first_m[real].astype(np.float64) - answer.returns.first_m[other]
    return Offset(len(difference), float(difference.sum()), float(difference @ difference))
