# SPDX-License-Identifier: Apache-2.0
"""What one round of expectation maximisation gathers from the beams (MODELS §3): who answered for each range?

Every beam shares itself out among the elements on its way, by the ray likelihood of 000 §5.4. Sums are whole numbers
in steps of 2⁻³⁰, the score in steps of 2⁻²⁰: they add up exactly, so partitions, order and threads do not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.learners.permeability import scene_of
from hedgerow.log import Log
from hedgerow.world.elements import Gaussians, Triangles

Tables = tuple[Gaussians | Triangles, ...]
_SCORE_STEPS = float(1 << 20)


@dataclass(frozen=True, slots=True)
class RayModel:
    """What a density needs besides the elements."""

    min_range_m: float
    max_range_m: float
    outlier_share: float
    """Share of beams that nothing explains: ranges spread evenly over the limits, and lost returns."""
    min_sigma_m: float = 0.001
    """Sharper elements count as this wide, as in `hr.compare`."""

    def native(self) -> _core.RayModel:
        """Return it as the engine takes it."""
        return _core.RayModel(
            limits=_core.RangeLimits(min_m=self.min_range_m, max_m=self.max_range_m),
            min_sigma_m=self.min_sigma_m,
            outlier_share=self.outlier_share,
        )


@dataclass(frozen=True, slots=True, eq=False)
class RaySums:
    """Sums over beams, one row per element; adds up over partitions, bit by bit."""

    table: NDArray[np.int64]
    """(N, 14) fixed point."""
    score: int
    """Sum of log densities, fixed point."""
    n_beams: int

    @classmethod
    def zero(cls, n_elements: int) -> Self:
        """Sums of nothing yet."""
        return cls(np.zeros((n_elements, _core.RaySum.end), dtype=np.int64), 0, 0)

    def __add__(self, other: Self) -> Self:
        """Join the sums of two partitions."""
        return type(self)(self.table + other.table, self.score + other.score, self.n_beams + other.n_beams)

    @property
    def nll(self) -> float:
        """Mean negative log density of the measured ranges, outliers included: the `nll` of `hr.compare` [nat]."""
        return -self.score / _SCORE_STEPS / max(self.n_beams, 1)

    @property
    def hits(self) -> NDArray[np.float64]:
        """(N,) share of the returns that each element answers for, in beams."""
        return self._column(_core.RaySum.hits)

    @property
    def passes(self) -> NDArray[np.float64]:
        """(N,) beams that went on behind each element."""
        return self._column(_core.RaySum.passes)

    @property
    def slope(self) -> NDArray[np.float64]:
        """(N,) first derivative of the hits' log-likelihood by the log of the extinction, or of the depth."""
        return self._column(_core.RaySum.slope)

    @property
    def curve(self) -> NDArray[np.float64]:
        """(N,) minus its second derivative."""
        return self._column(_core.RaySum.curve)

    @property
    def depth(self) -> NDArray[np.float64]:
        """(N,) optical depth that beams passed: minus both derivatives of the passes' log-likelihood."""
        return self._column(_core.RaySum.depth)

    @property
    def offset_m(self) -> NDArray[np.float64]:
        """(N, 3) sum of the returned points, relative to the element's mean, each by its share [m]."""
        return self.table[:, _core.RaySum.offset_m :][:, :3] / _core.FIXED_POINT

    @property
    def square_m2(self) -> NDArray[np.float64]:
        """(N, 3, 3) sum of their outer products [m²]."""
        lower = self.table[:, _core.RaySum.square_m2 :][:, :6] / _core.FIXED_POINT
        return lower[:, [0, 1, 3, 1, 2, 4, 3, 4, 5]].reshape(-1, 3, 3)

    def _column(self, number: _core.RaySum) -> NDArray[np.float64]:
        return self.table[:, number] / _core.FIXED_POINT


class RayCounter:
    """Gathers the sums of logs over the elements of some tables, numbered through in their order."""

    def __init__(self, tables: Tables, model: RayModel) -> None:
        """Build the scene once."""
        self.model = model
        self._scene = scene_of(tables)

    def sums(self, log: Log, *, threads: int = 0, progress: Callable[[int], object] | None = None) -> RaySums:
        """Share the beams of a log out among the elements.

        Args:
            log: any partition; second returns are left out.
            threads: 0 for all; the result does not depend on it.
            progress: called with the number of beams done.
        """
        table, log_density = _core.ray_sums(
            self._scene.native,
            self._scene.seen(log.beams),
            range_m=np.ascontiguousarray(log.returns.first_m),
            model=self.model.native(),
            threads=threads,
            progress=progress,
        )
        return RaySums(table, int(np.rint(log_density * _SCORE_STEPS).astype(np.int64).sum()), len(log))
