# SPDX-License-Identifier: Apache-2.0
"""How true the semantic classes of first returns are: accuracy of a draw and of the likeliest label, and log score.

Over beams that really returned with a known label:

- accuracy of a draw: share of the returns of one answer, labelled too, that have the right label. Reality drawn twice
  is not always of one class either (leaves before a wall), so this is to be near reality again;
- accuracy of the likeliest label: that of most of the draws that returned (drawn.py), the smaller number of equals;
- log score: -log of the forecast share of the right label among the draws that returned. Of k draws, c of them right
  and L labels in both logs, the share is taken as (c + 1 / L) / (k + 1): one draw more, evenly of all labels (Laplace's
  rule with a prior of one draw), so that what was never drawn is not impossible. A sure and right forecast of 8 draws
  scores 0.1 with ten labels, not 0.

In a real sweep without any of our finer classes, those of the simulation count as the ones of SemanticKITTI that they
fold into.

Equations: docs/models.md §34.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import to_semantic_kitti
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.counts import add_counts, count_labels
from hedgerow.metrics.metric import Metric, Value, ratio_value
from hedgerow.metrics.pair import SweepPair

LABEL_METRICS = {
    "label_accuracy": Metric(
        label="Labels, likeliest right",
        meaning="real returns whose label is the likeliest of the forecast",
        better="high",
        unit="%",
        scale=100,
        decimals=1,
        counts="beams",
    ),
    "label_log_score": Metric(
        label="Log score of labels",
        meaning="-log of the forecast share of the label that a return really has",
        source="Gneiting and Raftery 2007",
        better="low",
        decimals=4,
        counts="beams",
    ),
    "label_draw_accuracy": Metric(
        label="Labels, a draw right",
        meaning="returns of one drawn answer whose label is the real one",
        better="high",
        near="reality",
        unit="%",
        scale=100,
        decimals=1,
        counts="beams",
    ),
}


class LabelScores:
    """Counts by real label, and how many draws were right."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.labels: set[int] = set()
        """All labels of both."""
        self.is_measured = False
        self.drawn_right: dict[int, int] = {}
        """Returns of one draw that have the right label, by real label; and how many there are."""
        self.drawn_beams: dict[int, int] = {}
        self.likeliest_right: dict[int, int] = {}
        self.likeliest_beams: dict[int, int] = {}
        self.right_of: dict[tuple[int, int], int] = {}
        """Beams by number of draws that returned, and how many of them are right."""

    def add(self, pair: SweepPair) -> None:
        """Add one sweep."""
        measured = pair.real.log.returns.first("label")
        if measured is None or not (measured > 0).any():
            return
        self.is_measured = True
        real = np.where(pair.real.hit, measured, np.uint16(0))
        answer = pair.column("label")
        if answer is not None:
            drawn = _as_real(np.where(pair.hit, answer, np.uint16(0)), real)
            both = (real > 0) & (drawn > 0)
            self._learn_labels(real, drawn)
            add_counts(self.drawn_beams, count_labels(real[both]))
            add_counts(self.drawn_right, count_labels(real[both & (real == drawn)]))
        if pair.drawn is not None and pair.drawn.label is not None:
            rows = pair.drawn.rows
            drawn = _as_real(pair.drawn.label, real)
            self._learn_labels(real, drawn)
            self._add_forecast(real[rows], drawn)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.labels |= other.labels
        self.is_measured |= other.is_measured
        for name in ("drawn_right", "drawn_beams", "likeliest_right", "likeliest_beams", "right_of"):
            add_counts(getattr(self, name), getattr(other, name))

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.drawn_beams)

    def values(self) -> dict[str, Value]:
        """Return what is known; {} if one of the two logs has no labels."""
        found: dict[str, Value] = {}
        if self.likeliest_beams:
            n = sum(self.likeliest_beams.values())
            found["label_accuracy"] = ratio_value(sum(self.likeliest_right.values()), n)
            found["label_log_score"] = Value(self._log_score() / n, n)
        if self.drawn_beams:
            found["label_draw_accuracy"] = ratio_value(sum(self.drawn_right.values()), sum(self.drawn_beams.values()))
        return found

    def notes(self) -> list[str]:
        """Say how labels are forecast."""
        if not self.is_measured:
            return []
        if not self.is_known:
            return ["no scores of labels: the simulation has none"]
        if not self.likeliest_beams:
            return []
        return [
            f"labels are forecast by the draws that returned, and one more evenly of all {len(self.labels)} labels: "
            "share (c + 1 / L) / (k + 1)"
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by real label in types that JSON knows."""
        return {
            "by_label": [
                {
                    "label": label,
                    "drawn": {"right": self.drawn_right.get(label, 0), "beams": self.drawn_beams[label]},
                    "likeliest": {
                        "right": self.likeliest_right.get(label, 0),
                        "beams": self.likeliest_beams.get(label, 0),
                    },
                }
                for label in sorted(self.drawn_beams)
            ]
        }

    def _log_score(self) -> float:
        n_labels = len(self.labels)
        # In one order, so that the sum is the same however parts were merged.
        return float(
            sum(-beams * np.log((c + 1 / n_labels) / (k + 1)) for (k, c), beams in sorted(self.right_of.items()))
        )

    def _learn_labels(self, *some: NDArray[np.uint16]) -> None:
        for labels in some:
            self.labels.update(np.unique(labels[labels > 0]).tolist())

    def _add_forecast(self, real: NDArray[np.uint16], drawn: NDArray[np.uint16]) -> None:
        """Add (R,) real labels and (K, R) drawn ones; 0 is none."""
        n_known, n_right = (drawn > 0).sum(axis=0), ((drawn == real) & (real > 0)).sum(axis=0)
        scored = (real > 0) & (n_known > 0)
        likeliest = _likeliest(drawn)
        add_counts(self.likeliest_beams, count_labels(real[scored]))
        add_counts(self.likeliest_right, count_labels(real[scored & (likeliest == real)]))
        pairs, counts = np.unique(np.stack([n_known[scored], n_right[scored]], axis=1), axis=0, return_counts=True)
        for (known, right), beams in zip(pairs.tolist(), counts.tolist(), strict=True):
            add_counts(self.right_of, {(known, right): beams})


def _as_real(drawn: NDArray[np.uint16], real: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Replace finer classes by those they fold into, unless the real labels have some too."""
    return to_semantic_kitti(drawn) if np.array_equal(to_semantic_kitti(real), real) else drawn


def _likeliest(drawn: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the (R,) most frequent label above 0 of (K, R), the smaller of equals; 0 where there is none."""
    best = np.zeros(drawn.shape[1], dtype=np.uint16)
    most = np.zeros(drawn.shape[1], dtype=np.int64)
    for label in np.unique(drawn[drawn > 0]).tolist():
        count = (drawn == label).sum(axis=0)
        best[count > most] = label
        most = np.maximum(most, count)
    return best
