# SPDX-License-Identifier: Apache-2.0
"""Whether a sensor stands still: its sweeps are centred on one place, and its directions repeat."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

SENSOR_SIZE_M = 0.5
"""Lasers of one sensor may leave from different places, but not farther apart than this."""


class Stillness:
    """Bounding boxes of all origins and of the middles of the sweeps."""

    def __init__(self, tolerance_m: float) -> None:
        """Start with nothing; `tolerance_m` is how far apart the middles may lie."""
        self.tolerance_m = tolerance_m
        # Rows: lowest and highest origin, lowest and highest middle of a sweep.
        self._box_m: NDArray[np.float64] = np.array([[np.inf] * 3, [-np.inf] * 3] * 2)

    def add(self, origin_m: NDArray[np.float64]) -> None:
        """Add the (N, 3) origins of one sweep."""
        middle = origin_m.mean(axis=0)
        self._widen(np.stack([origin_m.min(axis=0), origin_m.max(axis=0), middle, middle]))

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self._widen(other._box_m)

    @property
    def holds(self) -> bool:
        """Whether nothing so far says that the sensor moved."""
        extent, wander = np.linalg.norm(self._box_m[1::2] - self._box_m[::2], axis=1)
        return bool(extent <= SENSOR_SIZE_M and wander <= self.tolerance_m)

    def _widen(self, box_m: NDArray[np.float64]) -> None:
        self._box_m[::2] = np.minimum(self._box_m[::2], box_m[::2])
        self._box_m[1::2] = np.maximum(self._box_m[1::2], box_m[1::2])
