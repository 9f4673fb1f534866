# SPDX-License-Identifier: Apache-2.0
"""Read a scene file, which is TOML: parse, set values from outside, fill in parameters, check every field.

Errors are one sentence with the file, the line where that can be told, and the field. Python's TOML reader does not
keep lines, so `toml_lines` looks up keys and table headings once more in a text that has been read without complaint.
"""

import copy
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hedgerow.base.settings_file import parse_toml, read_settings_text
from hedgerow.errors import FileError, InputError, Location, ParameterError, dotted

if TYPE_CHECKING:
    from hedgerow.scenes.file.schema import SceneFile

SUFFIXES = (".toml", ".yaml", ".yml")
"""What is taken for a scene file; YAML only to be refused with a sentence that says so."""

Lines = dict[tuple[int | str, ...], int]
"""Line of each field and table, counted from 1."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_PATH = rf"\s*{_KEY}(?:\s*\.\s*{_KEY})*\s*"
_HEADING = re.compile(rf"^\s*(\[\[?)({_PATH})\]\]?")
_ASSIGNMENT = re.compile(rf"^({_PATH})=")
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|#.*|[\[\]{}]""")


def line_of(lines: Lines, location: Location) -> int | None:
    """Return the line of a field, or of the nearest table around it that has one."""
    for n in range(len(location), 0, -1):
        if tuple(location[:n]) in lines:
            return lines[tuple(location[:n])]
    return None


def toml_lines(text: str) -> Lines:
    """Find the lines of all keys and headings of a valid TOML text; those inside inline tables are left out."""
    lines: Lines = {}
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    nesting = _Nesting()
    for number, line in enumerate(text.split("\n"), start=1):
        if not nesting.is_inside:
            if heading := _HEADING.match(line):
                table = _heading(heading, counts)
                lines.setdefault(table, number)
                continue
            if assignment := _ASSIGNMENT.match(line):
                lines[table + _split_key(assignment[1])] = number
        nesting.read(line)
    return lines


def _heading(found: re.Match[str], counts: dict[tuple[int | str, ...], int]) -> tuple[int | str, ...]:
    """Path of a heading; within lists of tables, of the newest entry."""
    path: tuple[int | str, ...] = ()
    names = _split_key(found[2])
    for i, name in enumerate(names):
        path += (name,)
        if found[1] == "[[" and i == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += (counts[path],)
    return path


def _split_key(path: str) -> tuple[str, ...]:
    return tuple(name.strip("\"'") for name in re.findall(_KEY, path))


class _Nesting:
    """Whether the next line begins inside a list, an inline table or a long string."""

    def __init__(self) -> None:
        self._depth = 0
        self._quotes = ""

    @property
    def is_inside(self) -> bool:
        return self._depth > 0 or bool(self._quotes)

    def read(self, line: str) -> None:
        at = 0
        while at < len(line):
            if self._quotes:
                end = line.find(self._quotes, at)
                if end < 0:
                    return
                at, self._quotes = end + 3, ""
            found = _TOKEN.search(line, at)
            if found is None or found[0].startswith("#"):
                return
            at = found.end()
            if found[0] in ('"""', "'''"):
                self._quotes = found[0]
            elif found[0] in "[{":
                self._depth += 1
            elif found[0] in "]}":
                self._depth -= 1


@dataclass(frozen=True)
class Source:
    """A scene file that was parsed; knows how to point at a field of it."""

    path: Traversable
    """The file."""
    content: dict[str, Any]
    """As it is to be checked: values set from outside and parameters filled in."""
    lines: Lines
    """Lines of the fields."""
    changed: frozenset[str] = field(default_factory=frozenset[str])
    """Fields that were set from outside."""

    @property
    def name(self) -> str:
        """Name of the file without suffix."""
        return Path(self.path.name).stem

    def beside(self, file: str) -> Path:
        """Return the path of a file named in the scene, relative to it."""
        return Path(str(self.path)).parent / file

    def error(self, location: Location, message: str) -> FileError:
        """Make the error about a field; the message does not repeat it."""
        place = dotted(location)
        said = f"{place}: {message}" if place else message
        if any(place == name or place.startswith((f"{name}.", f"{name}[")) for name in self.changed):
            return FileError(f"{self.path}: {said} (as set from outside)")
        line = line_of(self.lines, location)
        return FileError(f"{self.path}{f', line {line}' if line else ''}: {said}")

    def check(self) -> "SceneFile":
        """Check every field against the schema, and return the fields.

        Raises:
            FileError: a field is wrong; names it and its line.
        """
        from hedgerow.scenes.file.schema import SceneFile

        try:
            return SceneFile.parse(self.content, "a scene")
        except ParameterError as error:
            raise self.error(error.location, error.said) from None


def scene_names() -> list[str]:
    """Return the names of the shipped scenes, sorted."""
    return sorted(entry.name.removesuffix(".toml") for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def read_scene(name_or_path: str | Path, set: Mapping[str, Any] | None = None) -> Source:
    """Find and parse a scene file; its fields are not checked yet.

    Args:
        name_or_path: a shipped scene's name, or a .toml file.
        set: values for fields by dotted path, for example {"scatter.grass.density_per_m2": 5}, or for parameters
            of the file by their name.

    Raises:
        FileError: missing, or not TOML.
        InputError: no such shipped scene, or nothing of that name to set.
    """
    path = _find(name_or_path)
    content, lines = _parse(path)
    changes = {_full_path(content, name): value for name, value in (set or {}).items()}
    content = copy.deepcopy(content)
    for place, value in changes.items():
        _set_field(content, place, value)
    source = Source(path, content, lines, frozenset(changes))
    parameters: Any = content.get("parameters", {})
    filled = {key: value if key == "parameters" else _fill_in(value, parameters, source, (key,))
              for key, value in content.items()}  # fmt: skip
    used = _references(content)
    idle = [name for name in _names(parameters) if name not in used]
    if idle:
        raise source.error(("parameters", idle[0]), f'no field takes "${idle[0]}"; leave it out or use it')
    return Source(path, filled, lines, source.changed)


def _shipped() -> Traversable:
    return resources.files("hedgerow.scenes") / "shipped"


def _find(name_or_path: str | Path) -> Traversable:
    path = Path(name_or_path)
    if path.suffix.lower() in SUFFIXES or _is_there(path):
        if path.suffix.lower() not in SUFFIXES:
            raise FileError(f"{path}: no scene file; expected the suffix .toml")
        if path.suffix.lower() != ".toml":
            raise FileError(f"{path}: is YAML, but scenes are TOML; write it as {path.with_suffix('.toml').name}")
        return path
    names = scene_names()
    if str(name_or_path) not in names:
        near = difflib.get_close_matches(str(name_or_path), names, n=2)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            "scene", f"'{name_or_path}' is no file and no shipped scene; {guess}there are {', '.join(names)}"
        )
    return _shipped() / f"{name_or_path}.toml"


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for the system
        return False


def _parse(path: Traversable) -> tuple[dict[str, Any], Lines]:
    text = read_settings_text(path, "scene file")
    return parse_toml(text, path), toml_lines(text)


def _full_path(content: dict[str, Any], name: str) -> str:
    """Full path of what is to be set: a parameter may go by its own name."""
    parameters: Any = content.get("parameters", {})
    if name in _names(parameters):
        return f"parameters.{name}"
    first = name.split(".")[0]
    if "." in name or first in content or first in ("seed", "sensor", "about"):
        return name
    known = ", ".join(_names(parameters)) or "no parameters"
    raise InputError("set", f"the scene has no parameter '{name}'; it has {known}; other fields go by their full path")


def _names(parameters: Any) -> list[str]:
    """Names of the parameters; none if they are no table, which is found out when the fields are checked."""
    return [str(name) for name in cast("dict[Any, Any]", parameters)] if isinstance(parameters, dict) else []


def _set_field(content: dict[str, Any], place: str, value: Any) -> None:
    *tables, last = place.split(".")
    here: Any = content
    for table in tables:
        here = cast("dict[str, Any]", here).setdefault(table, {})
        if not isinstance(here, dict):
            raise InputError("set", f"'{place}' leads through {table}, which is no table")
    here[last] = value


def _fill_in(value: Any, parameters: Any, source: Source, location: tuple[int | str, ...]) -> Any:
    """Replace each text "$name" by the parameter of that name."""
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {key: _fill_in(entry, parameters, source, (*location, str(key))) for key, entry in pairs}
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        return [_fill_in(entry, parameters, source, (*location, i)) for i, entry in enumerate(entries)]
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in _names(parameters):
            known = ", ".join(_names(parameters)) or "none"
            raise source.error(location, f"no parameter '{value[1:]}'; [parameters] has {known}")
        return parameters[value[1:]]
    return value


def _references(value: Any) -> frozenset[str]:
    """Names of the parameters that a value takes, deep down."""
    if isinstance(value, dict):
        return frozenset[str]().union(*(_references(entry) for entry in cast("dict[Any, Any]", value).values()))
    if isinstance(value, list):
        return frozenset[str]().union(*(_references(entry) for entry in cast("list[Any]", value)))
    return frozenset({value[1:]} if isinstance(value, str) and value.startswith("$") else ())
