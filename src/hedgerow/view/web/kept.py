# SPDX-License-Identifier: Apache-2.0
"""Kept: the last results of something slow, as far as the memory goes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Results by key; the longest unused go when all together are too large."""

    def __init__(self, budget: int, size: Callable[[T], int]) -> None:
        """Keep results of this total size, and always the newest."""
        self._budget = budget
        self._size = size
        self._held: OrderedDict[Hashable, T] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._held)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what belongs to the key, made now if it is not held."""
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        made = make()
        self._held[key] = made
        self._total += self._size(made)
        while self._total > self._budget and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._total -= self._size(dropped)
        return made
