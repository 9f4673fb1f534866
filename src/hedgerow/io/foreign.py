# SPDX-License-Identifier: Apache-2.0
"""Where other people's readers are called: whatever goes wrong in them becomes one sentence."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from hedgerow.errors import FileError, HedgerowError


@contextmanager
def reading(path: object, what: str) -> Generator[None]:
    """Turn any error of a library that parses a file into FileError: a damaged file can raise anything.

    Args:
        path: of the file.
        what: what it was taken for, for example "a PCD file".
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except HedgerowError:
        raise
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except OSError as error:
        raise FileError(f"{path}: cannot read ({error.strerror or error})") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileError(f"{path}: not {what}, or damaged ({reason})") from error
