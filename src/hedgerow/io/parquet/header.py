# SPDX-License-Identifier: Apache-2.0
"""What a Parquet log says about itself: one JSON text under the key `hedgerow` in the file's metadata.

    {"format": 1, "hedgerow": "0.1.0", "sensor": "hdl-64e", "min_range_m": 0.9, "max_range_m": 120.0,
     "map_origin_m": [0.0, 0.0, 0.0], "returns_per_pulse": 1, "part": 0, "seed": 7, "metadata": {}}

`max_range_m` is null where there is no limit. `seed` is the log's `metadata["seed"]`, or null. `part` counts the files
of a folder from 0; the last of them also says under the key `hedgerow_parts` how many there are, so that a missing
file is noticed. Type and bounds of every value are checked, of what is written and of what is read alike.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import hedgerow
from hedgerow.errors import FileError, InputError, shown
from hedgerow.log import Log, require_limits

KEY = b"hedgerow"
PARTS_KEY = b"hedgerow_parts"
FORMAT = 1
"""Raised by one when older readers would misread the file."""
MAX_RETURNS = 255
"""Most returns of a pulse: `return_number` is a byte."""
_MAX_PARTS = 100_000
_MAX_TEXT = 200
_MAX_BYTES = 16_000_000  # of the JSON text
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Header:
    """The settings of a log, and which part of it a file holds. Raises InputError naming the one that is wrong."""

    sensor: str
    min_range_m: float
    max_range_m: float
    map_origin_m: tuple[float, float, float]
    returns_per_pulse: int
    part: int = 0
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    hedgerow: str = hedgerow.__version__
    """Version that wrote it."""

    def __post_init__(self) -> None:
        """Check every value."""
        for name in ("sensor", "hedgerow"):
            _require_text(name, getattr(self, name))
        for name in ("min_range_m", "max_range_m"):
            _require_number(name, getattr(self, name))
        require_limits(self.min_range_m, self.max_range_m)
        if len(self.map_origin_m) != 3 or not all(math.isfinite(each) for each in self.map_origin_m):
            raise InputError("map_origin_m", f"expected three finite numbers, found {shown(self.map_origin_m)}")
        _require_whole("returns_per_pulse", self.returns_per_pulse, 1, MAX_RETURNS)
        _require_whole("part", self.part, 0, _MAX_PARTS)
        _require_plain(self.metadata)

    @classmethod
    def of(cls, log: Log) -> "Header":
        """Take over the settings of a log."""
        x, y, z = log.map_origin_m.tolist()
        limits = log.min_range_m, log.max_range_m
        return cls(log.sensor, *limits, (x, y, z), log.returns.n_per_pulse, metadata=log.metadata)

    def settings(self) -> "Header":
        """Return what all parts of one log have in common."""
        return replace(self, part=0)

    def to_json(self) -> bytes:
        """Write it down.

        Raises:
            InputError: the free metadata does not fit into JSON.
        """
        content = {"format": FORMAT} | asdict(self)
        content["max_range_m"] = None if self.max_range_m == float("inf") else self.max_range_m
        content["seed"] = self.metadata.get("seed")
        content["metadata"] = {key: value for key, value in self.metadata.items() if key != "seed"}
        try:
            return json.dumps(content, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError("metadata", f"does not fit into JSON ({error}); use text, finite numbers, lists") from None

    @classmethod
    def from_json(cls, path: Path, text: bytes | None) -> "Header":
        """Read it back.

        Raises:
            FileError: it is absent, damaged or of a newer format.
        """
        if text is None:
            raise FileError(f"{path}: a Parquet file but no Hedgerow log (no 'hedgerow' metadata); use Log.from_arrays")
        try:
            content = _parsed(text)
            _require_format(path, content)
            return cls._from_content(content)
        except InputError as error:
            raise FileError(f"{path}: the 'hedgerow' metadata is damaged ({error})") from error

    @classmethod
    def _from_content(cls, content: Mapping[str, Any]) -> "Header":
        names = [each.name for each in fields(cls)]
        for name in (*names, "seed"):
            if name not in content:
                raise InputError(name, "missing")
        for name in content:
            if name not in (*names, "seed", "format"):
                raise InputError(shown(name), "unknown")
        entries = {name: content[name] for name in names}
        for name, kind, expected in (("metadata", dict, "a mapping"), ("map_origin_m", list, "three finite numbers")):
            if not isinstance(entries[name], kind):
                raise InputError(name, f"expected {expected}, found {shown(entries[name])}")
        if content["seed"] is not None:
            entries["metadata"] = entries["metadata"] | {"seed": content["seed"]}
        if entries["max_range_m"] is None:
            entries["max_range_m"] = math.inf
        for name in ("min_range_m", "max_range_m"):
            entries[name] = _require_number(name, entries[name])
        origin = cast("list[object]", entries["map_origin_m"])
        entries["map_origin_m"] = tuple(_require_number("map_origin_m", each) for each in origin)
        return cls(**entries)


def _parsed(text: bytes) -> dict[str, Any]:
    """Parse JSON that may be of any size, depth and content. Raises InputError."""
    if len(text) > _MAX_BYTES:
        raise InputError("text", f"has {len(text):,} bytes, at most {_MAX_BYTES:,} may be")
    try:
        content: object = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise InputError("text", f"is nested too deeply; at most {_MAX_DEPTH} levels may be") from None
    except UnicodeDecodeError:
        raise InputError("text", "is no UTF-8") from None
    except ValueError as error:
        raise InputError("text", f"is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError("text", f"expected a mapping, found {shown(content)}")
    return cast("dict[str, Any]", content)


def _require_format(path: Path, content: Mapping[str, Any]) -> None:
    written_as = content.get("format")
    if type(written_as) is not int or written_as < 1:
        raise InputError("format", f"expected a whole number from 1, found {shown(written_as)}")
    if written_as > FORMAT:
        raise FileError(
            f"{path}: log format {written_as}, written by Hedgerow {str(content.get('hedgerow'))[:20]}, is newer than "
            f"the {FORMAT} that Hedgerow {hedgerow.__version__} reads; upgrade with: pip install -U hedgerow"
        )


def _whole(digits: str) -> int:
    if len(digits) > 20:  # -(2**63) has 20
        raise ValueError("a whole number does not fit into 64 bits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"a number is not finite: {digits[:20]}")
    return value


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or len(value) > _MAX_TEXT or not value.isprintable():
        raise InputError(name, f"expected a line of at most {_MAX_TEXT} characters, found {shown(value)}")


def _require_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(name, f"expected a number, found {shown(value)}")
    return float(value)


def _require_whole(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise InputError(name, f"expected a whole number from {low} to {high}, found {shown(value)}")


def _require_plain(metadata: dict[str, Any]) -> None:
    """Refuse what cannot be written and read again: too deep, or halves of characters; without recursion."""
    left: list[tuple[int, object]] = [(1, metadata)]
    while left:
        depth, value = left.pop()
        if depth > _MAX_DEPTH:
            raise InputError("metadata", f"is nested too deeply; at most {_MAX_DEPTH} levels may be")
        if isinstance(value, dict):
            for key, entry in cast("dict[object, object]", value).items():
                left += [(depth, key), (depth + 1, entry)]
        elif isinstance(value, list | tuple):
            left += [(depth + 1, entry) for entry in cast("list[object]", value)]
        elif isinstance(value, str) and not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
            raise InputError("metadata", f"holds text that is no Unicode, {shown(value)}")
