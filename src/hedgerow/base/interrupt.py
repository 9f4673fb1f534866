# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that takes effect where it does no harm: `InterruptGuard` for loops, such as a stream between two sweeps.

`delay_interrupt` is for calls into libraries that lose an interrupt in an error of their own. With `end_like_interrupt`
a process that is told to end (SIGTERM of `docker stop`, SIGHUP of a closed terminal) does what it does at Ctrl-C.
"""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, TracebackType
from typing import Any


class Ended(KeyboardInterrupt):
    """The process was told to end by another signal than Ctrl-C."""

    def __init__(self, signal_number: int) -> None:
        """Remember which."""
        super().__init__(signal_number)
        self.signal_number = signal_number


def end_like_interrupt() -> None:
    """From now on treat SIGTERM and SIGHUP as Ctrl-C, in the main thread; what is ignored (nohup) stays so."""

    def ended(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, frame)  # a guard: it decides when
        else:
            raise Ended(number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has one of them
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, ended)
    sys.unraisablehook = _interrupt_again


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send a signal once more that came where Python ignores what is raised: while it collects garbage, or imports."""
    error = unraisable.exc_value
    if not isinstance(error, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    number = error.signal_number if isinstance(error, Ended) else signal.SIGINT
    again = threading.Timer(0.05, os.kill, (os.getpid(), number))  # not here: it would be ignored again
    again.daemon = True
    again.start()


class InterruptGuard(AbstractContextManager["InterruptGuard"]):
    """While the block runs, Ctrl-C only sets `asked`; a second Ctrl-C interrupts at once, as usual."""

    def __init__(self) -> None:
        """Prepare; nothing changes until the block is entered."""
        self._event = threading.Event()
        self._before: Any = None
        self._signal_number: int = signal.SIGINT

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

    def interrupt(self) -> None:
        """After the block, do what the signal would have done at once: raise, or ask a guarded block around this."""
        around = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
        if isinstance(around, InterruptGuard):
            around._interrupted(self._signal_number, None)
        else:
            self._raise()

    def _raise(self) -> None:
        if self._signal_number != signal.SIGINT:
            raise Ended(self._signal_number)
        raise KeyboardInterrupt

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self._signal_number = number
        if self.asked:
            self._raise()
        self.ask()


@contextmanager
def delay_interrupt() -> Generator[None]:
    """Let Ctrl-C wait until the block ends. Raises KeyboardInterrupt then, unless a guard around it lets it wait."""
    with InterruptGuard() as stop:
        yield
    if stop.asked:
        stop.interrupt()
