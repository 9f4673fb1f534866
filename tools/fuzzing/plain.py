# SPDX-License-Identifier: Apache-2.0
"""Damage that needs no knowledge of a format: bytes, words and numbers of texts, values of nested tables.

Every function takes what is there and a random generator, and returns something else; same generator, same result.
"""

import json
import re
import struct
import tomllib
from collections.abc import Callable
from random import Random
from typing import Any

Change = Callable[[bytes, Random], bytes]

EDGES = (0, 1, 2, 3, 7, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 10**6, 10**8, 2**24, 2**30)
LARGE = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-308, 5e-324, 1e9, 1e12, 1.8e18, 1e19, 1e38, 3.5e38, 1e300, float("inf"))
NUMBERS = (
    *["0", "-0", "1", "-1", "0.5", "1e-9", "1e9", "1e12", "1e19", "1e38", "1e308", "1e400", "nan", "inf", "-inf"],
    *["255", "256", "65535", "65536", "16777216", "2147483647", "2147483648", "4294967295", "9223372036854775807"],
    *["18446744073709551616", "100000000", "1_000", "0x10", "1.5", "٣", "1" * 400, "9" * 5000, "--1", ""],
)
TEXTS = (
    "",
    " ",
    "\x00",
    "\x1b[31m",
    "é",
    "\u202e",
    "a\nb",
    "\r",
    "$x",
    "../..",
    "/",
    "x" * 700,
    "\ud7ff",
    "{}",
    "'",
    '"',
)
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_DEPTHS = (30, 200, 1200, 20_000)


def place_in(size: int, rng: Random) -> int:
    """Return a place, half of the time near the start, where headers are."""
    return min(int(size * rng.random() ** (1 if rng.random() < 0.5 else 3)), max(size - 1, 0))


def number_bytes(width: int, old: int, size: int, rng: Random, order: str = "<") -> bytes:
    """Return a number that is likely to be mishandled: an edge of its type, near the old one, or near the size.

    Args:
        width: bytes of it: 1, 2, 4 or 8.
        old: what stands there.
        size: bytes of the whole file.
        rng: chooses.
        order: "<" or ">".
    """
    if width in (4, 8) and rng.random() < 0.2:
        value = rng.choice(FLOATS) * rng.choice((1, -1)) if rng.random() < 0.9 else float("nan")
        if width == 4 and 3.4e38 < abs(value) < float("inf"):
            value = 3e38
        return struct.pack(order + ("f" if width == 4 else "d"), value)
    near = (old + 1, old - 1, old * 2, old // 2, old ^ (1 << rng.randrange(8 * width)), -old, size, size - 1, size + 1)
    pools = (EDGES, LARGE, near, (rng.getrandbits(8 * width),))
    value = rng.choice(rng.choice(pools)) % (1 << 8 * width)
    return value.to_bytes(width, "little" if order == "<" else "big")


def change_bytes(data: bytes, rng: Random) -> bytes:
    """Flip, set, cut, insert, repeat, remove, move or blank bytes, one to four times."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_once(changed, rng)
    return bytes(changed)


def _change_once(data: bytearray, rng: Random) -> None:
    size = len(data)
    if size == 0:
        data += rng.randbytes(rng.randrange(1, 40))
        return
    at = place_in(size, rng)
    length = rng.choice((1, 2, 4, 8, 16, 64, 256))
    match rng.randrange(11):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1 | 2:
            data[at] = rng.choice((0, 1, 127, 128, 255, 32, 10, rng.randrange(256)))
        case 3 | 4 | 5:
            width = rng.choice((1, 2, 4, 8))
            old = int.from_bytes(data[at : at + width], "little")
            data[at : at + width] = number_bytes(width, old, size, rng, rng.choice("<<>"))[: max(0, size - at)]
        case 6:
            del data[at:]
        case 7:
            data[at:at] = rng.randbytes(length) if rng.random() < 0.5 else bytes(length)
        case 8:
            del data[at : at + length]
        case 9:
            other = place_in(size, rng)
            data[at:at] = data[other : other + length]
        case _:
            data[at : at + length] = bytes(min(length, size - at))


def change_text(data: bytes, rng: Random) -> bytes:
    """Change numbers, words or lines of a text."""
    text = data.decode("latin-1")
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = _change_text_once(text, rng)
    return text.encode("latin-1", "replace") if rng.random() < 0.9 else text.encode("utf-8", "replace")


def _change_text_once(text: str, rng: Random) -> str:
    choice = rng.randrange(10)
    pattern = _NUMBER if choice < 4 else _WORD
    if choice < 6:
        found = list(pattern.finditer(text))
        if not found:
            return text + rng.choice(NUMBERS)
        one = found[place_in(len(found), rng)]
        new = rng.choice(NUMBERS if rng.random() < 0.7 else TEXTS)
        if choice == 5:
            new = rng.choice(found)[0]
        return text[: one.start()] + new + text[one.end() :]
    if choice == 6:
        at, depth = place_in(len(text), rng), rng.choice(_DEPTHS)
        opening, closing = rng.choice((("[", "]"), ("{a=", "}"), ('{"a":', "}"), ("(", ")"), ("- ", ""), ("a.", "b")))
        return text[:at] + opening * depth + (closing * depth if rng.random() < 0.5 else "") + text[at:]
    if choice == 7:
        at = place_in(len(text), rng)
        return text[:at] + rng.choice(TEXTS) + text[at:]
    return _change_lines(text, rng)


def _change_lines(text: str, rng: Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, other = place_in(len(lines), rng), place_in(len(lines), rng)
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            words = lines[at].split()
            words = words[:-1] if rng.random() < 0.5 else [*words, rng.choice(NUMBERS)]
            lines[at] = " ".join(words) + "\n"
    return "".join(lines)


def change_tree(value: Any, rng: Random, with_none: bool = True) -> Any:
    """Change one to three places of nested dicts and lists, which are altered in place; return the root."""
    root = [value]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        holders: list[tuple[Any, Any]] = [(root, 0)]
        for holder, key in holders:  # grows while it is walked
            inner = holder[key]
            if isinstance(inner, dict):
                holders.extend((inner, each) for each in inner)
            elif isinstance(inner, list):
                holders.extend((inner, each) for each in range(len(inner)))
        holder, key = rng.choice(holders[1:] or holders)
        _change_node(holder, key, rng, with_none)
    return root[0]


def _change_node(holder: Any, key: Any, rng: Random, with_none: bool) -> None:
    old = holder[key]
    choice = rng.randrange(10)
    if choice == 0 and isinstance(holder, dict):
        del holder[key]
    elif choice == 1 and isinstance(holder, dict):
        holder[rng.choice((*TEXTS, "new", str(key) + "x"))] = holder.pop(key)
    elif choice == 2 and isinstance(holder, list):
        holder.extend([old] * rng.choice((1, 2, 100)))
    elif choice == 3 and isinstance(holder, list) and len(holder) > 1:
        del holder[key]
    elif isinstance(old, int | float) and not isinstance(old, bool) and choice < 8:
        holder[key] = _other_number(old, rng)
    else:
        holder[key] = nasty(rng, with_none)


def _other_number(old: float, rng: Random) -> float:
    scaled = (
        old * 10,
        old * 1000,
        old * 10**6,
        -old,
        old + 1,
        old - 1,
        old / 1000,
        float(old),
        int(old) if abs(old) < 1e300 else 0,
    )
    pools = (scaled, EDGES, LARGE, FLOATS, (-1, -0.5, float("nan"), -float("inf")))
    return rng.choice(rng.choice(pools))


def nasty(rng: Random, with_none: bool = True) -> Any:
    """Return a value of any type that few expect."""
    values: list[Any] = [True, False, -1, 0, 1.5, 10**30, float("nan"), 1e308, [], {}, [[]], [1, "a"], {"a": {"b": []}}]
    values += [*TEXTS, [0] * 300, ["x"] * 3, {"kind": "x"}, "1", "nan"]
    return rng.choice([*values, None] if with_none else values)


def change_json(data: bytes, rng: Random) -> bytes:
    """Change values of a JSON text; a text that is none is changed as text."""
    try:
        tree = change_tree(json.loads(data), rng)
        return json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return change_text(data, rng)


def change_toml(data: bytes, rng: Random) -> bytes:
    """Change values of a TOML text; a text that is none is changed as text."""
    import tomli_w

    try:
        tree = tomllib.loads(data.decode())
        return tomli_w.dumps(change_tree(tree, rng, with_none=False)).encode("utf-8", "replace")
    except (ValueError, TypeError, RecursionError):
        return change_text(data, rng)
