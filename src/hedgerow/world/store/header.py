# SPDX-License-Identifier: Apache-2.0
"""What a learned world says about itself: kind, parameters, range limits, frames, and where it comes from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np

import hedgerow
from hedgerow.base import arrays
from hedgerow.base.columns import set_fields
from hedgerow.errors import InputError, one_line, shown
from hedgerow.log import require_limits

Position = tuple[float, float, float]
_LEAST_TILE_M = 1e-3  # numbers of tiles stay exact in float64
_LONGEST = 60
_MAX_DEPTH = 24  # a settings file may have 32


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a world was learned from, and with what."""

    sensor: str = ""
    """Name of the lidar that recorded the log."""
    log: str = ""
    """Name of the log."""
    n_beams: int = 0
    """Beams that it was learned from."""
    hedgerow: str = hedgerow.__version__
    """Version that learned it."""


@dataclass(frozen=True, slots=True)
class WorldHeader:
    """The settings of a world; every value is checked once. Raises InputError naming the one that is wrong."""

    kind: str
    """Name of the model, for example "voxel": lower-case letters, digits and dashes."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the model; plain values, those that are None left out."""
    min_range_m: float = 0.0
    max_range_m: float = float("inf")
    """The range limits hold where no sensor is named."""
    map_origin_m: Position = (0.0, 0.0, 0.0)
    """What to add to map coordinates to get the outer frame, for example UTM, as in `Log`."""
    provenance: Provenance = Provenance()
    tile_m: float = 32.0
    """Side of the tiles on the disk; elements are numbered tile by tile."""
    origin_m: Position = (0.0, 0.0, 0.0)
    """Where the engine's float32 frame sits in the map: near the middle of the elements."""
    classes: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of the classes that its labels are of, by name, as far as it knows them."""

    def __post_init__(self) -> None:
        """Check and convert every value."""
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.kind):
            raise InputError("kind", f"expected lower-case letters, digits and dashes, found {self.kind!r}")
        low, high = float(self.min_range_m), float(self.max_range_m)
        require_limits(low, high)
        if not _LEAST_TILE_M <= self.tile_m <= arrays.FARTHEST_M:
            raise InputError("tile_m", f"expected {_LEAST_TILE_M:g} to {arrays.FARTHEST_M:g} m, found {self.tile_m}")
        if not 0 <= self.provenance.n_beams < 2**63:
            found = one_line(str(self.provenance.n_beams), _LONGEST)
            raise InputError("provenance.n_beams", f"expected 0 to {2**63 - 1}, found {found}")
        set_fields(self, {"min_range_m": low, "max_range_m": high, "tile_m": float(self.tile_m)})
        set_fields(self, {"parameters": plain("parameters", dict(self.parameters))})
        for name, number in self.classes.items():
            if type(number) is not int or not 0 <= number <= 65535:
                raise InputError(f"classes.{one_line(name, _LONGEST)}", f"expected 0 to 65535, found {shown(number)}")
        set_fields(self, {"classes": dict(self.classes)})
        for name in ("map_origin_m", "origin_m"):
            set_fields(self, {name: _position(name, getattr(self, name))})

    def content(self) -> dict[str, Any]:
        """Return it as plain nested values."""
        flat = {each.name: getattr(self, each.name) for each in fields(self)}
        flat |= {"map_origin_m": list(self.map_origin_m), "origin_m": list(self.origin_m)}
        flat["provenance"] = {each.name: getattr(self.provenance, each.name) for each in fields(Provenance)}
        return flat

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> "WorldHeader":
        """Make it from plain nested values.

        Raises:
            InputError: a value is missing, unknown, or wrong; names it.
        """
        entries = typed("", content, {each.name: _TYPES[each.name] for each in fields(cls)})
        known: dict[str, type] = {each.name: _TYPES[each.name] for each in fields(Provenance)}
        entries["provenance"] = Provenance(**typed("provenance.", entries["provenance"], known))
        return cls(**entries)


_TYPES: dict[str, type] = {
    "kind": str,
    "parameters": dict,
    "min_range_m": float,
    "max_range_m": float,
    "map_origin_m": list,
    "provenance": dict,
    "tile_m": float,
    "origin_m": list,
    "classes": dict,
    "sensor": str,
    "log": str,
    "n_beams": int,
    "hedgerow": str,
}


def typed(where: str, content: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """Return the entries of a mapping that must have exactly these keys and types; whole numbers pass as floats.

    Raises:
        InputError: one is missing, unknown, or of another type; names it.
    """
    for name in content:
        if name not in types:
            raise InputError(f"{where}{one_line(name, _LONGEST)}", "unknown; leave it out or mend its name")
    entries: dict[str, Any] = {}
    for name, kind in types.items():
        if name not in content:
            raise InputError(f"{where}{name}", "missing")
        value = content[name]
        if kind is float and type(value) is int and abs(value) < 2**1000:
            value = float(value)
        if type(value) is not kind:
            raise InputError(f"{where}{name}", f"expected {_SAID[kind]}, found {shown(value)}")
        entries[name] = value
    return entries


_SAID = {
    **{str: "text", bool: "true or false", float: "a number", int: "a whole number"},
    **{list: "a list", dict: "a section"},
}


def _position(name: str, value: Any) -> Position:
    numbers = [float(number) for number in value if _is_coordinate(number)]
    if len(numbers) != 3 or len(value) != 3:
        said = f"expected three finite numbers within {arrays.FARTHEST_M:g} m, found {one_line(str(value), _LONGEST)}"
        raise InputError(name, said)
    return numbers[0], numbers[1], numbers[2]


def _is_coordinate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= arrays.FARTHEST_M


def plain(name: str, value: Any, depth: int = 0) -> Any:
    """Return a value as TOML can hold it: NumPy's numbers as Python's, entries of mappings that are None left out.

    Args:
        name: what to call it in the error.
        value: text, numbers, truth values, and lists and mappings of those.
        depth: how many lists and mappings it lies in.

    Raises:
        InputError: something else is in it, a key is no text, a whole number is too large, or it is too deep.
    """
    if depth > _MAX_DEPTH:
        raise InputError(one_line(name, _LONGEST), f"more than {_MAX_DEPTH} lists or mappings lie inside each other")
    if isinstance(value, np.generic):
        return plain(name, cast("Any", value.item()), depth)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, Any]", value).items()
        wrong = [key for key, _ in pairs if not isinstance(key, str)]
        if wrong:
            raise InputError(one_line(name, _LONGEST), f"the key {shown(wrong[0])} is no text")
        return {str(key): plain(f"{name}.{key}", entry, depth + 1) for key, entry in pairs if entry is not None}
    if isinstance(value, list | tuple):
        return [plain(f"{name}[{index}]", entry, depth + 1) for index, entry in enumerate(cast("list[Any]", value))]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(one_line(name, _LONGEST), f"{hex(value)[:20]}... does not fit into 64 bits")
    if isinstance(value, str | bool | int | float):
        return value
    found = type(cast("object", value)).__name__
    raise InputError(one_line(name, _LONGEST), f"{found} does not fit into TOML; use text, numbers, lists or mappings")
