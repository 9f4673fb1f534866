# SPDX-License-Identifier: Apache-2.0
"""Which object an element belongs to: stretches of element numbers, each with the number of its object."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Objects = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class ObjectIndex:
    """Stretches of elements, ascending: each reaches from its begin to the next one's; 0 is no object."""

    begin: NDArray[np.int64]
    object: Objects

    @classmethod
    def of_elements(cls, object: Objects) -> "ObjectIndex | None":
        """Index elements that are numbered from 0; None if none belongs to an object."""
        if not object.any():
            return None
        starts = np.flatnonzero(np.concatenate([[True], np.diff(object) != 0]))
        return cls(np.append(starts, len(object)), np.append(object[starts], np.uint32(0)))

    @classmethod
    def of_copies(cls, n_each: int, object: Objects) -> "ObjectIndex | None":
        """Index copies of `n_each` elements, one after the other from 0 on."""
        if not object.any() or n_each == 0:
            return None
        begin = n_each * np.arange(len(object) + 1, dtype=np.int64)
        return cls(begin, np.append(object, np.uint32(0)))

    @classmethod
    def join(cls, parts: "Sequence[tuple[int, ObjectIndex | None]]") -> "ObjectIndex | None":
        """Put indices together, each moved by the number of its first element; parts may come in any order."""
        found = [(first, part) for first, part in sorted(parts, key=lambda each: each[0]) if part is not None]
        if not found:
            return None
        begin = np.concatenate([part.begin + first for first, part in found])
        object = np.concatenate([part.object for _, part in found])
        # Where one part ends and the next begins at once, the latter counts.
        last = np.append(begin[1:] != begin[:-1], True)
        return cls(begin[last], object[last])

    def of(self, element: NDArray[np.int64]) -> Objects:
        """Return the object of each element, in the same shape; 0 for none."""
        at = np.searchsorted(self.begin, element, side="right") - 1
        found = self.object[np.maximum(at, 0)]
        return np.where(at >= 0, found, np.uint32(0))
