# SPDX-License-Identifier: Apache-2.0
"""Normals of points: weighted, robust local plane fits, on the side of the sensor that saw the point (Browning 2012
§3.3.2).

Each fit weighs its neighbours by (1 - d²/h²)⁴ with kernel h, then a few times by Tukey's biweight of their distance to
the plane so far, so that a kerb or a twig does not tilt the ground beside it. Where the points lie on a line or in
one place no plane is defined, and the normal points to the sensor as squarely to the line as it can.

Equations: docs/models.md §10.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base import arrays
from hedgerow.models.steps import thinning

_ROUNDS = 3  # of reweighting; the normal of a kerb's foot turns by less than a degree after that
_MIN_SCALE_M = 0.005  # residuals of some millimetres are the sensor's, never outliers


def fit_normals(
    position_m: NDArray[np.float64],
    thinned: thinning.ThinnedPoints,
    kernel_m: float,
    *,
    upward: float = 0.0,
    threads: int = 0,
) -> NDArray[np.float32]:
    """Fit the normals of thinned points.

    Args:
        position_m: (N, 3) as `thinning.positions_m` gives them, map frame.
        thinned: (N,); each counts as often as it has points.
        kernel_m: how far around the plane is fitted [m].
        upward: added to the direction to the sensor, along z: which side a grazing normal takes.
        threads: 0 for all; the result does not depend on it.

    Returns:
        (N, 3) unit vectors, map frame.
    """
    weight = thinned["count"].astype(np.float32)
    toward = thinning.directions_to_sensor(thinned) + np.array([0, 0, upward], dtype=np.float32)
    fit = _core.PlaneFit(kernel_m=kernel_m, min_scale_m=_MIN_SCALE_M, rounds=_ROUNDS)
    return _core.fit_normals(position_m, weight, toward, fit, threads)


def estimate_normals(
    position_m: NDArray[np.float64],
    toward: NDArray[np.float32],
    *,
    kernel_m: float = 0.4,
    voxel_m: float = 0.05,
    threads: int = 0,
) -> NDArray[np.float32]:
    """Estimate the normal of the surface at each point.

    Args:
        position_m: (N, 3) float64, map frame.
        toward: (N, 3) float32 unit vectors from each point to the sensor, map frame.
        kernel_m: how far around the plane is fitted [m]; 0.4 as in Browning 2012.
        voxel_m: points in one voxel of this side share a fit [m].
        threads: 0 for all; the result does not depend on it.

    Returns:
        (N, 3) float32 unit normals, each on the side of its own sensor.

    Raises:
        InputError: wrong shapes, or positions that are not finite.
    """
    position_m = arrays.require("position_m", position_m, np.float64, ("N", 3))
    toward = arrays.require("toward", toward, np.float32, (len(position_m), 3))
    thinned, thinned_of = thinning.thin(position_m, toward, voxel_m, threads=threads)
    normal = fit_normals(thinning.positions_m(thinned, voxel_m), thinned, kernel_m, threads=threads)[thinned_of]
    behind = np.einsum("ij,ij->i", normal, toward) < 0
    return np.where(behind[:, None], -normal, normal)


def local_spectra(
    position_m: NDArray[np.float64], radius_m: float, *, threads: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Return the spread of the points around each point.

    Args:
        position_m: (N, 3) float64, map frame.
        radius_m: how far around [m].
        threads: 0 for all; the result does not depend on it.

    Returns:
        (N, 3) eigenvalues of the covariance of all points within the radius, ascending [m²]; and (N,) how many points
        those are, the point itself included.
    """
    return _core.local_spectra(position_m, radius_m, threads)
