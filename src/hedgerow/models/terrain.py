# SPDX-License-Identifier: Apache-2.0
"""The terrain model: the ground as a height field, and Gaussians for what stands on it (Tallavajhula 2018 §4.3.1).

The ground is fitted to the lowest points by compact basis functions (`scenes/ground_fit.py`), also where plants hide it
in part, and becomes triangles on a grid; gaps in the data wider than `ground.max_side_m` stay holes. All else becomes
Gaussians of clusters, as many as a share of the points (steps/share_clusters.py). Permeability is counted for both
together, with priors of their own.

What is ground is told by height above the fitted ground; or, as in the thesis, by the shape of the surroundings, before
the fit (steps/classifier.py). The preset tallavajhula-2018 has the values of its Table 4.1. Two things differ from the
thesis there: triangles lie on a grid, not between the points (Delaunay), and a Gaussian's range is drawn along the ray,
not as the distance of a point beside it.

Equations: docs/models.md §6 and §12.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from hedgerow.base.parameters import NotNegative, Positive, Share
from hedgerow.base.progress import Progress, counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.hybrid import read_if_file
from hedgerow.models.steps.classifier import ClassifierParameters, learn_volume_map
from hedgerow.models.steps.credit import DEFAULT_CREDIT, Credit, CreditRounds, share_returns
from hedgerow.models.steps.kept import another_model
from hedgerow.models.steps.log_chunks import LearningTask
from hedgerow.models.steps.moments import Moments, VoxelStatistics, point_records
from hedgerow.models.steps.permeability import Counts, Tables, Unhit, count_passes, with_permeability
from hedgerow.models.steps.share_clusters import ShareParameters, blocks
from hedgerow.models.steps.surface_noise import NoiseParameters, learn_noise
from hedgerow.scenes.ground_fit import Ground, GroundSettings, fit_ground_of, ground_grid
from hedgerow.world.elements import Gaussians, Triangles

IsVolume = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""From (M, 3) points, map frame, to the mask of those that are not ground."""


class TerrainParameters(NoiseParameters):
    """Parameters of the terrain model."""

    ground: GroundSettings = GroundSettings()
    """How the ground is fitted."""
    told_by: Literal["height", "shape"] = "height"
    """What tells ground from the rest: height above the fitted ground, or the shape of the surroundings, as in
    Tallavajhula 2018."""
    clearance_m: Positive = 0.15
    """Told by height: points up to so far above the ground belong to it."""
    classifier: Annotated[ClassifierParameters, BeforeValidator(read_if_file)] = ClassifierParameters()
    """Told by shape: classifier, as in the hybrid model; what it calls a surface is ground."""
    plants: ShareParameters = ShareParameters()
    """Clusters of what is not ground."""
    tau: Positive = 3.5
    """Mahalanobis distance up to which a ray meets a Gaussian."""
    min_sigma_m: Positive = 0.001
    """Minimum standard deviation of a Gaussian along any axis."""
    unbiased: bool = False
    """Whether covariances are divided by the number of points less 1, as in Tallavajhula 2018, instead of all."""
    window_m: Positive = 0.5
    """A return within this distance of a triangle, along the beam, counts as a hit; Tallavajhula 2018: 0.75."""
    triangle_prior_hits: NotNegative = 0.0
    """Hits added to the count of every triangle; Tallavajhula 2018: 1."""
    triangle_prior_passes: NotNegative = 0.0
    """Passes added to the count of every triangle; Tallavajhula 2018: 2."""
    gaussian_prior_hits: NotNegative = 0.0
    """Hits added to the count of every Gaussian; Tallavajhula 2018: 0."""
    gaussian_prior_passes: NotNegative = 0.0
    """Passes added to the count of every Gaussian; Tallavajhula 2018: 1."""
    credit: Credit = DEFAULT_CREDIT
    """What a return within several ellipsoids is credited to: these elements in shares, or each of them (all), as in
    Tallavajhula 2018."""
    credit_rounds: CreditRounds = 4
    """How often returns are shared out anew. Without effect where credit is all."""
    credit_flat: Share = 0.5
    """Gaussians whose smallest standard deviation is less than this share of the next keep what was counted. Without
    effect where credit is all."""
    keep_unhit: Unhit = "unmet"
    """Which triangles stay though no beam hit them, by the counts without priors: none, unmet (no beam passed them
    either) or all. Gaussians without a hit never stay."""


def learn_terrain(task: LearningTask, parameters: TerrainParameters) -> Tables:
    """Learn permeable triangles of the ground, and Gaussians of what stands on it."""
    is_volume: IsVolume | None = None
    if parameters.told_by == "shape":
        told = task.start("telling ground from the rest")
        is_volume = learn_volume_map(task.chunks, parameters.classifier, progress=told)
    ground = _fit(task, parameters, is_volume)
    is_volume = is_volume or (lambda points_m: _stands_out(ground, points_m, parameters.clearance_m))
    plants, looks = _fit_plants(task, parameters, is_volume)
    triangles = _with_looks(Triangles.plain(ground.triangles()), looks)
    triangles = replace(triangles, noise=learn_noise(task, triangles, parameters))
    tables: Tables = (triangles,) if plants is None else (triangles, plants)
    return _count(task, tables, parameters)


def _fit(task: LearningTask, parameters: TerrainParameters, is_volume: IsVolume | None) -> Ground:
    grid = ground_grid(parameters.ground)
    for log in counted(task.chunks(), task.start("fitting the ground")):
        points_m = log.points()
        grid.add(points_m if is_volume is None else points_m[~is_volume(points_m)])
    try:
        return fit_ground_of(grid, parameters.ground)
    except InputError as error:
        raise InputError(error.field, f"{error.said}; {another_model()}") from error


def _stands_out(ground: Ground, points_m: NDArray[np.float64], clearance_m: float) -> NDArray[np.bool_]:
    """Tell which points stand above the ground, or where no ground is known."""
    above = ground.height_above(points_m) > clearance_m
    return above | ~ground.is_known(points_m[:, 0], points_m[:, 1])


def _fit_plants(
    task: LearningTask, parameters: TerrainParameters, is_volume: IsVolume
) -> tuple[Gaussians | None, VoxelStatistics]:
    """Return Gaussians of what is not ground, None if there are none, and what the ground looks like."""
    looks = VoxelStatistics(2 * parameters.ground.spacing_m)
    with blocks(parameters.plants.block_m) as waiting:
        for log in counted(task.chunks(), task.start("parting ground and the rest")):
            records = point_records(log)
            mask = is_volume(records["position_m"])
            if mask.any():
                waiting.add(records[mask])
            looks.add(_ground_beams(log, is_volume))
        progress = task.start("clustering what stands on the ground")
        found = [_enough(each, parameters) for each in _metered(waiting.moments(parameters.plants), progress)]
    kept = [each for each in found if len(each)]
    if not kept:
        return None, looks
    moments = Moments.concatenate(kept)
    gaussians = moments.gaussians(tau=parameters.tau, min_sigma_m=parameters.min_sigma_m)
    if parameters.unbiased:
        scale = moments.count / np.maximum(moments.count - 1, 1)
        gaussians = replace(gaussians, covariance_m2=gaussians.covariance_m2 * scale[:, None, None])
    return gaussians, looks


def _metered(found: Iterator[tuple[Moments, int]], progress: Progress | None) -> Iterator[Moments]:
    done = 0
    for moments, n_points in found:
        done += n_points
        if progress is not None:
            progress(done)
        yield moments


def _enough(moments: Moments, parameters: TerrainParameters) -> Moments:
    return moments.select(moments.count >= parameters.plants.min_points)


def _ground_beams(log: Log, is_volume: IsVolume) -> Log:
    """Return the beams whose first return lies on the ground."""
    hit = np.flatnonzero(np.isfinite(log.returns.first_m))
    along_m = log.returns.first_m[hit].astype(np.float64)[:, None] * log.beams.direction[hit]
    return log[hit[~is_volume(log.beams.origin_m[hit] + along_m)]]


def _with_looks(triangles: Triangles, looks: VoxelStatistics) -> Triangles:
    """Give triangles the intensity and the labels of the ground points nearest to them."""
    from scipy.spatial import cKDTree

    if not len(triangles) or not len(looks):
        return triangles
    near = looks.moments().gaussians(tau=1.0, min_sigma_m=1.0)
    _, nearest = cKDTree(near.mean_m[:, :2]).query(triangles.centre_m()[:, :2])
    rows = np.asarray(nearest, dtype=np.int64)
    return replace(
        triangles,
        intensity=near.intensity[rows],
        intensity_sigma=near.intensity_sigma[rows],
        label=near.label[rows],
    )


def _count(task: LearningTask, tables: Tables, parameters: TerrainParameters) -> Tables:
    """Count permeability over both tables together; each has priors of its own."""
    counts = count_passes(task, tables, parameters.window_m)
    done: Tables = ()
    first = 0
    for table in tables:
        rows = slice(first, first + len(table))
        first += len(table)
        is_ground = isinstance(table, Triangles)
        done += with_permeability(
            (table,),
            Counts(counts.hits[rows], counts.passes[rows]),
            prior_hits=parameters.triangle_prior_hits if is_ground else parameters.gaussian_prior_hits,
            prior_passes=parameters.triangle_prior_passes if is_ground else parameters.gaussian_prior_passes,
            keep_unhit=parameters.keep_unhit,
        )
    if parameters.credit == "all":
        return done
    return share_returns(
        task,
        done,
        rounds=parameters.credit_rounds,
        flat=parameters.credit_flat,
        prior_hits=parameters.gaussian_prior_hits,
        prior_passes=parameters.gaussian_prior_passes,
    )
