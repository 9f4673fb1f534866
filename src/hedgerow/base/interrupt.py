# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that takes effect where it does no harm: `InterruptGuard` for loops, such as a stream between two sweeps.

`delay_interrupt` is for calls into libraries that lose an interrupt in an error of their own.
"""

import signal
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import Any


class InterruptGuard(AbstractContextManager["InterruptGuard"]):
    """While the block runs, Ctrl-C only sets `asked`; a second Ctrl-C interrupts at once, as usual."""

    def __init__(self) -> None:
        """Prepare; nothing changes until the block is entered."""
        self._event = threading.Event()
        self._before: Any = None

    @property
    def asked(self) -> bool:
        """Whether the block shall end."""
        return self._event.is_set()

    def ask(self) -> None:
        """Ask the block to end, as Ctrl-C does."""
        self._event.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for some time, or until the block shall end."""
        self._event.wait(seconds)

    def __enter__(self) -> "InterruptGuard":
        """Take over Ctrl-C, in the main thread; other threads never get it."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give Ctrl-C back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.ask()


@contextmanager
def delay_interrupt() -> Generator[None]:
    """Let Ctrl-C wait until the block ends. Raises KeyboardInterrupt then."""
    with InterruptGuard() as stop:
        yield
    if stop.asked:
        raise KeyboardInterrupt
