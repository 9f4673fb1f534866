# SPDX-License-Identifier: Apache-2.0
"""The last touch of a refined world: how wide and how opaque, by held-out sweeps.

Elements fitted to some sweeps leave gaps that beams of other sweeps slip through: between the rings of a scanner there
was nothing to fit. Held-out sweeps find those gaps. Flat elements (road, wall) and the others (leaves) are widened and
made more opaque, or less, each kind by common factors that serve the held-out score best.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from hedgerow.learners.maximise import MAX_EXTINCTION_PER_M, rebuilt
from hedgerow.world.elements import Gaussians

FLAT = 0.1
"""An element is flat if its least variance is below this share of the middle one."""
_OPACITY_STEP, _WIDTH_STEP = 1.5, 1.2
_MOST_CYCLES = 4


@dataclass(frozen=True, slots=True)
class Touch:
    """Factors for flat elements and for the others, in whole steps up or down."""

    opacity: tuple[int, int] = (0, 0)
    """Of the extinction, in steps of 1.5."""
    width: tuple[int, int] = (0, 0)
    """Of the two larger standard deviations, in steps of 1.2."""

    def applied(self, gaussians: Gaussians) -> Gaussians:
        """Return the elements with these factors."""
        variance, axes = np.linalg.eigh(gaussians.covariance_m2)
        flat = variance[:, 0] < FLAT * variance[:, 1]
        variance[:, 1:] *= (_WIDTH_STEP ** np.where(flat, *self.width))[:, None] ** 2
        stop = np.minimum(gaussians.stop * _OPACITY_STEP ** np.where(flat, *self.opacity), MAX_EXTINCTION_PER_M)
        return replace(gaussians, covariance_m2=rebuilt(variance, axes), stop=stop.astype(np.float32))

    def moved(self, what: Literal["opacity", "width"], kind: int, by: int) -> "Touch":
        """Return the touch some steps further in one factor: of flat elements (kind 0) or of the others (1)."""
        first, second = getattr(self, what)
        return replace(self, **{what: (first + by, second) if kind == 0 else (first, second + by)})


def best_touch(gaussians: Gaussians, cost: Callable[[Gaussians], float]) -> Touch:
    """Search downhill, one factor after the other, for the least held-out cost.

    Args:
        gaussians: elements with extinction.
        cost: held-out score of a world, lower is better.
    """

    @cache
    def cost_of(touch: Touch) -> float:
        return cost(touch.applied(gaussians))

    best = Touch()
    for _ in range(_MOST_CYCLES):
        before = best
        for what in ("opacity", "width"):
            for kind in (0, 1):
                best = _along(best, what, kind, cost_of)
        if best == before:
            break
    return best


def _along(touch: Touch, what: Literal["opacity", "width"], kind: int, cost: Callable[[Touch], float]) -> Touch:
    """Step along one factor, up or else down, while the cost falls."""
    best = touch
    for by in (1, -1):
        while cost(new := best.moved(what, kind, by)) < cost(best):
            best = new
        if best != touch:
            break
    return best
