# SPDX-License-Identifier: Apache-2.0
"""Inbox: a line of limited length that threads put things into and one takes them out of."""

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """First in, first out. When it is full the oldest has to go: of poses, the newest matters."""

    def __init__(self, capacity: int) -> None:
        """Make room for so many."""
        self._items = deque[Item]()
        self._capacity = capacity
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item) -> Item | None:
        """Add something and return what had to go for it, if anything."""
        with self._changed:
            dropped = self._items.popleft() if len(self._items) >= self._capacity else None
            self._items.append(item)
            self._changed.notify()
        return dropped

    def take(self) -> Item | None:
        """Wait for something and return it; None after `close`, whatever is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed)
            return None if self._closed else self._items.popleft()

    def close(self) -> None:
        """Let `take` return at once from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
