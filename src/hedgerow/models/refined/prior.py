# SPDX-License-Identifier: Apache-2.0
"""The prior on the shapes of refined elements, from the elements around each: it keeps them from over-fitting.

Ten points on a ray say nothing about the shape across it. The elements around do: on a wall they lie in a plane. The
pooled covariance of a neighbourhood gives its directions; how thick it is, the element knows best itself. Where a
neighbourhood is flat, there is more of the same between two rings of beams: elements grow into the gap. Between
leaves there is air.

Equations: docs/models.md §15.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.world.elements import Gaussians

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


_N_NEAREST = 4
"""Number of elements whose mean is the width of a place."""
_MAX_HITS = 50.0
"""More hits do not make an element weigh more: near the trajectory there are thousands, and only one shape."""
_FLAT = 4.0
"""A neighbourhood up to this many times as wide as thick is not flat; a sheet without thickness is entirely flat."""


class PriorParameters(Parameters):
    """Prior on the shape of an element, taken from its neighbours."""

    reach_m: Positive = 0.6
    """Radius of the neighbourhood of an element."""
    count: NotNegative = 7.0
    """Weight of the prior, as a number of points; 0 switches it off and over-fits."""
    width: NotNegative = 1.0
    """Width that narrower elements are pulled towards, relative to the width of the start's elements at the same
    place."""
    flat_width: NotNegative = 4.0
    """The same where the neighbourhood is flat, as on ground and walls: elements grow to close gaps between rings."""


@dataclass(frozen=True, slots=True, eq=False)
class ShapePrior:
    """The shapes that elements are pulled towards where their own returns say little."""

    covariance_m2: NDArray[np.float64]
    """(N, 3, 3)."""
    count: float
    """How many points each counts for."""


class Neighbourhoods:
    """How wide the elements of the start are at each place, and the prior that follows from it for any elements."""

    def __init__(self, start: Gaussians, parameters: PriorParameters) -> None:
        """Store the middle standard deviation of each element: across a beam, whichever way it looks, one is.

        It tells how densely the log has seen each place.
        """
        self.parameters = parameters
        self._tree = _tree(start.mean_m)
        self._width_m = np.sqrt(np.linalg.eigvalsh(start.covariance_m2)[:, 1].clip(start.min_sigma_m**2))

    def widths_m(self, mean_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (N,) mean width of the elements of the start nearest to each of (N, 3) places."""
        k = np.arange(1, min(_N_NEAREST, len(self._width_m)) + 1)
        return self._width_m[self._tree.query(mean_m, k=k)[1]].mean(axis=1)

    def prior(self, gaussians: Gaussians, hits: NDArray[np.float64]) -> ShapePrior:
        """Return the prior of some elements; `hits` (N,) is how much each of them counts as a neighbour.

        No element is asked to shrink, and none to grow along the thinnest axis of its neighbourhood.
        """
        own = self.parameters
        variance, axes = np.linalg.eigh(pool_covariance(gaussians, hits, reach_m=own.reach_m))
        flat = np.clip(1 - _FLAT * np.sqrt(variance[:, 0].clip(0) / variance[:, 1].clip(1e-12)), 0, 1)
        width_m = (own.width + flat * (own.flat_width - own.width)) * self.widths_m(gaussians.mean_m)
        present = np.einsum("nai,nab,nbi->ni", axes, gaussians.covariance_m2, axes)
        variance[:, 0] = np.minimum(variance[:, 0], present[:, 0])
        asked = np.clip(variance, gaussians.min_sigma_m**2, np.maximum(present, width_m[:, None] ** 2))
        return ShapePrior(compose_covariance(asked, axes), own.count)


def pool_covariance(gaussians: Gaussians, hits: NDArray[np.float64], *, reach_m: float) -> NDArray[np.float64]:
    """Return the (N, 3, 3) covariances of each element's neighbourhood, itself included.

    Args:
        gaussians: the elements.
        hits: (N,) how much each of them counts.
        reach_m: neighbours have their means within this distance.
    """
    n = len(gaussians)
    # About the middle of all: squares of map coordinates would cancel.
    mean_m = gaussians.mean_m - gaussians.mean_m.mean(axis=0)
    of, neighbour = _pairs(mean_m, reach_m)
    weight = np.minimum(hits, _MAX_HITS)[neighbour] + 1e-9
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
    return covariance_m2


def compose_covariance(variance_m2: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (N, 3, 3) covariances of (N, 3) variances along (N, 3, 3) axes, which are columns."""
    scaled = axes * variance_m2[:, None, :]
    return scaled @ axes.transpose(0, 2, 1)


def _pairs(mean_m: NDArray[np.float64], reach_m: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of neighbours, each both ways, and every element with itself; sorted, so that sums are too."""
    pairs = _tree(mean_m).query_pairs(reach_m, output_type="ndarray")
    itself = np.arange(len(mean_m))
    of = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    neighbour = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    order = np.lexsort((neighbour, of))
    return of[order], neighbour[order]


def _tree(mean_m: NDArray[np.float64]) -> "cKDTree":
    from scipy.spatial import cKDTree  # here: it takes long to load

    return cKDTree(mean_m)
