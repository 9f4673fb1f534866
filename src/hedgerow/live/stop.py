# SPDX-License-Identifier: Apache-2.0
"""Stop: the first Ctrl-C ends a stream between two sweeps, so that a record of it stays whole."""

import signal
import threading
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any


class Stop(AbstractContextManager["Stop"]):
    """While the block runs, Ctrl-C sets `asked`; a second one interrupts at once, as usual."""

    def __init__(self) -> None:
        """Prepare."""
        self._event = threading.Event()
        self._before: Any = None

    @property
    def asked(self) -> bool:
        """Whether somebody wants it to end."""
        return self._event.is_set()

    def ask(self) -> None:
        """Want it to end."""
        self._event.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for some time, or less if it is to end."""
        self._event.wait(seconds)

    def __enter__(self) -> "Stop":
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
