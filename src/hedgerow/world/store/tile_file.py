# SPDX-License-Identifier: Apache-2.0
"""tiles.parquet: the list of tiles on the disk, one row for each file of elements. Every value is checked."""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.base.arrays import RowError, first_row
from hedgerow.errors import FileError, InputError
from hedgerow.world.check import TABLES
from hedgerow.world.store.encoded import decode
from hedgerow.world.store.rows import require_type
from hedgerow.world.store.tiles import TileList

_NUMBERS = {
    **{"table": pa.int32(), "x": pa.int64(), "y": pa.int64(), "n": pa.int64(), "elements": pa.int64()},
    "crc32": pa.int64(),
}
_COPIES_SINCE = 3
"""World format that brought `elements`; before, each row was one."""
_CORNERS = {"low_m": "low_{}_m", "high_m": "high_{}_m"}
_MAX_TILE = 2**53
_MAX_ELEMENTS = 2**40
_FARTHEST_M = 1e10  # corners of elements that lie within 1e9 m, and reach as far


def tile_rows(tiles: TileList) -> pa.Table:
    """Return the list as an Arrow table."""
    columns: dict[str, NDArray[Any]] = {name: getattr(tiles, name) for name in _NUMBERS}
    for name, pattern in _CORNERS.items():
        columns |= {pattern.format(axis): getattr(tiles, name)[:, i].copy() for i, axis in enumerate("xyz")}
    return pa.table(columns)


def read_tiles(path: Path, crc32: object, written_as: int) -> TileList:
    """Read the list of a world of this format.

    Raises:
        FileError: missing, damaged, or its rows are no list of tiles; names column and row.
    """
    corners = {name: [pattern.format(axis) for axis in "xyz"] for name, pattern in _CORNERS.items()}
    numbers = {name: kind for name, kind in _NUMBERS.items() if written_as >= _COPIES_SINCE or name != "elements"}
    rows = decode(path, crc32, [*numbers, *corners["low_m"], *corners["high_m"]])
    try:
        columns: dict[str, NDArray[Any]] = {}
        for name, kind in numbers.items():
            require_type(rows, name, kind)
            columns[name] = rows.column(name).to_numpy()
        for name, flats in corners.items():
            for flat in flats:
                require_type(rows, flat, pa.float64())
            columns[name] = np.stack([rows.column(flat).to_numpy() for flat in flats], axis=1)
        tiles = TileList(**({"elements": columns["n"]} | columns))
        _require_values(tiles)
    except InputError as error:
        raise FileError(f"{path}: {error}") from error
    return tiles


def _require_values(tiles: TileList) -> None:
    for name, low, high in (
        ("table", 0, len(TABLES) - 1),
        ("x", -_MAX_TILE, _MAX_TILE),
        ("y", -_MAX_TILE, _MAX_TILE),
        ("n", 1, _MAX_ELEMENTS),
        ("elements", 0, 2**53),
        ("crc32", 0, 2**32 - 1),
    ):
        column: NDArray[np.integer] = getattr(tiles, name)
        _refuse(name, (column < low) | (column > high), f"expected whole numbers from {low} to {high}", column)
    box = (tiles.low_m >= -_FARTHEST_M) & (tiles.low_m <= tiles.high_m) & (tiles.high_m <= _FARTHEST_M)
    is_box: NDArray[np.bool_] = np.asarray(box.all(axis=1))
    boxes = np.concatenate([tiles.low_m, tiles.high_m], axis=1)
    _refuse("low_m, high_m", ~is_box, "expected finite corners, the low one below the high one", boxes)
    place = np.stack([tiles.table, tiles.x, tiles.y], axis=1)
    step = np.diff(place, axis=0)
    leading = np.take_along_axis(step, np.argmax(step != 0, axis=1)[:, None], axis=1)[:, 0]
    expected = "expected each tile once, by table, x and y"
    _refuse("table, x, y", np.concatenate([np.zeros(min(len(place), 1), np.bool_), leading <= 0]), expected, place)


def _refuse(name: str, wrong: NDArray[np.bool_], expected: str, values: NDArray[Any]) -> None:
    if wrong.any():
        row = first_row(wrong)
        raise RowError(name, row, f"is {values[row].tolist()}; {expected}")
