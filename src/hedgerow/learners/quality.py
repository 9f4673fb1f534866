# SPDX-License-Identifier: Apache-2.0
"""How the quality of a simulation changes with the elements (cpp/learn/quality_slopes.hpp): what descent goes down on.

Slopes are by steps that have no unit. An element of covariance A Aᵀ and mean m goes to A exp(S) Aᵀ and m + A v, and
its extinction or depth grows by a factor exp(s): a step of 0.05 is one for twigs and for walls.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.learners.permeability import scene_of
from hedgerow.learners.ray_sums import RayModel, Tables
from hedgerow.learners.verdict import QualityWeights, Verdict
from hedgerow.log import Log
from hedgerow.world.elements import Gaussians

N_SLOPES = 10
"""Three of the mean (v), six of the shape (S: xx, yx, yy, zx, zy, zz), one of the extinction or depth (s)."""


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Sums over beams, one row per element; fixed point, so they add up exactly over partitions."""

    table: NDArray[np.int64]

    def __add__(self, other: "Slopes") -> "Slopes":
        """Join the sums of two partitions."""
        return Slopes(self.table + other.table)

    @property
    def slope(self) -> NDArray[np.float64]:
        """(N, 10) derivatives of the cost; those off the diagonal of S as entries of its symmetric gradient [nat]."""
        return self.table[:, : _core.QualitySum.hits] / _core.FIXED_POINT

    @property
    def hits(self) -> NDArray[np.float64]:
        """(N,) share of the returns that each element answers for, in beams."""
        return self.table[:, _core.QualitySum.hits] / _core.FIXED_POINT


class QualityCounter:
    """Judges logs by a world, and finds which way is down for its Gaussians; triangles have no slopes."""

    def __init__(self, world: Gaussians | Tables, model: RayModel, weights: QualityWeights) -> None:
        """Build the scene once."""
        self.model, self.weights = model, weights
        self._scene = scene_of((world,) if isinstance(world, Gaussians) else world)

    def slopes(self, log: Log, *, threads: int = 0) -> tuple[Slopes, Verdict]:
        """Return the slopes of the cost of a log, summed over beams, and the verdict on it.

        Args:
            log: any partition; second returns are left out.
            threads: 0 for all; the result does not depend on it.
        """
        if len(log) == 0:
            return Slopes(np.zeros((self._scene.n_elements, _core.QualitySum.end), dtype=np.int64)), Verdict()
        table, scores = _core.quality_slopes(
            self._scene.native,
            self._scene.seen(log.beams),
            range_m=np.ascontiguousarray(log.returns.first_m),
            model=self.model.native(),
            weights=_core.QualityWeights(**self.weights.model_dump()),
            threads=threads,
            progress=None,
        )
        return Slopes(table), Verdict.of(scores, log)
