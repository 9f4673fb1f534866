# SPDX-License-Identifier: Apache-2.0
"""Steps down the slope of the simulation's cost, one per sweep: Adam (Kingma and Ba 2015), each element for itself.

Expectation maximisation gives an element the moments of the points it answers for. What it stops by being wide, and
where it lies across the rays, is not in these moments; it is in the slopes.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.learners.maximise import MAX_STOP, MIN_STOP, floored
from hedgerow.learners.quality import N_SLOPES
from hedgerow.world.elements import Gaussians

_KEEP_SLOPE, _KEEP_SQUARE = 0.8, 0.95
"""Shorter memories than Adam's usual ones: an element is seen by some dozens of sweeps, not by thousands."""
_LEAST_SLOPE = 0.01
"""Slopes far below this many nats are rounding and move nothing."""
_MATRIX = np.array([3, 4, 6, 4, 5, 7, 6, 7, 8])


class Descent:
    """Memory of the slopes of each element. Elements that a sweep does not see wait as they are."""

    def __init__(self, n_elements: int, rate: float, stop_rate: float) -> None:
        """Start with no memory.

        Args:
            n_elements: how many elements there are.
            rate: first steps of means and shapes, in their own standard deviations.
            stop_rate: first steps of the log of what stops.
        """
        self._rate = np.r_[np.full(N_SLOPES - 1, rate), stop_rate]
        self._slope: NDArray[np.float64] = np.zeros((n_elements, N_SLOPES))
        self._square: NDArray[np.float64] = np.zeros((n_elements, N_SLOPES))
        self._steps: NDArray[np.int64] = np.zeros(n_elements, dtype=np.int64)

    def step(self, gaussians: Gaussians, slope: NDArray[np.float64], pace: float) -> Gaussians:
        """Return the elements one step further down.

        Args:
            gaussians: the elements that the slopes belong to.
            slope: (N, 10) as in `Slopes`.
            pace: factor of the first steps, falling from 1 to 0.
        """
        rows = np.flatnonzero(slope.any(axis=1))
        if len(rows) == 0:
            return gaussians
        self._steps[rows] += 1
        mean = _KEEP_SLOPE * self._slope[rows] + (1 - _KEEP_SLOPE) * slope[rows]
        square = _KEEP_SQUARE * self._square[rows] + (1 - _KEEP_SQUARE) * slope[rows] ** 2
        self._slope[rows], self._square[rows] = mean, square
        n = self._steps[rows, None]
        size = np.sqrt(square / (1 - _KEEP_SQUARE**n)) + _LEAST_SLOPE
        return _moved(gaussians, rows, -pace * self._rate * mean / (1 - _KEEP_SLOPE**n) / size)


def _moved(gaussians: Gaussians, rows: NDArray[np.intp], step: NDArray[np.float64]) -> Gaussians:
    root = np.linalg.cholesky(gaussians.covariance_m2[rows])
    shape = step[:, _MATRIX].reshape(-1, 3, 3)
    # (1 + S/2)² is exp(S) to second order, and like it never takes a covariance out of its cone.
    half = root @ (np.eye(3) + shape / 2)
    mean_m, covariance_m2, stop = gaussians.mean_m.copy(), gaussians.covariance_m2.copy(), gaussians.stop.copy()
    mean_m[rows] += np.einsum("nij,nj->ni", root, step[:, :3])
    covariance_m2[rows] = floored(half @ half.transpose(0, 2, 1), gaussians.min_sigma_m)
    stop[rows] = np.clip(stop[rows] * np.exp(step[:, -1]), MIN_STOP, MAX_STOP)
    return replace(gaussians, mean_m=mean_m, covariance_m2=covariance_m2, stop=stop)


def prior_slope(gaussians: Gaussians, prior_m2: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (N, 10) slopes of -log of a prior on shapes: that of `count` points with covariance `prior_m2`.

    Args:
        gaussians: the elements.
        prior_m2: (N, 3, 3) covariances to lean on.
        count: (N,) how many points the prior counts for.
    """
    out = np.zeros((len(gaussians), N_SLOPES))
    rows = np.flatnonzero(count > 0)
    root = np.linalg.inv(np.linalg.cholesky(gaussians.covariance_m2[rows]))
    own = np.eye(3) - root @ prior_m2[rows] @ root.transpose(0, 2, 1)
    out[rows, 3:9] = 0.5 * count[rows, None] * own[:, [0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
    return out
