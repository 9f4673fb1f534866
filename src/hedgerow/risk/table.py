# SPDX-License-Identifier: Apache-2.0
"""The table of runs: what came of every setting on every scene of every source under every seed, in one Parquet file.

Everything that is said about risk is computed from it, so it can be read again, resumed and extended. A row is a run:

| column | meaning |
| --- | --- |
| path | empty for the settings drawn at the start; the name of a development path else |
| setting | number of the setting; on a development path the step |
| source, seed, scene | what it ran on |
| failure | why it failed; empty if it did not |
| seconds | how long it took; all but this is the same on every machine and for any number of processes |
| parameter.NAME | the setting |
| sum.NAME | the sums; null if the run failed |

The metadata of the file hold the program, its space, how settings were drawn, and the sources.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.apps.app import Outcome
from hedgerow.apps.space import Parameter, Sampler, Setting, Space, Value
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError
from hedgerow.io.source import translate_errors
from hedgerow.risk.sources import Role, Source

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")  # as Any: the stubs know half of their types
DRAWN = ""
"""The path of the settings that were drawn at the start."""
_KEY = b"hedgerow_risk"
_VERSION = 1
_NOT_RUN, _WELL = -1, 0


@dataclass(frozen=True)
class SourceNote:
    """What the table keeps of a source."""

    role: Role
    identity: str
    scenes: list[str]

    @classmethod
    def of(cls, source: Source) -> "SourceNote":
        """Note a source."""
        return cls(source.role, source.identity, list(source.scenes))


@dataclass(frozen=True)
class Header:
    """What all runs of a table have in common."""

    app: str
    space: Space
    fixed: Setting
    """Values that all settings have."""
    sampler: Sampler
    seed: int
    """Of the settings."""
    sources: dict[str, SourceNote]
    hedgerow: str = __version__

    def draw(self, n: int) -> list[Setting]:
        """Draw the first n settings."""
        return self.space.sample(n, seed=self.seed, sampler=self.sampler, fixed=self.fixed)

    def to_json(self) -> str:
        """Return it as text."""
        fields = {"version": _VERSION, "hedgerow": self.hedgerow, "app": self.app, "space": self.space.to_dict()}
        fields |= {"fixed": self.fixed, "sampler": self.sampler, "seed": self.seed}
        return json.dumps(fields | {"sources": {name: note.__dict__ for name, note in self.sources.items()}})

    @classmethod
    def from_json(cls, text: bytes) -> "Header":
        """Read what `to_json` gave; anything may be raised if it did not."""
        found = json.loads(text)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']} of the table, this Hedgerow reads {_VERSION}")
        sources = {name: SourceNote(**note) for name, note in found["sources"].items()}
        space = Space.parse(found["space"], "space")
        return cls(found["app"], space, found["fixed"], found["sampler"], found["seed"], sources, found["hedgerow"])


class Runs:
    """The runs of one source along one path: arrays of seeds by settings by scenes, not all of them run."""

    def __init__(self, scenes: Sequence[str], seeds: Iterable[int] = (), n_settings: int = 0) -> None:
        """Start with nothing run."""
        self.scenes = list(scenes)
        self.seeds = list(seeds)
        shape = (len(self.seeds), n_settings, len(self.scenes))
        self.failure: NDArray[np.int32] = np.full(shape, _NOT_RUN, dtype=np.int32)
        """-1: not run; 0: ran well; else the number of a reason."""
        self.seconds: NDArray[np.float64] = np.zeros(shape)
        self.sums: dict[str, NDArray[np.float64]] = {}
        self.reasons: dict[str, int] = {"": _WELL}
        """Numbers of the reasons."""

    @property
    def ran(self) -> NDArray[np.bool_]:
        """(seeds, settings, scenes) whether it was run."""
        return self.failure != _NOT_RUN

    @property
    def well(self) -> NDArray[np.bool_]:
        """(seeds, settings, scenes) whether it was run and did not fail."""
        return self.failure == _WELL

    def grow(self, seeds: Iterable[int], n_settings: int) -> None:
        """Make room for more seeds and settings; what was run stays."""
        seeds = self.seeds + [seed for seed in seeds if seed not in self.seeds]
        had = self.failure.shape
        shape = (len(seeds), max(n_settings, had[1]), had[2])
        if shape == had:
            return

        def grown(values: NDArray[Any], fill: float) -> NDArray[Any]:
            new = np.full(shape, fill, dtype=values.dtype)
            new[: had[0], : had[1]] = values
            return new

        self.seeds = seeds
        self.failure, self.seconds = grown(self.failure, _NOT_RUN), grown(self.seconds, 0)
        self.sums = {name: grown(values, 0) for name, values in self.sums.items()}

    def put(self, at: tuple[int, int, int], outcome: Outcome, seconds: float) -> None:
        """Store the outcome of a run at (number of the seed, setting, number of the scene)."""
        for name, value in outcome.sums.items():
            if name not in self.sums:
                self.sums[name] = np.zeros(self.failure.shape)
            self.sums[name][at] = value
        self.failure[at] = self.reasons.setdefault(outcome.failure, len(self.reasons))
        self.seconds[at] = seconds


@dataclass
class RiskTable:
    """All runs."""

    header: Header
    settings: dict[str, list[Setting]] = field(default_factory=lambda: {DRAWN: []})
    """By path."""
    runs: dict[tuple[str, str], Runs] = field(default_factory=dict[tuple[str, str], Runs])
    """By path and source."""

    def of(self, source: str, path: str = DRAWN) -> Runs:
        """Return the runs of a source; empty ones if there are none."""
        if (path, source) not in self.runs:
            self.runs[path, source] = Runs(self.header.sources[source].scenes)
        return self.runs[path, source]

    def names(self, role: Role) -> list[str]:
        """Return the names of the sources of a role, in order."""
        return [name for name, note in self.header.sources.items() if note.role == role]

    @property
    def real(self) -> str:
        """Name of the real source."""
        return self.names("real")[0]

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return sum(int(each.ran.sum()) for each in self.runs.values())

    def write(self, path: str | Path) -> None:
        """Write it, replacing an old file as a whole. Raises FileError if that fails."""
        with atomic_file(path) as temporary:
            pq.write_table(self.to_arrow(), temporary)

    def to_arrow(self) -> Any:
        """Return it as a pyarrow table, in an order that does not depend on that of the runs."""
        sums = list(dict.fromkeys(name for each in self.runs.values() for name in each.sums))
        columns: dict[str, list[Any]] = {}
        for path in sorted(self.settings):
            for source in self.header.sources:
                if (path, source) in self.runs:
                    self._add_rows(columns, path, source, sorted(sums))
        names = [*_KEYS, *(f"parameter.{name}" for name in self.header.space.parameters)]
        types = _column_types(self.header.space) | {f"sum.{name}": pa.float64() for name in sums}
        arrays = [
            _array(columns.get(name, []), types[name]) for name in [*names, *(f"sum.{each}" for each in sorted(sums))]
        ]
        table = pa.table(arrays, names=[*names, *(f"sum.{each}" for each in sorted(sums))])
        return table.replace_schema_metadata({_KEY: self.header.to_json().encode()})

    def _add_rows(self, columns: dict[str, list[Any]], path: str, source: str, sums: list[str]) -> None:
        runs = self.runs[path, source]
        order = np.argsort(runs.seeds, kind="stable")
        seed, setting, scene = np.nonzero(runs.ran[order])
        at = order[seed], setting, scene
        failed = runs.failure[at] != _WELL
        reasons = np.array(list(runs.reasons), dtype=object)
        parts: dict[str, Any] = {
            "path": np.full(len(setting), path, dtype=object),
            "setting": setting.astype(np.int32),
            "source": np.full(len(setting), source, dtype=object),
            "seed": np.array(runs.seeds, dtype=np.int64)[at[0]],
            "scene": np.array(runs.scenes, dtype=object)[scene],
            "failure": reasons[runs.failure[at]],
            "seconds": runs.seconds[at],
        }
        for name, parameter in self.header.space.parameters.items():
            values = np.array([_stored(parameter, each[name]) for each in self.settings[path]], dtype=object)
            parts[f"parameter.{name}"] = values[setting]
        for name in sums:
            values = runs.sums[name][at] if name in runs.sums else np.full(len(setting), np.nan)
            parts[f"sum.{name}"] = np.where(failed, np.nan, values)
        for name, values in parts.items():
            columns.setdefault(name, []).append(values)


_KEYS = ("path", "setting", "source", "seed", "scene", "failure", "seconds")


def _column_types(space: Space) -> dict[str, Any]:
    kinds = {"float": pa.float64(), "log": pa.float64(), "integer": pa.int64(), "choice": pa.string()}
    text, whole = pa.string(), pa.int64()
    types: dict[str, Any] = dict(zip(_KEYS, (text, pa.int32(), text, whole, text, text, pa.float64()), strict=True))
    return types | {f"parameter.{name}": kinds[each.kind] for name, each in space.parameters.items()}


def _array(parts: list[Any], kind: Any) -> Any:
    # NaN is null: a sum is finite, and missing where the run failed.
    return pa.chunked_array([pa.array(part, type=kind, from_pandas=True) for part in parts], type=kind)


def _stored(parameter: Parameter, value: Value) -> Value:
    return str(value) if parameter.kind == "choice" else value


def read_table(path: str | Path) -> RiskTable:
    """Read a table of runs.

    Raises:
        FileError: missing, damaged, or no such table.
    """
    with translate_errors(path, "a table of risk"):
        found = pq.read_table(path)
        metadata: dict[bytes, bytes] = found.schema.metadata or {}
        text = metadata.get(_KEY)
        if text is None:
            raise FileError(f"{path}: is no table of risk; hedgerow risk -o writes one")
        table = RiskTable(Header.from_json(text))
        columns = {name: found.column(name).to_numpy(zero_copy_only=False) for name in found.column_names}
        _fill(table, columns)
    return table


def _fill(table: RiskTable, columns: Mapping[str, NDArray[Any]]) -> None:
    for path in sorted(set(columns["path"].tolist()) | {DRAWN}):
        on_path = columns["path"] == path
        n_settings = int(columns["setting"][on_path].max()) + 1 if on_path.any() else 0
        table.settings[path] = _settings(table.header, path, columns, on_path, n_settings)
        for source in table.header.sources:
            rows = np.flatnonzero(on_path & (columns["source"] == source))
            if len(rows):
                table.runs[path, source] = _runs(table.header.sources[source], columns, rows, n_settings)


def _settings(
    header: Header, path: str, columns: Mapping[str, NDArray[Any]], rows: NDArray[np.bool_], n: int
) -> list[Setting]:
    if path == DRAWN:  # an interrupted table may lack some of them
        return header.draw(n) if n else []
    number, first = np.unique(columns["setting"][rows], return_index=True)
    if len(number) < n:
        raise ValueError(f"some steps of {path} are missing")
    at = np.flatnonzero(rows)[first]
    values: dict[str, list[Value]] = {}
    for name, parameter in header.space.parameters.items():
        found = columns[f"parameter.{name}"][at].tolist()
        by_text = {str(each): each for each in parameter.choices}
        values[name] = [by_text[each] for each in found] if parameter.kind == "choice" else found
    return [{name: each[row] for name, each in values.items()} for row in range(n)]


def _runs(note: SourceNote, columns: Mapping[str, NDArray[Any]], rows: NDArray[np.intp], n_settings: int) -> Runs:
    seeds, seed = np.unique(columns["seed"][rows], return_inverse=True)
    runs = Runs(note.scenes, seeds.tolist(), n_settings)
    numbers = {name: number for number, name in enumerate(note.scenes)}
    scene = np.array([numbers[name] for name in columns["scene"][rows].tolist()])
    at = seed, columns["setting"][rows], scene
    reasons, reason = np.unique(columns["failure"][rows].astype(str), return_inverse=True)
    texts = ["", *(each for each in reasons.tolist() if each)]
    runs.reasons = {text: number for number, text in enumerate(texts)}
    runs.failure[at] = np.array([runs.reasons[each] for each in reasons.tolist()])[reason]
    runs.seconds[at] = columns["seconds"][rows]
    for name, values in columns.items():
        if name.startswith("sum."):
            found = values[rows].astype(np.float64)
            if np.isfinite(found).any():
                runs.sums[name.removeprefix("sum.")] = np.zeros(runs.failure.shape)
                runs.sums[name.removeprefix("sum.")][at] = np.nan_to_num(found)
    return runs


def require_same_plan(path: object, found: Header, wanted: Header) -> None:
    """Refuse to mix runs of another program, other settings or other sources into a table.

    Raises:
        InputError: says what differs.
    """
    pairs = (
        ("the program", found.app, wanted.app),
        ("the parameters", found.space.to_dict(), json.loads(json.dumps(wanted.space.to_dict()))),
        ("the values of --set", found.fixed, wanted.fixed),
        ("the sampler", found.sampler, wanted.sampler),
        ("the seed of the settings", found.seed, wanted.seed),
    )
    for what, old, new in pairs:
        if old != new:
            raise InputError(f"{path}", f"{what} was {old}, and is {new} now; write to another file")
    for name, note in wanted.sources.items():
        if (old := found.sources.get(name)) is not None and old != note:
            changed = "scenes" if old.identity == note.identity else "content"
            raise InputError(f"{path}", f"the source {name} had other {changed}; write to another file")
    if found.hedgerow != wanted.hedgerow:
        raise InputError(
            f"{path}", f"was begun by hedgerow {found.hedgerow}, this is {wanted.hedgerow}; write to another"
        )
