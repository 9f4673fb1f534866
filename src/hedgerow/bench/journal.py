# SPDX-License-Identifier: Apache-2.0
"""Rows of a benchmark in a JSON file, written as they come: after a stop, the same command goes on behind the last.

A row is named by the part of the benchmark and its settings. One that was measured by another version, or on another
machine, does not count, and is replaced.
"""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import hedgerow
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError

Settings = Mapping[str, str | int | float]
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Row:
    """One thing that was measured."""

    part: str
    """Of the benchmark."""
    settings: dict[str, str | int | float]
    """What was measured."""
    values: dict[str, Any]
    """What was found: numbers, and lists of numbers, by name."""
    load: float
    """Processes that wanted a core in the minute before it: load average."""
    when: str
    """Coordinated universal time."""
    version: str
    machine: str

    def number(self, name: str) -> float:
        """Return a setting that is a number."""
        return float(self.settings[name])

    def text(self, name: str) -> str:
        """Return a setting that is a word."""
        return str(self.settings[name])


class Journal:
    """The rows of one file."""

    def __init__(self, path: Path, benchmark: str) -> None:
        """Read the rows that are there.

        Args:
            path: of the file; it is made when the first row comes.
            benchmark: name of the benchmark.

        Raises:
            FileError: there is a file that is something else.
        """
        self.path, self.benchmark = path, benchmark
        self._rows: dict[str, Row] = {_key(row.part, row.settings): row for row in _read(path, benchmark)}

    def __iter__(self) -> Iterator[Row]:
        """Give the rows of this version and machine, in the order in which they were measured."""
        return (row for row in self._rows.values() if _counts(row))

    def of(self, part: str, size: str) -> list[Row]:
        """Return the rows of one part, measured in one size."""
        return [row for row in self if row.part == part and row.settings.get("size") == size]

    def find(self, part: str, settings: Settings) -> Row | None:
        """Return the row with exactly these settings, or None."""
        row = self._rows.get(_key(part, settings))
        return row if row is not None and _counts(row) else None

    def forget(self, part: str, settings: Settings) -> None:
        """Let a row be measured again; it stays in the file until the next one comes."""
        self._rows.pop(_key(part, settings), None)

    def add(self, part: str, settings: Settings, values: Mapping[str, Any], load: float) -> Row:
        """Add a row, in place of an old one, and write the file.

        Raises:
            FileError: it cannot be written.
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        row = Row(part, dict(settings), dict(values), round(load, 2), when, hedgerow.__version__, machine())
        self.forget(part, settings)
        self._rows[_key(part, settings)] = row
        content = {"benchmark": self.benchmark, "rows": [asdict(each) for each in self._rows.values()]}
        with atomic_file(self.path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return row


def machine() -> str:
    """Say what this machine is: processor, cores that may be used, system."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # only Linux has it
    return f"{model}, {n_cores()} cores, {platform.system()}"


def n_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_average() -> float:
    """Return the load average of the last minute; NaN where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _counts(row: Row) -> bool:
    return row.version == hedgerow.__version__ and row.machine == machine()


def _key(part: str, settings: Settings) -> str:
    return json.dumps([part, dict(settings)], sort_keys=True)


def _read(path: Path, benchmark: str) -> list[Row]:
    if not path.exists():
        return []
    other = FileError(f"{path}: is no file of hedgerow bench {benchmark}; choose another folder, or delete it")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise other
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError):
        raise other from None
    rows = cast("dict[str, Any]", content).get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or cast("dict[str, Any]", content).get("benchmark") != benchmark:
        raise other
    return [_row(each, other) for each in cast("list[Any]", rows)]


_TYPES = {"part": str, "settings": dict, "values": dict, "load": float, "when": str, "version": str, "machine": str}


def _row(content: Any, other: FileError) -> Row:
    names = [each.name for each in fields(Row)]
    if not isinstance(content, dict) or sorted(cast("dict[str, Any]", content)) != sorted(names):
        raise other
    values = cast("dict[str, Any]", content)
    if not all(isinstance(values[name], _TYPES[name]) for name in names):
        raise other
    plain = all(isinstance(each, str | int | float) for each in values["settings"].values())
    if not plain or not all(map(_is_figure, values["values"].values())) or not values["values"].get("seconds", 0) > 0:
        raise other
    return Row(**values)


def _is_figure(value: Any) -> bool:
    """Whether this is what was measured: a number, None, or numbers in a list."""
    if isinstance(value, list):
        return all(isinstance(each, int | float) for each in cast("list[Any]", value))
    return value is None or isinstance(value, int | float)
