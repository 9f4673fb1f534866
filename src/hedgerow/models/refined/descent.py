# SPDX-License-Identifier: Apache-2.0
"""Gradient descent on the loss of a simulation: Adam (Kingma and Ba 2015), one step per sweep, per element.

Expectation maximisation gives an element the moments of the points it explains. What it stops by being wide, and
where it lies across the rays, is not in these moments; it is in the gradient.

A step costs what its sweep can meet: elements out of its reach are neither built nor moved, so a drive of kilometres
costs as much per sweep as one of a hundred metres.

Equations: docs/models.md §14.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.box import Box
from hedgerow.log import Log
from hedgerow.models.refined.rounds import MAX_STOP, MIN_STOP, floor_covariance
from hedgerow.models.refined.score import N_PARAMETERS
from hedgerow.world.elements import Gaussians

_MOMENTUM, _SQUARE_MOMENTUM = 0.8, 0.95
"""Shorter than Adam's usual ones: an element is seen by some dozens of sweeps, not by thousands."""
_MIN_GRADIENT = 0.01
"""Gradients far below this many nats are rounding and move nothing."""
_MATRIX = np.array([3, 4, 6, 4, 5, 7, 6, 7, 8])


class Adam:
    """Running means of the gradient of each element. Elements that a sweep does not see stay as they are."""

    def __init__(self, n_elements: int, learning_rate: float, stop_learning_rate: float) -> None:
        """Start with no history.

        Args:
            n_elements: number of elements.
            learning_rate: size of the first steps of means and shapes, in standard deviations of the element.
            stop_learning_rate: size of the first steps of the log of the depth, or of the extinction.
        """
        self._rate = np.r_[np.full(N_PARAMETERS - 1, learning_rate), stop_learning_rate]
        self._mean: NDArray[np.float64] = np.zeros((n_elements, N_PARAMETERS))
        self._square: NDArray[np.float64] = np.zeros((n_elements, N_PARAMETERS))
        self._steps: NDArray[np.int64] = np.zeros(n_elements, dtype=np.int64)

    def step(
        self, gaussians: Gaussians, elements: NDArray[np.intp], gradient: NDArray[np.float64], decay: float
    ) -> None:
        """Move elements one step down the gradient, in place.

        Args:
            gaussians: all elements.
            elements: (M,) numbers of those that the gradient is of.
            gradient: (M, 10) as in `Gradient`.
            decay: factor of the learning rates, falling from 1 to 0.
        """
        seen = gradient.any(axis=1)
        rows, slope = elements[seen], gradient[seen]
        if len(rows) == 0:
            return
        self._steps[rows] += 1
        mean = _MOMENTUM * self._mean[rows] + (1 - _MOMENTUM) * slope
        square = _SQUARE_MOMENTUM * self._square[rows] + (1 - _SQUARE_MOMENTUM) * slope**2
        self._mean[rows], self._square[rows] = mean, square
        n = self._steps[rows, None]
        size = np.sqrt(square / (1 - _SQUARE_MOMENTUM**n)) + _MIN_GRADIENT
        _move(gaussians, rows, -decay * self._rate * mean / (1 - _MOMENTUM**n) / size)


def _move(gaussians: Gaussians, rows: NDArray[np.intp], step: NDArray[np.float64]) -> None:
    root = np.linalg.cholesky(gaussians.covariance_m2[rows])
    shape = step[:, _MATRIX].reshape(-1, 3, 3)
    # (1 + S/2)² is exp(S) to second order, and like it never takes a covariance out of its cone.
    half = root @ (np.eye(3) + shape / 2)
    gaussians.mean_m[rows] += np.einsum("nij,nj->ni", root, step[:, :3])
    gaussians.covariance_m2[rows] = floor_covariance(half @ half.transpose(0, 2, 1), gaussians.min_sigma_m)
    gaussians.stop[rows] = np.clip(gaussians.stop[rows] * np.exp(step[:, -1]), MIN_STOP, MAX_STOP)


def movable(gaussians: Gaussians) -> Gaussians:
    """Return a copy whose means, shapes and stops may be changed in place."""
    return replace(
        gaussians,
        mean_m=gaussians.mean_m.copy(),
        covariance_m2=gaussians.covariance_m2.copy(),
        stop=gaussians.stop.copy(),
    )


def within_reach(gaussians: Gaussians, log: Log, max_range_m: float) -> NDArray[np.intp]:
    """Return the numbers of the elements that beams of a log may meet: those in the box around its beams."""
    ends_m = log.beams.origin_m + log.beams.direction * np.float32(max_range_m)
    box = Box.around(np.concatenate([log.beams.origin_m, ends_m]))
    low_m, high_m = gaussians.bounds_m()
    return np.flatnonzero((high_m >= box.low_m).all(axis=1) & (low_m <= box.high_m).all(axis=1))


def shapes_of(gaussians: Gaussians, elements: NDArray[np.intp]) -> Gaussians:
    """Return some elements without what the likelihood of ranges does not ask for."""
    return Gaussians.plain(
        gaussians.mean_m[elements],
        gaussians.covariance_m2[elements],
        stop=gaussians.stop[elements],
        law=gaussians.law,
        tau=gaussians.tau,
        min_sigma_m=gaussians.min_sigma_m,
    )


def prior_gradient(
    gaussians: Gaussians, prior_m2: NDArray[np.float64], count: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (N, 10) gradient of -log of the prior on shapes: that of `count` points with covariance `prior_m2`.

    Args:
        gaussians: the elements.
        prior_m2: (N, 3, 3) covariances that elements are pulled towards.
        count: (N,) how many points the prior counts for.
    """
    out = np.zeros((len(gaussians), N_PARAMETERS))
    rows = np.flatnonzero(count > 0)
    root = np.linalg.inv(np.linalg.cholesky(gaussians.covariance_m2[rows]))
    own = np.eye(3) - root @ prior_m2[rows] @ root.transpose(0, 2, 1)
    out[rows, 3:9] = 0.5 * count[rows, None] * own[:, [0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
    return out
