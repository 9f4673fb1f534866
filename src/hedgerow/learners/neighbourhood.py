# SPDX-License-Identifier: Apache-2.0
"""What an element should look like, by those around it: the prior that keeps refined elements from over-fitting.

Ten points on a ray say nothing about the shape across it. The elements around do: on a wall they lie in a plane. The
pooled covariance of a neighbourhood has its directions; how thick it is, the element knows best itself.
"""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.learners.maximise import rebuilt
from hedgerow.world.elements import Gaussians

_NEAREST = 4
"""So many elements tell the width of a place."""
_MOST_HITS = 50.0
"""More do not make an element weigh more: near the path there are thousands, and only one shape."""


class Widths:
    """How wide elements are where: the start of a refined world knows how densely the log has seen each place."""

    def __init__(self, gaussians: Gaussians) -> None:
        """Remember the middle standard deviation of each element: across a beam, whichever way it looks, one is."""
        self._tree = _tree(gaussians.mean_m)
        self._width_m = np.sqrt(np.linalg.eigvalsh(gaussians.covariance_m2)[:, 1].clip(gaussians.min_sigma_m**2))

    def at(self, mean_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (N,) mean width of the elements nearest to each of (N, 3) places."""
        k = np.arange(1, min(_NEAREST, len(self._width_m)) + 1)
        return self._width_m[self._tree.query(mean_m, k=k)[1]].mean(axis=1)


def pooled_covariance(
    gaussians: Gaussians, hits: NDArray[np.float64], *, reach_m: float, max_sigma_m: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (N, 3, 3) covariances of each element's neighbourhood: what it should look like.

    Args:
        gaussians: the elements.
        hits: (N,) how much each of them counts.
        reach_m: neighbours have their means within this distance.
        max_sigma_m: (N,) smaller elements are not asked to grow beyond this, nor larger ones to shrink to it.
    """
    n = len(gaussians)
    # About the middle of all: squares of map coordinates would cancel.
    mean_m = gaussians.mean_m - gaussians.mean_m.mean(axis=0)
    of, neighbour = _pairs(mean_m, reach_m)
    weight = np.minimum(hits, _MOST_HITS)[neighbour] + 1e-9
    total = np.bincount(of, weight, n)

    def pooled(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(of, weight * values, n) / total

    middle = np.stack([pooled(mean_m[neighbour, axis]) for axis in range(3)], axis=1)
    away_m = mean_m[neighbour] - middle[of]
    covariance_m2 = np.empty((n, 3, 3))
    for a in range(3):
        for b in range(a + 1):
            spread = gaussians.covariance_m2[neighbour, a, b] + away_m[:, a] * away_m[:, b]
            covariance_m2[:, a, b] = covariance_m2[:, b, a] = pooled(spread)
    variance, axes = np.linalg.eigh(covariance_m2)
    own = np.einsum("nai,nab,nbi->ni", axes, gaussians.covariance_m2, axes)
    variance[:, 0] = np.minimum(variance[:, 0], own[:, 0])
    return rebuilt(np.clip(variance, gaussians.min_sigma_m**2, np.maximum(own, max_sigma_m[:, None] ** 2)), axes)


def _pairs(mean_m: NDArray[np.float64], reach_m: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of neighbours, each both ways, and every element with itself; sorted, so that sums are too."""
    pairs = _tree(mean_m).query_pairs(reach_m, output_type="ndarray")
    itself = np.arange(len(mean_m))
    of = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    neighbour = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    order = np.lexsort((neighbour, of))
    return of[order], neighbour[order]


def _tree(mean_m: NDArray[np.float64]) -> Any:
    spatial: Any = import_module("scipy.spatial")  # carries no type information
    return spatial.cKDTree(mean_m)
