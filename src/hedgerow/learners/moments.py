# SPDX-License-Identifier: Apache-2.0
"""Moments: what is known of groups of points, enough to make maximum likelihood Gaussians of them (000 eq. 3 and 4).

Every volume learner ends here, whatever formed its groups: voxels, leaves of a tree, regions that grew together.
Scatter is kept about each group's own mean, so that large map offsets do not cancel, and groups can be joined.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Log
from hedgerow.world.elements import Gaussians
from hedgerow.world.labels import LabelCounts

RECORD = np.dtype([("position_m", np.float64, 3), ("intensity", np.float32), ("label", np.uint16)])
"""One point: position in the map frame, intensity (NaN if unknown), label (0 if unknown); 30 bytes."""


def records_of(log: Log) -> NDArray[Any]:
    """Return every return of a log as a point, all returns of a pulse included: (M,) of type RECORD, in pulse order."""
    position_m = log.points()
    records = np.empty(len(position_m), dtype=RECORD)
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
        """(V, 3, 3) maximum likelihood covariance (000 eq. 4)."""
        return self.scatter_m2 / self.count[:, None, None]

    @classmethod
    def of_points(cls, records: NDArray[Any], begin: NDArray[np.int64]) -> Self:
        """Make the moments of points that lie group by group.

        Args:
            records: (M,) of type RECORD.
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

    def joined(self, group: NDArray[np.integer], n_groups: int) -> Self:
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

    def chosen(self, keep: NDArray[np.bool_]) -> Self:
        """Keep the groups of a mask."""
        labelled = keep[self.label_row]
        columns = {name: getattr(self, name)[keep] for name in _PER_GROUP}
        columns["label_row"] = (np.cumsum(keep) - 1)[self.label_row[labelled]]
        return type(self)(**columns, label=self.label[labelled], label_count=self.label_count[labelled])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Put the groups of several one after the other; at least one part."""
        names = (*_PER_GROUP, "label", "label_count")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        first = np.cumsum([0, *(len(part) for part in parts)])
        rows = [part.label_row + shift for part, shift in zip(parts, first[:-1], strict=True)]
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


def _square(upper: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
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
