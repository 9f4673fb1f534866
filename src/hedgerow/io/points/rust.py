# SPDX-License-Identifier: Apache-2.0
"""Calls into lazrs, which is written in Rust and panics on damaged points.

A panic comes to Python as an error that is no Exception, and prints itself, with a list of functions, on the standard
error. Here it becomes one sentence.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.base.held_errors import held_errors
from hedgerow.errors import FileError


@contextmanager
def calling_rust(path: Path) -> Generator[None]:
    """Turn a panic in the block into FileError, and print nothing of it.

    Raises:
        FileError: Rust panicked over this file.
    """
    reason: str | None = None
    held_errors.hold()
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3 makes it; there is no module to import it from
            raise
        reason = " ".join(str(error).split())[:120]
    finally:
        held_errors.release(drop=reason is not None)
    if reason is not None:
        raise FileError(f"{path}: damaged, its points cannot be unpacked ({reason})")
