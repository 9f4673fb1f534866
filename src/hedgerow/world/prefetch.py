# SPDX-License-Identifier: Apache-2.0
"""Prefetch: what will be needed soon is made by one thread in the background, one thing at a time, in a given order.

What fails in the background is left for whoever needs it: it is made again then, and says itself what is wrong. Work
goes to the thread in single pieces, and the thread holds no `Prefetch` between them, so that neither the end of the
program nor that of its owner waits for more than one.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, Protocol, TypeVar, runtime_checkable
from weakref import ref

from numpy.typing import ArrayLike

Part = TypeVar("Part")
SWEEPS_AHEAD = 50
"""Sweeps that a world is told of before they are fired: 5 s of a drive at 10 Hz. What fits into its memory is read."""


@runtime_checkable
class Foresees(Protocol):
    """A world that reads ahead, if it is told where beams will come from."""

    def expect(self, origin_m: ArrayLike, reach_m: float) -> None:
        """Hear from which (K, 3) places the coming sweeps will be fired, and how far they reach, the next one first."""


class Prefetch(Generic[Part]):
    """Parts, by number, that are made ahead of their use."""

    def __init__(self, make: Callable[[int], Part]) -> None:
        """Take the function that makes a part; it is called by another thread, and must not refer to the owner."""
        self._make = make
        self._lock = Lock()
        self._queue: deque[int] = deque()
        self._begun: dict[int, Future[Part]] = {}
        self._failed: set[int] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._works = False

    @property
    def rows(self) -> list[int]:
        """The parts that are waited for, being made, or made and not taken."""
        with self._lock:
            return [*self._begun, *self._queue]

    def want(self, rows: Iterable[int]) -> None:
        """Make these, in this order, instead of what was wanted before and is not begun; failed ones are left."""
        with self._lock:
            self._queue = deque(row for row in rows if row not in self._begun and row not in self._failed)
            if self._works or not self._queue:
                return
            self._works = True
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hedgerow-prefetch")
        self._go_on()

    def take(self, row: int) -> Part | None:
        """Give a part away, waiting for it if it is being made; None if it has to be made by the caller."""
        with self._lock:
            begun = self._begun.pop(row, None)
            self._failed.discard(row)
            if begun is None:
                if row in self._queue:
                    self._queue.remove(row)
                return None
        return None if begun.exception() is not None else begun.result()

    def drop(self, row: int) -> None:
        """Forget a part; if it is being made, wait, so that its memory is free afterwards."""
        self.take(row)

    def _go_on(self) -> None:
        """Hand the next piece of work to the thread."""
        try:
            if self._pool is not None:
                self._pool.submit(_work, ref(self))
        except RuntimeError:  # Python is ending: no more work
            self._works = False

    def _make_next(self) -> bool:
        """Make one part, in the background; tell whether to go on."""
        with self._lock:
            if not self._queue:
                self._works = False
                return False
            row = self._queue.popleft()
            self._begun[row] = begun = Future[Part]()
        try:
            begun.set_result(self._make(row))
        except BaseException as error:  # whoever waits for it must not wait for ever
            with self._lock:
                self._failed.add(row)
                self._begun.pop(row, None)
            begun.set_exception(error)
        return True


def _work(owner: "ref[Prefetch[Part]]") -> None:
    prefetch = owner()
    if prefetch is not None and prefetch._make_next():  # pyright: ignore[reportPrivateUsage]
        prefetch._go_on()  # pyright: ignore[reportPrivateUsage]
