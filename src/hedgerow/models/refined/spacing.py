# SPDX-License-Identifier: Apache-2.0
"""How far apart the beams of different sweeps meet a surface, and elements that are wide enough to close the gaps.

Likelihood makes an element as narrow as the returns that it explains. Between the rings of a sweep a surface has no
returns, so seen from a new place it has holes. How wide the gaps are is in the log: the distance from a return to the
nearest one of another sweep, along the surface. Flat elements are made at least some multiple of it wide, along their
plane. Which multiple is chosen on views that were not learned from (model.py), 0 among the candidates.

A disc that was made wider lies off a surface that bends, and overlaps its neighbours. So thickness, place along the
normal and stopping are fitted once more to the training beams (`refit_thickness`): without that the likelihood of
ranges is lost, and forecasts are too sure.

Equations: docs/models.md §16.
"""

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.progress import Progress
from hedgerow.models.refined.prior import compose_covariance, tree_of
from hedgerow.models.refined.rounds import MEAN_COUNT, RaySums, maximise_stop
from hedgerow.parallel.log_parts import LogInParts
from hedgerow.world.elements import Gaussians

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

_EVERY = 8
"""Every n-th return of a sweep tells how far the others are."""
_BEFORE = 8
"""So many sweeps before it a sweep is held against: neighbours in time are neighbours in place."""
_FARTHEST_M = 2.0
"""Returns without another sweep's within this distance tell nothing: nothing else saw the place."""
_FLAT = 0.25
"""An element is flat if its smallest sigma is below this share of the next."""
_N_POOLED = 4
"""Elements whose sums are pooled: one alone has few returns."""
_THICKNESS_COUNT = 7.0
"""How many returns the thickness that an element has counts for, when it is fitted once more."""


def measure_spacing(gaussians: Gaussians, log: LogInParts, progress: Progress | None = None) -> NDArray[np.float64]:
    """Return the (N,) distance, along each element's plane, from its returns to those of other sweeps [m].

    Sweeps come in the order of the log, each held against those before it, so the cut of the log does not matter.

    Args:
        gaussians: the elements.
        log: its sweeps.
        progress: called with the number of beams done.

    Returns:
        Root mean squares; 0 where no two sweeps saw the place.
    """
    normal = np.linalg.eigh(gaussians.covariance_m2)[1][:, :, 0]
    elements = tree_of(gaussians.mean_m)
    total_m2, n_returns = np.zeros(len(gaussians)), np.zeros(len(gaussians))
    earlier: deque[tuple[NDArray[np.float64], cKDTree]] = deque(maxlen=_BEFORE)
    n_done = 0
    for part in log.parts():
        for _, sweep in part.read().iter_sweeps():
            cloud_m = sweep.points()
            if len(cloud_m):
                some_m, away_m = _to_nearest(cloud_m[::_EVERY], earlier)
                element = elements.query(some_m, workers=-1)[1]
                across_m = np.einsum("ni,ni->n", away_m, normal[element])
                square_m2 = np.einsum("ni,ni->n", away_m, away_m) - across_m**2
                total_m2 += np.bincount(element, square_m2.clip(0), len(total_m2))
                n_returns += np.bincount(element, minlength=len(n_returns))
                earlier.append((cloud_m, tree_of(cloud_m)))
            n_done += len(sweep)
            if progress is not None:
                progress(n_done)
    near = elements.query(gaussians.mean_m, k=np.arange(1, min(_N_POOLED, len(gaussians)) + 1))[1]
    counted = n_returns[near].sum(axis=1)
    return np.sqrt(np.divide(total_m2[near].sum(axis=1), counted, out=np.zeros(len(counted)), where=counted > 0))


def widen(gaussians: Gaussians, spacing_m: NDArray[np.float64], times: float) -> Gaussians:
    """Return the elements with flat ones at least `times` the spacing wide along their plane; the same if none is."""
    variance, axes = np.linalg.eigh(gaussians.covariance_m2)
    flat = variance[:, 0] < _FLAT**2 * variance[:, 1]
    least = np.where(flat, (times * spacing_m) ** 2, 0.0)
    wider = variance.copy()
    wider[:, 1:] = np.maximum(variance[:, 1:], least[:, None])
    changed = (wider != variance).any(axis=1)
    if not changed.any():
        return gaussians
    covariance_m2 = gaussians.covariance_m2.copy()
    covariance_m2[changed] = compose_covariance(wider[changed], axes[changed])
    return replace(gaussians, covariance_m2=covariance_m2)


def refit_thickness(gaussians: Gaussians, sums: RaySums) -> Gaussians:
    """Return the elements after one round of expectation maximisation that leaves their width along the surface alone.

    Args:
        gaussians: the elements that the sums were gathered with.
        sums: of the training beams.
    """
    variance, axes = np.linalg.eigh(gaussians.covariance_m2)
    normal, hits = axes[:, :, 0], sums.hits
    n = np.maximum(hits, 1e-9)
    off_m = np.einsum("ni,ni->n", normal, sums.offset_m) / n
    own_m2 = np.einsum("ni,nij,nj->n", normal, sums.square_m2, normal) / n - off_m**2
    trust = hits / (hits + _THICKNESS_COUNT)
    variance[:, 0] = np.maximum(trust * own_m2 + (1 - trust) * variance[:, 0], gaussians.min_sigma_m**2)
    return replace(
        gaussians,
        mean_m=gaussians.mean_m + (hits / (hits + MEAN_COUNT) * off_m)[:, None] * normal,
        covariance_m2=compose_covariance(variance, axes),
        stop=maximise_stop(gaussians, sums),
    )


def _to_nearest(
    points_m: NDArray[np.float64], clouds: "deque[tuple[NDArray[np.float64], cKDTree]]"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return those points that have one of some clouds nearby, and the ways from them to the nearest."""
    best_m = np.full(len(points_m), np.inf)
    away_m = np.zeros_like(points_m)
    for cloud_m, tree in clouds:
        found = tree.query(points_m, distance_upper_bound=_FARTHEST_M, workers=-1)
        distance_m, row = np.asarray(found[0]), np.asarray(found[1])
        nearer = distance_m < best_m
        best_m[nearer] = distance_m[nearer]
        away_m[nearer] = cloud_m[row[nearer]] - points_m[nearer]
    seen = np.isfinite(best_m)
    return points_m[seen], away_m[seen]
