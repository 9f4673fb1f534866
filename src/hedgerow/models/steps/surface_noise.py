# SPDX-License-Identifier: Apache-2.0
"""Range noise by incidence angle, fitted to residuals on a learned surface (Browning 2012 §3.3.2, eq. 1).

    sigma² = sigma0² + sigma_a² (sin θ / cos² θ)²

A residual is the measured range minus that of the nearest triangle along the beam. Residuals are summed up in bins of
the slope sin θ / cos² θ, as histograms of their size, so chunks add up. In each bin the spread is the interquartile
range, which vegetation and edges hardly disturb; both constants then follow from a weighted line through the bins.

Where the mesh bends (kerbs, corners, thickets) its own errors are larger than the sensor's, so only residuals on flat
parts count, unless there are too few of them.

Equations: docs/models.md §11.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base.parameters import NotNegative, Parameters
from hedgerow.base.progress import counted
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.world.elements import Triangles
from hedgerow.world.scene import Scene
from hedgerow.world.simplified import SharedMesh
from hedgerow.world.surface_noise import SurfaceNoise

_MAX_SLOPE = 40.0  # 81 degrees of incidence; beyond, the surface's own errors rule
_SLOPES = np.concatenate([[0.0], np.geomspace(0.15, _MAX_SLOPE, 40)])
_REACH_M = 0.3
_STEP_M = 0.001
_PER_QUARTILE = 0.6744897501960817  # of a standard normal distribution
_MIN_RESIDUALS = 200
_CHUNK = 200_000


class NoiseParameters(Parameters):
    """Parameters of the range noise of surfaces."""

    sigma0_m: NotNegative | None = None
    """Standard deviation of the range at normal incidence. Default: fitted to the log. Browning 2012 found 0.015 m on
    drives with an HDL-64E, and 0.005 m with a sensor that stood."""
    sigma_a_m: NotNegative | None = None
    """Growth of the range noise with the angle of incidence (docs/models.md §2). Default: fitted to the log. Browning
    2012 found 0.0014 m."""
    max_incidence_deg: float = Field(default=85.0, ge=0, lt=90)
    """Range noise grows with the angle of incidence up to here; at 90 degrees it would be infinite."""
    noise_bend_deg: float = Field(default=10.0, gt=0, le=180)
    """Range noise is fitted only where the mesh bends by less than this. 180 uses every residual: the noise then covers
    errors of the mesh too, which improves the likelihood and makes ranges less exact."""

    @property
    def is_given(self) -> bool:
        """Whether there is nothing left to fit."""
        return self.sigma0_m is not None and self.sigma_a_m is not None


class Residuals:
    """Histograms of residuals by slope; adds up."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.counts = np.zeros((len(_SLOPES) - 1, 2 * round(_REACH_M / _STEP_M)), dtype=np.int64)
        self.slope_squared = np.zeros(len(_SLOPES) - 1)  # summed, for the mean within each bin

    def add(self, slope: NDArray[np.floating], residual_m: NDArray[np.floating]) -> None:
        """Add (N,) residuals [m] at (N,) slopes; those out of reach are left out."""
        inside = (slope < _MAX_SLOPE) & (np.abs(residual_m) < _REACH_M)
        row = np.searchsorted(_SLOPES, slope[inside], side="right") - 1
        column = ((residual_m[inside] + _REACH_M) / _STEP_M).astype(np.int64)
        np.add.at(self.counts, (row, np.clip(column, 0, self.counts.shape[1] - 1)), 1)
        squares = slope[inside].astype(np.float64) ** 2
        self.slope_squared += np.bincount(row, squares, len(self.slope_squared))

    def merge(self, other: "Residuals") -> None:
        """Add the residuals of another chunk."""
        self.counts += other.counts
        self.slope_squared += other.slope_squared

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Mask of the bins of slope with enough residuals to tell a spread."""
        return self.counts.sum(axis=1) >= _MIN_RESIDUALS

    def fit(self) -> SurfaceNoise:
        """Fit both constants; exact ranges if there are too few residuals to tell."""
        total, used = self.counts.sum(axis=1), self.usable
        if not used.any():
            return SurfaceNoise()
        sigma = np.array([_robust_sigma(counts) for counts in self.counts[used]])
        slope_squared = self.slope_squared[used] / total[used]
        # The variance of a variance is 2 sigma⁴ / n: that is the weight of each bin, given the last estimate of sigma.
        variance, n = sigma**2, total[used].astype(np.float64)
        fitted = variance.copy()
        answer = np.zeros(2)
        for _ in range(10):
            weight = np.sqrt(n) / np.maximum(fitted, 1e-10)
            design = np.stack([np.ones_like(slope_squared), slope_squared], axis=1)
            answer = _not_negative(design * weight[:, None], variance * weight)
            fitted = design @ answer
        return SurfaceNoise(float(np.sqrt(answer[0])), float(np.sqrt(answer[1])))


def learn_noise(task: LearningTask, triangles: Triangles, parameters: NoiseParameters) -> SurfaceNoise:
    """Return the range noise as given; what is not given is fitted to the log, as a stage of learning."""
    fitted = SurfaceNoise()
    if not parameters.is_given:
        max_bend_rad = math.radians(parameters.noise_bend_deg)
        progress = task.start("fitting range noise")
        fitted = fit_noise(task.chunks, triangles, max_bend_rad=max_bend_rad, progress=progress)
    return SurfaceNoise(
        fitted.sigma0_m if parameters.sigma0_m is None else parameters.sigma0_m,
        fitted.sigma_a_m if parameters.sigma_a_m is None else parameters.sigma_a_m,
        math.radians(parameters.max_incidence_deg),
    )


def fit_noise(
    chunks: LogChunks,
    triangles: Triangles,
    *,
    max_bend_rad: float = np.radians(10),
    progress: Callable[[int], object] | None = None,
) -> SurfaceNoise:
    """Fit the range noise of a surface.

    Args:
        chunks: of the log.
        triangles: the surface learned from it.
        max_bend_rad: residuals count on triangles that `is_flat` with this bend; all of them if those are too few.
        progress: called with the number of beams done.
    """
    on_flat, everywhere = Residuals(), Residuals()
    scene, flat = _slope_scene(triangles), is_flat(triangles, max_bend_rad)
    for log in counted(chunks(), progress):
        for start in range(0, len(log), _CHUNK):
            slope, residual_m, element = _nearest(scene, log[start : start + _CHUNK])
            everywhere.add(slope, residual_m)
            on_flat.add(slope[flat[element]], residual_m[flat[element]])
    return (on_flat if on_flat.usable.any() else everywhere).fit()


def is_flat(triangles: Triangles, max_bend_rad: float) -> NDArray[np.bool_]:
    """Return which triangles lie in a flat part of the mesh.

    Args:
        triangles: M of them; those that share a corner have it to the last 0.1 mm.
        max_bend_rad: at each corner of a flat triangle, the mean of the unit normals of all triangles that meet there
            is longer than the cosine of this.

    Returns:
        (M,) mask.
    """
    corners_m = triangles.corners_m
    normal = np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    corner = SharedMesh.of(corners_m).triangles.reshape(-1)
    total = np.stack([np.bincount(corner, np.repeat(normal[:, axis], 3)) for axis in range(3)], axis=1)
    length = np.linalg.norm(total, axis=1) / np.maximum(np.bincount(corner), 1)
    return length[corner].reshape(-1, 3).min(axis=1, initial=np.inf) > np.cos(max_bend_rad)


def _slope_scene(triangles: Triangles) -> Scene:
    """A scene in which the sigma of every crossing is the slope sin θ / cos² θ itself."""
    corners_m = triangles.corners_m.reshape(-1, 3)
    scene = Scene(corners_m.mean(axis=0).round() if len(corners_m) else np.zeros(3))
    numbers = np.arange(len(corners_m)).reshape(-1, 3)
    scene.add_mesh(corners_m, numbers, noise=SurfaceNoise(0.0, 1.0, float(np.radians(88))))
    return scene


def _nearest(scene: Scene, log: Log) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Slope, residual and number of the triangle nearest to each return, where one is within reach."""
    hit = log[np.isfinite(log.returns.first_m)]
    if len(hit) == 0:
        return np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)
    range_m = hit.returns.first_m
    met = scene.pierced(hit.beams, max_range_m=float(range_m.max()) + _REACH_M)
    beam = np.repeat(np.arange(len(hit)), np.diff(met.begin))
    residual_m = range_m[beam] - met.mean_m
    near = np.nonzero(np.abs(residual_m) < _REACH_M)[0]
    order = near[np.lexsort((np.abs(residual_m[near]), beam[near]))]  # the nearest triangle of each beam comes first
    first = order[np.diff(beam[order], prepend=-1) > 0]
    return met.sigma_m[first], residual_m[first], met.element[first]


def _robust_sigma(counts: NDArray[np.int64]) -> float:
    """Standard deviation of a normal distribution with the same quartiles."""
    cumulative = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    edges = (np.arange(len(cumulative)) * _STEP_M) - _REACH_M
    low, high = np.interp([0.25, 0.75], cumulative, edges)
    return float(high - low) / (2 * _PER_QUARTILE)


def _not_negative(design: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares of two unknowns, neither below 0: whichever would be is left out."""
    answer: NDArray[np.float64] = np.linalg.lstsq(design, wanted, rcond=None)[0].astype(np.float64)
    for kept, other in ((0, 1), (1, 0)):
        if answer[other] < 0:
            alone = np.zeros(2)
            alone[kept] = max(0.0, float(design[:, kept] @ wanted / (design[:, kept] @ design[:, kept])))
            return alone
    return answer
