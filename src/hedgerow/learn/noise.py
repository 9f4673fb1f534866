# SPDX-License-Identifier: Apache-2.0
"""Range noise by incidence angle, fitted to what a log measured against the learned surface (000 §3.3.2, eq. 1).

Every beam is fired at the mesh without noise. The difference between the measured range and where the mesh stops the
beam is a residual, the incidence angle θ comes with it, and sigma² = sigma0² + sigma_a² (sin θ / cos² θ)² is fitted by
maximum likelihood. Beams that hit something else than the mesh (a twig in front of it, a gap in it) are part of the
model: a share of the residuals, fitted as well, is spread evenly over the window.

The statistics are counts of residuals by incidence and by size, so they add up exactly over partitions.
"""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.learn.parts import Parts
from hedgerow.log import Log
from hedgerow.world.elements import Triangles
from hedgerow.world.noise import SurfaceNoise
from hedgerow.world.scene import Scene

Progress = Callable[[int], object]
Keep = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""From (M, 3) points, map frame, to the mask of those to use."""

WINDOW_M = 0.5
"""Larger residuals belong to something else than the surface: Δr of 000."""
_N_RESIDUALS = 1000  # bins of a millimetre: a fifteenth of the smallest sigma that matters
_N_INCIDENCES = 180  # bins of half a degree
_MIN_RESIDUALS = 100


class NoiseStatistics:
    """Counts of residuals by incidence angle and size; mergeable."""

    def __init__(self) -> None:
        """Make empty statistics."""
        self.counts: NDArray[np.int64] = np.zeros((_N_INCIDENCES, _N_RESIDUALS), dtype=np.int64)
        """Row: incidence, from 0 to 90°. Column: measured minus expected range, from -WINDOW_M to WINDOW_M."""

    def add(self, residual_m: NDArray[np.floating], incidence_cosine: NDArray[np.floating]) -> None:
        """Count (N,) residuals [m] at (N,) cosines of the incidence angle; those outside the window are left out."""
        column = np.floor((residual_m + WINDOW_M) * (_N_RESIDUALS / (2 * WINDOW_M)))
        inside = (column >= 0) & (column < _N_RESIDUALS)  # NaN is outside, too
        angle = np.arccos(np.clip(incidence_cosine[inside], 0, 1))
        row = np.minimum((angle * (_N_INCIDENCES / (np.pi / 2))).astype(np.int64), _N_INCIDENCES - 1)
        cell = row * _N_RESIDUALS + column[inside].astype(np.int64)
        self.counts += np.bincount(cell, minlength=self.counts.size).reshape(self.counts.shape)

    def add_log(self, log: Log, scene: Scene, surface: NDArray[np.bool_] | None = None) -> None:
        """Count the residuals of the first returns of a log.

        Args:
            log: its no-returns do not matter.
            scene: the mesh, solid and without noise.
            surface: (N,) mask of the pulses to use. Default: all.
        """
        use = log.returns.hit if log.returns.range_m.ndim == 1 else log.returns.hit[:, 0]
        rows = np.nonzero(use if surface is None else use & surface)[0]
        hits = scene.fire(log.beams[rows])
        with np.errstate(invalid="ignore"):
            residual_m = log.returns.first_m[rows].astype(np.float64) - hits.range_m
        self.add(residual_m, hits.incidence_cosine)

    def merge(self, other: Self) -> None:
        """Add the counts of another part of the log."""
        self.counts += other.counts

    def finish(self, *, max_incidence_rad: float = SurfaceNoise().max_incidence_rad) -> SurfaceNoise:
        """Fit sigma0 and sigma_a by maximum likelihood.

        Args:
            max_incidence_rad: residuals at larger angles are left out, as the model caps its sigma there.

        Raises:
            InputError: fewer than 100 residuals to fit.
        """
        from scipy.optimize import minimize

        angle = (np.arange(_N_INCIDENCES) + 0.5) * (np.pi / 2 / _N_INCIDENCES)
        rows = np.nonzero((angle < max_incidence_rad) & self.counts.any(axis=1))[0]
        counts = self.counts[rows]
        if counts.sum() < _MIN_RESIDUALS:
            raise InputError(f"log: has {counts.sum()} returns on the surface, expected {_MIN_RESIDUALS} to fit noise to")
        growth = np.sin(angle[rows]) / np.cos(angle[rows]) ** 2

        def cost(unknowns: NDArray[np.float64]) -> float:
            return _negative_log_likelihood(unknowns, counts, growth)

        start = np.array([np.log(0.02), np.log(0.002), 0.0, -3.0])
        best = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-4, "fatol": 1e-9})
        sigma0_m, sigma_a_m = np.exp(best.x[:2])
        return SurfaceNoise(float(sigma0_m), float(sigma_a_m), max_incidence_rad)


def learn_noise(
    parts: Parts,
    triangles: Triangles,
    *,
    max_permeability: float = 0.2,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> SurfaceNoise:
    """Fit the range noise of a learned surface.

    Args:
        parts: the log the surface was learned from, or another of the same place; read once.
        triangles: the surface.
        max_permeability: more permeable triangles are no surface and are left out.
        keep: chooses the points to use. Default: all.
        progress: called after each partition with the number of beams done.

    Returns:
        The noise to put into the triangles.

    Raises:
        InputError: too few returns on the surface.
    """
    solid = triangles[triangles.permeability <= max_permeability]
    middle_m = solid.corners_m.reshape(-1, 3).mean(axis=0) if len(solid) else np.zeros(3)
    scene = Scene(origin_m=middle_m)
    scene.add_mesh(solid.corners_m.reshape(-1, 3), np.arange(3 * len(solid)).reshape(-1, 3))
    statistics = NoiseStatistics()
    done = 0
    for log in parts():
        statistics.add_log(log, scene, None if keep is None else _first_kept(log, keep))
        done += len(log)
        if progress is not None:
            progress(done)
    return statistics.finish(max_incidence_rad=triangles.noise.max_incidence_rad)


def _first_kept(log: Log, keep: Keep) -> NDArray[np.bool_]:
    first_m = log.returns.first_m
    hit = np.isfinite(first_m)
    mask = np.zeros(len(log), dtype=np.bool_)
    mask[hit] = keep(log.beams.origin_m[hit] + first_m[hit].astype(np.float64)[:, None] * log.beams.direction[hit])
    return mask


def _negative_log_likelihood(
    unknowns: NDArray[np.float64], counts: NDArray[np.int64], growth: NDArray[np.float64]
) -> float:
    """Mean over residuals. Unknowns: log sigma0, log sigma_a, bias in sigma0, logit of the share of outliers."""
    from scipy.special import expit, ndtr

    sigma0_m, sigma_a_m = np.exp(np.clip(unknowns[:2], -20, 5))
    outliers = expit(unknowns[3])
    sigma_m = np.sqrt(sigma0_m**2 + (sigma_a_m * growth) ** 2)[:, None]
    edges = np.linspace(-WINDOW_M, WINDOW_M, _N_RESIDUALS + 1) - unknowns[2] * sigma0_m
    below = ndtr(edges / sigma_m)
    # Probability within the window alone: a wide sigma loses its tails there.
    share = np.diff(below, axis=1) / np.maximum(below[:, -1:] - below[:, :1], 1e-300)
    density = (1 - outliers) * share + outliers / _N_RESIDUALS
    return float(-(counts * np.log(density)).sum() / counts.sum())
