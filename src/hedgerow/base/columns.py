# SPDX-License-Identifier: Apache-2.0
"""Columns of equal length: tables of arrays, and ranges of rows in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Index, RowError, as_floats, as_integers, first_row, require
from hedgerow.errors import InputError

# Table: a few arrays with one row per pulse that are selected, joined and compared together.
#
# The base of Beams and Returns (log.py). Its point is that data is checked once: whatever is cut from or joined out of
# checked arrays is right by construction and is not looked at again.


Columns = dict[str, NDArray[Any] | None]
"""Arrays by name; None for one that is absent."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Arrays of one row per pulse, read-only and C-ordered."""

    def __len__(self) -> int:
        """Count the pulses."""
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, index: Index) -> Self:
        """Select pulses by slice, mask or positions."""
        chosen = arrays.as_selection(index, len(self))
        return self.trusted({name: a if a is None else a[chosen] for name, a in self.columns().items()})

    def columns(self) -> Columns:
        """Return the arrays by name, None for those that are absent."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def equal(self, other: Self) -> bool:
        """Tell whether both hold the same values; NaN equals NaN."""
        theirs = other.columns()
        return all(_same(mine, theirs[name]) for name, mine in self.columns().items())

    @classmethod
    def trusted(cls, columns: Mapping[str, NDArray[Any] | None]) -> Self:
        """Make one from arrays that are right by construction; no value is checked."""
        new = object.__new__(cls)
        store(new, {name: a if a is None else arrays.read_only(a) for name, a in columns.items()})
        return new

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Join tables in the given order, as they are.

        Raises:
            InputError: no parts, or an array is absent or of another width in some of them.
        """
        if not parts:
            raise InputError(f"{cls.__name__}", "nothing to join; give at least one")
        stacks = [part.columns() for part in parts]
        return cls.trusted({name: _joined(name, [stack[name] for stack in stacks]) for name in stacks[0]})


def store(frozen: object, values: Mapping[str, object]) -> None:
    """Set fields of a frozen dataclass while it is being made."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def require_agreement(parts: Sequence[object], names: Sequence[str]) -> None:
    """Raise InputError naming the first attribute in which one of the parts differs from the first part."""
    for name in names:
        for part in parts[1:]:
            first, other = getattr(parts[0], name), getattr(part, name)
            if not np.array_equal(first, other):
                raise InputError(name, f"cannot join parts that differ in it, found {first} and {other}")


def _joined(name: str, parts: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts):
        raise InputError(name, f"cannot join, {len(parts) - len(present)} of {len(parts)} parts have none")
    widths = sorted({part.shape[1:] for part in present})
    if len(widths) > 1:
        raise InputError(name, f"cannot join rows of different shape, found {widths[0]} and {widths[1]}")
    return np.concatenate(present)


def _same(mine: NDArray[Any] | None, theirs: NDArray[Any] | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine.dtype == theirs.dtype and np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")


# Checks and conversions of measured ranges, and of what stands beside them (intensity, label, element).
#
# A range is above 0, inf means no return, and the returns of a pulse stand nearest first, so missing ones come last.
# Beside a missing return stands a fixed blank value, which makes equal data equal bit for bit.


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
