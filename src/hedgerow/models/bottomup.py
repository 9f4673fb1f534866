# SPDX-License-Identifier: Apache-2.0
"""The bottom-up model: small ellipsoids that merge as long as they stay dense (Deschaud 2012 §III.C.3).

The paper starts from many small ellipsoids and merges neighbours subject to a constraint on point density. Here the
small ones are the voxels of a fine grid, so they are exactly mergeable sums like all else. Two neighbouring regions may
merge if the ellipsoid of both is at least `density_share` times as dense as the small ellipsoids it is made of: volume
that no point was in, in a corner or across a gap, is what lowers it. For a filled box it stays 1 however large the box.

Merging goes in rounds. In each, every region looks for the neighbour with which it would be densest, and pairs that
choose each other merge. A share of the regions merges in every round and only pairs that may still merge are looked at
again, so the work grows nearly in proportion to the number of voxels.

Equations: docs/models.md §9.
"""

from dataclasses import dataclass
from itertools import count, product
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.models.steps.credit import CreditParameters, learn_permeability
from hedgerow.models.steps.kept import require_kept, side_advice
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import Moments, require_points, sum_voxels
from hedgerow.world.elements import Gaussians

_DENSITY_STEPS = 100
"""Densities that differ by less than a part in so many count as equal; chance decides then, so that chains break."""


class BottomupParameters(StrictParameters, CreditParameters):
    """Parameters of the bottom-up model."""

    side_m: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.15
    """Side of the voxels that merging starts from."""
    density_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Two regions merge only if the merged ellipsoid is at least this share as dense as the voxels in it."""
    max_spread_m: Positive = 0.25
    """Maximum root mean square distance of an element's points from its mean; without it, flat ground would merge
    without end."""
    min_points: Annotated[int, Field(ge=1)] = 5
    """Minimum number of points of an element; elements with fewer are left out."""
    tau: Positive = 3.5
    """Mahalanobis distance up to which a ray meets an element; Deschaud 2012 took 2."""
    min_sigma_m: Positive = 0.001
    """Minimum standard deviation of an element along any axis; keeps flat elements valid."""


def learn_bottomup(task: LearningTask, parameters: BottomupParameters) -> tuple[Gaussians, ...]:
    """Learn permeable Gaussians by merging small ones."""
    gaussians = fit_regions(task.chunks, parameters, progress=task.start("merging voxels"))
    return learn_permeability(task, (gaussians,), parameters)


def fit_regions(chunks: LogChunks, parameters: BottomupParameters, *, progress: Progress | None = None) -> Gaussians:
    """Fit Gaussians to regions of merged voxels, from all returns of a log.

    Args:
        chunks: of the log, map frame.
        parameters: see there.
        progress: called with the number of beams read.

    Returns:
        Gaussians, solid: permeability is counted afterwards.

    Raises:
        InputError: no beams, no returns, or no region with enough points; says what to do.
    """
    statistics = sum_voxels(chunks, parameters.side_m, progress=progress)
    require_points(statistics.n_beams, len(statistics))
    moments = statistics.moments()
    region = merge_voxels(moments, statistics.keys(), parameters)
    grown = moments.join(region, int(region.max()) + 1)
    enough = grown.count >= parameters.min_points

    def advice() -> str:
        return side_advice(moments.mean_m, moments.count, parameters.side_m, parameters.min_points)

    if not enough.any():
        raise InputError(
            "min_points",
            f"none of {len(grown)} regions has {parameters.min_points} points, the fullest has "
            f"{grown.count.max()}; {advice()}",
        )
    require_kept(int(grown.count[enough].sum()), statistics.n_points, advice)
    return grown.select(enough).gaussians(tau=parameters.tau, min_sigma_m=parameters.min_sigma_m)


def merge_voxels(moments: Moments, key: NDArray[np.int32], parameters: BottomupParameters) -> NDArray[np.int64]:
    """Merge neighbouring voxels into regions.

    Args:
        moments: of V voxels.
        key: (V, 3) voxel numbers, sorted.
        parameters: what may merge.

    Returns:
        (V,) the region that each voxel belongs to, numbered from 0.
    """
    regions = _small(moments, parameters.side_m)
    edges = _neighbours(key)
    density = regions.density_together(edges, parameters.max_spread_m)
    into = np.arange(len(key))
    for merge_round in count():  # ends: the densest pair of all is always one that merges
        allowed = density >= parameters.density_share
        edges, density = edges[allowed], density[allowed]
        if not len(edges):
            break
        pairs = _mutual(edges, density, len(key), merge_round)
        regions.merge(pairs)
        into[pairs[:, 1]] = pairs[:, 0]
        edges, first = np.unique(np.sort(into[edges], axis=1) @ [len(key), 1], return_index=True)
        edges, density = np.stack(np.divmod(edges, len(key)), axis=1), density[first]
        apart = edges[:, 0] != edges[:, 1]
        edges, density = edges[apart], density[apart]
        changed = np.isin(edges, pairs[:, 0]).any(axis=1)
        density[changed] = regions.density_together(edges[changed], parameters.max_spread_m)
    while (into[into] != into).any():
        into = into[into]
    return np.unique(into, return_inverse=True)[1]


@dataclass(frozen=True, slots=True)
class _Regions:
    """Weighted moments; the arrays change as regions merge, and rows that were merged into others are dead."""

    weight: NDArray[np.float64]
    mean_m: NDArray[np.float64]
    scatter_m2: NDArray[np.float64]
    small_m3: NDArray[np.float64]
    """Volume of the small ellipsoids that a region is made of, up to a factor."""

    def density_together(self, edges: NDArray[np.int64], max_spread_m: float) -> NDArray[np.float64]:
        """Density of the ellipsoid of each pair, as a share of that of its small ones; 0 if it would be too large."""
        weight, _, scatter_m2 = self._together(edges)
        covariance = scatter_m2 / weight[:, None, None]
        share = self.small_m3[edges].sum(axis=1) / np.sqrt(np.linalg.det(covariance))
        return np.where(np.trace(covariance, axis1=1, axis2=2) <= max_spread_m**2, share, 0)

    def merge(self, pairs: NDArray[np.int64]) -> None:
        """Merge the second region of each pair into the first; no region is in two pairs."""
        keep = pairs[:, 0]
        self.weight[keep], self.mean_m[keep], self.scatter_m2[keep] = self._together(pairs)
        self.small_m3[keep] = self.small_m3[pairs].sum(axis=1)

    def _together(
        self, edges: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Weight, mean and scatter of each pair (the parallel axis theorem)."""
        a, b = edges.T
        weight = self.weight[a] + self.weight[b]
        apart_m = self.mean_m[b] - self.mean_m[a]
        mean_m = self.mean_m[a] + (self.weight[b] / weight)[:, None] * apart_m
        reduced = (self.weight[a] * self.weight[b] / weight)[:, None, None]
        scatter_m2 = self.scatter_m2[a] + self.scatter_m2[b] + reduced * apart_m[:, :, None] * apart_m[:, None, :]
        return weight, mean_m, scatter_m2


def _small(moments: Moments, side_m: float) -> _Regions:
    """Give each voxel one more point, smeared over a cube of its size: a single point or a thread has a volume too."""
    scatter = moments.scatter_m2 + np.eye(3) * side_m**2 / 12
    weight = moments.count.astype(np.float64) + 1
    small_m3 = np.sqrt(np.linalg.det(scatter / weight[:, None, None]))
    # About the middle of all, so that products with large map offsets do not lose digits.
    return _Regions(weight, moments.mean_m - moments.mean_m.mean(axis=0), scatter, small_m3)


def _neighbours(key: NDArray[np.int32]) -> NDArray[np.int64]:
    """(E, 2) pairs of rows of voxels that share at least a corner, the smaller row first."""
    low = key.min(axis=0).astype(np.int64)
    cell = key - low
    # One spare number at each end of y and z, so that no neighbour wraps around to another row of the grid.
    _, n_y, n_z = (int(n) + 3 for n in cell.max(axis=0))
    packed: NDArray[np.int64] = (cell[:, 0] * n_y + cell[:, 1]) * n_z + cell[:, 2]
    edges: list[NDArray[np.int64]] = []
    for x, y, z in product(range(2), range(3), range(3)):
        step = (x * n_y + y - 1) * n_z + z - 1
        if step <= 0:
            continue  # each pair is found from its smaller end
        row = np.searchsorted(packed, packed + step)
        row[row == len(packed)] = 0  # past the end: no neighbour, and 0 is none either
        found = np.flatnonzero(packed[row] == packed + step)
        edges.append(np.stack([found, row[found]], axis=1))
    return np.concatenate(edges)


def _mutual(edges: NDArray[np.int64], density: NDArray[np.float64], n: int, merge_round: int) -> NDArray[np.int64]:
    """Return the (P, 2) edges whose ends are each other's densest neighbour."""
    chance = np.random.default_rng(merge_round).permutation(len(edges))
    order = np.lexsort((chance, np.floor(density * _DENSITY_STEPS)))
    best = np.full(n, -1, dtype=np.int64)
    best[edges[order].ravel()] = np.repeat(order, 2)  # rising density: what is written last stays
    number = np.arange(len(edges))
    return edges[(best[edges[:, 0]] == number) & (best[edges[:, 1]] == number)]
