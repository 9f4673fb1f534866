# SPDX-License-Identifier: Apache-2.0
"""What the scene answers: the first return of each pulse, or every element along it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hedgerow import _core


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """First return of each pulse; without one the range is inf, the element -1, the label 0, the rest NaN."""

    range_m: NDArray[np.float32]
    intensity: NDArray[np.float32]
    """Reflectance times cosine for a triangle, mean intensity for a Gaussian."""
    label: NDArray[np.uint16]
    element: NDArray[np.int64]
    incidence_cosine: NDArray[np.float32]
    """Cosine of the incidence angle on a triangle; NaN for a Gaussian, which has no surface."""

    @classmethod
    def of(cls, answer: "_core.Hits") -> Self:
        """Take over what the engine found."""
        return cls(
            range_m=answer.range_m,
            intensity=answer.intensity,
            label=answer.label,
            element=answer.element,
            incidence_cosine=answer.incidence_cosine,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pierced:
    """Every element along each ray, nearest first; those of beam i stand at begin[i] to begin[i + 1]."""

    begin: NDArray[np.int64]
    element: NDArray[np.int64]
    mean_m: NDArray[np.float32]
    """Where along the ray the element returns, on average."""
    sigma_m: NDArray[np.float32]
    permeability: NDArray[np.float32]
    """Probability that this ray passes the element."""
