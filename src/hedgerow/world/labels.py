# SPDX-License-Identifier: Apache-2.0
"""LabelCounts: how many points of each semantic class an element was learned from.

An element in a bush at a wall was hit on leaves and on bricks; its returns must be so too, in the same shares. Most
elements have one label, so the histograms are kept as compressed rows: one entry per element and label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Index
from hedgerow.base.columns import set_fields
from hedgerow.errors import InputError

if TYPE_CHECKING:
    from hedgerow import _core


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """Histograms of N elements: those of element i are the entries from first[i] to first[i + 1].

    Raises:
        InputError: the arrays do not fit together, or a row is no histogram; names the row.
    """

    first: NDArray[np.int64]
    """(N + 1,) starts at 0, never decreases, ends at H. An element without entries has unknown labels."""
    label: NDArray[np.uint16]
    """(H,) ascending within an element, never 0: unlabelled points say nothing about the class."""
    count: NDArray[np.int64]
    """(H,) number of points with that label, 1 or more."""

    def __post_init__(self) -> None:
        """Check everything once."""
        first = arrays.require("labels.first", self.first, np.int64, ("N",))
        label = arrays.require("labels.label", self.label, np.uint16, ("H",))
        count = arrays.require("labels.count", self.count, np.int64, (len(label),))
        if len(first) == 0 or first[0] != 0 or first[-1] != len(label) or not arrays.is_sorted(first):
            raise InputError(
                "labels.first", f"expected numbers that rise from 0 to {len(label)}, one more than elements"
            )
        set_fields(self, {"first": first, "label": label, "count": count})
        self._require_histograms()

    def _require_histograms(self) -> None:
        owner = self._row()
        wrong = (self.count < 1) | (self.label == 0)
        wrong[1:] |= (self.label[1:] <= self.label[:-1]) & (owner[1:] == owner[:-1])
        if wrong.any():
            row = int(owner[arrays.first_row(wrong)])
            mine = slice(self.first[row], self.first[row + 1])
            found = f"has labels {self.label[mine].tolist()} with counts {self.count[mine].tolist()}"
            raise arrays.RowError("labels", row, f"{found}; expected ascending labels from 1, counts of 1 or more")

    @classmethod
    def from_rows(cls, n_labels: NDArray[Any], label: NDArray[np.uint16], count: NDArray[np.int64]) -> Self:
        """Make them of the (N,) number of labels of each element, and the (H,) labels and counts element by element."""
        return cls(np.concatenate([[0], np.cumsum(n_labels)]).astype(np.int64), label, count)

    @classmethod
    def from_modes(cls, label: NDArray[np.uint16]) -> Self:
        """Make elements of one label each, or of none where (N,) `label` is 0."""
        known = label > 0
        return cls.from_rows(known, label[known], np.ones(int(known.sum()), dtype=np.int64))

    @classmethod
    def of(cls, label: "ArrayLike | LabelCounts", n: int) -> Self:
        """Make those of n elements from (N,) labels, one label for all, or counts, which stay as they are.

        Raises:
            InputError: no labels from 0 to 65535, or another number of them.
        """
        if isinstance(label, LabelCounts):
            if len(label) != n:
                raise InputError("label", f"has {len(label)} rows, expected {n}")
            return cls(label.first, label.label, label.count)
        return cls.from_modes(arrays.as_integers("label", label, (n,), np.uint16))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Put the elements of several one after the other; at least one part."""
        n_labels = np.concatenate([np.diff(part.first) for part in parts])
        label, count = (np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "count"))
        return cls.from_rows(n_labels, label, count)

    def __len__(self) -> int:
        """Count the elements."""
        return len(self.first) - 1

    def __getitem__(self, index: Index) -> Self:
        """Select elements by slice, mask or positions."""
        rows = np.arange(len(self))[arrays.as_selection(index, len(self))]
        n_labels = np.diff(self.first)[rows]
        shift = self.first[rows] - (np.cumsum(n_labels) - n_labels)
        entries = np.repeat(shift, n_labels) + np.arange(int(n_labels.sum()))
        return self.from_rows(n_labels, self.label[entries], self.count[entries])

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.first.nbytes + self.label.nbytes + self.count.nbytes

    def mixed(self) -> NDArray[np.bool_]:
        """(N,) whether an element has more than one label."""
        return np.diff(self.first) > 1

    def most_common(self) -> NDArray[np.uint16]:
        """(N,) the most frequent label, the smaller of equals; 0 where labels are unknown."""
        most = np.zeros(len(self), dtype=np.uint16)
        n_labels = np.diff(self.first)
        some = n_labels > 0
        if some.any():
            top = np.maximum.reduceat(self.count, self.first[:-1][some])
            best = np.flatnonzero(self.count == np.repeat(top, n_labels[some]))[::-1]
            most[self._row()[best]] = self.label[best]  # backwards: the smaller label is written last, and stays
        return most

    def equal(self, other: Self) -> bool:
        """Tell whether both hold the same counts."""
        mine, theirs = (self.first, self.label, self.count), (other.first, other.label, other.count)
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def _row(self) -> NDArray[np.int64]:
        """(H,) the element that each entry is about."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


def engine_labels(label: ArrayLike | LabelCounts, n: int) -> tuple[NDArray[np.uint16], "_core.LabelArrays | None"]:
    """Return (n,) most frequent labels, and all histograms if any element has more than one label.

    Raises:
        InputError: no labels from 0 to 65535, or another number of them.
    """
    from hedgerow import _core  # here, so that describing a world does not load the engine

    if not isinstance(label, LabelCounts):
        return np.ascontiguousarray(arrays.as_integers("label", label, (n,), np.uint16)), None
    counts = LabelCounts.of(label, n)
    if not counts.mixed().any():
        return counts.most_common(), None
    return counts.most_common(), _core.LabelArrays(first=counts.first, label=counts.label, count=counts.count)
