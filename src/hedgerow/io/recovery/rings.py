# SPDX-License-Identifier: Apache-2.0
"""Which laser made which point, from the order of the points alone.

KITTI's files hold one laser after the other, the highest first, each as one turn of growing azimuth: where the azimuth
falls back, the next laser begins. A laser that saw little can hide such a seam, and a laser that saw nothing has none.
So the seams are trusted only if there are as many as there are lasers and the elevations fall from one to the next.
"""

import numpy as np
from numpy.typing import NDArray

_FALL_RAD = np.pi  # an azimuth that falls by more than half a turn has passed the seam
_DISORDER = 0.05  # share of neighbours that may lie out of order


def split_rings(points: NDArray[np.float64], n_rings: int) -> NDArray[np.int64] | None:
    """Number the lasers of (N, 3) points in the sensor frame, in the order in which they are stored.

    Returns:
        (N,) from 0 to n_rings - 1, or None if the points are not stored laser by laser, or some laser has no points.
    """
    azimuth = np.arctan2(points[:, 1], points[:, 0]) % (2 * np.pi)
    steps = np.diff(azimuth)
    rising = float(np.mean(steps >= 0)) if len(steps) else 0.0
    seams = steps < -_FALL_RAD
    if rising < 0.5:  # turned the other way
        rising, seams = 1 - rising, steps > _FALL_RAD
    if int(np.count_nonzero(seams)) != n_rings - 1 or rising < 1 - _DISORDER - n_rings / max(len(points), 1):
        return None
    ring = np.concatenate([[0], np.cumsum(seams)]).astype(np.int64)
    elevation = np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))
    middle = np.array([np.median(elevation[ring == number]) for number in range(n_rings)])
    falls = np.diff(middle) < 0
    # Medians of lasers that emit from other heights may swap with a neighbour; the whole must have one direction.
    return ring if max(falls.mean(), 1 - falls.mean()) > 1 - _DISORDER else None
