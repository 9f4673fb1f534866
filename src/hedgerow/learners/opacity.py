# SPDX-License-Identifier: Apache-2.0
"""The last touch of a refined world: how wide and how opaque, by held-out sweeps.

Elements fitted to some sweeps leave gaps that beams of other sweeps slip through: between the rings of a scanner there
was nothing to fit. Held-out sweeps find those gaps. Flat elements (road, wall) and the others (leaves) are widened and
made more opaque, or less, each kind by common factors that serve the held-out score best.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.learners.maximise import MAX_EXTINCTION_PER_M, rebuilt
from hedgerow.world.elements import Gaussians

FLAT = 0.1
"""An element is flat if its least variance is below this share of the middle one."""
_FACTORS = (0.5, 1 / np.sqrt(2), np.sqrt(2), 2.0)
_WIDTHS = (0.8, 1.25)
_SWEEPS_OF_SEARCH = 3


@dataclass(frozen=True, slots=True)
class Touch:
    """Factors for flat elements and for the others."""

    opacity: tuple[float, float] = (1.0, 1.0)
    """Of the extinction."""
    width: tuple[float, float] = (1.0, 1.0)
    """Of the two larger standard deviations."""

    def applied(self, gaussians: Gaussians) -> Gaussians:
        """Return the elements with these factors."""
        variance, axes = np.linalg.eigh(gaussians.covariance_m2)
        flat = variance[:, 0] < FLAT * variance[:, 1]
        variance[:, 1:] *= np.where(flat, *self.width)[:, None] ** 2
        stop = np.minimum(gaussians.stop * np.where(flat, *self.opacity), MAX_EXTINCTION_PER_M)
        return replace(gaussians, covariance_m2=rebuilt(variance, axes), stop=stop.astype(np.float32))

    def neighbours(self) -> list["Touch"]:
        """Return the touches one factor away."""
        found: list[Touch] = []
        for kind in range(2):
            for name, factors in (("opacity", _FACTORS), ("width", _WIDTHS)):
                old: tuple[float, float] = getattr(self, name)
                for factor in factors:
                    new = tuple(each * (factor if i == kind else 1) for i, each in enumerate(old))
                    found.append(replace(self, **{name: new}))
        return found


def best_touch(gaussians: Gaussians, cost: Callable[[Gaussians], float]) -> tuple[Touch, float]:
    """Search downhill for the factors of least held-out cost; no change is among them.

    Args:
        gaussians: elements with extinction.
        cost: held-out score of a world, lower is better.

    Returns:
        The factors and their cost.
    """
    best, least = Touch(), cost(gaussians)
    for _ in range(_SWEEPS_OF_SEARCH):
        tried = [(cost(touch.applied(gaussians)), touch) for touch in best.neighbours()]
        found, touch = min(tried, key=lambda pair: pair[0])
        if found >= least:
            break
        best, least = touch, found
    return best, least
