# SPDX-License-Identifier: Apache-2.0
"""What an element should look like, by those around it: the prior that keeps refined elements from over-fitting.

Ten points on a ray say nothing about the shape across it. The elements around do: on a wall they lie in a plane. The
pooled covariance of a neighbourhood has its directions; how thick it is, the element knows best itself. Where a
neighbourhood is flat, there is more of the same between two rings of beams: elements grow into the gap. Between
leaves there is air.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hedgerow.learners.maximise import Prior, rebuilt
from hedgerow.world.elements import Gaussians

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_NEAREST = 4
"""So many elements tell the width of a place."""
_MOST_HITS = 50.0
"""More do not make an element weigh more: near the path there are thousands, and only one shape."""
_FLAT = 4.0
"""A neighbourhood so many times as wide as thick is just not flat; a sheet of no thickness is entirely."""


class PriorParameters(BaseModel):
    """How much elements lean on their neighbourhood."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    reach_m: Positive = 0.6
    """How far the neighbourhood of an element reaches."""
    count: NotNegative = 7.0
    """Points that its shape counts for in every element; 0 over-fits."""
    width: NotNegative = 1.0
    """How wide, measured by the elements of the start at the same place, smaller elements are asked to grow."""
    flat_width: NotNegative = 4.0
    """The same where the neighbourhood is entirely flat."""


class Surroundings:
    """What the start of a refined world knows of its places, and the prior that follows from it for any elements."""

    def __init__(self, start: Gaussians, parameters: PriorParameters) -> None:
        """Remember the middle standard deviation of each element: across a beam, whichever way it looks, one is.

        It tells how densely the log has seen each place.
        """
        self.parameters = parameters
        self._tree = _tree(start.mean_m)
        self._width_m = np.sqrt(np.linalg.eigvalsh(start.covariance_m2)[:, 1].clip(start.min_sigma_m**2))

    def widths_m(self, mean_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (N,) mean width of the elements of the start nearest to each of (N, 3) places."""
        k = np.arange(1, min(_NEAREST, len(self._width_m)) + 1)
        return self._width_m[self._tree.query(mean_m, k=k)[1]].mean(axis=1)

    def prior(self, gaussians: Gaussians, hits: NDArray[np.float64]) -> Prior:
        """Return what elements should look like; `hits` (N,) is how much each of them counts as a neighbour.

        None is asked to shrink, and along the thinnest axis of the neighbourhood none is asked to grow.
        """
        own = self.parameters
        variance, axes = np.linalg.eigh(pooled_covariance(gaussians, hits, reach_m=own.reach_m))
        flat = np.clip(1 - _FLAT * np.sqrt(variance[:, 0].clip(0) / variance[:, 1].clip(1e-12)), 0, 1)
        width_m = (own.width + flat * (own.flat_width - own.width)) * self.widths_m(gaussians.mean_m)
        present = np.einsum("nai,nab,nbi->ni", axes, gaussians.covariance_m2, axes)
        variance[:, 0] = np.minimum(variance[:, 0], present[:, 0])
        asked = np.clip(variance, gaussians.min_sigma_m**2, np.maximum(present, width_m[:, None] ** 2))
        return Prior(rebuilt(asked, axes), own.count)


def pooled_covariance(gaussians: Gaussians, hits: NDArray[np.float64], *, reach_m: float) -> NDArray[np.float64]:
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
    return covariance_m2


def _pairs(mean_m: NDArray[np.float64], reach_m: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of neighbours, each both ways, and every element with itself; sorted, so that sums are too."""
    pairs = _tree(mean_m).query_pairs(reach_m, output_type="ndarray")
    itself = np.arange(len(mean_m))
    of = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    neighbour = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    order = np.lexsort((neighbour, of))
    return of[order], neighbour[order]


def _tree(mean_m: NDArray[np.float64]) -> "cKDTree":
    from scipy.spatial import cKDTree

    return cKDTree(mean_m)
