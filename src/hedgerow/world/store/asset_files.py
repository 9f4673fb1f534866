# SPDX-License-Identifier: Apache-2.0
"""Assets on the disk: a list, and one Parquet file for each part of each.

assets.parquet               one row for each part: name, table, elements, settings, checksum; and what the asset is
assets/large-tree-3.0.parquet   the elements of the first part of that asset
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from hedgerow.errors import FileError, InputError, shown
from hedgerow.world.assets import Asset
from hedgerow.world.check import check_table
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.store.encoded import decode, encode
from hedgerow.world.store.rows import from_arrow, require_type, stored_columns, to_arrow
from hedgerow.world.store.settings import settings_from, settings_of

ASSETS, LIST = "assets", "assets.parquet"
_COLUMNS = {
    "name": pa.string(),
    "part": pa.int32(),
    "table": pa.string(),
    "n": pa.int64(),
    "settings": pa.string(),
    "crc32": pa.int64(),
    "about": pa.string(),
}
_MAX_TEXT = 1 << 20
_NO_PART = ""
"""Table of the one row that an asset without elements has."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A row of the list."""

    table: str
    n: int
    settings: str
    crc32: int


@dataclass(frozen=True, slots=True)
class StoredAsset:
    """An asset of which only the list has been read."""

    name: str
    parts: tuple[StoredPart, ...]
    about: dict[str, Any]

    @property
    def n_elements(self) -> int:
        """Number of its elements."""
        return sum(part.n for part in self.parts)


def write_assets(folder: Path, assets: Sequence[Asset]) -> int:
    """Write the files of the assets and the list of them; return the checksum of the list."""
    (folder / ASSETS).mkdir()
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for asset in assets:
        about = json.dumps(dict(asset.about))
        for number, part in enumerate(asset.parts):
            name = "triangles" if isinstance(part, Triangles) else "gaussians"
            content = encode(to_arrow(name, part))
            _part_path(folder, asset.name, number).write_bytes(content)
            settings = json.dumps(settings_of(part))
            _append(rows, (asset.name, number, name, len(part), settings, zlib.crc32(content), about))
        if not asset.parts:
            _append(rows, (asset.name, 0, _NO_PART, 0, "{}", 0, about))
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()])
    content = encode(pa.table(rows, schema=schema))
    (folder / LIST).write_bytes(content)
    return zlib.crc32(content)


def _append(rows: dict[str, list[Any]], values: tuple[Any, ...]) -> None:
    for name, value in zip(_COLUMNS, values, strict=True):
        rows[name].append(value)


def _part_path(folder: Path, name: str, number: int) -> Path:
    return folder / ASSETS / f"{name}.{number}.parquet"


def part_paths(folder: Path, assets: Sequence[StoredAsset]) -> list[tuple[Path, int]]:
    """Return the files of all assets, with their checksums."""
    return [
        (_part_path(folder, asset.name, number), part.crc32)
        for asset in assets
        for number, part in enumerate(asset.parts)
    ]


def read_asset_list(folder: Path, crc32: object) -> list[StoredAsset]:
    """Read the list of a world's assets.

    Raises:
        FileError: missing or damaged; names the file.
    """
    path = folder / LIST
    rows = decode(path, crc32, list(_COLUMNS))
    try:
        for name, kind in _COLUMNS.items():
            require_type(rows, name, kind)
        return _assets(rows.to_pylist())
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


def _assets(rows: list[dict[str, Any]]) -> list[StoredAsset]:
    made: list[StoredAsset] = []
    for number, row in enumerate(rows):
        name, table = row["name"], row["table"]
        Asset(name, ())  # refuses a name that is none, and that would be no name of a file
        if table not in ("triangles", "gaussians", _NO_PART) or not 0 <= row["n"] < 2**40 or row["part"] < 0:
            raise InputError(f"row {number}", f"is no part of an asset: table {shown(table)}, {row['n']} elements")
        if row["part"] == 0:
            if any(each.name == name for each in made[-1:]):
                raise InputError(f"row {number}", f"asset {name} begins twice")
            made.append(StoredAsset(name, (), _parsed(f"row {number}, about", row["about"])))
        if not made or made[-1].name != name or len(made[-1].parts) != row["part"]:
            raise InputError(f"row {number}", f"part {row['part']} of asset {name} does not follow the one before it")
        if table != _NO_PART:
            part = StoredPart(table, row["n"], row["settings"], row["crc32"])
            made[-1] = StoredAsset(name, (*made[-1].parts, part), made[-1].about)
    if len({each.name for each in made}) < len(made):
        raise InputError("name", "an asset comes twice")
    return made


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        values: Any = json.loads(text) if len(text) <= _MAX_TEXT else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(name, f"is no JSON object: {shown(text)}")
    return cast("dict[str, Any]", values)


def read_asset(folder: Path, stored: StoredAsset, written_as: int) -> Asset:
    """Read the elements of an asset.

    Raises:
        FileError: missing or damaged.
    """
    parts: list[Triangles | Gaussians] = []
    for number, part in enumerate(stored.parts):
        path = _part_path(folder, stored.name, number)
        rows = decode(path, part.crc32, stored_columns(part.table, written_as), part.n)
        try:
            settings = _parsed("settings", part.settings) | {"n": part.n}
            empty, _ = settings_from(part.table, settings, f"asset {stored.name}")
            table = type(empty)(**(empty.settings() | from_arrow(part.table, rows, written_as)))
            checked = check_table(table)
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
        assert isinstance(checked, Triangles | Gaussians)
        parts.append(checked)
    try:
        return Asset(stored.name, tuple(parts), stored.about)
    except InputError as error:
        raise FileError(f"{folder / LIST}: {error}") from error
