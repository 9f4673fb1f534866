# SPDX-License-Identifier: Apache-2.0
"""Logs of a few beams, made by hand."""

import numpy as np

from hedgerow.log import Beams, Log, Returns

AXES = np.eye(3)


def make_beams(n: int = 6) -> Beams:
    """Beams along the axes, two to a sweep, rings 0 to 2."""
    return Beams.from_arrays(
        origins=np.arange(3 * n).reshape(n, 3),
        directions=AXES[np.arange(n) % 3],
        times=np.arange(n) * 10,
        rings=np.arange(n) % 3,
        sweeps=np.arange(n) // 2,
    )


def make_log(n: int = 6) -> Log:
    """Return these beams with their returns; of every three the second has none."""
    ranges = np.arange(1.0, n + 1)
    ranges[1::3] = np.inf
    return Log(make_beams(n), Returns.from_arrays(ranges=ranges, labels=np.arange(n)), "test", max_range_m=100)
