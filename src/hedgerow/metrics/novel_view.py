# SPDX-License-Identifier: Apache-2.0
"""Scores of the lidar re-simulation papers (LiDAR4D 2024 and others), sweep by sweep, off unless `novel_view` is set.

Each is computed for a sweep and averaged over sweeps, as there, but on the true beams of the sensor: its rings by 1030
steps of azimuth (range_image.py), instead of an image that is resampled from points. Ranges of 80 m and more, and beams
without return, are empty; errors are over all pixels that have a beam, empty is 0.

| key | what it is |
| --- | --- |
| chamfer_m2 | mean squared distance to the nearest point of the other cloud, one way plus the other |
| f_score | harmonic mean of the shares of points whose squared distance is below 0.05 m², one way and the other |
| range_rmse_m, range_medae_m | root mean square and median absolute error of ranges |
| range_ssim, range_psnr | structural similarity of the range images; PSNR with a peak of 80 m |
| intensity_rmse, _medae, _ssim, _psnr | the same of intensities, with a peak of 1; not where they exceed 1 |
| drop_rmse | root mean square error of the probability of a return |
| drop_accuracy, drop_f1, return_f1 | beams told right; F1 of being dropped; F1 of returning, as LiDAR4D's code has it |

Keys that begin with `draw_` score one drawn answer, those with `median_` the median answer of the forecast, which is
what these papers give: the median range and the mean intensity, or none where no return is likelier. A draw has noise
twice, so its errors are larger.

Equations: docs/models.md §25.
"""

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import Nearest, SweepPair, points_of
from hedgerow.metrics.range_image import Pixels, pixels_of, structural_similarity

PEAK_M = 80.0
INTENSITY_PEAK = 1.0
NEAR_M2 = 0.05
_SOURCE = "LiDAR4D 2024"
_ROWS: dict[str, tuple[str, str, str, int]] = {
    "chamfer_m2": ("Chamfer distance", "squared distances to the nearest point, both ways added", "m²", 4),
    "f_score": ("F-score at 0.05 m²", "points that have one of the other cloud near, both ways", "", 3),
    "range_rmse_m": ("Ranges, RMSE", "root mean square error of ranges; empty is 0", "m", 3),
    "range_medae_m": ("Ranges, median error", "median absolute error of ranges; empty is 0", "m", 4),
    "range_ssim": ("Ranges, SSIM", "structural similarity of range images", "", 3),
    "range_psnr": ("Ranges, PSNR", "peak signal to noise ratio of ranges, peak 80 m", "dB", 2),
    "intensity_rmse": ("Intensities, RMSE", "root mean square error of intensities; empty is 0", "", 3),
    "intensity_medae": ("Intensities, median error", "median absolute error of intensities; empty is 0", "", 3),
    "intensity_ssim": ("Intensities, SSIM", "structural similarity of intensity images", "", 3),
    "intensity_psnr": ("Intensities, PSNR", "peak signal to noise ratio of intensities, peak 1", "dB", 2),
    "drop_rmse": ("Dropped beams, RMSE", "root mean square error of the probability of a return", "", 3),
    "drop_accuracy": ("Dropped beams, accuracy", "beams that are rightly dropped or kept", "", 3),
    "drop_f1": ("Dropped beams, F1", "F1 of being dropped", "", 3),
    "return_f1": ("Kept beams, F1", "F1 of returning: what LiDAR4D's code calls F1 of ray drop", "", 3),
}
_ANSWERS = {"draw": "of a draw", "median": "of the median"}
NOVEL_VIEW_METRICS = {
    f"{answer}_{key}": Metric(
        label=f"{label}, {said}", meaning=meaning, source=_SOURCE, unit=unit, decimals=decimals, counts="sweeps"
    )
    for answer, said in _ANSWERS.items()
    for key, (label, meaning, unit, decimals) in _ROWS.items()
}


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What was measured along some beams, or is answered to them; of what is not known, scores are left out."""

    range_m: NDArray[np.floating]
    """(N,) ranges; inf is no return."""
    intensity: NDArray[np.floating] | None = None
    """(N,) of the returns, from 0 to 1."""
    returns: NDArray[np.float64] | None = None
    """(N,) probability of a return; None: 1 where there is one, 0 elsewhere."""

    def at(self, rows: NDArray[np.intp]) -> "View":
        """Return some rows."""
        columns = (self.range_m, self.intensity, self.returns)
        return View(*(None if each is None else each[rows] for each in columns))  # type: ignore[arg-type]


class NovelView:
    """Sums over sweeps."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.is_wanted = settings.novel_view
        self.sums: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.shape: tuple[int, int] | None = None
        """Of the largest image."""
        self.n_without_image = self.n_too_bright = 0

    def add(self, pair: SweepPair) -> None:
        """Add one sweep, if these scores are wanted."""
        if not self.is_wanted or len(pair.hit) == 0:
            return
        pixels = pixels_of(pair.real.beams)
        if pixels is None:
            self.n_without_image += 1
        else:
            self.shape = max(pixels.shape, self.shape or (0, 0))
        real = View(pair.real.range_m, self._known(pair.real.log.returns.first("intensity")))
        answers = {"draw": View(pair.range_m, pair.column("intensity"))}
        told = pair.forecast
        if told is not None:
            answers["median"] = View(told.answer_m, told.intensity, told.returns)
        for answer, view in answers.items():
            for key, value in score_view(pair.real.beams, real, view, pixels).items():
                name = f"{answer}_{key}"
                self.sums[name] = self.sums.get(name, 0.0) + value
                self.counts[name] = self.counts.get(name, 0) + 1

    def _known(self, intensity: NDArray[Any] | None) -> NDArray[np.floating] | None:
        """Return measured intensities if they end at 1, which is their peak here."""
        if intensity is None or not np.nanmax(intensity, initial=0) > INTENSITY_PEAK:
            return cast("NDArray[np.floating] | None", intensity)
        self.n_too_bright += 1
        return None

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + other.counts[name]
        self.shape = max(self.shape or (0, 0), other.shape or (0, 0)) if self.shape or other.shape else None
        self.n_without_image += other.n_without_image
        self.n_too_bright += other.n_too_bright

    def values(self) -> dict[str, Value]:
        """Return the means over sweeps; {} if they are not wanted."""
        known = [name for name in NOVEL_VIEW_METRICS if name in self.sums]
        return {name: Value(self.sums[name] / self.counts[name], self.counts[name]) for name in known}

    def notes(self) -> list[str]:
        """Say what differs from the papers, and what was left out."""
        said: list[str] = []
        if self.shape is not None:
            rows, columns = self.shape
            said.append(
                f"novel-view scores are over images of {rows} rings x {columns} columns, each pixel a true beam; the "
                "papers' are 66 x 1030, resampled from points in uniform rows, beams that hit nothing and rows between "
                "the rings alike empty; 80 m and more is empty"
            )
        if self.n_without_image:
            said.append(
                f"{self.n_without_image} sweeps have too few rings for an image: their novel-view scores are over all "
                "beams, without SSIM"
            )
        if self.n_too_bright:
            said.append(f"{self.n_too_bright} sweeps have intensities above 1, which is the peak of novel-view scores")
        return said


def score_view(beams: Beams, real: View, answer: View, pixels: Pixels | None) -> dict[str, float]:
    """Score the answer to the beams of one sweep.

    Args:
        beams: N of them.
        real: N rows, as measured.
        answer: N rows.
        pixels: which of them make the image; None: all count, and there is no SSIM.

    Returns:
        Values by key; what is undefined, such as the distance to no points, is left out.
    """
    if pixels is not None:
        beams, real, answer = beams[pixels.beam], real.at(pixels.beam), answer.at(pixels.beam)
    kept, seen = real.range_m < PEAK_M, answer.range_m < PEAK_M
    found = _cloud_scores(beams, (real.range_m, kept), (answer.range_m, seen))
    found |= _image_scores("range", _filled(real.range_m, kept), _filled(answer.range_m, seen), PEAK_M, pixels)
    found["range_rmse_m"], found["range_medae_m"] = found.pop("range_rmse"), found.pop("range_medae")
    if _tells(real.intensity, kept) and _tells(answer.intensity, seen):
        lit = (_filled(real.intensity, kept), _filled(answer.intensity, seen))
        found |= _image_scores("intensity", *lit, INTENSITY_PEAK, pixels)
    return found | _drop_scores(kept, seen, answer.returns)


def _tells(intensity: NDArray[np.floating] | None, hit: NDArray[np.bool_]) -> bool:
    return intensity is not None and bool(np.isfinite(intensity[hit]).any())


def _filled(values: NDArray[np.floating] | None, hit: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the pixels of an image: 0 where there is no return, or where nothing is known of it."""
    assert values is not None
    return np.where(hit & np.isfinite(values), values, 0).astype(np.float64)


def _cloud_scores(
    beams: Beams,
    real: tuple[NDArray[np.floating], NDArray[np.bool_]],
    answer: tuple[NDArray[np.floating], NDArray[np.bool_]],
) -> dict[str, float]:
    if not (real[1].any() and answer[1].any()):
        return {}
    theirs, ours = points_of(beams, *real), points_of(beams, *answer)
    there, back = Nearest(theirs).distance_m(ours) ** 2, Nearest(ours).distance_m(theirs) ** 2
    precision, recall = float((there < NEAR_M2).mean()), float((back < NEAR_M2).mean())
    return {
        "chamfer_m2": float(there.mean() + back.mean()),
        "f_score": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
    }


def _image_scores(
    what: str, real: NDArray[np.float64], answer: NDArray[np.float64], peak: float, pixels: Pixels | None
) -> dict[str, float]:
    real, answer = np.clip(real, 0, peak), np.clip(answer, 0, peak)
    error = np.abs(answer - real)
    square = float((error**2).mean())
    found = {f"{what}_rmse": square**0.5, f"{what}_medae": float(np.median(error))}
    if square > 0:
        found[f"{what}_psnr"] = float(10 * np.log10(peak**2 / square))
    if pixels is not None:
        shown = pixels.image(real)
        span = float(np.ptp(shown))  # of the real image: so do the papers
        if span > 0:
            found[f"{what}_ssim"] = structural_similarity(shown, pixels.image(answer), span)
    return found


def _drop_scores(
    kept: NDArray[np.bool_], seen: NDArray[np.bool_], returns: NDArray[np.float64] | None
) -> dict[str, float]:
    chance = seen.astype(np.float64) if returns is None else returns
    found = {
        "drop_rmse": float(np.sqrt(((chance - kept) ** 2).mean())),
        "drop_accuracy": float((kept == seen).mean()),
    }
    for key, real, answer in (("drop_f1", ~kept, ~seen), ("return_f1", kept, seen)):
        total = int(np.count_nonzero(real) + np.count_nonzero(answer))
        if total:
            found[key] = 2 * int(np.count_nonzero(real & answer)) / total
    return found
