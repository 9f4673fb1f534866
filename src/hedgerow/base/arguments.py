# SPDX-License-Identifier: Apache-2.0
"""Single arguments, checked: of the right kind, a number within bounds, a path. What is wrong is one sentence.

Public functions check with these what a type checker would have found, so that a mistake at a prompt or in a notebook
gives the same kind of error as a wrong array: an InputError that names the argument.
"""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, SupportsIndex, cast

import numpy as np

from hedgerow.errors import InputError, shown


def require_kind(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise InputError unless a value is of one of the kinds.

    Args:
        name: of the argument.
        value: what was given.
        kinds: what it may be.
        wanted: how to call these, and where to get one: "Beams; fire log.beams".
    """
    if not isinstance(value, kinds):
        raise InputError(name, f"expected {wanted}, found {type(value).__name__}")


def require_each(name: str, values: object, kind: type) -> None:
    """Raise InputError unless this is a list, or another sequence, of one kind of thing."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise InputError(name, f"expected a list of {kind.__name__}, found {type(values).__name__}")
    for each in cast("Sequence[object]", values):
        if not isinstance(each, kind):
            raise InputError(name, f"expected a list of {kind.__name__}, found {type(each).__name__} in it")


def as_number(name: str, value: object, low: float = -np.inf, high: float = np.inf, said: str = "") -> float:
    """Return a single number that lies between two bounds, both included; `said` tells them in other words.

    Raises:
        InputError: no number, or not within the bounds, NaN included.
    """
    try:
        number = float("nan") if isinstance(value, str | bytes) else float(cast("Any", value))
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not low <= number <= high:
        bounds = f" from {low:g} to {high:g}" if np.isfinite([low, high]).any() else ""
        raise InputError(name, f"expected {said or f'a number{bounds}'}, found {shown(value)}")
    return number


def as_positive(name: str, value: object) -> float:
    """Return a single finite number above 0, or raise InputError."""
    try:
        number = as_number(name, value)
    except InputError:
        number = 0.0
    if not 0 < number < np.inf:
        raise InputError(name, f"expected a finite number above 0, found {shown(value)}")
    return number


def as_whole(name: str, value: SupportsIndex, low: int, high: int, said: str = "") -> int:
    """Return a whole number between two bounds, both included; `said` tells them in other words.

    Raises:
        InputError: no whole number (a truth value or 2.0 is none), or not within the bounds.
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise InputError(name, f"expected {said or f'a whole number from {low} to {high}'}, found {shown(value)}")
    return number


def as_path(name: str, value: object) -> Path:
    """Return a path given as text or as a path; raises InputError if it is neither, or no path can be so."""
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise InputError(name, f"expected the path of a file or folder, found {shown(value)}")
    return Path(value)
