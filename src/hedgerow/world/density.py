# SPDX-License-Identifier: Apache-2.0
"""Range density along one beam: the mixture of 000 §5.4, for plots."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.world.target import Crossings


@dataclass(frozen=True, slots=True, eq=False)
class RangeDensity:
    """Where a beam would return from; the density over the ranges within the limits and `no_return` make 1."""

    range_m: NDArray[np.float64]
    density_per_m: NDArray[np.float64]
    """In the shape of `range_m` [1/m]."""
    no_return: float
    """Probability that nothing comes back from within the limits."""


def mixture(
    crossings: Crossings, range_m: NDArray[np.float64], min_range_m: float, max_range_m: float, min_sigma_m: float
) -> RangeDensity:
    """Weigh the elements by the chance that the beam gets to them and is stopped there (000 eq. 22 to 24).

    Args:
        crossings: elements on the beam, nearest first.
        range_m: (M,) where to evaluate.
        min_range_m, max_range_m: beyond these the density is 0 and adds to the chance of no return.
        min_sigma_m: sharper elements count as this wide: a density needs a bound.
    """
    from scipy import special

    reaching = np.concatenate([[1.0], np.cumprod(crossings.permeability)])
    weight = (1 - crossings.permeability) * reaching[:-1]
    sigma = np.maximum(crossings.sigma_m, min_sigma_m)
    z = (range_m[:, None] - crossings.mean_m) / sigma
    density = np.exp(-0.5 * z**2) @ (weight / (sigma * np.sqrt(2 * np.pi)))
    within = (range_m > 0) & (range_m >= min_range_m) & (range_m <= max_range_m)
    nearer = special.ndtr((min_range_m - crossings.mean_m) / sigma)
    farther = special.ndtr((crossings.mean_m - max_range_m) / sigma)
    no_return = float(reaching[-1] + weight @ (nearer + farther))
    return RangeDensity(range_m, np.where(within, density, 0.0), min(no_return, 1.0))
