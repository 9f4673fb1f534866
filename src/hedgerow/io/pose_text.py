# SPDX-License-Identifier: Apache-2.0
"""What the text formats for poses share: rows of numbers, exact time stamps, errors that name the line."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import RowError
from hedgerow.errors import FileError, InputError
from hedgerow.io.whole_file import read_text

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The words of a text file, without empty lines and comments."""

    path: Path
    words: list[list[str]]
    lines: list[int]
    """Line number of each row, from 1."""

    def numbers(self, first: int, stop: int) -> NDArray[np.float64]:
        """Return columns `first` to `stop` - 1 as (K, stop - first) float64.

        Raises:
            FileError: a word that is no number; names the line.
        """
        words = [row[first:stop] for row in self.words]
        try:
            return np.array(words, dtype=np.float64).reshape(-1, stop - first)
        except ValueError:
            for row, line in zip(words, self.lines, strict=True):
                for word in row:
                    _require_number(self.path, line, word)
            raise

    def stamps_ns(self) -> NDArray[np.int64]:
        """Return the first column, in decimal seconds, as (K,) exact nanoseconds.

        Raises:
            FileError: a word that is no finite number of seconds; names the line.
        """
        pairs = zip(self.words, self.lines, strict=True)
        return np.array([_stamp_ns(self.path, line, row[0]) for row, line in pairs], dtype=np.int64)

    @contextmanager
    def naming_lines(self) -> Generator[None]:
        """Turn an InputError about a row into a FileError that names its line."""
        try:
            yield
        except RowError as error:
            raise FileError(f"{self.path}, line {self.lines[error.row]}: {error.name} {error.problem}") from error
        except InputError as error:
            raise FileError(f"{self.path}: {error}") from error


def read_rows(path: str | Path, n_words: int | None, what: str) -> Rows:
    """Read a text file of rows of words; `#` starts a comment.

    Args:
        path: the file.
        n_words: words in each row, or None for any number.
        what: what the words are, for the error.

    Raises:
        FileError: not readable, no rows, or a row of another length; names the line.
    """
    path = Path(path)
    rows = Rows(path, [], [])
    for line, content in enumerate(read_text(path).splitlines(), start=1):
        words = content.partition("#")[0].split()
        if not words:
            continue
        if n_words is not None and len(words) != n_words:
            raise FileError(f"{path}, line {line}: expected {n_words} numbers ({what}), found {len(words)}")
        rows.words.append(words)
        rows.lines.append(line)
    if not rows.words:
        raise FileError(f"{path}: no poses in it; expected lines of {what}")
    return rows


def stamp_text(time_ns: int) -> str:
    """Write nanoseconds as seconds with nine decimals, exactly."""
    seconds, rest = divmod(abs(time_ns), _NS_PER_S)
    return f"{'-' if time_ns < 0 else ''}{seconds}.{rest:09d}"


def _stamp_ns(path: Path, line: int, word: str) -> int:
    # Not through float64, which cannot tell nanoseconds of Unix times apart.
    try:
        stamp_ns = int((Decimal(word) * _NS_PER_S).to_integral_value())
    except (DecimalException, ValueError, OverflowError):
        raise FileError(f"{path}, line {line}: {word!r} is not a time stamp in seconds") from None
    if abs(stamp_ns) >= 2**63:
        raise FileError(f"{path}, line {line}: the time stamp {word} s is too large")
    return stamp_ns


def _require_number(path: Path, line: int, word: str) -> None:
    try:
        float(word)
    except ValueError:
        raise FileError(f"{path}, line {line}: {word!r} is not a number") from None
