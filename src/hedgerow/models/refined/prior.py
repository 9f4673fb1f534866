# SPDX-License-Identifier: Apache-2.0
"""The prior on the shapes of refined elements, from the elements around each: it keeps them from over-fitting.

Ten points on a ray say nothing about the shape across it. The elements around do: on a wall they lie in a plane. The
pooled covariance of a neighbourhood gives its directions; how thick it is, the element knows best itself. Where a
neighbourhood is flat, there is more of the same between two rings of beams: elements grow into the gap. Between
leaves there is air.

Equations: docs/models.md §15.
"""

from collections.abc import Iterator
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
_PAIRS_AT_ONCE = 1_000_000
"""Of neighbours; each takes some 150 bytes."""


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
        self._tree = tree_of(start.mean_m)
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
    # About the middle of all: squares of map coordinates would cancel.
    mean_m = gaussians.mean_m - gaussians.mean_m.mean(axis=0)
    weight = np.minimum(hits, _MAX_HITS) + 1e-9
    covariance_m2 = np.empty((len(gaussians), 3, 3))
    for rows, of, neighbour in _neighbours(mean_m, reach_m):
        covariance_m2[rows] = _pool(mean_m, gaussians.covariance_m2, weight, of, neighbour, rows.stop - rows.start)
    return covariance_m2


def _pool(
    mean_m: NDArray[np.float64],
    covariance_m2: NDArray[np.float64],
    weight: NDArray[np.float64],
    of: NDArray[np.intp],
    neighbour: NDArray[np.intp],
    n: int,
) -> NDArray[np.float64]:
    """Return the (n, 3, 3) covariances of neighbourhoods, from pairs of their numbers and those of their elements."""
    counts = weight[neighbour]
    total = np.bincount(of, counts, n)

    def pooled(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(of, counts * values, n) / total

    middle = np.stack([pooled(mean_m[neighbour, axis]) for axis in range(3)], axis=1)
    away_m = mean_m[neighbour] - middle[of]
    found_m2 = np.empty((n, 3, 3))
    for a in range(3):
        for b in range(a + 1):
            spread = covariance_m2[neighbour, a, b] + away_m[:, a] * away_m[:, b]
            found_m2[:, a, b] = found_m2[:, b, a] = pooled(spread)
    return found_m2


def compose_covariance(variance_m2: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (N, 3, 3) covariances of (N, 3) variances along (N, 3, 3) axes, which are columns."""
    scaled = axes * variance_m2[:, None, :]
    return scaled @ axes.transpose(0, 2, 1)


def _neighbours(
    mean_m: NDArray[np.float64], reach_m: float
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.intp]]]:
    """Give blocks of elements with all their neighbours, themselves included: the rows, and pairs of row and neighbour.

    A dense log has thousands of neighbours for an element, so all pairs at once would take gigabytes. Pairs are sorted,
    so that sums do not depend on the blocks.
    """
    tree = tree_of(mean_m)
    n_pairs = np.cumsum(tree.query_ball_point(mean_m, reach_m, return_length=True, workers=-1))
    start = 0
    while start < len(mean_m):
        before = n_pairs[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(n_pairs, before + _PAIRS_AT_ONCE, "right")))
        found = tree_of(mean_m[start:stop]).sparse_distance_matrix(tree, reach_m, output_type="ndarray")
        order = np.lexsort((found["j"], found["i"]))
        yield slice(start, stop), found["i"][order], found["j"][order]
        start = stop


def tree_of(points_m: NDArray[np.float64]) -> "cKDTree":
    """Return a tree that finds the nearest of (N, 3) points."""
    from scipy.spatial import cKDTree  # here: it takes long to load

    return cKDTree(points_m)
