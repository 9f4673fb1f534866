# SPDX-License-Identifier: Apache-2.0
"""Numbers that every element of a scene has one of, checked and as the core wants them. A single one is for all."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core, arrays
from hedgerow.errors import InputError


def between(name: str, values: ArrayLike, n: int, low: float, high: float) -> NDArray[np.float32]:
    """Return (N,) numbers, or one for all, of which none lies outside the limits."""
    array = np.asarray(values)
    array = arrays.as_floats(name, np.broadcast_to(array, (n,)) if array.ndim == 0 else array, (n,), dtype=np.float32)
    wrong = ~((array >= low) & (array <= high) & np.isfinite(array))
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {array[row]}; expected a finite number from {low:g} to {high:g}")
    return np.ascontiguousarray(array)


def known(name: str, values: ArrayLike, n: int) -> NDArray[np.float32]:
    """Return (N,) numbers of 0 or more, or NaN for what is not known."""
    array = np.asarray(values, dtype=np.float32)
    unknown = np.isnan(array)
    checked = between(name, np.where(unknown, 0, array), n, 0, np.inf)
    return np.where(unknown, np.float32(np.nan), checked)


def require_below(name: str, numbers: NDArray[Any], end: int) -> None:
    """Raise InputError if any row counts past what there is."""
    wrong = numbers >= end
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"is {numbers[row].tolist()}, but there are only {end}")


def stopping(
    n: int, permeability: ArrayLike | None, extinction_per_m: ArrayLike | None, depth: ArrayLike | None
) -> tuple[_core.StopLaw, NDArray[np.float32]]:
    """Return the law of the one that is given, and its (N,) numbers; solid if none is."""
    laws = _core.StopLaw
    ways = [
        (laws.permeability, "permeability", permeability, 1.0),
        (laws.extinction, "extinction_per_m", extinction_per_m, np.inf),
        (laws.depth, "depth", depth, np.inf),
    ]
    given = [way for way in ways if way[2] is not None]
    if len(given) > 1:
        raise InputError(f"{', '.join(name for _, name, *_ in given)}", f"give one of these, not {len(given)}")
    law, name, values, most = given[0] if given else ways[0]
    return law, between(name, 0.0 if values is None else values, n, 0, most)
