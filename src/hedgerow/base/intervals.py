# SPDX-License-Identifier: Apache-2.0
"""Intervals from resampled values (bootstrap).

With few things to draw from, quantiles of resampled means lie too close together; they are widened as Hesterberg (2015)
does, so that a mean of n normal numbers would get Student's t interval.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

REPLICATES = 1000
LEVEL = 0.95
Interval = tuple[float, float]


def interval(
    estimate: float, replicates: NDArray[np.float64], n: int, *, least: float = -np.inf, level: float = LEVEL
) -> Interval | None:
    """Return the interval of an estimate, percentile and basic together; None if fewer than two were drawn from.

    Args:
        estimate: from the data as they are.
        replicates: (B,) resampled values.
        n: how many there were to draw from.
        least: what the value cannot be below.
        level: share of intervals that hold the true value.
    """
    from scipy import stats

    known = replicates[np.isfinite(replicates)]
    if n < 2 or len(known) < 2 or not np.isfinite(estimate):
        return None
    student: Any = stats.t
    normal: Any = stats.norm
    wide = np.sqrt(n / (n - 1)) * float(student.ppf((1 + level) / 2, n - 1))
    tail = float(normal.cdf(-wide))
    low, high = np.quantile(known, [tail, 1 - tail])
    ends = float(low), float(high), 2 * estimate - float(high), 2 * estimate - float(low)
    return max(min(ends), least), max(max(ends), least)
