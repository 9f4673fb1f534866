# SPDX-License-Identifier: Apache-2.0
"""What Hedgerow raises when the input, not the code, is at fault.

Every message says what is wrong, where, and what to do. The command line prints it and exits with 2; anything
else that reaches the user is a bug and shows its traceback. Who handles an error reads its attributes, never its text.
All of them can be pickled, so that they may come back from another process.

Whatever a damaged file or a library puts into a message, its text is one line of printable characters and not long
(`one_line`); the attributes keep what was given.
"""

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Self

Location = Sequence[int | str]
"""Where in a table of values: names of tables and fields, numbers of list entries."""


LONGEST_TEXT = 500
"""Most characters in the text of an error or a warning."""
_LONGEST_WORD = 80
"""Most characters of a word that is no path, once a text is too long."""
_CUT = "..."


def one_line(text: str, longest: int = LONGEST_TEXT) -> str:
    """Make a text fit to be printed as one line, whatever is in it.

    Line breaks and tabs become blanks. What cannot be seen is written as an escape: control characters, which steer a
    terminal; characters without width or that turn the direction of writing; halves of surrogate pairs, which cannot
    be printed at all. A text that is too long loses the middle of its long words, then its own middle; paths stay
    whole where that suffices.

    Args:
        text: what to print.
        longest: most characters.
    """
    if len(text) <= longest and text.isprintable():
        return text
    # Four times the length: enough to see the ends of what is between long words, little enough to be quick.
    text = _without_middle(text, 4 * longest)
    text = re.sub(r"\s*[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*", " ", text).strip()
    text = "".join(each if each.isprintable() else _escaped(each) for each in text)
    if len(text) > longest:
        text = re.sub(rf"[^\s/\\]{{{_LONGEST_WORD + 1},}}", lambda word: _without_middle(word[0], _LONGEST_WORD), text)
    return _without_middle(text, longest)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _without_middle(text: str, longest: int) -> str:
    """Cut a text so that its first three fifths and its end stay."""
    if len(text) <= longest:
        return text
    head = 3 * longest // 5
    return text[:head] + _CUT + text[len(text) - (longest - head - len(_CUT)) :]


def shown(value: object, most: int = 60) -> str:
    """Show a value on one line, in at most so many characters."""
    try:
        text = " ".join(ascii(value).split())
    except Exception:  # a number of more digits than Python prints, or a __repr__ of someone else's that fails
        return f"one of type {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


class HedgerowError(Exception):
    """Root of all errors that a user can mend."""

    def __str__(self) -> str:
        """Return the sentence, on one line."""
        return one_line(self.sentence())

    def sentence(self) -> str:
        """Return the sentence as it was given, of any length, with whatever is in it."""
        return super().__str__()


class InputError(HedgerowError, ValueError):
    """An argument or array has the wrong type, shape or value."""

    field: str
    """What is wrong: the name of an argument, a column, a parameter."""
    said: str
    """What is wrong with it, and what to do."""

    def __init__(self, field: str, said: str) -> None:
        """Say what is wrong with a field."""
        super().__init__(field, said)
        self.field, self.said = field, said

    def sentence(self) -> str:
        """Return the sentence as it was given."""
        return f"{self.field}: {self.said}"


class ParameterError(InputError):
    """A value in a table of parameters is wrong; it remembers where, so that a file reader can name the line."""

    def __init__(self, location: Location, said: str, owner: str = "") -> None:
        """Say what is wrong at a place.

        Args:
            location: the place, from the outermost table inwards.
            said: what is wrong there.
            owner: what to call the table itself, should the place be no field of it but the whole.
        """
        super().__init__(dotted(location) or owner, said)
        self.location, self.owner = tuple(location), owner

    def __reduce__(self) -> tuple[type[Self], tuple[Location, str, str]]:
        """Let it pass between processes, which would otherwise call it with the field for a location."""
        return type(self), (self.location, self.said, self.owner)


class FileError(HedgerowError):
    """A file is missing, damaged, of the wrong kind, or cannot be written."""


class MissingPackage(HedgerowError, ImportError):
    """An optional package is needed for what was asked; the message has the pip line."""


class SocketError(HedgerowError):
    """A port is taken, or nobody answers at an address."""


class HedgerowWarning(UserWarning):
    """Something was lost or looks wrong, and the work goes on; the command line prints it as one line."""

    def __str__(self) -> str:
        """Return the sentence, on one line."""
        return one_line(super().__str__())


def warn(said: str) -> None:
    """Warn of something, in one sentence; who calls Hedgerow sees his own line beside it.

    Args:
        said: what is lost or looks wrong, where, and what to do.
    """
    warnings.warn(said, HedgerowWarning, stacklevel=_own_frames())


def called_from_outside() -> bool:
    """Tell whether the function that asks was called by the user's code, not by Hedgerow's own."""
    caller = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] != "hedgerow"


def _own_frames() -> int:
    """Count the frames from `warn` up to the first that is not Hedgerow's."""
    frame, n = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "hedgerow":
        frame, n = frame.f_back, n + 1
    return n


def dotted(location: Location) -> str:
    """Write a place as `table.field[2]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
