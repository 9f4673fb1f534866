# SPDX-License-Identifier: Apache-2.0
"""Elements as rows of Parquet tables: one flat column per number, named so that other programs' users can read them.

mean_m        -> mean_x_m, mean_y_m, mean_z_m
covariance_m2 -> covariance_xx_m2, _xy_, _xz_, _yy_, _yz_, _zz_ (it is symmetric)
corners_m     -> corner0_x_m ... corner2_z_m
label         -> labels, label_counts: lists of equal length (a plain label for points)
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.base.arrays import RowError, first_row
from hedgerow.errors import InputError
from hedgerow.world.check import HISTOGRAM, LAYOUT
from hedgerow.world.elements import Column, Elements
from hedgerow.world.labels import LabelCounts

_LABELS, _COUNTS = "labels", "label_counts"
_LISTS_SINCE = 2
"""World format that brought them; before, there was one label per element."""
_OBJECTS_SINCE = 3
"""World format that brought them."""
_AXES = ("x", "y", "z")
_FLAT: dict[str, dict[str, tuple[int, ...]]] = {
    "mean_m": {f"mean_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "position_m": {f"position_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "origin_m": {f"origin_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "direction": {f"direction_{axis}": (i,) for i, axis in enumerate(_AXES)},
    "normal": {f"normal_{axis}": (i,) for i, axis in enumerate(_AXES)},
    "corners_m": {f"corner{k}_{axis}_m": (k, i) for k in range(3) for i, axis in enumerate(_AXES)},
    "transform": {f"transform{i}{k}": (i, k) for i in range(3) for k in range(4)},
    "low_m": {f"low_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "high_m": {f"high_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "covariance_m2": {f"covariance_{_AXES[i]}{_AXES[k]}_m2": (i, k) for i in range(3) for k in range(i, 3)},
}
"""Flat columns of each array of more than one number per row, and where each stands in a row."""


def flat_types(name: str, written_as: int = _OBJECTS_SINCE) -> dict[str, np.dtype[Any]]:
    """Return the flat columns of a table in worlds of this format, with their types."""
    layout = [row for row in LAYOUT[name].items() if written_as >= _OBJECTS_SINCE or row[0] != "object"]
    return {flat: dtype for column, (dtype, _) in layout for flat in _FLAT.get(column, {column: ()})}


def to_arrow(name: str, table: Elements) -> pa.Table:
    """Return the rows as an Arrow table."""
    columns: dict[str, NDArray[Any]] = {}
    for column in LAYOUT[name]:
        array: NDArray[Any] = getattr(table, column)
        for flat, place in _FLAT.get(column, {column: ()}).items():
            columns[flat] = np.ascontiguousarray(array[(slice(None), *place)])
    types = {flat: pa.from_numpy_dtype(dtype) for flat, dtype in flat_types(name).items()}
    values: dict[str, Any] = {flat: columns[flat] for flat in types}
    if isinstance(label := table.columns().get(HISTOGRAM.get(name, "")), LabelCounts):
        offsets = pa.array(label.first.astype(np.int32), pa.int32())
        for flat, entries in ((_LABELS, label.label), (_COUNTS, label.count)):
            types[flat] = pa.list_(pa.field("element", pa.from_numpy_dtype(entries.dtype), nullable=False))
            values[flat] = pa.ListArray.from_arrays(offsets, pa.array(entries), type=types[flat])
    schema = pa.schema([pa.field(flat, kind, nullable=False) for flat, kind in types.items()])
    return pa.table(values, schema=schema)


def stored_columns(name: str, written_as: int) -> list[str]:
    """Name all columns that a table has in worlds of this format."""
    histogram = ["label"] if written_as < _LISTS_SINCE else [_LABELS, _COUNTS]
    return [*flat_types(name, written_as), *(histogram if name in HISTOGRAM else [])]


def from_arrow(name: str, rows: pa.Table, written_as: int) -> dict[str, Column]:
    """Return the columns of a table of elements from an Arrow table.

    Args:
        name: which table.
        rows: what was read.
        written_as: format of the world.

    Raises:
        InputError: a column is missing, of another type, has missing values, or holds no histograms or covariances.
    """
    columns: dict[str, Column] = {}
    if name in HISTOGRAM:
        columns[HISTOGRAM[name]] = _one_label_each(rows) if written_as < _LISTS_SINCE else _label_counts(rows)
    for flat, dtype in flat_types(name, written_as).items():
        require_type(rows, flat, pa.from_numpy_dtype(dtype))
    for column, (dtype, shape) in LAYOUT[name].items():
        if column == "object" and written_as < _OBJECTS_SINCE:
            columns[column] = np.zeros(len(rows), dtype=dtype)
            continue
        array = np.empty((len(rows), *shape), dtype=dtype)
        for flat, place in _FLAT.get(column, {column: ()}).items():
            array[(slice(None), *place)] = values = rows.column(flat).to_numpy()
            if column == "covariance_m2":
                array[(slice(None), *reversed(place))] = values
        columns[column] = array
        if column == "covariance_m2":
            _require_semidefinite(f"{name}.{column}", array)
    return columns


def require_type(rows: pa.Table, flat: str, kind: pa.DataType) -> None:
    """Check one column of an Arrow table.

    Raises:
        InputError: it is missing, twice there, of another type, or has missing values; names it.
    """
    n_found = rows.column_names.count(flat)
    if n_found != 1:
        raise InputError(f"column '{flat}'", "is missing" if n_found == 0 else "is there more than once")
    column = rows.column(flat)
    found = column.type
    fits = pa.types.is_list(found) and found.value_type == kind.value_type if pa.types.is_list(kind) else found == kind
    if not fits or column.null_count:
        raise InputError(f"column '{flat}'", f"is {str(found)[:60]}, {column.null_count} missing; expected {kind}, 0")


def _require_semidefinite(name: str, covariance: NDArray[np.float64]) -> None:
    """Refuse what is no covariance, by its minors: a million take 0.14 s, by eigenvalues they would take 0.7 s."""
    # NaN is left to the check of all columns. Rounding, in float32 at the worst, may have made an eigenvalue negative.
    with np.errstate(invalid="ignore", over="ignore"):
        slack = 1e-5 * np.abs(covariance).max(axis=(1, 2), initial=0.0)
        a, b, c = (covariance[:, k, k] + slack for k in range(3))
        d, e, f = covariance[:, 1, 2], covariance[:, 0, 2], covariance[:, 0, 1]
        minors = [a, b, c, a * b - f * f, a * c - e * e, b * c - d * d]
        minors.append(a * (b * c - d * d) - f * (f * c - d * e) + e * (f * d - b * e))
        negative = np.minimum.reduce(minors) < 0
    if negative.any():
        raise RowError(name, first_row(negative), "is no covariance: it has a negative eigenvalue")


def _label_counts(rows: pa.Table) -> LabelCounts:
    lengths: list[NDArray[Any]] = []
    entries: list[NDArray[Any]] = []
    for flat, kind in ((_LABELS, pa.uint16()), (_COUNTS, pa.int64())):
        require_type(rows, flat, pa.list_(kind))
        column = cast("pa.ListArray[Any]", rows.column(flat).combine_chunks())
        values = column.flatten()
        if values.null_count:
            raise InputError(f"column '{flat}'", f"has lists with {values.null_count} missing values; expected none")
        lengths.append(column.value_lengths().to_numpy())
        entries.append(values.to_numpy())
    unequal = lengths[0] != lengths[1]
    if unequal.any():
        row = first_row(unequal)
        raise RowError(_COUNTS, row, f"has {lengths[1][row]} entries, but {_LABELS} has {lengths[0][row]}")
    return LabelCounts.from_rows(lengths[0], *entries)


def _one_label_each(rows: pa.Table) -> LabelCounts:
    require_type(rows, "label", pa.uint16())
    return LabelCounts.from_modes(rows.column("label").to_numpy())
