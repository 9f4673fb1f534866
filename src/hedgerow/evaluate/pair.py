# SPDX-License-Identifier: Apache-2.0
"""One sweep, real and simulated, with what several metrics need computed once."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluate.nearest import Nearest
from hedgerow.evaluate.sources import Answer
from hedgerow.log import Beams, Log


class RealSweep:
    """What was measured in one sweep; shared by all simulations of it."""

    def __init__(self, log: Log) -> None:
        """Take the first returns of a log of one sweep."""
        self.log = log
        self.beams = log.beams
        self.range_m = log.returns.first_m
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) first returns, map frame."""
        return points(self.beams, self.range_m, self.hit)

    @cached_property
    def nearest(self) -> Nearest:
        """Looks up distances to these points."""
        return Nearest(self.points_m)


class Pair:
    """A real sweep and one simulation of it."""

    def __init__(self, real: RealSweep, answer: Answer) -> None:
        """Put the answer beside the sweep; both have one row per beam."""
        self.real = real
        self.range_m = answer.range_m
        self.log_density = answer.log_density
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) simulated first returns, map frame."""
        return points(self.real.beams, self.range_m, self.hit)


def points(beams: Beams, range_m: NDArray[np.float32], hit: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the (M, 3) points of the beams that hit, map frame [m]."""
    along: NDArray[Any] = range_m[hit].astype(np.float64)[:, None] * beams.direction[hit]
    return beams.origin_m[hit] + along
