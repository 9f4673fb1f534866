# SPDX-License-Identifier: Apache-2.0
"""Plain values to TOML and back, for `world.toml`; Python reads TOML but does not write it.

TOML has no null, so `plain` leaves entries out that are None.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from hedgerow.errors import InputError


def plain(name: str, value: Any) -> Any:
    """Return nested mappings, lists, text, numbers and truth values as TOML can hold them.

    Args:
        name: what to call it in the error.
        value: NumPy numbers become Python's, tuples lists; entries of mappings that are None are left out.

    Raises:
        InputError: something else is in it, or a key is no text.
    """
    if isinstance(value, np.generic):
        return plain(name, cast("Any", value.item()))
    if isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(f"{name}: {value} does not fit into 64 bits")
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        wrong = [key for key, _ in pairs if not isinstance(key, str)]
        if wrong:
            raise InputError(f"{name}: the key {wrong[0]!r} is no text")
        return {str(key): plain(f"{name}.{key}", entry) for key, entry in pairs if entry is not None}
    if isinstance(value, list | tuple):
        entries = cast("list[Any] | tuple[Any]", value)
        return [plain(f"{name}[{index}]", entry) for index, entry in enumerate(entries)]
    raise InputError(
        f"{name}: {type(cast('object', value)).__name__} does not fit into TOML; use text, numbers, lists or mappings"
    )


def dumps(content: Mapping[str, Any]) -> str:
    """Write plain values as TOML text, mappings as sections."""
    return "\n".join(_section("", content)) + "\n"


def _section(path: str, content: Mapping[str, Any]) -> list[str]:
    lines = [f"{_key(name)} = {_value(value)}" for name, value in content.items() if not isinstance(value, Mapping)]
    for name, value in content.items():
        if isinstance(value, Mapping):
            inner = f"{path}.{_key(name)}" if path else _key(name)
            lines += ["", f"[{inner}]", *_section(inner, cast("Mapping[str, Any]", value))]
    return lines


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in cast("list[Any]", value)) + "]"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{" + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in pairs) + "}"
    return repr(value)  # Python's numbers, inf and nan included, read the same in TOML


def _text(value: str) -> str:
    # JSON escapes all that TOML wants escaped, except this one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return name if bare else _text(name)
