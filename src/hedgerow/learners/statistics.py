# SPDX-License-Identifier: Apache-2.0
"""Mergeable statistics of logs: small tables that can be gathered part by part, anywhere, and added.

Sums of positions are whole numbers (offsets from each voxel's own centre in steps of side / 2¹⁸, about a micrometre),
so they are exact: cut a log any way, merge in any order, and means, covariances, counts and labels come out the same
to the last bit. Sums of intensities are float64 and agree to its addition order (about 1e-15 of the sum of squares).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.errors import InputError
from hedgerow.learners.moments import Moments
from hedgerow.learners.parts import Parts
from hedgerow.log import Log
from hedgerow.progress import Progress, counted
from hedgerow.world.elements import Gaussians

_TABLE = (
    *("key", "count", "first", "second", "n_intensity", "intensity", "intensity_squared"),
    *("label_row", "label", "label_count"),
)
"""Columns of `_core.VoxelTable`."""


class VoxelStatistics:
    """Moments of the points of each voxel of a regular grid that has a corner at the map's zero.

    Every return of a pulse is a point. Can be sent between processes.
    """

    def __init__(self, side_m: float) -> None:
        """Start with nothing, for voxels of this side."""
        if not 0 < side_m < np.inf:
            raise InputError("side_m", f"expected a finite length above 0, found {side_m}")
        self.side_m = float(side_m)
        self.n_beams = 0
        self.map_origin_m: NDArray[np.float64] | None = None
        self._sums = _core.VoxelSums(self.side_m)

    def __len__(self) -> int:
        """Count the voxels that have points."""
        return len(self._sums)

    def add(self, log: Log, *, threads: int = 0) -> None:
        """Add a partition of a log.

        Raises:
            InputError: its map origin differs from that of earlier ones, or points lie too far out for the grid.
        """
        self._require_same_map(log.map_origin_m)
        self._require_in_grid(log)
        beams, returns = log.beams, log.returns
        self._sums.add(
            origin_m=beams.origin_m,
            direction=beams.direction,
            range_m=returns.range_m,
            intensity=returns.intensity,
            label=returns.label,
            threads=threads,
            progress=None,
        )
        self.n_beams += len(log)

    def merge(self, other: "VoxelStatistics") -> None:
        """Add what another one has gathered; its voxels must have the same side and its map the same origin."""
        if other is self:
            raise InputError("other", "cannot be merged with itself; its points would count twice")
        if other.side_m != self.side_m:
            raise InputError("side_m", f"cannot merge voxels of {self.side_m} m and {other.side_m} m")
        if other.map_origin_m is not None:
            self._require_same_map(other.map_origin_m)
        self._sums.merge(other._sums)
        self.n_beams += other.n_beams

    def keys(self) -> NDArray[np.int32]:
        """(V, 3) voxel numbers, sorted: voxel k reaches from k side_m to (k + 1) side_m."""
        return self._sums.table().key

    def moments(self) -> Moments:
        """Return the moments of each voxel's points, in the order of `keys`."""
        table = self._sums.table()
        step_m = self.side_m / _core.STEPS_PER_SIDE
        count, first = table.count, table.first.astype(np.float64)
        second = table.second[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3).astype(np.float64)
        scatter = second - first[:, :, None] * first[:, None, :] / count[:, None, None]
        # A million equal points leave nothing but rounding, which need not be a covariance.
        scatter[np.abs(scatter).max(axis=(1, 2)) < 1e-13 * np.abs(second).max(axis=(1, 2))] = 0
        mean_m = (table.key + 0.5) * self.side_m + first / count[:, None] * step_m
        return Moments(
            count,
            mean_m,
            scatter * step_m**2,
            table.n_intensity,
            table.intensity,
            table.intensity_squared,
            table.label_row,
            table.label,
            table.label_count,
        )

    def finish(self, *, min_points: int = 5, tau: float = 3.5, min_sigma_m: float = 0.001) -> Gaussians:
        """Make a maximum likelihood Gaussian of each voxel that has at least `min_points` (000 eq. 3 and 4).

        Returns:
            Solid Gaussians in the order of `keys`.

        Raises:
            InputError: nothing was gathered that could be learned from.
        """
        require_points(self.n_beams, len(self))
        moments = self.moments()
        enough = moments.count >= min_points
        if not enough.any():
            raise InputError(
                "min_points",
                f"none of {len(self)} voxels of {self.side_m:g} m has {min_points} points, the fullest has "
                f"{moments.count.max()}; take more sweeps, larger voxels or a smaller min_points",
            )
        return moments.chosen(enough).gaussians(tau=tau, min_sigma_m=min_sigma_m)

    def __getstate__(self) -> dict[str, Any]:
        """Give plain values and arrays."""
        state = {"side_m": self.side_m, "n_beams": self.n_beams, "map_origin_m": self.map_origin_m}
        table = self._sums.table()
        return state | {"table": {name: getattr(table, name) for name in _TABLE}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take them up again."""
        self.__init__(state["side_m"])
        self.n_beams, self.map_origin_m = state["n_beams"], state["map_origin_m"]
        self._sums.add_table(**state["table"])

    def _require_same_map(self, origin_m: NDArray[np.float64]) -> None:
        if self.map_origin_m is None:
            self.map_origin_m = origin_m
        require_same_map(self.map_origin_m, origin_m)

    def _require_in_grid(self, log: Log) -> None:
        if not len(log):
            return
        ranges = log.returns.range_m
        reach_m = float(ranges.max(initial=0, where=np.isfinite(ranges)))
        farthest_m = float(np.abs(log.beams.origin_m).max()) + reach_m
        if farthest_m / self.side_m > 2**31 - 2:
            raise InputError(
                "side_m",
                f"points up to {farthest_m:.4g} m from the map's zero have no number in a grid of "
                f"{self.side_m:g} m; take larger voxels or move the map's origin (map_origin_m)",
            )


def require_same_map(origin_m: NDArray[np.float64], other_m: NDArray[np.float64]) -> None:
    """Raise InputError unless two partitions have the same map origin."""
    if not np.array_equal(origin_m, other_m):
        raise InputError(
            "map_origin_m",
            f"differs between partitions, found {origin_m.tolist()} and {other_m.tolist()}; "
            "bring them into one map first",
        )


def require_points(n_beams: int, n_points: int) -> None:
    """Raise InputError, saying what to do, if there are no beams, or none of them came back."""
    if n_beams == 0:
        raise InputError("log", "has no beams; nothing can be learned from it, select at least one sweep")
    if n_points == 0:
        raise InputError(
            "log",
            f"none of its {n_beams} beams has a return; select sweeps that see something or check the range limits",
        )


def gather(parts: Parts, statistics: VoxelStatistics, *, progress: Progress | None = None) -> None:
    """Add all partitions to the statistics."""
    for part in counted(parts(), progress):
        statistics.add(part)
