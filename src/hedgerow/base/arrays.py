# SPDX-License-Identifier: Apache-2.0
"""Array checks and conversions that say which argument and which row is wrong.

Two kinds. `require*` look at an array that must already be right and raise if it is not: the constructors of the
data types use them, and so can anything that hands arrays to the native core. `as_*` also convert what a person may
have (lists, float64, other integer types), without ever losing a value silently.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hedgerow.errors import InputError, shown

Array = NDArray[np.float64]
"""Of any shape."""
Index = slice | NDArray[np.integer] | NDArray[np.bool_] | Sequence[int] | Sequence[bool]
Numbers = int | range | Sequence[int] | NDArray[np.integer]
"""Sweep or ring numbers: one, a range, or a list of them."""
Shape = tuple[int | str, ...]
"""Expected shape: a number is that length, a name such as "N" is any length."""

FARTHEST_M = 1e8
"""Coordinates lie within this of zero on every axis: 15 times the radius of the Earth, so UTM, ECEF and web maps pass,
and float64 keeps 15 nanometres. Squares and sums of them are safe in float32, which the ray tracer counts in."""
LAST_NS = 2**62 - 1
"""Times lie within this of zero, the years 1823 to 2116 of Unix time: the difference of any two fits into int64."""

_NS_PER_S = 1_000_000_000
_LAST_SECOND = LAST_NS // _NS_PER_S
_FIRST_SECOND = 1e8  # no Unix time of a recording is before 1973


class RowError(InputError):
    """One row of an array is wrong; it remembers which, so that a file reader can name the line."""

    def __init__(self, name: str, row: int, problem: str) -> None:
        """Say that row `row` of `name` has a problem."""
        super().__init__(name, f"row {row} {problem}")
        self.name, self.row, self.problem = name, row, problem

    def __reduce__(self) -> tuple[type[Self], tuple[str, int, str]]:
        """Let it pass between processes, which would otherwise call it with the finished sentence."""
        return type(self), (self.name, self.row, self.problem)


def require(name: str, value: object, dtype: DTypeLike, *shapes: Shape) -> NDArray[Any]:
    """Return a read-only, C-ordered view of an array that has the given type and one of the shapes.

    Args:
        name: what to call it in the error.
        value: a NumPy array; its own flags are left alone.
        dtype: the exact type.
        shapes: lengths, or names for free lengths.

    Raises:
        InputError: it is no array, or of another type or shape.
    """
    if not isinstance(value, np.ndarray):
        raise InputError(name, f"expected a NumPy array, found {type(value).__name__}; from_arrays takes lists")
    array = cast("NDArray[Any]", value)
    if array.dtype != np.dtype(dtype):
        raise InputError(name, f"expected type {np.dtype(dtype)}, found {array.dtype}; from_arrays converts")
    require_shape(name, array, *shapes)
    return read_only(array)


def require_shape(name: str, array: NDArray[Any], *shapes: Shape) -> None:
    """Raise InputError unless the array has one of the shapes; see `Shape`."""
    if not any(_fits(array.shape, shape) for shape in shapes):
        wanted = " or ".join(str(shape).replace("'", "") for shape in shapes)
        raise InputError(name, f"expected shape {wanted}, found {array.shape}")


def require_finite(name: str, array: NDArray[np.floating]) -> None:
    """Raise InputError naming the first row that holds NaN or infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        row = first_row(~finite)
        raise RowError(name, row, f"is {array[row].tolist()}; every number must be finite")


def require_coordinates(name: str, array: NDArray[np.floating]) -> None:
    """Raise InputError unless all numbers of (3,), or (N, ...), coordinates are finite and within ±`FARTHEST_M`."""
    # The extremes of an array with NaN are NaN, which fails the comparison.
    if array.size == 0 or (array.min() >= -FARTHEST_M and array.max() <= FARTHEST_M):
        return
    bound = f"{FARTHEST_M:,.0f} m"
    if array.ndim == 1:
        raise InputError(name, f"expected three finite numbers within ±{bound}, found {array.tolist()}")
    require_finite(name, array)
    row = first_row(np.abs(array) > FARTHEST_M)
    said = f"is {shown(array[row].tolist())}, farther than {bound} from zero"
    raise RowError(name, row, f"{said}; is it in metres, and in the right frame?")


def require_times(name: str, time_ns: NDArray[np.int64]) -> None:
    """Raise InputError naming the first of (N,) times that lies beyond ±`LAST_NS`."""
    if time_ns.size == 0 or (time_ns.min() >= -LAST_NS and time_ns.max() <= LAST_NS):
        return
    row = first_row((time_ns > LAST_NS) | (time_ns < -LAST_NS))
    raise RowError(name, row, f"is {time_ns[row]} ns; expected times within ±{LAST_NS} ns (2116 in Unix time)")


def require_unit(name: str, vectors: NDArray[np.floating], tolerance: float = 1e-4) -> None:
    """Raise InputError naming the first row of (N, D) `vectors` whose length is off 1 by more than `tolerance`.

    Rounding to float32 alone stays below 1e-6.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.einsum("ij,ij->i", vectors, vectors)
    # |v|² - 1 is 2 (|v| - 1) near 1, and the negated comparison also catches NaN.
    wrong = ~(np.abs(squared - 1) <= 2 * tolerance)
    if wrong.any():
        row = first_row(wrong)
        length = float(np.sqrt(squared[row]))
        raise RowError(name, row, f"is {vectors[row].tolist()}, of length {length:.6g}; expected unit length")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-ordered view that cannot be written to; the array itself keeps its flags."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def first_row(wrong: NDArray[np.bool_]) -> int:
    """Return the first row in which anything is set; there must be one."""
    return int(np.argmax(wrong)) // (wrong.size // len(wrong))


def is_sorted(values: NDArray[Any]) -> bool:
    """Tell whether a 1-D array never decreases."""
    return bool((values[1:] >= values[:-1]).all())


def as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Convert to an array of numbers, of whatever type and shape they are.

    Raises:
        InputError: not numbers, or ragged.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InputError(name, "rows of unequal length, or no numbers; expected a regular array of numbers") from None
    if array.size == 0 and array.dtype.kind == "O":
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(name, f"expected numbers, found {array.dtype}")
    return array


def as_floats(name: str, values: ArrayLike, *shapes: Shape, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Convert numbers to floats of one type and check that they have one of the shapes; [] stands for no rows.

    Raises:
        InputError: not numbers, ragged, of another shape, or too large for the type.
    """
    array = as_numbers(name, values)
    width = shapes[-1][-1]
    if array.shape == (0,) and len(shapes[-1]) == 2 and isinstance(width, int):
        array = array.reshape(0, width)
    require_shape(name, array, *shapes)
    with np.errstate(over="ignore"):
        converted = array.astype(dtype, copy=False)
    overflow = np.isinf(converted) & np.isfinite(array)
    if overflow.any():
        row = first_row(overflow)
        raise RowError(name, row, f"is {array[row].tolist()}, too large for {np.dtype(dtype)}")
    return converted


def as_units(name: str, vectors: ArrayLike, tolerance: float = 1e-3) -> NDArray[np.float32]:
    """Convert (N, 3) directions to float32 of unit length; lengths within `tolerance` of 1 are mended.

    Raises:
        InputError: another shape, or a row farther off than that, NaN included.
    """
    exact: NDArray[np.float64] = as_floats(name, vectors, ("N", 3))
    require_unit(name, exact, tolerance)
    length = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    # What float32 rounding alone explains is left as it is, so that data read back keeps its last bit.
    length[np.abs(length - 1) < 1e-6] = 1
    return (exact / length[:, None]).astype(np.float32)


def as_integers(name: str, values: ArrayLike, shape: Shape, dtype: type[np.integer]) -> NDArray[Any]:
    """Convert whole numbers to one integer type and check their shape.

    Args:
        name: what to call it in the error.
        values: whole numbers, floats without a fraction included; a single number stands for all.
        shape: every length as a number.
        dtype: the integer type.

    Raises:
        InputError: not whole numbers, out of the type's bounds, or of another shape.
    """
    array = as_numbers(name, values)
    if array.ndim == 0:
        array = np.broadcast_to(array, [int(length) for length in shape])
    require_shape(name, array, shape)
    if array.dtype == dtype:
        return array
    bounds = np.iinfo(dtype)
    if array.dtype.kind == "f":
        # As a float the largest int64 rounds up to 2**63, which no longer fits: hence "not below max + 1".
        wrong = ~((array >= bounds.min) & (array < float(bounds.max) + 1) & (array == np.floor(array)))
    else:
        wrong = (array < bounds.min) | (array > bounds.max)
    if wrong.any():
        row = first_row(wrong)
        expected = f"expected whole numbers from {bounds.min} to {bounds.max}"
        raise RowError(name, row, f"is {array[row].tolist()}; {expected}")
    return array.astype(dtype, copy=False)


def as_time_ns(name: str, values: ArrayLike, length: int) -> NDArray[np.int64]:
    """Convert times to (length,) int64 nanoseconds: floats are seconds, integers nanoseconds; one number is for all.

    Raises:
        InputError: not numbers, not finite, out of int64, or of another length.
    """
    array = as_numbers(name, values)
    if array.dtype.kind != "f":
        time_ns = as_integers(name, array, (length,), np.int64)
        require_times(name, time_ns)
        return time_ns
    if array.ndim == 0:
        array = np.broadcast_to(array, (length,))
    require_shape(name, array, (length,))
    wrong = ~(np.abs(array) < _LAST_SECOND)
    if wrong.any():
        row = first_row(wrong)
        unit = guess_time_unit(float(array[row]))
        guess = f"this looks like {unit}, and floats are seconds" if unit else "floats are seconds"
        limit = f"within ±{_LAST_SECOND:,} s"
        raise RowError(name, row, f"is {array[row]}; {guess}: expected finite ones {limit}, or integer nanoseconds")
    seconds = array.astype(np.float64)
    # Whole seconds apart from the fraction: their product with 1e9 would lose the last digits of Unix times.
    whole = np.floor(seconds)
    return whole.astype(np.int64) * _NS_PER_S + np.rint((seconds - whole) * _NS_PER_S).astype(np.int64)


def guess_time_unit(seconds: float) -> str:
    """Return the unit in which a number of seconds would be a time from 1973 to 2116; "" if it is none, or seconds."""
    for unit, per_s in (("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9)):
        if _FIRST_SECOND < abs(seconds) / per_s < _LAST_SECOND < abs(seconds):
            return unit
    return ""


def as_selection(index: Index | int, length: int) -> slice | NDArray[Any]:
    """Check what stands in `data[...]`: a slice, a mask of that length, or positions.

    Raises:
        InputError: a single number, a mask of another length, or a position outside.
    """
    if isinstance(index, slice):
        return index
    if isinstance(index, int | np.integer):
        number = shown(int(index))
        raise InputError("index", f"{number} is a single number; use [{number}:{number}+1] for a selection of one")
    array = _selected_rows(index)
    if array.size == 0 and array.ndim == 1 and array.dtype.kind == "f":
        array = array.astype(np.intp)  # np.asarray([]) is float
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise InputError("index", f"expected a slice, a 1-D mask or 1-D integers, found {array.dtype} {array.shape}")
    if array.dtype.kind == "b":
        if len(array) != length:
            raise InputError("index", f"the mask has {len(array)} entries, the data {length}")
        return array
    outside = (array >= length) | (array < -length)
    if outside.any():
        raise InputError("index", f"position {array[first_row(outside)]} is outside the {length} entries")
    return array


def _selected_rows(index: object) -> NDArray[Any]:
    try:
        return np.asarray(index)
    except (ValueError, TypeError, OverflowError):
        raise InputError("index", f"expected a slice, a mask or integers, found {type(index).__name__}") from None


def is_member(values: NDArray[np.integer], wanted: Numbers | None) -> NDArray[np.bool_]:
    """Return the (N,) mask of values that are one of the wanted numbers; None wants all."""
    if wanted is None:
        return np.ones(len(values), dtype=np.bool_)
    if isinstance(wanted, int | np.integer):
        return values == wanted
    if isinstance(wanted, range) and wanted.step == 1:
        return (values >= wanted.start) & (values < wanted.stop)
    numbers = as_numbers("selected numbers", wanted)
    require_shape("selected numbers", numbers, ("N",))
    return np.isin(values, as_integers("selected numbers", numbers, numbers.shape, np.int64))


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of a 1-D array, ascending; without sorting if they are in order."""
    if not is_sorted(values):
        return np.unique(values)
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def group_rows(values: NDArray[np.integer]) -> Iterator[tuple[int, slice | NDArray[np.intp]]]:
    """Give (value, where it occurs) in ascending order; slices if the 1-D array never decreases."""
    order = None if is_sorted(values) else np.argsort(values, kind="stable")
    ordered = values if order is None else values[order]
    numbers = distinct(ordered)
    bounds = [*np.searchsorted(ordered, numbers).tolist(), len(values)]
    for number, (start, stop) in zip(numbers, pairwise(bounds), strict=True):
        yield int(number), slice(start, stop) if order is None else order[start:stop]


def n_rows(name: str, values: ArrayLike) -> int:
    """Return how long the first axis of an array or list of numbers is.

    Raises:
        InputError: it is neither.
    """
    array = as_numbers(name, values)
    if array.ndim == 0:
        raise InputError(name, f"expected an array or a list, found {type(values).__name__}")
    return len(array)


def _fits(found: tuple[int, ...], shape: Shape) -> bool:
    return len(found) == len(shape) and all(
        isinstance(want, str) or have == want for have, want in zip(found, shape, strict=True)
    )
