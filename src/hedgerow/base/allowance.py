# SPDX-License-Identifier: Apache-2.0
"""Allowance: how much one client may send. What is more waits in the client's own socket; nobody else waits for it."""

import time
from collections.abc import Callable


class Allowance:
    """So much in every second, and some at once after a pause (a token bucket)."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with the whole burst.

        Args:
            per_s: how much comes back in a second.
            burst: the most that is there at once.
            clock: tells the time [s].
        """
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._left, self._counted_s = burst, clock()

    def spend(self, amount: float) -> float:
        """Take an amount and return how long to wait before the next one [s]; it may be more than there is."""
        self._count()
        self._left -= amount
        return max(0.0, -self._left / self._per_s)

    def has(self, amount: float) -> bool:
        """Take an amount if there is so much left, and tell whether there was."""
        self._count()
        enough = self._left >= amount
        self._left -= amount if enough else 0
        return enough

    def _count(self) -> None:
        now_s = self._clock()
        self._left = min(self._burst, self._left + (now_s - self._counted_s) * self._per_s)
        self._counted_s = now_s


class OversizedFrame(Exception):
    """A client sends a frame that is larger than allowed."""


class FrameCounter:
    """Counts the frames of a WebSocket in the bytes that a client sends, without looking into them."""

    def __init__(self, max_bytes: int) -> None:
        """Allow so many bytes in one frame."""
        self._max_bytes = max_bytes
        self._head = bytearray()
        self._left = 0  # bytes of the payload under way

    def count(self, data: bytes) -> int:
        """Return how many frames begin in the next bytes. Raises OversizedFrame."""
        n, at = 0, 0
        while at < len(data):
            if self._left:
                skipped = min(self._left, len(data) - at)
                self._left -= skipped
                at += skipped
                continue
            self._head.append(data[at])
            at += 1
            size = _payload_bytes(self._head)
            if size is None:
                continue
            if size > self._max_bytes:
                raise OversizedFrame
            self._left = size
            self._head.clear()
            n += 1
        return n


def _payload_bytes(head: bytearray) -> int | None:
    """Return the length of the payload that a frame's head announces, None as long as the head is not whole."""
    if len(head) < 2:
        return None
    short, mask = head[1] & 0x7F, 4 if head[1] & 0x80 else 0
    n_length = {126: 2, 127: 8}.get(short, 0)
    if len(head) < 2 + n_length + mask:
        return None
    return int.from_bytes(head[2 : 2 + n_length], "big") if n_length else short
