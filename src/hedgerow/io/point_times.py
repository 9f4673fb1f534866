# SPDX-License-Identifier: Apache-2.0
"""What the times of points count, which every driver does in its own way.

Velodyne's `time` is in seconds after the stamp, Ouster's `t` in nanoseconds after it, Hesai's and RoboSense's
`timestamp` in seconds since 1970, Livox' `timestamp` in nanoseconds since 1970 and `offset_time` in nanoseconds after
the stamp. The type of the number and its size tell them apart.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ANOTHER_CLOCK_NS = 10_000_000_000
_SINCE_1970_NS = 1e17  # a float above it counts nanoseconds since 1970, above the next one seconds
_SINCE_1970_S = 1e8


def times_of(values: NDArray[Any] | None, stamp_ns: int) -> NDArray[np.int64] | None:
    """Return when each point was measured [ns], or None if the cloud does not tell.

    Args:
        values: of the cloud's field of times, if it has one.
        stamp_ns: of the cloud.
    """
    if values is None or not values.size:
        return None
    if values.dtype.kind in "iu":
        # As large as time since 1970 in ns, it is that; else ns after the stamp.
        absolute = float(values.max()) > _SINCE_1970_NS
        return _on_stamps_clock(values.astype(np.int64), stamp_ns) if absolute else stamp_ns + values.astype(np.int64)
    values = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    largest = float(values.max(initial=0))
    if largest > _SINCE_1970_S:
        per_s = 1 if largest > _SINCE_1970_NS else 10**9
        whole = np.floor(values).astype(np.int64)
        time_ns = whole * per_s + np.rint((values - whole) * per_s).astype(np.int64)
        return _on_stamps_clock(time_ns, stamp_ns)
    return stamp_ns + np.rint(np.clip(values, -1e6, 1e6) * 1e9).astype(np.int64)


def _on_stamps_clock(time_ns: NDArray[np.int64], stamp_ns: int) -> NDArray[np.int64]:
    """Shift times that are of another clock than the stamps (and the poses) so that the first is at the stamp."""
    there = time_ns[time_ns > 0]
    if not len(there):
        return np.full_like(time_ns, stamp_ns)
    first = int(there.min())
    return time_ns if abs(first - stamp_ns) < _ANOTHER_CLOCK_NS else time_ns - first + stamp_ns
