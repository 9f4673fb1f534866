# SPDX-License-Identifier: Apache-2.0
"""Training of the classifier by differential evolution (Storn and Price 1997) on labelled returns (Browning 2012
§3.3.4).

The score is a balanced accuracy: the share of the volume's returns called a volume and the share of the surface's
called a surface, the first with twice the weight. Browning 2012 remarks that a surface called a volume costs less: it
is still simulated well, only with more elements.

Only seven numbers are searched. The voxel is given, and the best threshold for the other seven is found exactly by
going through all of them, which saves the search a dimension. Large sites are scored on square blocks drawn from
them, with all that lies around the blocks in place, so that no neighbourhood is cut.

Equations: docs/models.md §12.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import with_finer
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps import thinning
from hedgerow.models.steps.classifier import MAX_SCORE, ClassifierParameters, smooth_scores, sphericalness
from hedgerow.models.steps.normals import local_spectra

VOLUME_WEIGHT = 2.0
"""Weight of the volume's share against the surface's 1."""
_THRESHOLD_STEP = 0.0005
_N_THRESHOLDS = int(MAX_SCORE / _THRESHOLD_STEP) + 1
_RADIUS_STEP_M = 0.05
# In steps of the radius so that neighbourhoods are measured once per radius. Each: lowest, highest, is it whole?
_BOUNDS: dict[str, tuple[float, float, bool]] = {
    "radius_m": (4, 16, True),
    "default_score": (0.0, 0.333, False),
    "min_neighbours": (3, 20, True),
    "smooth_neighbours": (1, 60, True),
    "smooth_radius_m": (0.1, 0.6, False),
    "distance_weight": (0.0, 10.0, False),
    "score_weight": (0.0, 10.0, False),
}
_POPULATION = 4  # members per searched number
_BLOCK_M = 16.0
_HALO_M = _BOUNDS["radius_m"][1] * _RADIUS_STEP_M + _BOUNDS["smooth_radius_m"][1]


class ClassifierScore(NamedTuple):
    """How well returns of a labelled log were told apart."""

    weighted: float
    """What training maximises: both recalls, that of the volume with twice the weight."""
    volume_recall: float
    """Share of the volume's returns that were called a volume."""
    surface_recall: float
    """Share of the surface's returns that were called a surface."""
    n_volume: int
    """Returns with a label of a volume."""
    n_surface: int
    """Returns with any other label but 0."""


@dataclass
class _Site:
    """A labelled cloud, thinned; how many returns of each class its voxels hold; what was measured around them."""

    position_m: NDArray[np.float64]
    n_volume: NDArray[np.int64]
    n_surface: NDArray[np.int64]
    spectra: dict[float, tuple[NDArray[np.float32], NDArray[np.uint32]]] = field(default_factory=dict[float, Any])

    def scores(self, parameters: ClassifierParameters) -> NDArray[np.float32]:
        radius_m = parameters.radius_m
        if radius_m not in self.spectra:
            self.spectra[radius_m] = local_spectra(self.position_m, radius_m)
        return smooth_scores(self.position_m, sphericalness(*self.spectra[radius_m], parameters), parameters)

    def shares(self, parameters: ClassifierParameters) -> NDArray[np.float64]:
        """Return (K,) the score for each of the thresholds."""
        at = np.minimum(self.scores(parameters) / _THRESHOLD_STEP, _N_THRESHOLDS - 1).astype(np.int64)
        volume = np.bincount(at, self.n_volume, _N_THRESHOLDS)
        surface = np.bincount(at, self.n_surface, _N_THRESHOLDS)
        # Threshold k calls a volume what lies in step k or above.
        below = np.cumsum(surface) - surface
        above = np.cumsum(volume[::-1])[::-1]
        return _weighted(above / volume.sum(), below / surface.sum())


def tune_classifier(
    log: Log | Sequence[Log],
    volume_labels: Collection[int],
    *,
    voxel_m: float = 0.1,
    seed: int = 0,
    max_rounds: int = 20,
    max_voxels: int = 40_000,
    progress: Progress | None = None,
) -> tuple[ClassifierParameters, float]:
    """Find the parameters that tell surface and volume apart best.

    Args:
        log: labelled returns, map frame; several logs are several sites (or sensors), each of which counts the same.
        volume_labels: which labels are volumes, with all finer ones that fold into them (`base.labels`): 70 is all
            vegetation. All others are surfaces; 0 is unlabelled and does not count.
        voxel_m: side of the voxels that points are thinned to [m]; not searched.
        seed: the same seed gives the same parameters.
        max_rounds: generations of the search, 28 trials each; 0 keeps the best of the first.
        max_voxels: about how many voxels of each log are scored; the blocks they lie in are drawn with the seed.
        progress: called after each generation with how many there were.

    Returns:
        The parameters, and their score in [0, 1] (see the module; 1 is without error).

    Raises:
        InputError: a log has no labels, or no return of the one or the other class.
    """
    logs = [log] if isinstance(log, Log) else list(log)
    if not logs:
        raise InputError("log", "there is none; give at least one labelled log")
    sites = [_sampled(_site(each, set(volume_labels), voxel_m), max_voxels, seed) for each in logs]
    found = _search(sites, voxel_m, seed, max_rounds, progress)
    return _with_threshold(sites, _parameters(found, voxel_m))


def score_classifier(log: Log, volume_labels: Collection[int], parameters: ClassifierParameters) -> ClassifierScore:
    """Score parameters on all returns of a labelled log.

    Raises:
        InputError: as `tune_classifier`.
    """
    site = _site(log, set(volume_labels), parameters.voxel_m)
    is_volume = site.scores(parameters) >= np.float32(parameters.volume_score)
    n_volume, n_surface = int(site.n_volume.sum()), int(site.n_surface.sum())
    volume = float(site.n_volume[is_volume].sum() / n_volume)
    surface = float(site.n_surface[~is_volume].sum() / n_surface)
    return ClassifierScore(float(_weighted(volume, surface)), volume, surface, n_volume, n_surface)


def _weighted(volume: Any, surface: Any) -> Any:
    return (VOLUME_WEIGHT * volume + surface) / (VOLUME_WEIGHT + 1)


def _site(log: Log, volume_labels: set[int], voxel_m: float) -> _Site:
    if log.returns.label is None:
        raise InputError("log", "has no labels; the classifier can only be tuned on labelled returns")
    points = thinning.points_of(log)
    label = points["label"]
    thinned, thinned_of = thinning.thin(points["position_m"], points["toward"], voxel_m)
    is_volume = np.isin(label, sorted(with_finer(volume_labels))) & (label != 0)
    is_surface = ~is_volume & (label != 0)
    for name, mask in (("volume", is_volume), ("surface", is_surface)):
        if not mask.any():
            found = ", ".join(str(each) for each in np.unique(label).tolist()) or "none"
            raise InputError(
                "log",
                f"has no return with a label of a {name}; found labels {found}, "
                f"and volume_labels are {sorted(volume_labels)}",
            )
    n_volume = np.bincount(thinned_of[is_volume], minlength=len(thinned))
    n_surface = np.bincount(thinned_of[is_surface], minlength=len(thinned))
    return _Site(thinning.positions_m(thinned, voxel_m), n_volume, n_surface)


def _sampled(site: _Site, max_voxels: int, seed: int) -> _Site:
    """Score only some blocks of a large site: enough voxels, and both classes."""
    if len(site.position_m) <= max_voxels:
        return site
    block = _blocks(site.position_m)
    found, block_of = np.unique(block, return_inverse=True)
    block_of = block_of.reshape(-1)
    order = np.random.default_rng(seed).permutation(len(found))
    columns = (np.ones(len(block)), site.n_volume, site.n_surface)
    totals = [np.cumsum(np.bincount(block_of, column)[order]) for column in columns]
    enough = (totals[0] >= max_voxels) & (totals[1] > 0) & (totals[2] > 0)
    enough[-1] = True
    chosen = found[order[: int(enough.argmax()) + 1]]
    scored = np.isin(block, chosen)
    around = scored.copy()
    for x in (-_HALO_M, 0.0, _HALO_M):
        for y in (-_HALO_M, 0.0, _HALO_M):
            around |= np.isin(_blocks(site.position_m + np.array([x, y, 0.0])), chosen)
    n_volume, n_surface = np.where(scored, site.n_volume, 0), np.where(scored, site.n_surface, 0)
    return _Site(site.position_m[around], n_volume[around], n_surface[around])


def _blocks(position_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number the square block that each point lies in."""
    place = np.floor(position_m[:, :2] / _BLOCK_M).astype(np.int64)
    return place[:, 0] * (1 << 31) + place[:, 1]


def _search(
    sites: list[_Site], voxel_m: float, seed: int, max_rounds: int, progress: Progress | None
) -> NDArray[np.float64]:
    from scipy.optimize import Bounds, differential_evolution

    n_done = 0

    def loss(values: NDArray[np.float64]) -> float:
        return -float(_mean_shares(sites, _parameters(values, voxel_m)).max())

    def after_round(*_: Any, **__: Any) -> None:
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(n_done)

    return differential_evolution(
        loss,
        Bounds([low for low, _, _ in _BOUNDS.values()], [high for _, high, _ in _BOUNDS.values()]),
        integrality=[whole for _, _, whole in _BOUNDS.values()],
        popsize=_POPULATION,
        maxiter=max_rounds,
        tol=1e-4,
        polish=False,  # there is no gradient to follow
        seed=np.random.default_rng(seed),
        callback=after_round,
    ).x


def _mean_shares(sites: list[_Site], parameters: ClassifierParameters) -> NDArray[np.float64]:
    return np.mean([site.shares(parameters) for site in sites], axis=0)


def _with_threshold(sites: list[_Site], parameters: ClassifierParameters) -> tuple[ClassifierParameters, float]:
    shares = _mean_shares(sites, parameters)
    best = int(shares.argmax())
    return parameters.model_copy(update={"volume_score": round(best * _THRESHOLD_STEP, 4)}), float(shares[best])


def _parameters(values: NDArray[np.float64], voxel_m: float) -> ClassifierParameters:
    """Read a member of the population; rounded, so that what is written down is what was scored."""
    named: dict[str, Any] = {}
    for (name, (_, _, whole)), value in zip(_BOUNDS.items(), values.tolist(), strict=True):
        named[name] = round(value) if whole else round(value, 3)
    named["radius_m"] = round(named["radius_m"] * _RADIUS_STEP_M, 2)
    return ClassifierParameters(voxel_m=voxel_m, **named)
