# SPDX-License-Identifier: Apache-2.0
"""The table of candidates that tuning looked at, in a Parquet or CSV file; one row each.

| column | meaning |
| --- | --- |
| plan | what all candidates of the table have in common, as a hash: log, sweeps, model, fixed values, objective, seed |
| loss | what is minimised; empty if learning failed |
| parameter.NAME | the varied parameters |
| score.NAME | what the loss is computed from |
| elements | of the world |
| seconds | how long learning and scoring took; all but this is the same on every machine |
| failure | why learning failed; empty if it did not |

The file is written whole after every candidate, so that Ctrl-C loses one at most.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError
from hedgerow.io.source import translate_errors

Chosen = dict[str, float | int]
"""Values of the varied parameters, by name."""
SUFFIXES = (".parquet", ".csv")
_PARAMETER, _SCORE = "parameter.", "score."


@dataclass(frozen=True)
class Candidate:
    """One set of parameters, and how well a world learned with it does."""

    parameters: Chosen
    loss: float
    """Low is good; inf if learning failed."""
    scores: dict[str, float] = field(default_factory=dict[str, float])
    elements: int = 0
    seconds: float = 0.0
    failure: str = ""


def hash_plan(plan: Mapping[str, Any]) -> str:
    """Return what tells the tables of different plans apart."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


class CandidateTable:
    """Candidates in the order in which they were looked at, kept in a file if there is one."""

    def __init__(self, names: list[str], plan: Mapping[str, Any], path: Path | None = None) -> None:
        """Start with what the file holds, if it exists.

        Args:
            names: of the varied parameters.
            plan: what all candidates have in common, in types that JSON knows.
            path: where they are kept; a .parquet or .csv file.

        Raises:
            InputError: another kind of file, or one that belongs to another plan.
            FileError: the file is damaged, or no such table.
        """
        self.names, self.path, self.plan = names, path, hash_plan(plan)
        self.rows: dict[tuple[float, ...], Candidate] = {}
        if path is None:
            return
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(str(path), f"expected a table named *{' or *'.join(SUFFIXES)}")
        if path.exists():
            for each in _read(path, names, self.plan):
                self.rows[self._key(each.parameters)] = each

    def get(self, parameters: Chosen) -> Candidate | None:
        """Return a candidate that was looked at before."""
        return self.rows.get(self._key(parameters))

    def add(self, candidate: Candidate) -> None:
        """Add a candidate and write the file. Raises FileError if that fails."""
        self.rows[self._key(candidate.parameters)] = candidate
        if self.path is not None:
            with atomic_file(self.path) as temporary:
                _write(self.to_arrow(), temporary, self.path)

    @property
    def best(self) -> Candidate | None:
        """The candidate of the lowest loss, the first of equals; None if none could be learned."""
        finite = [each for each in self.rows.values() if math.isfinite(each.loss)]
        return min(finite, key=lambda each: each.loss) if finite else None

    def to_arrow(self) -> Any:
        """Return it as a pyarrow table."""
        pa: Any = import_module("pyarrow")
        rows = list(self.rows.values())
        scores = list(dict.fromkeys(name for each in rows for name in each.scores))
        columns: dict[str, list[Any]] = {
            "plan": [self.plan] * len(rows),
            "loss": [each.loss if math.isfinite(each.loss) else None for each in rows],
        }
        columns |= {f"{_PARAMETER}{name}": [each.parameters[name] for each in rows] for name in self.names}
        columns |= {f"{_SCORE}{name}": [each.scores.get(name) for each in rows] for name in scores}
        columns |= {"elements": [each.elements for each in rows], "seconds": [each.seconds for each in rows]}
        columns["failure"] = [each.failure for each in rows]
        return pa.table({name: pa.array(values) for name, values in columns.items()})

    def _key(self, parameters: Chosen) -> tuple[float, ...]:
        return tuple(float(parameters[name]) for name in self.names)


def _write(table: Any, temporary: Path, path: Path) -> None:
    if path.suffix.lower() == ".csv":
        csv: Any = import_module("pyarrow.csv")
        csv.write_csv(table, temporary)
    else:
        pq: Any = import_module("pyarrow.parquet")
        pq.write_table(table, temporary)


def _read(path: Path, names: list[str], plan: str) -> list[Candidate]:
    csv: Any = import_module("pyarrow.csv")
    pq: Any = import_module("pyarrow.parquet")
    with translate_errors(path, "a table of candidates"):
        found = csv.read_csv(path) if path.suffix.lower() == ".csv" else pq.read_table(path)
        columns: dict[str, list[Any]] = {name: found.column(name).to_pylist() for name in found.column_names}
        if not {"plan", "loss", "failure"} <= set(columns):
            raise FileError(f"{path}: is no table of candidates; hedgerow tune model -o writes one")
        if set(columns["plan"]) - {plan} or not {f"{_PARAMETER}{name}" for name in names} <= set(columns):
            raise InputError(
                str(path), "belongs to another tuning: another log, slice, model, objective or seed; write to another"
            )
        return [_candidate({name: values[row] for name, values in columns.items()}) for row in range(len(found))]


def _candidate(row: Mapping[str, Any]) -> Candidate:
    parameters: Chosen = {name.removeprefix(_PARAMETER): row[name] for name in row if name.startswith(_PARAMETER)}
    scores = {name.removeprefix(_SCORE): row[name] for name in row if name.startswith(_SCORE)}
    return Candidate(
        parameters,
        math.inf if row["loss"] is None else float(row["loss"]),
        {name: float(value) for name, value in scores.items() if value is not None},
        int(row["elements"]),
        float(row["seconds"]),
        row["failure"] or "",
    )
