# SPDX-License-Identifier: Apache-2.0
"""Segmentations in files: saved, mended in the viewer, loaded again.

One Parquet file with one row, whose columns are lists: `objects.NAME` has an entry for each object, `TABLE.object` and
`TABLE.is_ground` for each row of a table of the log or world, `ground.NAME` the height field. The metadata say which
log or world it belongs to, by name, number of rows and checksum of their places, so a file is never laid over another
site. Pages have checksums: a damaged file is refused.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.base.atomic import atomic_file
from hedgerow.compose.segmentation import Segmentation, SegmentedObject, checksum_of
from hedgerow.compose.voxel_objects import SegmentSettings
from hedgerow.errors import FileError
from hedgerow.io.parquet.guarded import group_rows_of, open_parquet, reading
from hedgerow.io.source import translate_errors
from hedgerow.scenes.annotation import CLASSES, from_wkt, to_wkt
from hedgerow.scenes.ground_fit import Ground

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.log import Log
    from hedgerow.world.learned import LearnedWorld

_KEY = b"hedgerow_segments"
VERSION = 1
_NUMBERS = ("x_m", "y_m", "z_m", "yaw_rad", "length_m", "width_m", "height_m")


def save_segmentation(path: str | Path, segmentation: Segmentation) -> None:
    """Write a segmentation to a Parquet file, completely or not at all.

    Raises:
        FileError: it cannot be written.
    """
    pa: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    columns = {name: pa.array([values], pa.list_(kind)) for name, (values, kind) in _columns(segmentation, pa).items()}
    header = {
        "version": VERSION,
        "hedgerow": __version__,
        "name": segmentation.name,
        "n": {name: len(rows) for name, rows in segmentation.object.items()},
        "checksum": segmentation.checksum,
        "settings": segmentation.settings.model_dump(mode="json"),
        "sigma_m": segmentation.ground.sigma_m,
        "shape": segmentation.ground.z_m.shape,
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(header).encode()})
    with atomic_file(path) as temporary:
        parquet.write_table(table, temporary, compression="lz4", write_page_checksum=True)


def load_segmentation(path: str | Path, belongs_to: "Log | LogSource | LearnedWorld | None" = None) -> Segmentation:
    """Read a segmentation.

    Args:
        path: the file.
        belongs_to: the log or world that it must be a segmentation of; None: not checked.

    Raises:
        FileError: missing, damaged, of a newer version, or of another log or world.
    """
    path = Path(path)
    with translate_errors(path, "a segmentation"):
        opened: Any = open_parquet(path)
        with opened as file, reading(path):
            group_rows_of(path, file.metadata, path.stat().st_size)
            header = _header(path, file.schema_arrow.metadata or {})
            table = file.read()
        columns = {name: table.column(name)[0].values for name in table.column_names}
        found = _segmentation(header, columns)
    if belongs_to is not None:
        require_belongs(path, found, belongs_to)
    return found


def require_belongs(path: str | Path, found: Segmentation, source: "Log | LogSource | LearnedWorld") -> None:
    """Raise FileError if a segmentation is of another log or world than this one."""
    if found.checksum != checksum_of(source):
        owner = f"{found.name} ({found.n_points:,} points or elements)"
        here = Path(str(getattr(source, "path", "") or "this log or world")).name
        raise FileError(f"{path}: belongs to {owner}, and not to {here}; segment that one anew: hedgerow segment")


def _columns(segmentation: Segmentation, pa: Any) -> dict[str, tuple[Any, Any]]:
    """Return the content of each column with its type."""
    objects, ground = segmentation.objects, segmentation.ground
    columns: dict[str, tuple[Any, Any]] = {
        "objects.id": ([each.id for each in objects], pa.uint32()),
        "objects.class": ([each.class_name for each in objects], pa.string()),
        "objects.n_points": ([each.n_points for each in objects], pa.int64()),
        "objects.polygon": (
            [None if each.polygon_m is None else to_wkt(each.polygon_m) for each in objects],
            pa.string(),
        ),
        "objects.cell_m": ([each.cell_m for each in objects], pa.float64()),
    }
    columns |= {f"objects.{name}": ([getattr(each, name) for each in objects], pa.float64()) for name in _NUMBERS}
    columns |= {f"ground.{name}": (getattr(ground, name), pa.float64()) for name in ("x_m", "y_m")}
    columns |= {"ground.z_m": (ground.z_m.ravel(), pa.float64()), "ground.known": (ground.known.ravel(), pa.bool_())}
    columns |= {f"{name}.object": (rows, pa.uint32()) for name, rows in segmentation.object.items()}
    return columns | {f"{name}.is_ground": (rows, pa.bool_()) for name, rows in segmentation.is_ground.items()}


def _header(path: str | Path, metadata: dict[bytes, bytes]) -> dict[str, Any]:
    if _KEY not in metadata:
        raise FileError(f"{path}: is no segmentation; hedgerow segment -o writes one")
    header = json.loads(metadata[_KEY])
    if header["version"] > VERSION:
        said = f"was written by Hedgerow {header.get('hedgerow', '')} (version {header['version']} of the format)"
        raise FileError(f"{path}: {said}, and this one reads up to {VERSION}; install a newer Hedgerow")
    return header


def _segmentation(header: dict[str, Any], columns: dict[str, Any]) -> Segmentation:
    def values(name: str) -> NDArray[Any]:
        return columns[name].to_numpy(zero_copy_only=False)

    n_y, n_x = header["shape"]
    ground = Ground(
        values("ground.x_m"),
        values("ground.y_m"),
        values("ground.z_m").reshape(n_y, n_x),
        values("ground.known").astype(np.bool_).reshape(n_y, n_x),
        float(header["sigma_m"]),
    )
    owner = {name: values(f"{name}.object").astype(np.uint32) for name in header["n"]}
    flat = {name: values(f"{name}.is_ground").astype(np.bool_) for name in header["n"]}
    for name, n in header["n"].items():
        if len(owner[name]) != n or len(flat[name]) != n:
            raise ValueError(f"has {len(owner[name]):,} of {n:,} rows of {name}")
    settings = SegmentSettings.parse(header["settings"], "segmentation")
    objects = tuple(_objects(columns))
    largest = max((int(rows.max(initial=0)) for rows in owner.values()), default=0)
    if largest > max((each.id for each in objects), default=0):
        raise ValueError(f"names object {largest}, which is not in its list")
    return Segmentation(objects, owner, flat, ground, str(header["name"]), str(header["checksum"]), settings)


def _objects(columns: dict[str, Any]) -> list[SegmentedObject]:
    lists = {name.removeprefix("objects."): each.to_pylist() for name, each in columns.items() if "objects." in name}
    objects: list[SegmentedObject] = []
    for row, class_name in enumerate(lists["class"]):
        if class_name not in CLASSES:
            raise ValueError(f"object {lists['id'][row]} has the unknown class {class_name}")
        polygon, cell_m = lists["polygon"][row], lists["cell_m"][row]
        numbers = {name: float(lists[name][row]) for name in _NUMBERS}
        objects.append(
            SegmentedObject(
                id=int(lists["id"][row]),
                class_name=class_name,
                n_points=int(lists["n_points"][row]),
                polygon_m=None if polygon is None else from_wkt(polygon),
                cell_m=cell_m,
                **numbers,
            )
        )
    return objects
