# SPDX-License-Identifier: Apache-2.0
"""Small files, read whole: what can go wrong becomes one sentence."""

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
