# SPDX-License-Identifier: Apache-2.0
"""Moments of groups of points, enough to make maximum likelihood Gaussians of them (Browning 2012 eq. 3 and 4).

Every volume model ends here, whatever formed its groups: voxels, leaves of a tree, regions that grew together. Scatter
is summed about each group's own mean, so that large map offsets do not cancel, and groups can be joined.

The moments of voxels can be summed chunk by chunk, anywhere, and added (`VoxelStatistics`). Their sums are whole
numbers: positions are offsets from each voxel's own centre in steps of side / 2¹⁸, about a micrometre, and intensities
have steps of 2⁻³². So they are exact: cut a log any way, merge in any order, and everything comes out the same to the
last bit.

Equations: docs/models.md §7.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError, warn
from hedgerow.log import Log
from hedgerow.models.steps.kept import FEW, side_advice
from hedgerow.models.steps.log_chunks import LogChunks
from hedgerow.parallel.log_parts import LogPart, map_log
from hedgerow.world.elements import Gaussians
from hedgerow.world.labels import LabelCounts

POINT = np.dtype([("position_m", np.float64, 3), ("intensity", np.float32), ("label", np.uint16)])
"""One point: position in the map frame, intensity (NaN if unknown), label (0 if unknown); 30 bytes."""


def point_records(log: Log) -> NDArray[Any]:
    """Return every return of a log as a point, all returns of a pulse included: (M,) of type POINT, in pulse order."""
    position_m = log.points()
    records = np.empty(len(position_m), dtype=POINT)
    records["position_m"] = position_m
    hit, intensity, label = log.returns.hit, log.returns.intensity, log.returns.label
    records["intensity"] = np.nan if intensity is None else intensity[hit]
    records["label"] = 0 if label is None else label[hit]
    return records


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of V groups of points. The label histogram is sparse: label_row says which group an entry is about."""

    count: NDArray[np.int64]
    """(V,) points, at least 1."""
    mean_m: NDArray[np.float64]
    """(V, 3) map frame."""
    scatter_m2: NDArray[np.float64]
    """(V, 3, 3) sum of outer products about the mean."""
    intensity_count: NDArray[np.int64]
    """(V,) points whose intensity is known."""
    intensity_sum: NDArray[np.float64]
    """(V,)."""
    intensity_square: NDArray[np.float64]
    """(V,) sum of squares."""
    label_row: NDArray[np.int64]
    """(H,) the group, never decreasing."""
    label: NDArray[np.uint16]
    """(H,) a label of its points, ascending within the group, never 0: count says how many are unlabelled."""
    label_count: NDArray[np.int64]
    """(H,) how many of its points have this label."""

    def __len__(self) -> int:
        """Count the groups."""
        return len(self.count)

    @property
    def covariance_m2(self) -> NDArray[np.float64]:
        """(V, 3, 3) maximum likelihood covariance (Browning 2012 eq. 4)."""
        return self.scatter_m2 / self.count[:, None, None]

    @classmethod
    def of_points(cls, records: NDArray[Any], begin: NDArray[np.int64]) -> Self:
        """Make the moments of points that lie group by group.

        Args:
            records: (M,) of type POINT.
            begin: (V + 1,) group i is records[begin[i]:begin[i + 1]], never empty.
        """
        count = np.diff(begin)
        group = np.repeat(np.arange(len(count)), count)

        def total(values: NDArray[Any]) -> NDArray[Any]:
            return np.add.reduceat(values, begin[:-1], axis=0)

        # About the first point of each group: what is summed stays small, however far the map's zero is.
        offset_m = records["position_m"] - records["position_m"][begin[:-1]][group]
        mean_m = total(offset_m) / count[:, None]
        offset_m -= mean_m[group]
        known = ~np.isnan(records["intensity"])
        intensity = np.where(known, records["intensity"], 0).astype(np.float64)
        return cls(
            count,
            mean_m + records["position_m"][begin[:-1]],
            _square([total(offset_m[:, i] * offset_m[:, j]) for i, j in _UPPER]),
            total(known.astype(np.int64)),
            total(intensity),
            total(intensity**2),
            *_histogram(group, records["label"], np.ones(len(group), dtype=np.int64)),
        )

    def join(self, group: NDArray[np.integer], n_groups: int) -> Self:
        """Join groups into larger ones: (V,) `group` says which each belongs to, from 0 to n_groups - 1, none empty."""

        def total(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(group, weights=values.astype(np.float64), minlength=n_groups).astype(np.float64)

        count = total(self.count)
        first = np.full(n_groups, -1, dtype=np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        offset_m = self.mean_m - self.mean_m[first][group]
        mean_m = np.stack([total(self.count * offset_m[:, axis]) for axis in range(3)], axis=1) / count[:, None]
        offset_m -= mean_m[group]
        return type(self)(
            count.astype(np.int64),
            mean_m + self.mean_m[first],
            _square(
                [total(self.scatter_m2[:, i, j] + self.count * offset_m[:, i] * offset_m[:, j]) for i, j in _UPPER]
            ),
            total(self.intensity_count).astype(np.int64),
            total(self.intensity_sum),
            total(self.intensity_square),
            *_histogram(group[self.label_row], self.label, self.label_count),
        )

    def select(self, keep: NDArray[np.bool_]) -> Self:
        """Return the groups of a mask."""
        labelled = keep[self.label_row]
        columns = {name: getattr(self, name)[keep] for name in _PER_GROUP}
        columns["label_row"] = (np.cumsum(keep) - 1)[self.label_row[labelled]]
        return type(self)(**columns, label=self.label[labelled], label_count=self.label_count[labelled])

    @classmethod
    def concatenate(cls, several: Sequence[Self]) -> Self:
        """Put the groups of several one after the other; at least one."""
        names = (*_PER_GROUP, "label", "label_count")
        columns = {name: np.concatenate([getattr(each, name) for each in several]) for name in names}
        first = np.cumsum([0, *(len(each) for each in several)])
        rows = [each.label_row + shift for each, shift in zip(several, first[:-1], strict=True)]
        return cls(**columns, label_row=np.concatenate(rows))

    def label_counts(self) -> LabelCounts:
        """(V,) the label histograms as elements have them."""
        n_labels = np.bincount(self.label_row, minlength=len(self))
        return LabelCounts.from_rows(n_labels, self.label, self.label_count)

    def gaussians(self, *, tau: float, min_sigma_m: float) -> Gaussians:
        """Make one solid Gaussian of each group: maximum likelihood, mean intensity and its spread, all labels."""
        known = self.intensity_count > 0
        n = np.maximum(self.intensity_count, 1)
        intensity = self.intensity_sum / n
        variance = np.maximum(self.intensity_square / n - intensity**2, 0)
        return Gaussians.plain(
            self.mean_m,
            self.covariance_m2,
            intensity=np.where(known, intensity, np.nan).astype(np.float32),
            intensity_sigma=np.sqrt(variance).astype(np.float32),
            label=self.label_counts(),
            tau=tau,
            min_sigma_m=min_sigma_m,
        )


_PER_GROUP = ("count", "mean_m", "scatter_m2", "intensity_count", "intensity_sum", "intensity_square")
_UPPER = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def _square(upper: Sequence[NDArray[np.float64]] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Put six columns xx, xy, xz, yy, yz, zz together to (V, 3, 3) symmetric matrices."""
    return np.stack([upper[k] for k in (0, 1, 2, 1, 3, 4, 2, 4, 5)], axis=1).reshape(-1, 3, 3)


def _histogram(
    row: NDArray[np.integer], label: NDArray[np.uint16], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.int64]]:
    labelled = label > 0
    packed = row[labelled].astype(np.int64) << 16 | label[labelled]
    entries, entry = np.unique(packed, return_inverse=True)
    counts = np.bincount(entry, weights=count[labelled], minlength=len(entries)).astype(np.int64)
    return entries >> 16, (entries & 0xFFFF).astype(np.uint16), counts


_TABLE = (
    *("key", "count", "first", "second", "n_intensity", "intensity", "intensity_squared"),
    *("label_row", "label", "label_count"),
)
"""Columns of `_core.VoxelTable`."""
_PER_PART = np.array([1.0, 2.0**-32])
"""What the whole part of a sum of intensities is worth, and a step of the rest."""


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
        self.n_points = 0
        self.map_origin_m: NDArray[np.float64] | None = None
        self._sums = _core.VoxelSums(self.side_m)

    def __len__(self) -> int:
        """Count the voxels that have points."""
        return len(self._sums)

    def add(self, log: Log, *, threads: int = 0) -> None:
        """Add a chunk of a log.

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
        self.n_points += int(np.count_nonzero(returns.hit))

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
        self.n_points += other.n_points

    def keys(self) -> NDArray[np.int32]:
        """(V, 3) voxel numbers, sorted: voxel k reaches from k side_m to (k + 1) side_m."""
        return self._sums.table(min_count=1).key

    def moments(self, min_points: int = 1) -> Moments:
        """Return the moments of the points of each voxel that has enough, in the order of `keys`."""
        table = self._sums.table(min_count=min_points)
        step_m = self.side_m / _core.STEPS_PER_SIDE
        count, first = table.count, table.first.astype(np.float64)
        second = table.second.astype(np.float64)
        scatter = np.stack([second[:, k] - first[:, i] * first[:, j] / count for k, (i, j) in enumerate(_UPPER)])
        # A million equal points leave nothing but rounding, which need not be a covariance.
        scatter[:, np.abs(scatter).max(axis=0) < 1e-13 * np.abs(second).max(axis=1)] = 0
        mean_m = (table.key + 0.5) * self.side_m + first / count[:, None] * step_m
        return Moments(
            count,
            mean_m,
            _square(scatter * step_m**2),
            table.n_intensity,
            table.intensity.astype(np.float64) @ _PER_PART,
            table.intensity_squared.astype(np.float64) @ _PER_PART,
            table.label_row,
            table.label,
            table.label_count,
        )

    def gaussians(self, *, min_points: int = 5, tau: float = 3.5, min_sigma_m: float = 0.001) -> Gaussians:
        """Make a maximum likelihood Gaussian of each voxel that has at least `min_points` (Browning 2012 eq. 3 and 4).

        Returns:
            Solid Gaussians in the order of `keys`.

        Raises:
            InputError: nothing was gathered that could be learned from.
        """
        require_points(self.n_beams, len(self))
        moments = self.moments(min_points)
        if len(moments) == 0:
            raise InputError(
                "min_points",
                f"none of {len(self)} voxels of {self.side_m:g} m has {min_points} points, the fullest has "
                f"{self.moments().count.max()}; {self._advice(min_points)}",
            )
        kept = int(moments.count.sum()) / self.n_points
        if kept < FEW:
            warn(
                f"min_points: only {kept:.1%} of {self.n_points:,} returns lie in voxels of {self.side_m:g} m with "
                f"{min_points} or more, and the rest is left out; {self._advice(min_points)}"
            )
        return moments.gaussians(tau=tau, min_sigma_m=min_sigma_m)

    def _advice(self, min_points: int) -> str:
        every = self.moments()
        return side_advice(every.mean_m, every.count, self.side_m, min_points)

    def __getstate__(self) -> dict[str, Any]:
        """Give plain values and arrays."""
        state = {name: getattr(self, name) for name in ("side_m", "n_beams", "n_points", "map_origin_m")}
        table = self._sums.table(min_count=1)
        return state | {"table": {name: getattr(table, name) for name in _TABLE}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take them up again."""
        self.__init__(state["side_m"])
        self.n_beams, self.n_points, self.map_origin_m = (state[k] for k in ("n_beams", "n_points", "map_origin_m"))
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
    """Raise InputError unless two chunks have the same map origin."""
    if not np.array_equal(origin_m, other_m):
        raise InputError(
            "map_origin_m",
            f"differs between chunks, found {origin_m.tolist()} and {other_m.tolist()}; bring them into one map first",
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


def sum_voxels(chunks: LogChunks, side_m: float, *, progress: Progress | None = None) -> VoxelStatistics:
    """Return the statistics of all points of a log in voxels of a side."""
    total = VoxelStatistics(side_m)
    for some in map_log(chunks, _SumVoxels(side_m), progress):
        total.merge(some)
    return total


@dataclass(frozen=True, slots=True)
class _SumVoxels:
    """Sums up one part of a log."""

    side_m: float

    def __call__(self, part: LogPart) -> VoxelStatistics:
        statistics = VoxelStatistics(self.side_m)
        statistics.add(part.read())
        return statistics
