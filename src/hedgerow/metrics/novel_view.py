# SPDX-License-Identifier: Apache-2.0
"""Scores of the lidar re-simulation papers (LiDAR4D 2024 and others), sweep by sweep, off unless `novel_view` is set.

Each is computed for a sweep and averaged over sweeps, as there, on the true beams of the sensor instead of a resampled
image. Ranges of 80 m and more, and beams without return, are empty; errors are over all beams, empty is 0.

| key | what it is |
| --- | --- |
| chamfer_m2 | mean squared distance to the nearest point of the other cloud, one way plus the other |
| f_score | harmonic mean of the shares of points whose squared distance is below 0.05 m², one way and the other |
| range_rmse_m, range_medae_m, range_psnr | root mean square, median absolute error, and PSNR with a peak of 80 m |
| drop_accuracy, drop_f1 | of the dropped beams: share told right, and F1 of being dropped |

Keys that begin with `draw_` score one drawn answer, those with `median_` the median answer of the forecast, which is
what these papers give: the median range, or none where no return is likelier. A draw has noise twice, so its errors are
larger. SSIM, which needs images, and intensities are not scored.

Equations: docs/models.md §25.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import Nearest, SweepPair, points_of

PEAK_M = 80.0
NEAR_M2 = 0.05
_SOURCE = "LiDAR4D 2024"
_ROWS: dict[str, tuple[str, str, str, int]] = {
    "chamfer_m2": ("Chamfer distance", "squared distances to the nearest point, both ways added", "m²", 4),
    "f_score": ("F-score at 0.05 m²", "points that have one of the other cloud near, both ways", "", 3),
    "range_rmse_m": ("Ranges, RMSE", "root mean square error of ranges; empty is 0", "m", 3),
    "range_medae_m": ("Ranges, median error", "median absolute error of ranges; empty is 0", "m", 4),
    "range_psnr": ("Ranges, PSNR", "peak signal to noise ratio of ranges, peak 80 m", "dB", 2),
    "drop_accuracy": ("Dropped beams, accuracy", "beams that are rightly dropped or kept", "", 3),
    "drop_f1": ("Dropped beams, F1", "F1 of being dropped", "", 3),
}
_ANSWERS = {"draw": "of a draw", "median": "of the median"}
NOVEL_VIEW_METRICS = {
    f"{answer}_{key}": Metric(
        label=f"{label}, {said}", meaning=meaning, source=_SOURCE, unit=unit, decimals=decimals, counts="sweeps"
    )
    for answer, said in _ANSWERS.items()
    for key, (label, meaning, unit, decimals) in _ROWS.items()
}


class NovelView:
    """Sums over sweeps."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.is_wanted = settings.novel_view
        self.sums: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def add(self, pair: SweepPair) -> None:
        """Add one sweep, if these scores are wanted."""
        if not self.is_wanted or len(pair.hit) == 0:
            return
        answers = {"draw": pair.range_m}
        if pair.forecast is not None:
            answers["median"] = pair.forecast.answer_m
        for answer, range_m in answers.items():
            for key, value in score_view(pair.real.beams, pair.real.range_m, range_m).items():
                name = f"{answer}_{key}"
                self.sums[name] = self.sums.get(name, 0.0) + value
                self.counts[name] = self.counts.get(name, 0) + 1

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + other.counts[name]

    def values(self) -> dict[str, Value]:
        """Return the means over sweeps; {} if they are not wanted."""
        known = [name for name in NOVEL_VIEW_METRICS if name in self.sums]
        return {name: Value(self.sums[name] / self.counts[name], self.counts[name]) for name in known}

    def notes(self) -> list[str]:
        """Say what differs from the papers."""
        said = "novel-view scores are over the true beams of each sweep, not over images; 80 m and more is empty"
        return [said] if self.sums else []


def score_view(beams: Beams, real_m: NDArray[np.float32], answer_m: NDArray[np.float32]) -> dict[str, float]:
    """Score the answer to the beams of one sweep.

    Args:
        beams: N of them.
        real_m: (N,) measured ranges; inf is no return.
        answer_m: (N,) answered ranges.

    Returns:
        Values by key; what is undefined, such as the distance to no points, is left out.
    """
    kept, seen = real_m < PEAK_M, answer_m < PEAK_M
    real, answer = np.where(kept, real_m, 0).astype(np.float64), np.where(seen, answer_m, 0).astype(np.float64)
    error_m = np.abs(answer - real)
    square = float((error_m**2).mean())
    found = {
        "range_rmse_m": square**0.5,
        "range_medae_m": float(np.median(error_m)),
        "drop_accuracy": float((kept == seen).mean()),
    }
    if square > 0:
        found["range_psnr"] = float(10 * np.log10(PEAK_M**2 / square))
    dropped = int(np.count_nonzero(~kept) + np.count_nonzero(~seen))
    if dropped:
        found["drop_f1"] = 2 * int(np.count_nonzero(~kept & ~seen)) / dropped
    if kept.any() and seen.any():
        theirs, ours = points_of(beams, real_m, kept), points_of(beams, answer_m, seen)
        there, back = Nearest(theirs).distance_m(ours) ** 2, Nearest(ours).distance_m(theirs) ** 2
        precision, recall = float((there < NEAR_M2).mean()), float((back < NEAR_M2).mean())
        found["chamfer_m2"] = float(there.mean() + back.mean())
        found["f_score"] = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return found
