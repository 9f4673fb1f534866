# SPDX-License-Identifier: Apache-2.0
"""Gaussian elements as the core wants them: covariances regularised and turned into whitening matrices.

The core stores W with S⁻¹ = WᵀW, W a lower triangle. In whitened coordinates a Gaussian is a unit sphere, and float32
loses far less there than in dᵀS⁻¹d, whose terms cancel for thin elements far from the sensor.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import RowError, first_row, require_finite

_BATCH = 1 << 18


def whitening(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float32]:
    """Return the lower triangle of W, by rows, of each covariance.

    Args:
        covariance_m2: (N, 3, 3) symmetric, positive semi-definite [m²].
        min_sigma_m: floor of the standard deviation along every axis, so that flat and collinear elements stay valid.

    Returns:
        (N, 6) float32 [1/m].

    Raises:
        InputError: a covariance is not finite, not symmetric, or has a negative eigenvalue; names the row.
    """
    require_finite("covariance_m2", covariance_m2)
    out = np.empty((len(covariance_m2), 6), dtype=np.float32)
    for start in range(0, len(covariance_m2), _BATCH):
        out[start : start + _BATCH] = _whitening(covariance_m2[start : start + _BATCH], min_sigma_m, start)
    return out


def _whitening(covariance_m2: NDArray[np.float64], min_sigma_m: float, first: int) -> NDArray[np.float64]:
    # Rounding, in float32 at the worst, is all that may be wrong with the symmetry or the sign.
    allowed = 1e-5 * np.abs(covariance_m2).max(axis=(1, 2))
    skew = np.abs(covariance_m2 - covariance_m2.transpose(0, 2, 1)).max(axis=(1, 2)) > allowed
    if skew.any():
        raise RowError("covariance_m2", first + first_row(skew), "is not symmetric")
    variance, axes = np.linalg.eigh(covariance_m2)
    negative = variance[:, 0] < -allowed
    if negative.any():
        row = first_row(negative)
        raise RowError("covariance_m2", first + row, f"has the negative eigenvalue {variance[row, 0]:.3g}")
    variance = np.maximum(variance, min_sigma_m**2)
    # S⁻¹ = A Aᵀ with A = axes / sigma. A = U Q with U upper triangular gives W = Uᵀ: Gram-Schmidt from the last row up.
    # This never squares the condition number, as a Cholesky factor of S⁻¹ would.
    x, y, z = (axes / np.sqrt(variance)[:, None, :]).transpose(1, 0, 2)
    zz = _length(z)
    z = z / zz
    yz = _dot(y, z)
    y = y - yz * z
    yy = _length(y)
    y = y / yy
    xz = _dot(x, z)
    x = x - xz * z
    xy = _dot(x, y)
    xx = _length(x - xy * y)
    return np.concatenate([xx, xy, yy, xz, yz, zz], axis=1)


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return (a * b).sum(axis=1, keepdims=True)


def _length(a: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(_dot(a, a))
