# SPDX-License-Identifier: Apache-2.0
"""Annotations: which plant stands where, as a table of boxes (Tallavajhula 2018 §4.3.1.3 and §4.3.1.4).

A row is a box of one class: its foot (x, y, and z, which may be missing: on the ground), yaw, length along its own x
axis, width and height. A patch is one row for shrubs that run on: a polygon and the side of the cells that it is cut
into; `expanded` gives a box for each cell. Files are Parquet or CSV:

| column | meaning |
| --- | --- |
| class | low-shrub, small-shrub, ... large-tree, or other |
| x, y | foot of the box, map frame [m] |
| z | height of the foot; empty: on the ground [m] |
| yaw | direction of the box's x axis, anticlockwise from the map's [rad] |
| length, width, height | extents along the box's own x, y and z axes [m] |
| object | number of the object in a segmentation; 0 or empty: none |
| polygon | of a patch: its corners, map frame, as WKT: POLYGON ((x y, x y, ...)) |
| cell | of a patch: side of its cells [m] |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.labels import LABELS
from hedgerow.errors import FileError, InputError

PLANT_CLASSES = (
    "low-shrub",
    "small-shrub",
    "medium-shrub",
    "large-shrub",
    "small-tree",
    "medium-tree",
    "large-tree",
)
"""The classes of Tallavajhula 2018 Table 4.2, shrubs before trees, small before large."""
OTHER_CLASS = "other"
"""What stands on the ground and is no plant."""
CLASSES = (*PLANT_CLASSES, OTHER_CLASS)
MAX_ROWS = 10_000_000
"""Most rows of an annotation, and most boxes that its patches are cut into."""
FARTHEST_M, LARGEST_M = 1e8, 1e6
_NUMBERS = ("x", "y", "yaw", "length", "width", "height")
_OPTIONAL = ("z", "object", "polygon", "cell")


def label_of(class_name: str) -> int:
    """Return the label number of a class; of other, that of other objects."""
    return LABELS["other-object" if class_name == OTHER_CLASS else class_name].number


@dataclass(frozen=True, slots=True, eq=False)
class Annotation:
    """Boxes, one row each. Raises InputError where a value cannot be; names the column and the row."""

    class_name: NDArray[np.str_]
    """(N,)."""
    position_m: Array
    """(N, 3) feet, map frame; z is NaN where the box stands on the ground, wherever that is."""
    yaw_rad: Array
    """(N,) direction of the x axis of each box."""
    size_m: Array
    """(N, 3) length, width, height."""
    object: NDArray[np.uint32]
    """(N,) number of the object in a segmentation; 0: none."""
    polygon_m: tuple[Array | None, ...]
    """(N,) corners of patches, (K, 2) each; None for single boxes."""
    cell_m: Array
    """(N,) side of the cells of a patch; NaN for single boxes."""

    def __post_init__(self) -> None:
        """Check every value once."""
        _check(self)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.class_name)

    def __getitem__(self, rows: Any) -> "Annotation":
        """Select rows by slice, mask or positions."""
        chosen: NDArray[np.int64] = np.arange(len(self))[rows]
        numbers: list[int] = chosen.tolist()
        return Annotation(
            self.class_name[chosen],
            self.position_m[chosen],
            self.yaw_rad[chosen],
            self.size_m[chosen],
            self.object[chosen],
            tuple(self.polygon_m[row] for row in numbers),
            self.cell_m[chosen],
        )

    @classmethod
    def of_boxes(
        cls,
        class_name: Sequence[str],
        position_m: Any,
        yaw_rad: Any,
        size_m: Any,
        *,
        object: Any = None,
        polygon_m: Sequence[Array | None] | None = None,
        cell_m: Any = None,
    ) -> "Annotation":
        """Make one of plain arrays; (N, 2) positions stand on the ground."""
        n = len(class_name)
        place = np.asarray(position_m, dtype=np.float64).reshape(n, -1)
        if place.shape[1] == 2:
            place = np.column_stack([place, np.full(n, np.nan)])
        return cls(
            np.asarray(class_name, dtype=np.str_),
            place,
            np.broadcast_to(np.asarray(yaw_rad, dtype=np.float64), (n,)).copy(),
            np.asarray(size_m, dtype=np.float64).reshape(n, 3),
            np.zeros(n, dtype=np.uint32) if object is None else np.asarray(object, dtype=np.uint32),
            (None,) * n if polygon_m is None else tuple(polygon_m),
            np.full(n, np.nan) if cell_m is None else np.asarray(cell_m, dtype=np.float64),
        )

    @property
    def is_patch(self) -> NDArray[np.bool_]:
        """(N,) whether a row is a patch."""
        return np.array([polygon is not None for polygon in self.polygon_m], dtype=np.bool_)

    def expanded(self) -> "Annotation":
        """Return the same with each patch cut into cells, a box of its class for each; other rows stay first.

        A box keeps the object number of its patch. Its z is that of the patch, or missing: on the ground.

        Raises:
            InputError: there would be more than ten million boxes.
        """
        patch = np.flatnonzero(self.is_patch)
        if not len(patch):
            return self
        parts = [self[~self.is_patch]]
        n = len(parts[0])
        for row in patch.tolist():
            polygon = self.polygon_m[row]
            assert polygon is not None
            yaw, cell_m = float(self.yaw_rad[row]), float(self.cell_m[row])
            try:
                centre = cell_centres(polygon, cell_m, yaw)
            except InputError as error:
                raise InputError(error.field, f"row {row + 1}: {error.said}") from None
            n += len(centre)
            if n > MAX_ROWS:
                said = f"the patches up to row {row + 1} have {n:,} cells; expected at most {MAX_ROWS:,}"
                raise InputError("cell", f"{said}, so take larger cells")
            box = np.array([cell_m, cell_m, self.size_m[row, 2]])
            parts.append(self._cells(row, centre, box))
        return _joined(parts)

    def _cells(self, row: int, centre_m: Array, box_m: Array) -> "Annotation":
        n = len(centre_m)
        # The foot of a patch is one height; its cells stand on the ground under each.
        return Annotation.of_boxes(
            [str(self.class_name[row])] * n,
            centre_m,
            np.full(n, self.yaw_rad[row]),
            np.tile(box_m, (n, 1)),
            object=np.full(n, self.object[row], dtype=np.uint32),
        )


def cell_centres(polygon_m: Array, cell_m: float, yaw_rad: float = 0.0) -> Array:
    """Return (C, 2) the middles of the cells whose middle lies in a polygon; one, its own middle, if there is none.

    The cells lie along the direction of the patch and have a corner at the map's zero, turned by yaw, so the cell of a
    place is the same for all polygons.

    Raises:
        InputError: there would be more than ten million.
    """
    turn = _rotation(yaw_rad)
    local = polygon_m @ turn  # into the frame of the cells
    low, high = np.floor(local.min(axis=0) / cell_m), np.ceil(local.max(axis=0) / cell_m)
    n = high - low
    if n.prod() > MAX_ROWS:
        raise InputError("cell", f"{cell_m:g} m cuts the patch into {n.prod():,.0f} cells; take larger ones")
    x, y = (cell_m * (np.arange(float(low[k]), float(high[k])) + 0.5) for k in (0, 1))
    centre = np.stack([np.repeat(x, len(y)), np.tile(y, len(x))], axis=1)
    inside = contains(local, centre)
    found = centre[inside] if inside.any() else local.mean(axis=0, keepdims=True)
    return found @ turn.T


def cell_numbers(xy_m: Array, cell_m: float, yaw_rad: float = 0.0) -> NDArray[np.int64]:
    """Return (N, 2) the numbers of the cells of a patch that places lie in; see `cell_centres`."""
    return np.floor(xy_m @ _rotation(yaw_rad) / cell_m).astype(np.int64)


def contains(polygon_m: Array, xy_m: Array) -> NDArray[np.bool_]:
    """Tell which (N, 2) places lie in a polygon of (K, 2) corners, by counting crossings."""
    inside = np.zeros(len(xy_m), dtype=np.bool_)
    x, y = xy_m[:, 0], xy_m[:, 1]
    for (ax, ay), (bx, by) in zip(polygon_m, np.roll(polygon_m, -1, axis=0), strict=True):
        rows = np.flatnonzero((ay > y) != (by > y))
        inside[rows] ^= x[rows] < ax + (y[rows] - ay) / (by - ay) * (bx - ax)
    return inside


def _rotation(yaw_rad: float) -> Array:
    """(2, 2) maps a box's own frame to the map's; a row vector times it goes the other way."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.array([[c, -s], [s, c]])


def _joined(parts: Sequence[Annotation]) -> Annotation:
    return Annotation(
        np.concatenate([part.class_name for part in parts]),
        np.concatenate([part.position_m for part in parts]),
        np.concatenate([part.yaw_rad for part in parts]),
        np.concatenate([part.size_m for part in parts]),
        np.concatenate([part.object for part in parts]),
        tuple(polygon for part in parts for polygon in part.polygon_m),
        np.concatenate([part.cell_m for part in parts]),
    )


def _check(rows: Annotation) -> None:
    n = len(rows.class_name)
    if n > MAX_ROWS:
        raise InputError("annotation", f"has {n:,} rows; expected at most {MAX_ROWS:,}, so cut the site into parts")
    shapes = {"position_m": (n, 3), "yaw_rad": (n,), "size_m": (n, 3), "object": (n,), "cell_m": (n,)}
    for name, shape in shapes.items():
        if getattr(rows, name).shape != shape:
            raise InputError(name, f"has shape {getattr(rows, name).shape}, expected {shape}")
    if len(rows.polygon_m) != n:
        raise InputError("polygon", f"has {len(rows.polygon_m)} entries, expected {n}")
    _require("class", np.isin(rows.class_name, CLASSES), rows.class_name, f"is none of {', '.join(CLASSES)}")
    for k, axis in enumerate("xyz"):
        value = rows.position_m[:, k]
        good = np.abs(value) <= FARTHEST_M
        _require(axis, good | (np.isnan(value) & (axis == "z")), value, "is no coordinate; expected a finite number")
    _require("yaw", np.isfinite(rows.yaw_rad), rows.yaw_rad, "is no angle; expected a finite number [rad]")
    for k, name in enumerate(("length", "width", "height")):
        value = rows.size_m[:, k]
        _require(name, (value > 0) & (value <= LARGEST_M), value, "is no size; expected metres above 0")
    patch = rows.is_patch
    _require("cell", ~patch | (rows.cell_m > 0), rows.cell_m, "is no size of cells; a polygon needs one above 0 m")


def _require(column: str, good: NDArray[np.bool_], values: NDArray[Any], said: str) -> None:
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise InputError(column, f"row {row + 1}: {values[row]} {said}")


def read_annotation(path: str | Path) -> Annotation:
    """Read an annotation from a Parquet or CSV file.

    Raises:
        FileError: missing, damaged, too long, without a column, or with a value that cannot be; names file and row.
    """
    from hedgerow.io.source import translate_errors

    path = Path(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise FileError(f"{path}: is no annotation; expected a .csv or .parquet file")
    with translate_errors(path, "an annotation"):
        columns = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
        try:
            return _of_columns(columns)
        except InputError as error:
            raise FileError(f"{path}: {error}") from None


def write_annotation(path: str | Path, annotation: Annotation) -> None:
    """Write an annotation to a Parquet or CSV file, completely or not at all.

    Raises:
        FileError: another suffix, or it cannot be written.
    """
    from hedgerow.base.atomic import atomic_file

    path = Path(path)
    require_annotation_suffix(path)
    table = _arrow(annotation)
    with atomic_file(path) as temporary:
        if path.suffix.lower() == ".parquet":
            parquet: Any = import_module("pyarrow.parquet")
            parquet.write_table(table, temporary)
        else:
            csv: Any = import_module("pyarrow.csv")
            csv.write_csv(table, temporary, csv.WriteOptions(quoting_style="needed"))


def require_annotation_suffix(path: Path) -> None:
    """Raise FileError if an annotation could not be written under such a name."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise FileError(f"{path}: an annotation is written as .csv or .parquet; choose one of them")


def _arrow(rows: Annotation) -> Any:
    pa: Any = import_module("pyarrow")
    columns: dict[str, Any] = {"class": pa.array(rows.class_name.tolist(), pa.string())}
    for k, axis in enumerate("xyz"):
        columns[axis] = pa.array(rows.position_m[:, k], pa.float64(), from_pandas=True)  # NaN is null: on the ground
    columns["yaw"] = pa.array(rows.yaw_rad)
    for k, name in enumerate(("length", "width", "height")):
        columns[name] = pa.array(np.ascontiguousarray(rows.size_m[:, k]))
    columns["object"] = pa.array(rows.object)
    columns["polygon"] = pa.array([None if each is None else to_wkt(each) for each in rows.polygon_m], pa.string())
    columns["cell"] = pa.array(rows.cell_m, pa.float64(), from_pandas=True)
    return pa.table(columns)


def to_wkt(polygon_m: Array) -> str:
    """Return a polygon as text, its first corner once more at the end, as WKT has it."""
    corners = [*polygon_m.tolist(), polygon_m[0].tolist()]
    return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in corners)}))"


def from_wkt(text: str) -> Array:
    """Read a polygon.

    Raises:
        ValueError: it is none.
    """
    head, _, body = text.strip().partition("((")
    if head.strip().upper() != "POLYGON" or not body.endswith("))"):
        raise ValueError("is no polygon; expected POLYGON ((x y, x y, ...))")
    corners = np.array([[float(each) for each in corner.split()] for corner in body[:-2].split(",")])
    if corners.ndim != 2 or corners.shape[1] != 2 or not (np.abs(corners) <= FARTHEST_M).all():
        raise ValueError("has a corner that is no pair of finite numbers")
    if len(corners) > 1 and (corners[0] == corners[-1]).all():
        corners = corners[:-1]
    if len(corners) < 3:
        raise ValueError(f"has {len(corners)} corners; expected at least 3")
    return corners


def _read_parquet(path: Path) -> dict[str, Any]:
    from hedgerow.io.parquet.guarded import group_rows_of, open_parquet, reading

    opened: Any = open_parquet(path)
    with opened as file, reading(path):
        _require_few(path, sum(group_rows_of(path, file.metadata, path.stat().st_size)))
        table = file.read()
    return _columns_of(table)


def _read_csv(path: Path) -> dict[str, Any]:
    csv: Any = import_module("pyarrow.csv")
    with path.open("rb") as file:  # counted first, so that an endless file is refused before it fills the memory
        n = sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 24), b""))
    _require_few(path, n - 1)
    pa: Any = import_module("pyarrow")
    types = {name: pa.float64() for name in (*_NUMBERS, "z", "object", "cell")}
    options = csv.ConvertOptions(
        column_types=types | {"class": pa.string(), "polygon": pa.string()},
        null_values=["", "NA", "null"],
        strings_can_be_null=True,
    )
    return _columns_of(csv.read_csv(path, convert_options=options))


def _columns_of(table: Any) -> dict[str, Any]:
    """Return numbers as arrays, which take less than lists, and the rest as lists."""
    types: Any = import_module("pyarrow").types
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        is_number = types.is_floating(column.type) or types.is_integer(column.type)
        columns[name] = column.to_numpy(zero_copy_only=False) if is_number else column.to_pylist()
    return columns


def _require_few(path: Path, n: int) -> None:
    if n > MAX_ROWS:
        raise FileError(f"{path}: has {n:,} rows; expected at most {MAX_ROWS:,}, so cut the site into parts")


def _of_columns(columns: dict[str, Any]) -> Annotation:
    for name in ("class", *_NUMBERS):
        if name not in columns:
            there = ", ".join(columns) or "none"
            raise InputError(name, f"this column is missing; expected class, {', '.join(_NUMBERS)}, found {there}")
    unknown = [name for name in columns if name not in ("class", *_NUMBERS, *_OPTIONAL)]
    if unknown:
        raise InputError(unknown[0], f"there is no such column; there are class, {', '.join((*_NUMBERS, *_OPTIONAL))}")
    n = len(columns["class"])
    number = {name: _floats(name, columns.get(name, [None] * n)) for name in (*_NUMBERS, "z", "object", "cell")}
    owner = np.nan_to_num(number["object"])
    _require("object", (owner >= 0) & (owner < 2**32) & (owner % 1 == 0), owner, "is no number of an object")
    class_name = np.array(["" if each is None else str(each) for each in columns["class"]], dtype=np.str_)
    return Annotation(
        class_name,
        np.column_stack([number["x"], number["y"], number["z"]]),
        number["yaw"],
        np.column_stack([number["length"], number["width"], number["height"]]),
        owner.astype(np.uint32),
        tuple(_polygon(row, text) for row, text in enumerate(columns.get("polygon", [None] * n))),
        number["cell"],
    )


def _floats(name: str, values: Any) -> Array:
    try:
        if hasattr(values, "dtype"):
            return np.asarray(values, dtype=np.float64)
        return np.array([np.nan if each is None else each for each in values], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, "holds something that is no number; expected numbers") from None


def _polygon(row: int, given: Any) -> Array | None:
    """Return the corners of a patch, given as WKT or as a list of pairs."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return None
    try:
        if isinstance(given, str):
            return from_wkt(given)
        return from_wkt(to_wkt(np.asarray(given, dtype=np.float64).reshape(-1, 2)))
    except ValueError as error:
        raise InputError("polygon", f"row {row + 1}: {error}") from None


def with_z(annotation: Annotation, z_m: Array) -> Annotation:
    """Return the same with (N,) heights of the feet where they are missing."""
    place = annotation.position_m.copy()
    place[:, 2] = np.where(np.isnan(place[:, 2]), z_m, place[:, 2])
    return replace(annotation, position_m=place)
