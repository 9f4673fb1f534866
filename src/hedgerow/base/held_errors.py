# SPDX-License-Identifier: Apache-2.0
"""Holds back what libraries in other languages print on the standard error while they are called.

Such libraries print what is wrong with a file, beside the error that they raise. What other threads print meanwhile is
held back too, and printed after, unless it is dropped with the rest.
"""

import os
import threading
from contextlib import suppress
from tempfile import TemporaryFile
from typing import BinaryIO

_STDERR = 2


class _HeldErrors:
    """The standard error of the process while someone holds it back; several threads may at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_holders = 0
        self._real = -1
        self._held: BinaryIO | None = None

    def hold(self) -> None:
        """Hold back what is printed from now on."""
        with self._lock:
            self._n_holders += 1
            with suppress(OSError):  # there may be no standard error, or no place for a temporary file
                if self._n_holders == 1:
                    self._held = TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `release`
                    self._real = os.dup(_STDERR)
                    os.dup2(self._held.fileno(), _STDERR)

    def release(self, *, drop: bool) -> str:
        """Let go; the last one prints what was held back, without what was dropped.

        Args:
            drop: whether to drop what is held now.

        Returns:
            What was dropped.
        """
        dropped = b""
        with self._lock:
            self._n_holders -= 1
            if self._held is None:
                return ""
            if drop:
                self._held.seek(0)
                dropped = self._held.read()
                self._held.truncate(0)
                self._held.seek(0)
            if self._n_holders == 0:
                self._print(self._held)
                self._held = None
        return dropped.decode("utf-8", "replace")

    def _print(self, held: BinaryIO) -> None:
        if self._real >= 0:
            os.dup2(self._real, _STDERR)
            os.close(self._real)
            self._real = -1
        with held, suppress(OSError), open(_STDERR, "wb", closefd=False) as stderr:
            held.seek(0)
            stderr.write(held.read())


held_errors = _HeldErrors()
"""Of this process."""
