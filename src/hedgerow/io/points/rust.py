# SPDX-License-Identifier: Apache-2.0
"""Calls into lazrs, which is written in Rust and panics on damaged points.

A panic comes to Python as an error that is no Exception, and prints itself, with a list of functions, on the standard
error. Here it becomes one sentence. What others print meanwhile, in other threads, is held back and printed after.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from hedgerow.errors import FileError

_STDERR = 2


class _HeldErrors:
    """The standard error of the process while someone holds it back; several threads may at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_holders = 0
        self._real = -1
        self._held: BinaryIO | None = None

    def hold(self) -> None:
        with self._lock:
            self._n_holders += 1
            with suppress(OSError):  # there may be no standard error, or no place for a temporary file
                if self._n_holders == 1:
                    self._held = TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `release`
                    self._real = os.dup(_STDERR)
                    os.dup2(self._held.fileno(), _STDERR)

    def release(self, *, drop: bool) -> None:
        """Let go; the last one prints what was held back, without what was dropped."""
        with self._lock:
            self._n_holders -= 1
            if self._held is None:
                return
            if drop:
                self._held.truncate(0)
                self._held.seek(0)
            if self._n_holders == 0:
                self._print(self._held)
                self._held = None

    def _print(self, held: BinaryIO) -> None:
        if self._real >= 0:
            os.dup2(self._real, _STDERR)
            os.close(self._real)
            self._real = -1
        with held, suppress(OSError), open(_STDERR, "wb", closefd=False) as stderr:
            held.seek(0)
            stderr.write(held.read())


_held_errors = _HeldErrors()


@contextmanager
def calling_rust(path: Path) -> Generator[None]:
    """Turn a panic in the block into FileError, and print nothing of it.

    Raises:
        FileError: Rust panicked over this file.
    """
    reason: str | None = None
    _held_errors.hold()
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3 makes it; there is no module to import it from
            raise
        reason = " ".join(str(error).split())[:120]
    finally:
        _held_errors.release(drop=reason is not None)
    if reason is not None:
        raise FileError(f"{path}: damaged, its points cannot be unpacked ({reason})")
