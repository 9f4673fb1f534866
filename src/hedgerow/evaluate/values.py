# SPDX-License-Identifier: Apache-2.0
"""A number with what it rests on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one simulation; the catalogue says what it is called and counted in."""

    value: float | None
    """In metres, shares or plain numbers; None where the data leaves it undefined."""
    n: int | None = None
    """How many beams or returns it rests on; None for what is not measured on beams."""


def share(part: float, whole: int) -> Value:
    """Return part / whole, undefined for a whole of nothing."""
    return Value(part / whole if whole else None, whole)
