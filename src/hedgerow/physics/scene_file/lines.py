# SPDX-License-Identifier: Apache-2.0
"""On which line of a TOML text a field stands, so that an error can point there.

Python's TOML reader does not keep lines, so keys and table headings are looked up in the text once more, only after
the text has been read without complaint.
"""

import re

from hedgerow.errors import Location

Lines = dict[tuple[int | str, ...], int]
"""Line, counted from 1, of each place."""

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_PATH = rf"\s*{_KEY}(?:\s*\.\s*{_KEY})*\s*"
_HEADING = re.compile(rf"^\s*(\[\[?)({_PATH})\]\]?")
_ASSIGNMENT = re.compile(rf"^({_PATH})=")
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|#.*|[\[\]{}]""")


def line_of(lines: Lines, location: Location) -> int | None:
    """Return the line of a place, or of the nearest place around it that has one."""
    for n in range(len(location), 0, -1):
        if tuple(location[:n]) in lines:
            return lines[tuple(location[:n])]
    return None


def toml_lines(text: str) -> Lines:
    """Find the lines of all keys and headings of a valid TOML text; those inside inline tables are left out."""
    lines: Lines = {}
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    state = _State()
    for number, line in enumerate(text.splitlines(), start=1):
        if not state.is_inside:
            if heading := _HEADING.match(line):
                table = _heading(heading, counts)
                lines.setdefault(table, number)
                continue
            if assignment := _ASSIGNMENT.match(line):
                lines[table + _names(assignment[1])] = number
        state.read(line)
    return lines


def _heading(found: re.Match[str], counts: dict[tuple[int | str, ...], int]) -> tuple[int | str, ...]:
    """Path of a heading; within lists of tables, of the newest entry."""
    path: tuple[int | str, ...] = ()
    names = _names(found[2])
    for i, name in enumerate(names):
        path += (name,)
        if found[1] == "[[" and i == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += (counts[path],)
    return path


def _names(path: str) -> tuple[str, ...]:
    return tuple(name.strip("\"'") for name in re.findall(_KEY, path))


class _State:
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
