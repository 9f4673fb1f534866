# SPDX-License-Identifier: Apache-2.0
"""Files read whole: what can go wrong becomes one sentence, too little memory included."""

import os
from pathlib import Path

from hedgerow.errors import FileError


def read_bytes(path: Path, hint: str = "") -> bytes:
    """Read a file.

    Args:
        path: of the file.
        hint: what to add when it is not there.

    Raises:
        FileError: missing, or not readable.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path}: no such file" + (f"; {hint}" if hint else "")) from None
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error


def read_text(path: Path, hint: str = "") -> str:
    """Read a text file; as `read_bytes`, and also raises FileError if it is not text."""
    try:
        return read_bytes(path, hint).decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a text file") from None


def require_rows(path: Path, offset: int, row_bytes: int, n_rows: int) -> None:
    """Refuse a file that ends before its last point.

    Args:
        path: of the file.
        offset: bytes before the first point.
        row_bytes: of one point.
        n_rows: points that its header promises.

    Raises:
        FileError: it ends before.
    """
    n_found = max(path.stat().st_size - offset, 0) // max(row_bytes, 1)
    if n_found < n_rows:
        raise FileError(f"{path}: ends after {n_found:,} of {n_rows:,} points; is it cut off?")


def require_memory(path: Path, n_bytes: int) -> None:
    """Refuse a file of points that memory cannot hold, before that much is asked for.

    Raises:
        FileError: fewer than n_bytes are free.
    """
    free = free_memory_bytes()
    if free is not None and n_bytes > free:
        raise FileError(
            f"{path}: is read whole, and would need {n_bytes / 1e9:.1f} GB of the {free / 1e9:.1f} GB of free memory; "
            "split it, or have it written as Parquet or LAS, which are read in parts"
        )


def free_memory_bytes() -> int | None:
    """Return how much memory is free, by Linux's own estimate; elsewhere how much there is; None if nothing tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None
