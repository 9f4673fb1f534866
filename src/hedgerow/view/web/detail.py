# SPDX-License-Identifier: Apache-2.0
"""Level of detail: clouds in slices, each spread over the whole, of which fewer are drawn while the camera moves.

Slices are octaves: octave 0 has half of the points, octave 1 a quarter, and so on. Leaving out the first few halves the
cloud that often. Which points stay longest is drawn at random, weighted by their squared range: beams diverge, and so
what is left is spread evenly over the ground instead of crowding around the sensor.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

COARSEST = 8192
"""The last slice of a cloud holds at least so many points, if the cloud does."""
_WEIGHED_M = 1.0, 60.0
"""Ranges beyond these count as these."""
LARGEST = 3.0
"""Points of a thinned cloud are drawn at most so many times as large."""

Counts = dict[int, int]
"""Points of a cloud by octave."""


def octaves(key: NDArray[np.uint64], range_m: NDArray[np.float32]) -> NDArray[np.intp]:
    """Sort points into slices.

    Args:
        key: (M,) random numbers of 64 bits.
        range_m: (M,) how far each point was from the sensor.

    Returns:
        (M,) octave of each point; the last one has COARSEST points or a few more, or all.
    """
    n = len(key)
    share = key.astype(np.float64) / 2.0**64 * (1 - 2.0**-53)  # below 1
    # Efraimidis and Spirakis: the smallest of these are a sample without replacement with these weights. They grow with
    # the key: `thin` leaves small keys, and none may be missing at the end that stays longest.
    order = -np.log1p(-share) / np.clip(range_m, *_WEIGHED_M) ** 2
    halvings = max(int(np.log2(n / COARSEST)), 0) if n else 0
    ends = [n >> octave for octave in range(halvings, 0, -1)]  # how many points the later octaves have together
    if not ends:
        return np.zeros(n, dtype=np.intp)
    bounds = np.partition(order, ends)[ends]
    return halvings - np.searchsorted(bounds, order, side="right")


def finest_octave(clouds: Iterable[Counts], budget: int) -> int:
    """Return the first octave to draw so that all clouds together have no more points than the budget allows.

    The last slice of each cloud is always drawn.
    """
    counts = list(clouds)
    last = max((max(each, default=0) for each in counts), default=0)
    for octave in range(last):
        if drawn(counts, octave) <= budget:
            return octave
    return last


def drawn(clouds: Iterable[Counts], finest: int) -> int:
    """Count the points that are drawn from an octave on."""
    return sum(n for each in clouds for octave, n in each.items() if octave >= min(finest, max(each, default=0)))


def enlarged(n_drawn: int, n_points: int) -> float:
    """Return how much larger to draw the points that are left, so that they cover as much as all would."""
    return min(float(np.sqrt(n_points / max(n_drawn, 1))), LARGEST)
