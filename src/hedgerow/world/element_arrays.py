# SPDX-License-Identifier: Apache-2.0
"""Numbers of the elements of a scene, checked and in the form that the core takes.

A single number stands for all elements. Covariances are regularised and become whitening matrices: the core stores W
with S⁻¹ = WᵀW, W a lower triangle. In whitened coordinates a Gaussian is a unit sphere, and float32 loses far less
there than in dᵀS⁻¹d, whose terms cancel for thin elements far from the sensor. Equations: docs/models.md §3.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.base import arrays
from hedgerow.errors import InputError

_BATCH = 1 << 18


def numbers_within(name: str, values: ArrayLike, n: int, low: float, high: float) -> NDArray[np.float32]:
    """Return (N,) numbers, or one for all, none of them outside the limits."""
    array = arrays.as_numbers(name, values)
    array = arrays.as_floats(name, np.broadcast_to(array, (n,)) if array.ndim == 0 else array, (n,), dtype=np.float32)
    wrong = ~((array >= low) & (array <= high) & np.isfinite(array))
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {array[row]}; expected a finite number from {low:g} to {high:g}")
    return np.ascontiguousarray(array)


def numbers_or_unknown(name: str, values: ArrayLike, n: int) -> NDArray[np.float32]:
    """Return (N,) numbers, or one for all, of 0 or more; NaN is unknown."""
    array = arrays.as_numbers(name, values)
    unknown = np.isnan(array)
    checked = numbers_within(name, np.where(unknown, 0, array), n, 0, np.inf)
    return np.where(unknown, np.float32(np.nan), checked)


def require_below(name: str, numbers: NDArray[Any], end: int) -> None:
    """Raise InputError naming the first row with a number that is not below `end`."""
    wrong = numbers >= end
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {numbers[row].tolist()}, but there are only {end}")


def stop_law(
    n: int, permeability: ArrayLike | None, extinction_per_m: ArrayLike | None, depth: ArrayLike | None
) -> tuple[_core.StopLaw, NDArray[np.float32]]:
    """Return the law that was chosen, by giving its numbers, and these, (N,); without any, elements are solid."""
    laws = _core.StopLaw
    choices = [
        (laws.permeability, "permeability", permeability, 1.0),
        (laws.extinction, "extinction_per_m", extinction_per_m, np.inf),
        (laws.depth, "depth", depth, np.inf),
    ]
    given = [choice for choice in choices if choice[2] is not None]
    if len(given) > 1:
        raise InputError(f"{', '.join(name for _, name, *_ in given)}", f"give one of these, not {len(given)}")
    law, name, values, most = given[0] if given else choices[0]
    return law, numbers_within(name, 0.0 if values is None else values, n, 0, most)


def whitening(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float32]:
    """Return the lower triangle of W with S⁻¹ = WᵀW, by rows, of each covariance S.

    Args:
        covariance_m2: (N, 3, 3) symmetric, positive semi-definite [m²].
        min_sigma_m: floor of the standard deviation along every axis, so that flat and collinear elements stay valid.

    Returns:
        (N, 6) float32 [1/m].

    Raises:
        InputError: a covariance is not finite, not symmetric, or has a negative eigenvalue; names the row.
    """
    arrays.require_finite("covariance_m2", covariance_m2)
    out = np.empty((len(covariance_m2), 6), dtype=np.float32)
    for start in range(0, len(covariance_m2), _BATCH):
        out[start : start + _BATCH] = _whiten_batch(covariance_m2[start : start + _BATCH], min_sigma_m, start)
    return out


def _whiten_batch(covariance_m2: NDArray[np.float64], min_sigma_m: float, first: int) -> NDArray[np.float64]:
    # Rounding, in float32 at the worst, is all that may be wrong with the symmetry or the sign.
    allowed = 1e-5 * np.abs(covariance_m2).max(axis=(1, 2))
    skew = np.abs(covariance_m2 - covariance_m2.transpose(0, 2, 1)).max(axis=(1, 2)) > allowed
    if skew.any():
        raise arrays.RowError("covariance_m2", first + arrays.first_row(skew), "is not symmetric")
    variance, axes = np.linalg.eigh(covariance_m2)
    negative = variance[:, 0] < -allowed
    if negative.any():
        row = arrays.first_row(negative)
        raise arrays.RowError("covariance_m2", first + row, f"has the negative eigenvalue {variance[row, 0]:.3g}")
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
