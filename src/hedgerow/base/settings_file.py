# SPDX-License-Identifier: Apache-2.0
"""Settings files: the one way in which TOML files of people are read: scenes, sensors, classifiers, calibrations.

Whatever is in the file, it is read in a second or refused with one sentence. Python's reader alone is not so sure: it
recurses into lists, splits keys in quadratic time, and converts numbers of thousands of digits.
"""

import re
import stat
import tomllib
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

from hedgerow.errors import FileError, Location, dotted

MAX_BYTES = 1_000_000
"""Largest settings file; 10,000 objects of a scene fit in. Python's reader takes up to 2 s for so many."""
MAX_DEPTH = 32
"""Most tables and lists inside each other."""

# Possessive, and only from the start of a word: the search stays linear in the length of the text.
_DOTTED = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH},}}""", re.ASCII)
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{999}|0x[0-9A-Fa-f_]{999}")
_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def read_toml(path: Traversable, what: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: the file.
        what: what it should be, for errors: "sensor file".

    Raises:
        FileError: missing, no file, too large, no text, no TOML, or too deeply nested; says which.
    """
    return parse_toml(read_settings_text(path, what), path)


def read_settings_text(path: Traversable, what: str) -> str:
    """Read the text of a settings file; arguments and errors as in `read_toml`."""
    try:
        _require_regular(path, what)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FileError(f"{path}: no such {what}") from None
    except (OSError, ValueError) as error:  # a ValueError is a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path}: cannot be read as a {what}: {reason}") from None
    if len(content) > MAX_BYTES:
        raise FileError(f"{path}: is larger than {MAX_BYTES // 1_000_000} MB, the most that a {what} may have")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}: cannot be read as a {what}: line {line} is no UTF-8 text; save it as UTF-8") from None


def parse_toml(text: str, path: object) -> dict[str, Any]:
    """Parse the text of a settings file; `path` is what to call it in errors, which are those of `read_toml`."""
    _require_parsable(text, path)
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise FileError(f"{path}: lists or tables lie too deep inside each other; at most {MAX_DEPTH} may") from None
    except ValueError as error:  # tomllib's own, and those of int, float and dates
        raise FileError(f"{path}: not valid TOML: {error}") from None
    _require_plain(content, path)
    return content


def _require_regular(path: Traversable, what: str) -> None:
    """Refuse folders, pipes and devices, which have no end or never begin."""
    if isinstance(path, Path) and not stat.S_ISREG(path.stat().st_mode):
        raise FileError(f"{path}: is no file, so it cannot be read as a {what}")


def _require_parsable(text: str, path: object) -> None:
    """Refuse what would keep Python's reader busy."""
    for pattern, said in (
        (_DOTTED, f"a name has more than {MAX_DEPTH} parts"),
        (_LONG_NUMBER, "a number has more than 1,000 digits"),
    ):
        if found := pattern.search(text):
            raise FileError(f"{path}, line {text.count(chr(10), 0, found.start()) + 1}: {said}")


def _require_plain(content: dict[str, Any], path: object) -> None:
    """Refuse deep nesting, and texts that would steer a terminal; without recursion."""
    left: list[tuple[Location, object]] = [((), content)]
    while left:
        place, value = left.pop()
        if len(place) > MAX_DEPTH:
            said = f"lists or tables lie too deep inside each other; at most {MAX_DEPTH} may"
            raise FileError(f"{path}: {dotted(place[:3])}: {said}")
        entries: Iterable[tuple[int | str, object]] = ()
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value).items()
            value = " ".join(cast("dict[str, object]", value))  # the names are texts as well
        elif isinstance(value, list):
            entries = enumerate(cast("list[object]", value))
        left += [((*place, name), each) for name, each in entries if isinstance(each, (dict, list, str))]
        if isinstance(value, str) and _STEERING.search(value):
            raise FileError(f"{path}: {dotted(place) or 'a name'}: has a control character; leave it out")
