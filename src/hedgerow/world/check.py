# SPDX-License-Identifier: Apache-2.0
"""What a table of elements must look like to become part of a world: types, shapes, values, settings.

`LAYOUT` also says how the store writes them. Covariances are made exactly symmetric, so that their lower triangles,
which is what the files hold, are the same matrices.
"""

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.errors import InputError, shown
from hedgerow.world.elements import Column, Elements, Gaussians, Instances, Law, Points, RememberedBeams, Triangles
from hedgerow.world.labels import LabelCounts
from hedgerow.world.placement import smallest_scale
from hedgerow.world.scene import Answer
from hedgerow.world.surface_noise import SurfaceNoise

TABLES: dict[str, type[Gaussians] | type[Triangles] | type[Points] | type[RememberedBeams] | type[Instances]] = {
    "triangles": Triangles,
    "gaussians": Gaussians,
    "points": Points,
    "beams": RememberedBeams,
    "instances": Instances,
}
"""Tables by name, in the order in which a world numbers their elements."""

_F4, _F8, _LABEL, _OBJECT = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint16), np.dtype(np.uint32)
_SHADE: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
    "intensity": (_F4, ()),
    "intensity_sigma": (_F4, ()),
    "object": (_OBJECT, ()),
}
LAYOUT: dict[str, dict[str, tuple[np.dtype[Any], tuple[int, ...]]]] = {
    "triangles": {"corners_m": (_F8, (3, 3)), "permeability": (_F4, ()), **_SHADE},
    "gaussians": {"mean_m": (_F8, (3,)), "covariance_m2": (_F8, (3, 3)), "stop": (_F4, ()), **_SHADE},
    "points": {"position_m": (_F8, (3,)), "normal": (_F4, (3,)), "intensity": (_F4, ()), "label": (_LABEL, ())},
    "beams": {
        "origin_m": (_F8, (3,)),
        "direction": (_F4, (3,)),
        "range_m": (_F4, ()),
        "normal": (_F4, (3,)),
        "intensity": (_F4, ()),
        "label": (_LABEL, ()),
    },
    "instances": {
        "asset": (np.dtype(np.int32), ()),
        "transform": (_F8, (3, 4)),
        "label": (np.dtype(np.int32), ()),
        "class_label": (_LABEL, ()),
        "object": (_OBJECT, ()),
        "n_each": (np.dtype(np.int64), ()),
        "low_m": (_F8, (3,)),
        "high_m": (_F8, (3,)),
    },
}
"""Type and shape of a row of every column that is an array."""
HISTOGRAM = {"triangles": "label", "gaussians": "label"}
"""The column of label counts, of the tables that have one."""


def name_of(table: Elements) -> str:
    """Return the name of a table.

    Raises:
        InputError: it is none of these kinds.
    """
    for name, kind in TABLES.items():
        if isinstance(table, kind):
            return name
    raise InputError(
        "tables", f"expected Gaussians, Triangles, Points or RememberedBeams, found {type(table).__name__}"
    )


def check_table(table: Elements) -> Elements:
    """Return the table with columns of the exact types; every value is checked.

    Raises:
        InputError: a column or setting is wrong; names table, column and row.
    """
    name = name_of(table)
    _check_settings(name, table.settings())
    given = table.columns()
    columns: dict[str, NDArray[Any]] = {}
    for column, (dtype, shape) in LAYOUT[name].items():
        if not isinstance(values := given.get(column), np.ndarray):
            raise InputError(
                f"{name}.{column}", f"expected a NumPy array, found {type(getattr(table, column)).__name__}"
            )
        columns[column] = _column(f"{name}.{column}", values, dtype, (len(table), *shape))
    if "covariance_m2" in columns:
        columns["covariance_m2"] = _symmetric(f"{name}.covariance_m2", columns["covariance_m2"])
    for column, (low, high) in _bounds(table).items():
        _require_between(f"{name}.{column}", columns[column], low, high)
    for column in {"normal", "direction"} & columns.keys():
        arrays.require_unit(f"{name}.{column}", columns[column])
    if isinstance(table, Instances):
        _require_instances(name, columns)
    if "range_m" in columns:
        _require_ranges(f"{name}.range_m", columns["range_m"])
    checked: dict[str, Any] = table.settings() | columns | _histogram(name, table)
    return type(table)(**checked)


def no_rows(name: str) -> dict[str, Column]:
    """Return the columns of a table without elements."""
    columns: dict[str, Column] = {
        column: np.zeros((0, *shape), dtype) for column, (dtype, shape) in LAYOUT[name].items()
    }
    return columns | ({HISTOGRAM[name]: LabelCounts.of([], 0)} if name in HISTOGRAM else {})


def _histogram(name: str, table: Elements) -> dict[str, LabelCounts]:
    if name not in HISTOGRAM:
        return {}
    given = getattr(table, HISTOGRAM[name])
    if not isinstance(given, LabelCounts):
        found = f"found {type(given).__name__}; use LabelCounts.of(label, n)"
        raise InputError(f"{name}.{HISTOGRAM[name]}", f"expected LabelCounts, {found}")
    return {HISTOGRAM[name]: given}  # it has checked itself


def _column(name: str, values: NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if dtype.kind in "iu":
        return np.ascontiguousarray(arrays.as_integers(name, values, shape, dtype.type))
    column = np.ascontiguousarray(arrays.as_floats(name, values, shape, dtype=dtype))
    if dtype == _F8:
        arrays.require_coordinates(name, column)
    return column


def _symmetric(name: str, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    turned = covariance.transpose(0, 2, 1)
    # Rounding, in float32 at the worst, is all that may be wrong with the symmetry.
    skew = np.abs(covariance - turned).max(axis=(1, 2)) > 1e-5 * np.abs(covariance).max(axis=(1, 2))
    if skew.any():
        raise arrays.RowError(name, arrays.first_row(skew), "is not symmetric")
    return 0.5 * (covariance + turned)


def _bounds(table: Elements) -> dict[str, tuple[float, float]]:
    if isinstance(table, Instances):
        return {}
    known = {"intensity": (0.0, np.inf)}
    if isinstance(table, Triangles):
        return known | {"intensity_sigma": (0.0, np.inf), "permeability": (0.0, 1.0)}
    if isinstance(table, Gaussians):
        passing = 1.0 if table.law == "permeability" else np.inf
        return known | {"intensity_sigma": (0.0, np.inf), "stop": (0.0, passing)}
    return known


def _require_between(name: str, column: NDArray[np.float32], low: float, high: float) -> None:
    fits = (column >= low) & (column <= high) & ~np.isinf(column)
    if name.endswith(".intensity"):
        fits |= np.isnan(column)  # not known
    if not fits.all():
        row = arrays.first_row(~fits)
        raise arrays.RowError(name, row, f"is {column[row]}; expected a finite number from {low:g} to {high:g}")


def _require_instances(name: str, columns: dict[str, NDArray[Any]]) -> None:
    square = np.tile(np.eye(4), (len(columns["transform"]), 1, 1))
    square[:, :3] = columns["transform"]
    smallest_scale(f"{name}.transform", square, 1.0)
    for column, low, high in (("label", -1, 65535), ("n_each", 0, 2**40), ("asset", 0, 2**31 - 1)):
        wrong = (columns[column] < low) | (columns[column] > high)
        if wrong.any():
            row = arrays.first_row(wrong)
            raise arrays.RowError(f"{name}.{column}", row, f"is {columns[column][row]}; expected {low} to {high}")
    wrong = np.asarray((columns["low_m"] > columns["high_m"]).any(axis=1))
    if wrong.any():
        raise arrays.RowError(f"{name}.low_m", arrays.first_row(wrong), "lies above high_m")


def _require_ranges(name: str, range_m: NDArray[np.float32]) -> None:
    fits = (range_m > 0) & ((range_m <= arrays.FARTHEST_M) | np.isposinf(range_m))
    if not fits.all():
        row = arrays.first_row(~fits)
        raise arrays.RowError(name, row, f"is {range_m[row]}; expected a range above 0, or inf for no return")


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    for setting in ("tau", "min_sigma_m", "reach_m", "length_m"):
        value = settings.get(setting, 1.0)
        if not isinstance(value, int | float) or not 0 < value <= arrays.FARTHEST_M:
            said = f"expected a finite number above 0, found {shown(value)}; it may be {arrays.FARTHEST_M:g} at most"
            raise InputError(f"{name}.{setting}", said)
    choosing = (("law", get_args(Law)), ("pick", ("nearest", "first")), ("answer", get_args(Answer)))
    for setting, choices in choosing:
        if settings.get(setting, choices[0]) not in choices:
            raise InputError(f"{name}.{setting}", f"expected {' or '.join(choices)}, found {settings[setting]!r}")
    if not isinstance(settings.get("lambertian", False), bool):
        raise InputError(f"{name}.lambertian", f"expected True or False, found {shown(settings['lambertian'])}")
    if not isinstance(settings.get("noise", SurfaceNoise()), SurfaceNoise):
        raise InputError(f"{name}.noise", f"expected SurfaceNoise, found {type(settings['noise']).__name__}")
