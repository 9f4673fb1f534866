# SPDX-License-Identifier: Apache-2.0
"""Checks and conversions of measured ranges, and of what stands beside them (intensity, label, element).

A range is above 0, inf means no return, and the returns of a pulse stand nearest first, so missing ones come last.
Beside a missing return stands a fixed blank value, which makes equal data equal bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.arrays import RowError, as_floats, as_integers, first_row, require
from hedgerow.errors import InputError

Blank = np.float32 | np.uint16 | np.int64
BLANK: dict[str, Blank] = {"intensity": np.float32(np.nan), "label": np.uint16(0), "element": np.int64(-1)}
"""What stands beside a missing return; the type is the type of the array."""


def as_ranges(name: str, values: ArrayLike) -> NDArray[np.float32]:
    """Convert ranges of shape (N,) or (N, R) to checked float32; (N, 1) becomes (N,).

    Raises:
        InputError: see `require_ranges`.
    """
    range_m = as_floats(name, values, ("N",), ("N", "R"), dtype=np.float32)
    if range_m.ndim == 2 and range_m.shape[1] == 1:
        range_m = range_m[:, 0]
    require_ranges(name, range_m)
    return range_m


def as_beside(name: str, values: ArrayLike | None, range_m: NDArray[np.float32], blank: Blank) -> NDArray[Any] | None:
    """Convert what stands beside the ranges to the type of `blank`, and blank it where there is no return.

    Args:
        name: what to call it in the error.
        values: in the shape of `range_m` (one column may be spare, as in `as_ranges`), or None.
        range_m: (N,) or (N, R) ranges [m].
        blank: the value for a missing return.

    Raises:
        InputError: another shape, or a value that does not fit the type.
    """
    if values is None:
        return None
    array = np.asarray(values)
    if range_m.ndim == 1 and array.shape == (len(range_m), 1):
        array = array[:, 0]
    if isinstance(blank, np.floating):
        column = as_floats(name, array, range_m.shape, dtype=type(blank))
    else:
        column = as_integers(name, array, range_m.shape, type(blank))
    return np.where(np.isinf(range_m), blank, column)


def require_ranges(name: str, range_m: NDArray[np.floating]) -> None:
    """Raise InputError unless (N,) or (N, R) ranges are above 0 or inf and, in each row, nearest first."""
    if range_m.ndim == 2 and range_m.shape[1] < 2:
        raise InputError(name, f"expected (N,), or (N, R) with R of 2 or more, found shape {range_m.shape}")
    wrong = ~(range_m > 0)
    if wrong.any():
        row = first_row(wrong)
        raise RowError(name, row, f"is {range_m[row].tolist()}; a range is above 0 m, use inf for no return")
    if range_m.ndim == 2:
        wrong = range_m[:, 1:] < range_m[:, :-1]
        if wrong.any():
            row = first_row(wrong)
            raise RowError(name, row, f"is {range_m[row].tolist()}; sort its returns nearest first, inf last")


def require_within(name: str, range_m: NDArray[np.float32], min_range_m: float, max_range_m: float) -> None:
    """Raise InputError unless the limits are in order and every finite range lies between them."""
    if not 0 <= min_range_m < max_range_m:
        raise InputError("range limits", f"expected 0 <= min_range_m < max_range_m, found {min_range_m}, {max_range_m}")
    # Limits are rounded like the ranges, so that a range equal to its limit stays inside.
    for limit, outside in (
        (f"max_range_m = {max_range_m} m", np.isfinite(range_m) & (range_m > np.float32(max_range_m))),
        (f"min_range_m = {min_range_m} m", range_m < np.float32(min_range_m)),
    ):
        if outside.any():
            row, count = first_row(outside), int(outside.sum())
            raise InputError(
                name,
                f"{count} ranges beyond {limit}, the first in row {row} ({range_m[row].tolist()}); "
                "set them to inf (no return) or widen the limit",
            )


def require_beside(name: str, column: object, range_m: NDArray[np.float32], blank: Blank) -> NDArray[Any] | None:
    """Return a read-only view of what stands beside the ranges, or None if it is None.

    Raises:
        InputError: not of the type of `blank` or the shape of `range_m`, or not blank where there is no return.
    """
    if column is None:
        return None
    checked = require(name, column, type(blank), range_m.shape)
    missed = np.isinf(range_m)
    wrong = missed & (~np.isnan(checked) if np.isnan(blank) else checked != blank)
    if wrong.any():
        row = first_row(wrong)
        raise RowError(name, row, f"is {checked[row].tolist()} without a return; expected {blank} there")
    return checked
