# SPDX-License-Identifier: Apache-2.0
"""YAML from strangers: 300 bytes of aliases can stand for 200 MB, and deep nesting ends the parser.

So a text is looked through event by event, which needs neither memory nor depth, before anything is made of it. What
recorders and drivers write is a few levels deep, with no aliases or one here and there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hedgerow.errors import FileError
from hedgerow.io.source import read_text

_MOST_BYTES = 4_000_000
_MOST_LEVELS = 20
_LONGEST_VALUE = 10_000
_MOST_VALUES = 200_000


def read_yaml(path: Path) -> Any:
    """Read a YAML file of plain values.

    Raises:
        FileError: missing, damaged, or larger, deeper or of other things than such files are.
    """
    import yaml

    text = require_plain_yaml(path)
    try:
        return parse_yaml(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _no_yaml(path, error) from None


def parse_yaml(text: str) -> Any:
    """Parse a text that `require_plain_yaml` found safe, by the parser in C if there is one: it is ten times faster."""
    import yaml

    return yaml.load(text, Loader=_loader())


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def require_plain_yaml(path: Path) -> str:
    """Return the text of a YAML file that is safe to parse.

    Raises:
        FileError: it is missing, no YAML, too large or too deep, or its aliases stand for too much.
    """
    import yaml

    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise FileError(f"{path}: is larger than {_MOST_BYTES / 1e6:.0f} MB; expected a small YAML file")
    text = read_text(path)
    parse: Callable[..., Iterator[Any]] = getattr(yaml, "parse")  # noqa: B009
    try:
        _require_small(path, parse(text, Loader=_loader()))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _no_yaml(path, error) from None
    return text


def _require_small(path: Path, events: Iterator[Any]) -> None:
    """Count the values that a text stands for, with those behind its aliases each time anew."""
    import yaml

    counts, names, sizes = [0], list[str | None](), dict[str | None, int]()
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            counts.append(0)
            names.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            size = sizes[names.pop()] = counts.pop() + 1
            counts[-1] += size
        elif isinstance(event, yaml.AliasEvent):
            counts[-1] += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
            if len(event.value) > _LONGEST_VALUE:
                raise FileError(f"{path}: has a value of {len(event.value):,} characters; is it damaged?")
        if len(counts) > _MOST_LEVELS:
            raise FileError(f"{path}: is nested more than {_MOST_LEVELS} levels deep; is it damaged?")
        if counts[-1] > _MOST_VALUES:
            raise FileError(f"{path}: stands for more than {_MOST_VALUES:,} values; is it damaged?")


def _no_yaml(path: Path, error: Exception) -> FileError:
    return FileError(f"{path}: cannot be read as YAML ({type(error).__name__})")
