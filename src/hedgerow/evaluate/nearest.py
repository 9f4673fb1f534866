# SPDX-License-Identifier: Apache-2.0
"""Distance to the nearest of many points, and the hash by which equal points are found."""

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)

_WORTH_THREADS = 10_000  # fewer points are looked up before threads have started


class Nearest:
    """Finds the distance to the nearest of some points."""

    def __init__(self, points_m: NDArray[np.float64], *, distinct: bool = False) -> None:
        """Index (M, 3) points, M of 1 or more; unless they are known to be distinct, duplicates are dropped.

        A k-d tree cannot divide equal points: thousands of them in one leaf make every look-up slow.
        """
        if not distinct:
            _, first = np.unique(mixed(points_m.view(np.uint64)), return_index=True)
            points_m = points_m if len(first) == len(points_m) else points_m[np.sort(first)]
        from scipy.spatial import cKDTree

        # Neither balanced nor compact: several times as fast where beams repeat and points lie in dense lines, and no
        # slower on other sweeps.
        self._tree = cKDTree(points_m, balanced_tree=False, compact_nodes=False)

    def distance_m(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (K,) distances of (K, 3) points, on all cores [m]."""
        distance_m, _ = self._tree.query(points_m, workers=-1 if len(points_m) >= _WORTH_THREADS else 1)
        return np.asarray(distance_m)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash (N, 3) words to (N,) numbers; of ten million points no two collide, but for a chance of 3 in a million."""
    out = np.zeros(len(words), dtype=np.uint64)
    for column, multiplier in zip(words.T, _MULTIPLIERS, strict=True):
        out = (out ^ column) * multiplier
        out ^= out >> np.uint64(29)
    out *= _MULTIPLIERS[0]
    return out ^ (out >> np.uint64(32))
