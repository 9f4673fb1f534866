# SPDX-License-Identifier: Apache-2.0
"""Worlds on the disk: a folder, by custom `NAME.world`, that is written completely or not at all.

    world.toml               kind, parameters, provenance, versions, settings of the tables
    tiles.parquet            which tiles there are, how many elements, the boxes they lie in, checksums of the files
    gaussians/3_-1.parquet   the Gaussians with centres in tile x = 3, y = -1; likewise triangles/, points/, beams/, and
                             instances/: copies of assets
    assets.parquet, assets/  the assets, if there are any (asset_files.py)

`WorldFile` reads the first two alone; tiles are then read one by one or all at once.
"""

import re
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

import hedgerow
from hedgerow.base.atomic import atomic_folder
from hedgerow.base.columns import require_agreement
from hedgerow.base.places import Address, as_place, replaced_folder
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError, InputError, one_line, shown
from hedgerow.io.describe import bytes_of, count, extent_text, position_text, size_text
from hedgerow.world.assets import Asset, require_assets
from hedgerow.world.check import TABLES, check_table, name_of
from hedgerow.world.elements import Elements, Instances
from hedgerow.world.store.asset_files import ASSETS, LIST, part_paths, read_asset, read_asset_list, write_assets
from hedgerow.world.store.encoded import decode, encode, require_whole
from hedgerow.world.store.header import WorldHeader, typed
from hedgerow.world.store.rows import from_arrow, stored_columns, to_arrow
from hedgerow.world.store.settings import settings_from, settings_of
from hedgerow.world.store.tile_file import read_tiles, tile_rows
from hedgerow.world.store.tiles import TileList, list_tiles, tile_of
from hedgerow.world.world import WorldSize

FORMAT = 3
"""Raised by one when older readers would misread the folder. 1 had one label per triangle and Gaussian, 2 no assets,
objects and classes."""
_TOML, _TILES = "world.toml", "tiles.parquet"
_OWN = re.compile(rf"{_TOML}|{_TILES}|{LIST}|{ASSETS}/[^/]+\.parquet|({'|'.join(TABLES)})/-?\d+_-?\d+\.parquet")
"""All objects that a world has at an address, whole or half-written."""
_SECTIONS = ("size", "tables")
_NO_ASSETS = {"n": 0, "crc32": 0}
_CLASSES_SINCE = 3
_NOUNS = {
    "triangles": "triangle",
    "gaussians": "Gaussian",
    "points": "point",
    "beams": "remembered beam",
    "instances": "instance",
}


def save_world(
    path: str | Path,
    header: WorldHeader,
    tables: Mapping[str, Elements],
    size: WorldSize,
    assets: Sequence[Asset] = (),
) -> None:
    """Write checked tables in tile order, and assets; see `LearnedWorld.save`."""
    tiles = list_tiles(tables, header.tile_m)

    def parts() -> Iterator[tuple[TileList, Elements]]:
        begin = dict.fromkeys(TABLES, 0)
        for row in range(len(tiles)):
            name = tiles.name(row)
            end = begin[name] + int(tiles.n[row])
            yield tiles[row : row + 1], tables[name][begin[name] : end]
            begin[name] = end

    with _world_folder(path) as folder:
        written = _write_tiles(folder, parts())
        _finish(folder, header, written, tables, size, assets)


def save_tiles(
    path: str | Path, header: WorldHeader, parts: Iterable[Elements], assets: Sequence[Asset] = ()
) -> WorldSize:
    """Write a world of one table tile by tile, so that it may be larger than memory; return its size.

    Args:
        path: the folder; an old world is replaced.
        header: what the world says about itself; its `origin_m` must lie among the elements.
        parts: the elements of each tile, by x, then y, of the tiles; all with the same settings.
        assets: what instances are copies of.

    Raises:
        InputError: a part is wrong, lies in more than one tile, or comes out of order.
        FileError: the folder holds something else, or the system refuses to write.
    """
    empty: dict[str, Elements] = {}
    total: Counter[str] = Counter()
    with _world_folder(path) as folder:
        written = _write_tiles(folder, _checked_tiles(parts, header.tile_m, empty, total, assets))
        for asset in assets:
            total.update({"parameters": asset.n_parameters(), "bytes": asset.n_bytes()})
        size = WorldSize(dict.fromkeys(empty, total["rows"]), total["parameters"], total["bytes"])
        _finish(folder, header, written, empty, size, assets)
    return size


def _checked_tiles(
    parts: Iterable[Elements], tile_m: float, empty: dict[str, Elements], total: Counter[str], assets: Sequence[Asset]
) -> Iterator[tuple[TileList, Elements]]:
    """Check that each part is a tile that comes in order; note the settings of the first, and how much there is."""
    before: tuple[int, int] | None = None
    for part in parts:
        table = check_table(part)
        require_assets(assets, table)
        name = name_of(table)
        tile = list_tiles({name: table}, tile_m)
        if len(tile) != 1 or name != next(iter(empty), name):
            raise InputError("parts", f"expected elements of one tile and one table, found {name} of {len(tile)} tiles")
        here = int(tile.x[0]), int(tile.y[0])
        if before is not None and here <= before:
            raise InputError("parts", f"tile {here} comes after {before}; expected them by x, then y")
        require_agreement([empty.setdefault(name, table[:0]), table], list(table.settings()))
        before = here
        n_bytes = sum(column.nbytes for column in table.columns().values())
        total.update({"rows": len(table), "parameters": table.n_parameters(), "bytes": n_bytes})
        yield tile, table


@contextmanager
def _world_folder(path: str | Path) -> Generator[Path]:
    """Give a folder to write a world to; one that holds something else is refused."""
    target = as_place(path)
    here = not isinstance(target, Address)
    if here and target.is_dir() and any(target.iterdir()) and not (target / _TOML).is_file():
        raise FileError(f"{path}: the folder holds other things, no {_TOML}; choose another name")
    with _target(path) as folder:
        yield folder


def _write_tiles(folder: Path, parts: Iterable[tuple[TileList, Elements]]) -> TileList:
    """Write a file for each tile; return the list of them with checksums."""
    written = [list_tiles({}, 1.0)]
    for tile, table in parts:
        name = tile.name(0)
        (folder / name).mkdir(exist_ok=True)
        content = encode(to_arrow(name, table))
        (folder / _tile_path(tile, 0)).write_bytes(content)
        written.append(replace(tile, crc32=np.array([zlib.crc32(content)], dtype=np.int64)))
    return TileList.join(written)


def _finish(
    folder: Path,
    header: WorldHeader,
    tiles: TileList,
    tables: Mapping[str, Elements],
    size: WorldSize,
    assets: Sequence[Asset],
) -> None:
    """Write the list of tiles, assets, and what the world says about itself."""
    content = encode(tile_rows(tiles))
    (folder / _TILES).write_bytes(content)
    said: dict[str, Any] = {"format": FORMAT, "hedgerow": hedgerow.__version__, "tiles_crc32": zlib.crc32(content)}
    said |= header.content()
    said["size"] = {"parameters": size.parameters, "bytes": size.bytes}
    if assets:
        said["assets"] = {"n": len(assets), "crc32": write_assets(folder, assets)}
    said["tables"] = {name: settings_of(table) | {"n": size.tables[name]} for name, table in tables.items()}
    (folder / _TOML).write_text(tomli_w.dumps(said), encoding="utf-8", errors="replace")


class WorldFile:
    """A world on the disk of which only the settings and the list of tiles have been read.

    Attributes:
        path: the folder.
        header: what the world says about itself.
        tiles: the list of tiles.
        written_by: version of Hedgerow that wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        """Read settings and list.

        Raises:
            FileError: missing, damaged, incomplete, newer, or no world.
        """
        self.path = as_place(path)
        toml = self.path / _TOML
        content = _read_toml(self.path, toml)
        self._format = content.pop("format")
        try:
            self.written_by: str = typed("", {"hedgerow": content.pop("hedgerow")}, {"hedgerow": str})["hedgerow"]
            crc32 = content.pop("tiles_crc32")
            size, tables = (typed("", {name: content.pop(name, None)}, {name: dict})[name] for name in _SECTIONS)
            counts = typed("size.", size, {"parameters": int, "bytes": int})
            for name, number in counts.items():
                if not 0 <= number < 2**63:
                    raise InputError(f"size.{name}", f"expected 0 to {2**63 - 1}, found {shown(number)}")
            listed = typed("", {"assets": content.pop("assets", _NO_ASSETS)}, {"assets": dict})["assets"]
            listed = typed("assets.", listed, {"n": int, "crc32": int})
            older: dict[str, Any] = {"classes": {}} if self._format < _CLASSES_SINCE else {}
            self.header = WorldHeader.from_content(older | content)
            self._empty = {name: settings_from(name, tables.pop(name)) for name in TABLES if name in tables}
            for name in tables:
                raise InputError(f"tables.{shown(name)[1:-1]}", f"unknown table; expected {', '.join(TABLES)}")
        except InputError as error:
            raise FileError(f"{toml}: {error}") from error
        self.tiles = read_tiles(self.path / _TILES, crc32, self._format)
        self.assets = read_asset_list(self.path, listed["crc32"]) if listed["n"] else []
        if len(self.assets) != listed["n"]:
            found = f"says {listed['n']} assets, but {LIST} lists {len(self.assets)}"
            raise FileError(f"{toml}: {found}; was one exchanged?")
        self.size = WorldSize(self._counted(), counts["parameters"], counts["bytes"])
        self._require_files()
        self._require_origin()

    def _counted(self) -> dict[str, int]:
        """Count the elements, and compare with what world.toml says."""
        found: dict[str, int] = {}
        for number, name in enumerate(TABLES):
            found[name] = int(self.tiles.n[self.tiles.table == number].sum())
            said = self._empty[name][1] if name in self._empty else 0
            if found[name] != said:
                differ = f"says {shown(said)} {name}, but {_TILES} lists {found[name]}"
                raise FileError(f"{self.path / _TOML}: {differ}; was one exchanged?")
        return {name: found[name] for name in self._empty}

    def _require_files(self) -> None:
        tiles = [self.path / _tile_path(self.tiles, row) for row in range(len(self.tiles))]
        there = set(self.path.rglob("*")) if isinstance(self.path, Address) else None  # one request, not one for each
        for file in [*tiles, *(path for path, _ in part_paths(self.path, self.assets))]:
            if not (file.is_file() if there is None else file in there):
                raise FileError(f"{file}: missing; the world is incomplete")

    def _require_origin(self) -> None:
        """Refuse an origin from which float32 would blur the elements; it is the middle of them, to whole metres."""
        if not len(self.tiles):
            return
        origin, low, high = np.array(self.header.origin_m), self.tiles.low_m.min(axis=0), self.tiles.high_m.max(axis=0)
        if ((origin < low - 1) | (origin > high + 1)).any():
            raise FileError(f"{self.path / _TOML}: origin_m: lies outside of the elements; was it changed?")

    def require_whole(self) -> None:
        """Compare the checksums of all files, without decoding them.

        Raises:
            FileError: one is missing, cut off or changed.
        """
        for row in range(len(self.tiles)):
            require_whole(self.path / _tile_path(self.tiles, row), self.tiles.crc32[row])
        for path, crc32 in part_paths(self.path, self.assets):
            require_whole(path, crc32)

    def read_asset(self, number: int) -> Asset:
        """Read the elements of one asset.

        Raises:
            FileError: missing or damaged.
        """
        return read_asset(self.path, self.assets[number], self._format)

    def settings(self, name: str) -> Elements:
        """Return a table without elements that has the settings of the stored one."""
        return self._empty[name][0]

    def read(self, tiles: Sequence[tuple[int, int]] | None = None) -> dict[str, Elements]:
        """Read the tables, or only the elements of some tiles (x, y); others are not touched.

        Raises:
            FileError: missing or damaged.
        """
        chosen = None if tiles is None else set(tiles)
        xy = list(zip(self.tiles.x.tolist(), self.tiles.y.tolist(), strict=True))
        parts: dict[str, list[Elements]] = {name: [self.settings(name)] for name in self._empty}
        for row in range(len(self.tiles)):
            if chosen is None or xy[row] in chosen:
                parts[self.tiles.name(row)].append(self.read_row(row))
        return {name: Elements.join(tables) for name, tables in parts.items()}

    def read_row(self, row: int) -> Elements:
        """Read one tile of one table: a row of `tiles`.

        Raises:
            FileError: missing or damaged.
        """
        name = self.tiles.name(row)
        path = self.path / _tile_path(self.tiles, row)
        columns = stored_columns(name, self._format)
        rows = decode(path, self.tiles.crc32[row], columns, int(self.tiles.n[row]))
        try:
            empty = self.settings(name)
            table = check_table(type(empty)(**(empty.settings() | from_arrow(name, rows, self._format))))
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
        self._require_assets(path, table)
        inside = tile_of(table.centre_m(), self.header.tile_m) == [self.tiles.x[row], self.tiles.y[row]]
        if not inside.all():
            raise FileError(f"{path}: elements lie outside the tile; was tile_m in {_TOML} changed?")
        low, high = table.bounds_m()
        slack = 1e-9 * (1 + np.abs(self.tiles.low_m[row]) + np.abs(self.tiles.high_m[row]))
        if ((low < self.tiles.low_m[row] - slack) | (high > self.tiles.high_m[row] + slack)).any():
            raise FileError(f"{path}: elements reach out of the box that {_TILES} gives for them; was one exchanged?")
        return table

    def _require_assets(self, path: Path, table: Elements) -> None:
        """Check that the copies in a tile are of assets that are there."""
        if not isinstance(table, Instances):
            return
        sizes = np.array([asset.n_elements for asset in self.assets], dtype=np.int64)
        known = table.asset < len(sizes)
        if not known.all() or (table.n_each != sizes[table.asset]).any():
            raise FileError(f"{path}: has copies of assets that {LIST} does not list so; was one exchanged?")


@contextmanager
def _target(path: str | Path) -> Generator[Path]:
    """Give a folder to write to: a temporary one, or an address, where world.toml is what tells that all is there."""
    if isinstance(address := as_place(path), Address):
        with replaced_folder(address, _OWN, _TOML) as folder:
            yield as_place(folder)
    else:
        with atomic_folder(path, replaces=[_TOML, _TILES, *TABLES, ASSETS, LIST]) as folder:
            yield folder


def _tile_path(tiles: TileList, row: int) -> str:
    return f"{tiles.name(row)}/{tiles.x[row]}_{tiles.y[row]}.parquet"


def _read_toml(path: Path, toml: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileError(f"{path}: no such folder")
    if not toml.is_file():
        raise FileError(f"{path}: no world, {_TOML} is missing; expected a folder that Hedgerow saved a world to")
    content = read_toml(toml, "world")
    written_as = content.get("format")
    if type(written_as) is not int or written_as < 1:
        found = shown(written_as)
        raise FileError(f"{toml}: format: expected a whole number, found {found}; is this a Hedgerow world?")
    if written_as > FORMAT:
        written_by = f"written by Hedgerow {str(content.get('hedgerow'))[:20]}"
        raise FileError(
            f"{toml}: world format {shown(written_as)}, {written_by}, is newer than the {FORMAT} that Hedgerow "
            f"{hedgerow.__version__} reads; upgrade with: pip install -U hedgerow"
        )
    for name in ("hedgerow", "tiles_crc32"):
        if name not in content:
            raise FileError(f"{toml}: {name}: missing")
    return content


def _asset_lines(file: WorldFile) -> dict[str, str]:
    """Say what assets there are and, by class, how many instances of them."""
    if not file.assets:
        return {}
    stored = sum(asset.n_elements for asset in file.assets)
    lines = {"Assets": f"{count(len(file.assets), 'asset')}, {count(stored, 'element')} stored once"}
    kinds = Counter(str(asset.about["class_name"]) for asset in file.assets if "class_name" in asset.about)
    if kinds:
        lines["Assets"] += f": {', '.join(f'{n:,} {one_line(name)}' for name, n in sorted(kinds.items()))}"
    found: Counter[int] = Counter()
    for row in range(len(file.tiles)):
        if file.tiles.name(row) == "instances" and isinstance(table := file.read_row(row), Instances):
            found.update(int(each) for each in table.class_label)
    if found:
        names = {number: name for name, number in file.header.classes.items()}
        said = [f"{n:,} {names.get(number, number)}" if number else f"{n:,} of no class" for number, n in found.items()]
        lines["Instances"] = ", ".join(sorted(said, key=lambda text: text.split(" ", 1)[1]))
    return lines


def describe_world(path: str | Path) -> dict[str, str]:
    """Describe a saved world in a few lines: the content of `hedgerow info WORLD`.

    All files are compared with their checksums; of elements, only instances are decoded.

    Args:
        path: the folder.

    Returns:
        Label and text of each line, in the order to show them.

    Raises:
        FileError: missing, damaged, incomplete, newer, or no world.
    """
    file = WorldFile(path)
    file.require_whole()
    header, origin = file.header, file.header.provenance
    shown_path = file.path if isinstance(file.path, Address) else path  # an address may have been given with keys
    elements = [count(number, _NOUNS[name]) for name, number in file.size.tables.items()]
    source = [one_line(text) for text in (origin.log, origin.sensor) if text]
    beams = [count(origin.n_beams, "beam")] if origin.n_beams else []
    extent = extent_text(file.tiles.low_m, file.tiles.high_m) if len(file.tiles) else "none"
    return {
        "File": f"{shown_path}, world in {count(len(file.tiles), 'tile')}, {size_text(bytes_of(file.path))}",
        "Model": one_line(header.kind),
        "Elements": ", ".join(elements) or "none",
        **_asset_lines(file),
        "Size": f"{count(file.size.parameters, 'parameter')}, {size_text(file.size.bytes)} in memory",
        "Learned from": ", ".join(beams + source) or "unknown",
        "Ranges": f"limits {header.min_range_m:g} to {header.max_range_m:g} m, where no sensor says otherwise",
        "Extent": extent,
        "Map origin": position_text(header.map_origin_m),
        "Settings": f"of the learner in {file.path / 'world.toml'}",
        "Written by": f"Hedgerow {one_line(file.written_by)}",
    }
