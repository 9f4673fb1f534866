# SPDX-License-Identifier: Apache-2.0
"""Elements come and go between rounds: prune what explains nothing, split what explains too much, join what is alike.

All within a budget of elements. Ties go to the lower element number, so the result is the same every time.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.world.elements import Gaussians

_KEPT_SPREAD = 0.36
"""Halves of a split element sit 0.8 sigma from its middle and keep 1 - 0.8² of its variance along the cut."""


def pruned(gaussians: Gaussians, hits: NDArray[np.float64], min_hits: float) -> tuple[Gaussians, NDArray[np.float64]]:
    """Return the elements that answer for at least `min_hits` returns, and their hits; the heaviest always stays."""
    keep = hits >= min_hits
    keep[np.argmax(hits)] = True
    return gaussians[keep], hits[keep]


def split(
    gaussians: Gaussians, hits: NDArray[np.float64], *, budget: int, min_hits: float, min_sigma_m: float
) -> Gaussians:
    """Cut heavy, long elements in two across their longest axis, those first that most returns and length speak for.

    Args:
        gaussians: the elements.
        hits: (N,) returns that each answers for.
        budget: no more elements than this come back, unless more were given.
        min_hits: lighter elements stay whole.
        min_sigma_m: shorter elements stay whole.
    """
    variance, axes = np.linalg.eigh(gaussians.covariance_m2)
    able = np.flatnonzero((hits >= min_hits) & (variance[:, 2] > min_sigma_m**2))
    urge = hits[able] * variance[able, 2]
    chosen = able[np.argsort(-urge, kind="stable")[: max(budget - len(gaussians), 0)]]
    if len(chosen) == 0:
        return gaussians
    along_m = axes[chosen, :, 2] * np.sqrt(variance[chosen, 2])[:, None]
    shift_m = np.sqrt(1 - _KEPT_SPREAD) * along_m
    halves = replace(
        gaussians[chosen],
        covariance_m2=gaussians.covariance_m2[chosen] - shift_m[:, :, None] * shift_m[:, None, :],
        mean_m=gaussians.mean_m[chosen] + shift_m,
    )
    others = replace(halves, mean_m=gaussians.mean_m[chosen] - shift_m)
    whole = np.ones(len(gaussians), dtype=bool)
    whole[chosen] = False
    return Gaussians.joined([gaussians[whole], halves, others])


def merged(gaussians: Gaussians, hits: NDArray[np.float64], budget: int) -> tuple[Gaussians, NDArray[np.float64]]:
    """Join pairs of nearest neighbours until the elements are within the budget, cheapest first.

    A pair costs what joining loses in log-likelihood of its points, by the bound of Runnalls (2007).
    """
    while len(gaussians) > max(budget, 1):
        first, second = _mutual_pairs(gaussians.mean_m)
        weight = np.maximum(hits, 1e-9)
        a, b = gaussians[first], gaussians[second]
        share = (weight[first] / (weight[first] + weight[second]))[:, None]
        apart_m = a.mean_m - b.mean_m
        joint_m2 = share[:, :, None] * a.covariance_m2 + (1 - share)[:, :, None] * b.covariance_m2
        joint_m2 += (share * (1 - share))[:, :, None] * apart_m[:, :, None] * apart_m[:, None, :]
        size = [_log_size(c, gaussians.min_sigma_m) for c in (joint_m2, a.covariance_m2, b.covariance_m2)]
        cost = weight[first] * (size[0] - size[1]) + weight[second] * (size[0] - size[2])
        best = np.sort(np.argsort(cost, kind="stable")[: len(gaussians) - budget])
        heavier = np.where(weight[first] >= weight[second], first, second)[best]
        new = replace(
            gaussians[heavier],
            mean_m=(share * a.mean_m + (1 - share) * b.mean_m)[best],
            covariance_m2=joint_m2[best],
            stop=(share[:, 0] * a.stop + (1 - share[:, 0]) * b.stop)[best].astype(np.float32),
        )
        alone = np.ones(len(gaussians), dtype=bool)
        alone[first[best]] = alone[second[best]] = False
        hits = np.concatenate([hits[alone], (hits[first] + hits[second])[best]])
        gaussians = Gaussians.joined([gaussians[alone], new])
    return gaussians, hits


def _mutual_pairs(mean_m: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs, lower number first, of which each is the other's nearest neighbour; at least one."""
    from scipy.spatial import cKDTree

    distance, found = map(np.asarray, cKDTree(mean_m).query(mean_m, k=2))
    number = np.arange(len(mean_m))
    # Of points in one place either may come first.
    nearest = np.where(found[:, 0] == number, found[:, 1], found[:, 0])
    first = np.flatnonzero((nearest[nearest] == number) & (number < nearest))
    if len(first) == 0:
        closest = int(np.argmin(distance[:, 1]))
        a, b = sorted((closest, int(nearest[closest])))
        return np.array([a]), np.array([b])
    return first, nearest[first]


def _log_size(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float64]:
    """Half the log of the determinant: what -log of a density at the mean grows with."""
    variance = np.maximum(np.linalg.eigvalsh(covariance_m2), min_sigma_m**2)
    return 0.5 * np.log(variance).sum(axis=1)
