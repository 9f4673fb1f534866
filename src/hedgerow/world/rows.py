# SPDX-License-Identifier: Apache-2.0
"""Elements as rows of Parquet tables: one flat column per number, named so that other programs' users can read them.

mean_m        -> mean_x_m, mean_y_m, mean_z_m
covariance_m2 -> covariance_xx_m2, _xy_, _xz_, _yy_, _yz_, _zz_ (it is symmetric)
corners_m     -> corner0_x_m ... corner2_z_m
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.io.arrow import pa
from hedgerow.world.check import LAYOUT
from hedgerow.world.elements import Elements

_AXES = ("x", "y", "z")
_FLAT: dict[str, dict[str, tuple[int, ...]]] = {
    "mean_m": {f"mean_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "position_m": {f"position_{axis}_m": (i,) for i, axis in enumerate(_AXES)},
    "normal": {f"normal_{axis}": (i,) for i, axis in enumerate(_AXES)},
    "corners_m": {f"corner{k}_{axis}_m": (k, i) for k in range(3) for i, axis in enumerate(_AXES)},
    "covariance_m2": {f"covariance_{_AXES[i]}{_AXES[k]}_m2": (i, k) for i in range(3) for k in range(i, 3)},
}
"""Flat columns of each array of more than one number per row, and where each stands in a row."""


def flat_types(name: str) -> dict[str, np.dtype[Any]]:
    """Return the flat columns of a table, with their types."""
    layout = LAYOUT[name].items()
    return {flat: dtype for column, (dtype, _) in layout for flat in _FLAT.get(column, {column: ()})}


def to_arrow(name: str, table: Elements) -> Any:
    """Return the rows as an Arrow table."""
    columns: dict[str, NDArray[Any]] = {}
    for column, array in table.columns().items():
        for flat, place in _FLAT.get(column, {column: ()}).items():
            columns[flat] = np.ascontiguousarray(array[(slice(None), *place)])
    types = {flat: pa.from_numpy_dtype(dtype) for flat, dtype in flat_types(name).items()}
    schema = pa.schema([pa.field(flat, kind, nullable=False) for flat, kind in types.items()])
    return pa.table({flat: columns[flat] for flat in types}, schema=schema)


def from_arrow(name: str, rows: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of elements from an Arrow table.

    Raises:
        InputError: a column is missing, of another type, or has missing values.
    """
    for flat, dtype in flat_types(name).items():
        if flat not in rows.column_names:
            raise InputError(f"column '{flat}' is missing (has {', '.join(rows.column_names)})")
        column = rows.column(flat)
        if column.type != pa.from_numpy_dtype(dtype) or column.null_count:
            raise InputError(f"column '{flat}' is {column.type}, {column.null_count} missing; expected {dtype}, 0")
    columns: dict[str, NDArray[Any]] = {}
    for column, (dtype, shape) in LAYOUT[name].items():
        array = np.empty((len(rows), *shape), dtype=dtype)
        for flat, place in _FLAT.get(column, {column: ()}).items():
            array[(slice(None), *place)] = values = rows.column(flat).to_numpy()
            if column == "covariance_m2":
                array[(slice(None), *reversed(place))] = values
        columns[column] = array
    return columns
