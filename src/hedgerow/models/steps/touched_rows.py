# SPDX-License-Identifier: Apache-2.0
"""Sums over the elements that a part of a log has met, without the rows of all the others.

A part is a stretch of the drive and meets what lies around it. With a row for every element of the site, each part
would send, keep and add up a table as large as the world: the cost of a drive would grow with the square of its length.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TouchedRows:
    """Some rows of a table of whole numbers; the others are 0."""

    rows: NDArray[np.int64]
    """(M,) which they are, ascending."""
    values: NDArray[Any]
    """(M, C) whole numbers."""

    @classmethod
    def of(cls, table: NDArray[Any]) -> Self:
        """Take the rows of an (N, C) table that are not 0."""
        rows = np.flatnonzero(table.any(axis=1))
        return cls(rows, table[rows])

    def add_to(self, table: NDArray[np.int64]) -> None:
        """Add the rows to an (N, C) table, in place."""
        table[self.rows] += self.values
