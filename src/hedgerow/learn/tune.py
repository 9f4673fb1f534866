# SPDX-License-Identifier: Apache-2.0
"""Training of the surface/volume classifier on labelled points by differential evolution (Storn and Price 1997).

000 §3.3.4 trains so because some parameters are whole numbers and the score has no useful gradient. The objective is
the balanced accuracy, the mean of the shares of surface and of volume points found, so that a log with little
vegetation is not won by calling everything a surface.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.learn import thinning
from hedgerow.learn.classify import SPHERE, VOXEL_M, ClassifierParameters, scores
from hedgerow.log import Log

Progress = Callable[[int], object]

BOUNDS = {
    "radius_m": (0.1, 0.6),
    "min_neighbours": (3, 20),
    "default_score": (0.0, SPHERE),
    "filter_neighbours": (1, 100),
    "filter_radius_m": (0.1, 0.6),
    "distance_weight": (0.0, 10.0),
    "score_weight": (0.0, 20.0),
}
"""Where the parameters are sought; the threshold is found exactly for each of the others."""
_WHOLE = ("min_neighbours", "filter_neighbours")


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPoints:
    """Points of one place summed up over voxels: what a classifier is scored on."""

    position_m: NDArray[np.float64]
    """(N, 3) mean position in each voxel, map frame."""
    n_surface: NDArray[np.int64]
    """(N,) how many of its points are labelled surface."""
    n_volume: NDArray[np.int64]
    """(N,) how many are labelled volume."""

    @classmethod
    def of_points(
        cls, position_m: NDArray[np.float64], is_volume: NDArray[np.bool_], voxel_m: float = VOXEL_M
    ) -> "LabelledPoints":
        """Sum up (N, 3) points, map frame, with (N,) labels."""
        grains, grain_of = thinning.thin(position_m, np.zeros_like(position_m, dtype=np.float32), voxel_m)
        n_volume = np.bincount(grain_of, weights=is_volume, minlength=len(grains)).astype(np.int64)
        return cls(thinning.positions_m(grains, voxel_m), grains["count"] - n_volume, n_volume)

    @classmethod
    def of_log(
        cls, log: Log, volume_labels: Sequence[int], ignored_labels: Sequence[int] = (0,), voxel_m: float = VOXEL_M
    ) -> "LabelledPoints":
        """Take the labelled points of a log; those of ignored labels are left out altogether.

        Raises:
            InputError: the log has no labels.
        """
        if log.returns.label is None:
            raise InputError("log: has no labels; a classifier is trained on labelled points")
        label = log.returns.label[log.returns.hit]
        use = ~np.isin(label, list(ignored_labels))
        return cls.of_points(log.points()[use], np.isin(label[use], list(volume_labels)), voxel_m)

    def patches(self, max_voxels: int, rng: np.random.Generator) -> "LabelledPoints":
        """Keep whole neighbourhoods: squares of 4 m chosen at random until they hold about that many voxels."""
        if len(self.position_m) <= max_voxels:
            return self
        square = np.floor(self.position_m[:, :2] / 4.0).astype(np.int64)
        _, which, size = np.unique(square, axis=0, return_inverse=True, return_counts=True)
        order = rng.permutation(len(size))
        enough = int(np.searchsorted(np.cumsum(size[order]), max_voxels)) + 1
        keep = np.isin(which.ravel(), order[:enough])
        return LabelledPoints(np.ascontiguousarray(self.position_m[keep]), self.n_surface[keep], self.n_volume[keep])


def tune_classifier(
    logs: Log | Sequence[Log],
    volume_labels: Sequence[int],
    *,
    ignored_labels: Sequence[int] = (0,),
    seed: int = 0,
    generations: int = 20,
    population: int = 4,
    max_voxels: int = 60_000,
    progress: Progress | None = None,
) -> tuple[ClassifierParameters, float]:
    """Train the classifier on labelled logs.

    Args:
        logs: one or several, of different places or densities; each counts the same.
        volume_labels: what is a volume, for example 70 (vegetation) of SemanticKITTI; all else is surface.
        ignored_labels: points of these labels are left out. Default: 0, unlabelled.
        seed: of the search; same seed, same answer.
        generations: rounds of the search.
        population: candidates per parameter and round.
        max_voxels: of each log, the points in about this many voxels, around places chosen at random, are used.
        progress: called after each generation with its number.

    Returns:
        The best parameters found, and their balanced accuracy (0.5 is chance, 1 perfect) on the training points.

    Raises:
        InputError: no labels, or only one of the two classes occurs.
    """
    rng = np.random.default_rng(seed)
    samples = [
        LabelledPoints.of_log(log, volume_labels, ignored_labels).patches(max_voxels, rng)
        for log in ([logs] if isinstance(logs, Log) else logs)
    ]
    if not sum(each.n_volume.sum() for each in samples) or not sum(each.n_surface.sum() for each in samples):
        raise InputError(f"log: its points are all of one class; volume_labels are {list(volume_labels)}")
    best = _search(samples, seed, generations, population, progress)
    threshold, score = _best_threshold(samples, best)
    return best.model_copy(update={"threshold": threshold}), score


def _search(
    samples: Sequence[LabelledPoints], seed: int, generations: int, population: int, progress: Progress | None
) -> ClassifierParameters:
    optimize: Any = import_module("scipy.optimize")  # carries no type information
    done = 0

    def cost(unknowns: NDArray[np.float64]) -> float:
        return -_best_threshold(samples, _parameters(unknowns))[1]

    def report(*_: Any, **__: Any) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)

    found = optimize.differential_evolution(
        cost,
        list(BOUNDS.values()),
        integrality=[name in _WHOLE for name in BOUNDS],
        seed=seed,
        maxiter=generations,
        popsize=population,
        tol=1e-4,
        polish=False,
        callback=report,
    )
    return _parameters(np.asarray(found.x))


def balanced_accuracy(points: LabelledPoints, parameters: ClassifierParameters) -> float:
    """Return the mean of the shares of surface and of volume points that the classifier finds."""
    is_volume = scores(points.position_m, parameters) > parameters.threshold
    found = points.n_volume[is_volume].sum() / max(1, points.n_volume.sum())
    kept = points.n_surface[~is_volume].sum() / max(1, points.n_surface.sum())
    return float((found + kept) / 2)


def _parameters(unknowns: NDArray[np.float64]) -> ClassifierParameters:
    values = dict(zip(BOUNDS, unknowns.tolist(), strict=True))
    whole = {name: round(values[name]) for name in _WHOLE}
    return ClassifierParameters(**(values | whole), threshold=0.1)


def _best_threshold(samples: Sequence[LabelledPoints], parameters: ClassifierParameters) -> tuple[float, float]:
    """Return the threshold with the best mean accuracy over the samples, and that accuracy."""
    n_bins = 1000
    accuracy = np.zeros(n_bins + 1)
    for points in samples:
        score = scores(points.position_m, parameters)
        at = np.minimum((score * (n_bins / SPHERE)).astype(np.int64), n_bins - 1)
        surface, volume = (np.bincount(at, weights=n, minlength=n_bins) for n in (points.n_surface, points.n_volume))
        # Threshold k keeps bins below k as surface.
        kept, found = (np.concatenate([[0], np.cumsum(n)]) for n in (surface, volume))
        accuracy += (kept / max(1.0, kept[-1]) + 1 - found / max(1.0, found[-1])) / 2
    best = int(np.argmax(accuracy))
    return best * SPHERE / n_bins, float(accuracy[best] / len(samples))
