# SPDX-License-Identifier: Apache-2.0
"""Logs as table rows: one row per return, and one row for a pulse without any (return_number 0, range_m inf).

Everything is done on whole columns; no Python loop runs over rows.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.arrays import first_row
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.ranges import BLANK

BEAM_TYPES = {
    "sweep": "int32",
    "pulse": "int64",
    "time_ns": "int64",
    "ring": "uint16",
    "origin_x": "double",
    "origin_y": "double",
    "origin_z": "double",
    "direction_x": "float",
    "direction_y": "float",
    "direction_z": "float",
}
RETURN_TYPES = {"return_number": "uint8", "range_m": "float"}
OPTIONAL_TYPES = {"intensity": "float", "label": "uint16", "element": "int64"}
_AXES = ("x", "y", "z")


def schema_of(log: Log) -> pa.Schema:
    """Return the Arrow schema of a log's rows."""
    types = BEAM_TYPES | RETURN_TYPES | {name: OPTIONAL_TYPES[name] for name in present(log)}
    return pa.schema(
        [
            pa.field(name, kind, nullable=False)  # pyright: ignore[reportArgumentType]  # the name of a type will do
            for name, kind in types.items()
        ]
    )


def present(log: Log) -> list[str]:
    """Name the arrays beside the ranges that a log has."""
    return [name for name in OPTIONAL_TYPES if getattr(log.returns, name) is not None]


def to_table(log: Log, schema: pa.Schema) -> pa.Table:
    """Return the rows of a log as an Arrow table."""
    beams, returns = log.beams, log.returns
    columns: dict[str, NDArray[Any]] = {name: getattr(beams, name) for name in ("sweep", "pulse", "time_ns", "ring")}
    columns |= {f"origin_{axis}": beams.origin_m[:, k] for k, axis in enumerate(_AXES)}
    columns |= {f"direction_{axis}": beams.direction[:, k] for k, axis in enumerate(_AXES)}
    beside: dict[str, NDArray[Any]] = {name: getattr(returns, name) for name in ("range_m", *present(log))}
    number = returns.hit.astype(np.uint8)
    if returns.n_per_pulse > 1:
        pulse, slot, number = _rows_of(returns)
        columns = {name: column[pulse] for name, column in columns.items()}
        beside = {name: column[pulse, slot] for name, column in beside.items()}
    rows = columns | {"return_number": number} | beside
    return pa.table({name: np.ascontiguousarray(column) for name, column in rows.items()}, schema=schema)


def _rows_of(returns: Returns) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.uint8]]:
    """Return for each row the pulse, which of its returns it is (from 0), and the return number (0 for a miss)."""
    n_returns = np.count_nonzero(returns.hit, axis=1)
    n_rows = np.maximum(n_returns, 1)
    pulse = np.repeat(np.arange(len(returns)), n_rows)
    slot = np.arange(len(pulse)) - (np.cumsum(n_rows) - n_rows)[pulse]
    return pulse, slot, np.minimum(n_returns[pulse], slot + 1).astype(np.uint8)


class Assembly:
    """Arrays being filled with rows, batch after batch, each checked while it is still in the cache."""

    def __init__(self, n_rows: int, returns_per_pulse: int, optional: list[str]) -> None:
        """Reserve room for as many pulses as there are rows; pages that stay unused cost nothing."""
        shape = (n_rows,) if returns_per_pulse == 1 else (n_rows, returns_per_pulse)
        self._beams: dict[str, NDArray[Any]] = {
            "origin_m": np.empty((n_rows, 3)),
            "direction": np.empty((n_rows, 3), np.float32),
            "time_ns": np.empty(n_rows, np.int64),
            "ring": np.empty(n_rows, np.uint16),
            "sweep": np.empty(n_rows, np.int32),
            "pulse": np.empty(n_rows, np.int64),
        }
        self._returns: dict[str, NDArray[Any]] = {"range_m": np.empty(shape, np.float32)}
        self._returns |= {name: np.empty(shape, BLANK[name].dtype) for name in optional}
        self._n_per_pulse = returns_per_pulse
        self._n_pulses = 0
        self._last_row = (0, 0)

    def add(self, table: pa.Table) -> None:
        """Append the rows of an Arrow table.

        Raises:
            InputError: the rows are no valid log.
        """
        for name in table.column_names:
            if table.column(name).null_count:
                raise InputError(f"column '{name}'", "has missing values; use range_m = inf for no return")
        rows: dict[str, NDArray[Any]] = {name: table.column(name).to_numpy() for name in table.column_names}
        number = rows["return_number"]
        self._require_in_turn(number, rows["pulse"], rows["range_m"])
        single = self._n_per_pulse == 1
        first = number <= 1
        start, stop = self._n_pulses, self._n_pulses + int(np.count_nonzero(first))
        chosen = slice(None) if single else first
        for name in ("sweep", "pulse", "time_ns", "ring"):
            self._beams[name][start:stop] = rows[name][chosen]
        for k, axis in enumerate(_AXES):
            self._beams["origin_m"][start:stop, k] = rows[f"origin_{axis}"][chosen]
            self._beams["direction"][start:stop, k] = rows[f"direction_{axis}"][chosen]
        for name, column in self._returns.items():
            if single:
                column[start:stop] = rows[name]
            else:
                column[start:stop] = BLANK.get(name, np.inf)
                # A batch may begin with the second return of the pulse before; that one's index is start - 1.
                column[start - 1 + np.cumsum(first), np.maximum(number, 1) - 1] = rows[name]
        self._n_pulses = stop
        self._check(max(start - 1, 0), stop)

    def finish(self) -> tuple[Beams, Returns]:
        """Return what was assembled."""
        beams = {name: column[: self._n_pulses] for name, column in self._beams.items()}
        returns = {name: column[: self._n_pulses] for name, column in self._returns.items()}
        return Beams.trusted(beams), Returns.trusted(dict.fromkeys(OPTIONAL_TYPES) | returns)

    def _check(self, start: int, stop: int) -> None:
        Beams(**{name: column[start:stop] for name, column in self._beams.items()})
        Returns(**{name: column[start:stop] for name, column in self._returns.items()})

    def _require_in_turn(self, number: NDArray[Any], pulse: NDArray[Any], range_m: NDArray[Any]) -> None:
        """Refuse rows that were sorted or filtered so that the returns of a pulse no longer stand 1, 2, 3."""
        if not len(number):
            return
        previous_number = np.concatenate([[self._last_row[0]], number[:-1]])
        previous_pulse = np.concatenate([[self._last_row[1]], pulse[:-1]])
        follows = (number == previous_number + 1) & (pulse == previous_pulse)
        wrong = ~((number <= 1) | follows) | (number > self._n_per_pulse) | ((number == 0) != np.isinf(range_m))
        if wrong.any():
            row = first_row(wrong)
            found = f"return {number[row]} of pulse {pulse[row]} at {range_m[row]} m"
            raise InputError(
                "return_number", f"found {found} out of turn; expected 0 for no return, else 1, 2, ... in order"
            )
        self._last_row = (int(number[-1]), int(pulse[-1]))
