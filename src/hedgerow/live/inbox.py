# SPDX-License-Identifier: Apache-2.0
"""FairInbox: what clients sent and nobody has dealt with yet. Clients take turns, whatever one of them sends."""

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairInbox(Generic[Item]):
    """A queue of limited length for each client, between threads.

    When a client's queue is full its own oldest has to go: of poses, the newest matters. Who takes gets one of each
    client in turn, so one that waits for its answer before it asks again never waits for more than one of each other.
    """

    def __init__(self, capacity: int) -> None:
        """Start empty, with room for so many of each client."""
        self._queues: dict[int, deque[Item]] = {}  # in the order of their turns; none is empty
        self._capacity = capacity
        self._changed = threading.Condition()
        self._closed = False

    def put(self, client: int, item: Item) -> Item | None:
        """Add something of a client and return what had to go for it, if anything."""
        with self._changed:
            queue = self._queues.setdefault(client, deque())
            dropped = queue.popleft() if len(queue) >= self._capacity else None
            queue.append(item)
            self._changed.notify()
        return dropped

    def take(self) -> Item | None:
        """Wait for something and return it; None after `close`, whatever is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._queues or self._closed)
            if self._closed:
                return None
            client = next(iter(self._queues))
            queue = self._queues.pop(client)
            item = queue.popleft()
            if queue:
                self._queues[client] = queue  # behind all others
            return item

    def forget(self, client: int) -> None:
        """Drop what a client that is gone has left; nobody waits for it."""
        with self._changed:
            self._queues.pop(client, None)

    def close(self) -> None:
        """Let `take` return at once from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
