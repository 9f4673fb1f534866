# SPDX-License-Identifier: Apache-2.0
"""Table: a few arrays with one row per pulse that are selected, joined and compared together.

The base of Beams and Returns (log.py). Its point is that data is checked once: whatever is cut from or joined out of
checked arrays is right by construction and is not looked at again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import require_each, require_kind
from hedgerow.base.arrays import Index
from hedgerow.errors import InputError

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
        return self.without_checks({name: a if a is None else a[chosen] for name, a in self.columns().items()})

    def columns(self) -> Columns:
        """Return the arrays by name, None for those that are absent."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def equal(self, other: Self) -> bool:
        """Tell whether both hold the same values; NaN equals NaN."""
        require_kind("other", other, type(self), type(self).__name__)
        theirs = other.columns()
        return all(_same(mine, theirs[name]) for name, mine in self.columns().items())

    @classmethod
    def without_checks(cls, columns: Mapping[str, NDArray[Any] | None]) -> Self:
        """Make one from arrays that are right by construction; no value is checked. Those not named are absent."""
        new = object.__new__(cls)
        found = {each.name: columns.get(each.name) for each in fields(cls)}
        set_fields(new, {name: a if a is None else arrays.read_only(a) for name, a in found.items()})
        return new

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join tables in the given order, as they are.

        Raises:
            InputError: no parts, or an array is absent or of another width in some of them.
        """
        require_each("parts", parts, cls)
        if not parts:
            raise InputError(f"{cls.__name__}", "nothing to join; give at least one")
        stacks = [part.columns() for part in parts]
        return cls.without_checks({name: _join_column(name, [stack[name] for stack in stacks]) for name in stacks[0]})


def set_fields(frozen: object, values: Mapping[str, object]) -> None:
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


def _join_column(name: str, parts: list[NDArray[Any] | None]) -> NDArray[Any] | None:
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
