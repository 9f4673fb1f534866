# SPDX-License-Identifier: Apache-2.0
"""The second half of a round: elements that suit the beams which they answered for (MODELS §3).

Stopping follows the ray likelihood exactly: a permeability is the share of passes, an extinction or a depth takes
one step up its concave likelihood. Means and covariances become those of the returned points. That is the maximum of
the points' density, not quite of the ranges': a point tells little about the shape across its own ray.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.learners.ray_sums import RaySums
from hedgerow.world.elements import Gaussians, Law

MIN_STOP, MAX_STOP = 1e-3, 1e5
_MAX_STEP = np.log(3.0)
_MEAN_COUNT = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Shapes that elements lean on where their own returns say little."""

    covariance_m2: NDArray[np.float64]
    """(N, 3, 3)."""
    count: float
    """How many points each counts for."""


def next_stop(gaussians: Gaussians, sums: RaySums) -> NDArray[np.float32]:
    """Return the (N,) numbers of the law that the sums speak for; where they are silent, the old ones."""
    if gaussians.law == "permeability":
        met = sums.hits + sums.passes
        share = np.divide(sums.passes, met, out=gaussians.stop.astype(np.float64), where=met > 0)
        return np.clip(share, 0, 1).astype(np.float32)
    # Newton's step in the log of it, damped: for thin elements log1p gives the maximum itself, and it
    # is shorter than Newton's step everywhere, which could overshoot.
    ratio = (sums.slope - sums.depth) / (sums.curve + sums.depth + 1e-9)
    step = np.clip(np.sign(ratio) * np.log1p(np.abs(ratio)), -_MAX_STEP, _MAX_STEP)
    return np.clip(gaussians.stop * np.exp(step), MIN_STOP, MAX_STOP).astype(np.float32)


def maximised(gaussians: Gaussians, sums: RaySums, prior: Prior | None = None) -> Gaussians:
    """Return the elements after one round.

    Args:
        gaussians: the elements that the sums were gathered with.
        sums: of the training beams.
        prior: what to lean on. Default: returns alone decide.
    """
    hits = sums.hits
    n = np.maximum(hits, 1e-9)[:, None]
    offset_m = sums.offset_m / n
    own_m2 = sums.square_m2 / n[:, :, None] - offset_m[:, :, None] * offset_m[:, None, :]
    before = gaussians.covariance_m2 if prior is None else prior.covariance_m2
    # An element with hardly a hit stays where and what it is; prune has the last word on it.
    weight = (hits / (hits + (1e-6 if prior is None else max(prior.count, 1e-6))))[:, None, None]
    trust = (hits / (hits + (1e-6 if prior is None else _MEAN_COUNT)))[:, None]
    covariance_m2 = floored(weight * own_m2 + (1 - weight) * before, gaussians.min_sigma_m)
    return replace(
        gaussians,
        mean_m=gaussians.mean_m + trust * offset_m,
        covariance_m2=covariance_m2,
        stop=next_stop(gaussians, sums),
    )


def floored(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float64]:
    """Return the covariances with no standard deviation below a floor."""
    variance, axes = np.linalg.eigh(covariance_m2)
    return rebuilt(np.maximum(variance, min_sigma_m**2), axes)


def rebuilt(variance_m2: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (N, 3, 3) covariances of (N, 3) variances along (N, 3, 3) axes, which are columns."""
    scaled = axes * variance_m2[:, None, :]
    return scaled @ axes.transpose(0, 2, 1)


def with_law(gaussians: Gaussians, law: Law) -> Gaussians:
    """Return elements of constant permeability as such of extinction or depth.

    They get twice the depth that they had, in the middle: it falls off from there. Rounds of maximisation do the rest.
    """
    sigma_m = np.sqrt(np.maximum(np.einsum("nii->n", gaussians.covariance_m2) / 3, gaussians.min_sigma_m**2))
    depth = -np.log(np.clip(gaussians.stop.astype(np.float64), 0.02, 0.98))
    per = sigma_m if law == "extinction" else 1.0
    return replace(gaussians, stop=(2 * depth / per).astype(np.float32), law=law)
