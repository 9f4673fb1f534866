# SPDX-License-Identifier: Apache-2.0
"""The returns that worlds were learned from, to look up how far a real return is from the nearest of them.

They are thinned to one per voxel of `learned_voxel_m` (3 cm), and to twice that side as often as they are more than
`max_cloud_points`; memory holds no more, whatever the length of the log.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.cloud_distance import ThinnedCloud
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.inputs import Recording, sweeps_of
from hedgerow.metrics.pair import Nearest, points_of
from hedgerow.simulate import SAME_ORIGIN_M
from hedgerow.world import World


class LearnedCloud:
    """Distinct learned returns, indexed when first asked for."""

    def __init__(
        self, points_m: NDArray[np.float64], voxel_m: float, map_origin_m: NDArray[np.float64] | None = None
    ) -> None:
        """Take (M, 3) distinct points, and where their map begins, if that is known."""
        self.points_m, self.voxel_m, self.map_origin_m = points_m, voxel_m, map_origin_m
        self._nearest: Nearest | None = None

    @classmethod
    def of(cls, learned: Recording, settings: CompareSettings) -> "LearnedCloud":
        """Thin the returns of a log.

        Raises:
            InputError: nothing in it returned, or it is no log.
        """
        if isinstance(learned, World):
            raise InputError("learned", "is a world; give the log that it was learned from")
        cloud = ThinnedCloud(settings.max_cloud_points, voxel_m=settings.learned_voxel_m)
        map_origin_m: NDArray[np.float64] | None = None
        for sweep in sweeps_of("learned", learned):
            map_origin_m = sweep.map_origin_m
            range_m = sweep.returns.first_m
            cloud.add(points_of(sweep.beams, range_m, np.isfinite(range_m)))
        points_m, _ = cloud.points()
        if len(points_m) == 0:
            raise InputError("learned", "none of its beams returned; give the log that the worlds were learned from")
        return cls(points_m, cloud.voxel_m, map_origin_m)

    def require_same_map(self, real: Log) -> None:
        """Raise InputError if the map of a real log begins elsewhere: distances would mean nothing."""
        ours = self.map_origin_m
        if ours is not None and not np.allclose(ours, real.map_origin_m, rtol=0, atol=SAME_ORIGIN_M):
            raise InputError(
                "learned", f"its map begins at {ours.tolist()}, that of the real log at {real.map_origin_m.tolist()}"
            )

    @property
    def nearest(self) -> Nearest:
        """Looks up distances to these points."""
        if self._nearest is None:
            self._nearest = Nearest(self.points_m, distinct=True)
        return self._nearest

    def __getstate__(self) -> tuple[Any, ...]:
        """Travel to workers without the index."""
        return self.points_m, self.voxel_m, self.map_origin_m

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Arrive there."""
        self.points_m, self.voxel_m, self.map_origin_m = state
        self._nearest = None
