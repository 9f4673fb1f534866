# SPDX-License-Identifier: Apache-2.0
"""Saved worlds that someone made up, checksums included: every one is refused with a sentence before it is fired at."""

import tomllib
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from saved import edit, files_of, refused, rewrite_checksums, site

from hedgerow import FileError, inputs
from hedgerow.world import load_world
from hedgerow.world.store.files import WorldFile, describe_world

CORNERS = [f"{end}_{axis}_m" for end in ("low", "high") for axis in "xyz"]
COLUMNS = ["table", "x", "y", "n", "crc32", *CORNERS]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "site.world"
    site(tile_m=512.0).save(path)
    return files_of(path)


@pytest.fixture
def path(tmp_path, saved):
    for name, content in saved.items():
        file = tmp_path / "site.world" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "site.world"


def rewrite_tiles(path, table):
    """Write another list of tiles, under its right checksum."""
    file = path / "tiles.parquet"
    old = zlib.crc32(file.read_bytes())
    pq.write_table(table, file)
    edit(path, f"tiles_crc32 = {old}", f"tiles_crc32 = {zlib.crc32(file.read_bytes())}")


def tiles_of(path):
    return pq.read_table(path / "tiles.parquet")


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


def with_value(table, name, row, value):
    column = table[name].to_numpy().copy()
    column[row] = value
    return with_column(table, name, pa.array(column))


def refused_by_all(path, message):
    """Neither opened whole, nor by tiles, nor described."""
    refused(path, message)
    refused(path, message, resident_tiles=3)
    with pytest.raises(FileError, match=message) as caught:
        describe_world(path)
    assert len(str(caught.value)) - len(str(path)) < 300
    assert str(caught.value).isprintable()


# The list of tiles


@pytest.mark.parametrize("name", COLUMNS)
def test_list_without_a_column(path, name):
    rewrite_tiles(path, tiles_of(path).drop_columns([name]))
    refused_by_all(path, rf"tiles.parquet: column '{name}': is missing")


@pytest.mark.parametrize("name", COLUMNS)
def test_list_with_a_column_of_another_type(path, name):
    tiles = tiles_of(path)
    for kind in (pa.string(), pa.float32()):
        rewrite_tiles(path, with_column(tiles, name, tiles[name].cast(kind, safe=False)))
        refused_by_all(path, rf"tiles.parquet: column '{name}': is {kind}")
    rewrite_tiles(path, with_column(tiles, name, pa.array([{"a": 1}] * len(tiles))))
    refused_by_all(path, rf"tiles.parquet: column '{name}': is struct")


@pytest.mark.parametrize("name", COLUMNS)
def test_list_with_a_missing_value(path, name):
    tiles = tiles_of(path)
    values = tiles[name].to_pylist()
    values[1] = None
    rewrite_tiles(path, with_column(tiles, name, pa.array(values, tiles[name].type)))
    refused_by_all(path, rf"tiles.parquet: column '{name}': .*1 missing")


def test_list_with_a_column_twice(path):
    tiles = tiles_of(path)
    rewrite_tiles(path, tiles.append_column("x", tiles["x"]))
    refused_by_all(path, "column 'x': is there more than once")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("table", 5, r"table: row 1 is 5; expected whole numbers from 0 to 4"),
        ("table", -1, r"table: row 1 is -1"),
        ("x", 2**60, r"x: row 1 is"),
        ("y", -(2**63), r"y: row 1 is"),
        ("n", 0, r"n: row 1 is 0; expected whole numbers from 1"),
        ("n", -7, r"n: row 1 is -7"),
        ("n", 2**62, r"n: row 1 is"),
        ("crc32", -1, r"crc32: row 1 is -1"),
        ("low_x_m", np.nan, r"low_m, high_m: row 1 .* finite corners"),
        ("high_y_m", np.inf, r"low_m, high_m: row 1 .* finite corners"),
        ("low_z_m", 1e9, r"low_m, high_m: row 1 .* the low one below the high one"),
        ("high_x_m", -1e300, r"low_m, high_m: row 1"),
    ],
)
def test_list_with_an_impossible_value(path, name, value, message):
    rewrite_tiles(path, with_value(tiles_of(path), name, 1, value))
    refused_by_all(path, rf"tiles.parquet: {message}")


def test_list_with_a_tile_twice_or_out_of_order(path):
    tiles = tiles_of(path)
    rewrite_tiles(path, pa.concat_tables([tiles.slice(0, 2), tiles.slice(1)]))
    refused_by_all(path, r"table, x, y: row 2 .* expected each tile once")
    rewrite_tiles(path, tiles.take(np.arange(len(tiles))[::-1]))
    refused_by_all(path, r"table, x, y: row 1 .* expected each tile once, by table, x and y")


def test_boxes_that_hide_elements(path):
    tiles = tiles_of(path)
    middle = (tiles["low_x_m"].to_numpy()[0] + tiles["high_x_m"].to_numpy()[0]) / 2
    rewrite_tiles(path, with_value(tiles, "high_x_m", 0, middle))
    refused(path, "elements reach out of the box that tiles.parquet gives for them")
    with pytest.raises(FileError, match="elements reach out of the box"):
        WorldFile(path).read_row(0)


# The tables


def first_tile(path, table):
    file = WorldFile(path)
    row = int(np.flatnonzero(file.tiles.table == table)[0])
    return row, path / f"{file.tiles.name(row)}/{file.tiles.x[row]}_{file.tiles.y[row]}.parquet"


@pytest.mark.parametrize("table", [0, 1, 2])
def test_tables_without_any_one_column(path, table):
    row, tile = first_tile(path, table)
    good = pq.read_table(tile)
    for name in good.column_names:
        pq.write_table(good.drop_columns([name]), tile)
        rewrite_checksums(path, row, tile)
        refused(path, rf"{tile.name}: column '{name}': is missing")


@pytest.mark.parametrize("table", [0, 1, 2])
def test_tables_with_a_column_of_other_things(path, table):
    row, tile = first_tile(path, table)
    good = pq.read_table(tile)
    for name in good.column_names:
        for values in ([None] * len(good), ["x"] * len(good), [{"a": 1.0}] * len(good), [[[1]]] * len(good)):
            pq.write_table(with_column(good, name, pa.array(values)), tile)
            rewrite_checksums(path, row, tile)
            with pytest.raises(FileError, match=rf"{tile.name}: column '{name}': is (null|string|struct|list)"):
                WorldFile(path).read_row(row)


@pytest.mark.parametrize(
    ("table", "name", "value", "message"),
    [
        (0, "corner1_z_m", np.inf, r"triangles.corners_m: row 0"),
        (0, "corner0_x_m", 1e30, r"triangles.corners_m: row 0"),
        (0, "permeability", 1.5, r"triangles.permeability: row 0"),
        (0, "intensity", -1, r"triangles.intensity: row 0"),
        (1, "mean_x_m", np.nan, r"gaussians.mean_m: row 0"),
        (1, "covariance_xx_m2", np.nan, r"gaussians.covariance_m2: row 0"),
        (1, "covariance_yy_m2", -1, r"gaussians.covariance_m2: row 0 is no covariance"),
        (1, "covariance_xz_m2", 1e3, r"gaussians.covariance_m2: row 0 is no covariance"),
        (1, "covariance_zz_m2", 1e300, r"gaussians.covariance_m2: row 0"),
        (1, "stop", np.nan, r"gaussians.stop: row 0"),
        (2, "normal_x", 7, r"points.normal: row 0"),
        (2, "position_y_m", -np.inf, r"points.position_m: row 0"),
    ],
)
def test_tables_with_an_impossible_value(path, table, name, value, message):
    row, tile = first_tile(path, table)
    pq.write_table(with_value(pq.read_table(tile), name, 0, value), tile)
    rewrite_checksums(path, row, tile)
    refused(path, rf"{tile.name}: {message}")
    with pytest.raises(FileError, match=message):
        WorldFile(path).read_row(row)


@pytest.mark.parametrize("change", [lambda table: table.slice(1), lambda table: pa.concat_tables([table, table])])
def test_tables_with_another_number_of_rows(path, change):
    row, tile = first_tile(path, 1)
    pq.write_table(change(pq.read_table(tile)), tile)
    rewrite_checksums(path, row, tile)
    refused(path, rf"{tile.name}: has \d+ rows, but the list of tiles says \d+")


def test_a_table_that_is_no_parquet_file(path):
    row, tile = first_tile(path, 1)
    for content in (b"", b"PAR1", b"PAR1" * 9, tile.read_bytes()[:-9] + b"\xff\xff\xff\xff\x7fPAR1"):
        tile.write_bytes(content)
        rewrite_checksums(path, row, tile)
        refused(path, rf"{tile.name}: (the file is empty|not a Parquet file)")


# What info sees


@pytest.mark.parametrize("table", [0, 1, 2])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_world_with_a_cut_table_is_not_described(path, table, share):
    _, tile = first_tile(path, table)
    tile.write_bytes(tile.read_bytes()[: int(tile.stat().st_size * share)])
    with pytest.raises(FileError, match=rf"{tile.name}: damaged, or changed since the world was saved"):
        inputs.describe(path)


def test_a_world_with_one_wrong_bit_is_not_described(path):
    _, tile = first_tile(path, 2)
    content = bytearray(tile.read_bytes())
    content[len(content) // 3] ^= 4
    tile.write_bytes(content)
    with pytest.raises(FileError, match=rf"{tile.name}: damaged"):
        inputs.describe(path)


# The settings


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 3", "format = 0", "format: expected a whole number, found 0"),
        ("format = 3", "format = true", "format: expected a whole number"),
        ("format = 3", "format = " + "9" * 900, "is newer than"),
        ("format = 3", "format = " + "9" * 5000, "world.toml, line 1: a number has more than 1,000 digits"),
        ('hedgerow = "', 'hedgerow = 7 # "', "hedgerow: expected text, found 7"),
        ("tile_m = 512.0", "tile_m = 1e-300", "tile_m: expected 0.001 to"),
        ("tile_m = 512.0", "tile_m = inf", "tile_m: expected"),
        ("tile_m = 512.0", "tile_m = " + "9" * 400, "tile_m: expected a number, found 9999"),
        ("max_range_m = 60.0", "max_range_m = 1e300", "range limits: expected"),
        ("max_range_m = 60.0", "max_range_m = nan", "range limits"),
        ("map_origin_m = [", "map_origin_m = [true, true, true] # ", "map_origin_m: expected three finite numbers"),
        ("map_origin_m = [", "map_origin_m = [1, 2, nan] # ", "map_origin_m: expected three finite numbers"),
        ("map_origin_m = [", f"map_origin_m = [1, 2, {'9' * 400}] # ", "map_origin_m: expected three finite numbers"),
        ("\norigin_m = [", "\norigin_m = [1e300, 2, 3] # ", "origin_m: expected three finite numbers within"),
        ("\norigin_m = [", "\norigin_m = [5e5, 0.0, 0.0] # ", "origin_m: lies outside of the elements"),
        ("n_beams = 1234", "n_beams = -1", "provenance.n_beams: expected 0 to"),
        ("n_beams = 1234", f"n_beams = {2**80}", "provenance.n_beams: expected 0 to"),
        ("\nbytes = ", "\nbytes = -", "size.bytes: expected 0 to"),
        ("n = 400", "n = " + "4" * 900, "says 444.* gaussians, but"),
        ("tau = 2.5", "tau = inf", "gaussians.tau: expected a finite number above 0"),
        ("tau = 2.5", "tau = 1e300", r"gaussians.tau: .* found 1e\+300; it may be 1e\+08 at most"),
        ('name = "', f'{"x" * 2000} = 1979-05-27\nname = "', "does not fit into TOML"),
        ("[parameters]", "[parameters]\nnested = " + "[" * 3000 + "]" * 3000, "too deep|inside each other"),
        ("[parameters]", "[parameters]\nnested = " + "[" * 90 + "]" * 90, "inside each other"),
        ("[parameters]", "[parameters]\n" + ".".join("a" * 90) + " = 1", "has more than 32 parts"),
        ("[parameters]", f"[parameters]\nlarge = {2**70}", "does not fit into 64 bits"),
        ("[parameters]", f"{'colour' * 100} = 1\n[parameters]", "unknown"),
    ],
)
def test_edited_settings(path, old, new, message):
    text = (path / "world.toml").read_text()
    list_of_keys = text.replace(
        "map_origin_m = [\n    1000000.0,\n    2000000.0,\n    0.5,\n]", "map_origin_m = [1, 2, 3]"
    )
    origin = tomllib.loads(text)["origin_m"]
    flat = list_of_keys.replace(
        "\norigin_m = [\n    " + ",\n    ".join(map(repr, origin)) + ",\n]", f"\norigin_m = {origin}"
    )
    (path / "world.toml").write_text(flat)
    WorldFile(path)
    edit(path, old, new)
    refused_by_all(path, message)


@pytest.mark.parametrize("value", [None, 0, -1, 1.5, "x" * 900, True, [], [[]], {}, {"a": 1}, [1, 2, 3], np.nan, 2**63])
def test_every_setting_of_another_type_is_refused_or_harmless(path, value):
    good = tomllib.loads((path / "world.toml").read_text())
    n_refused = 0
    for place in _places(good):
        content = tomllib.loads((path / "world.toml").read_text()) if place else {}
        *outer, last = place
        section = content
        for name in outer:
            section = section[name]
        section[last] = value
        if value is None:
            del section[last]
        (path / "world.toml").write_text(tomli_w.dumps(content))
        try:
            describe_world(path)
            load_world(path)
        except FileError as error:
            n_refused += 1
            assert str(path) in str(error)
            assert str(error).isprintable()
            assert len(str(error)) - len(str(path)) < 300
        (path / "world.toml").write_text(tomli_w.dumps(good))
    assert n_refused > 20


def _places(content, outer=()):
    for name, value in content.items():
        yield (*outer, name)
        if isinstance(value, dict) and name != "parameters":
            yield from _places(value, (*outer, name))


# Same input, same bytes


def test_the_same_world_gives_the_same_bytes(path, tmp_path, saved):
    assert files_of(path) == saved
    site(tile_m=512.0).save(tmp_path / "again.world")
    assert files_of(tmp_path / "again.world") == saved
    load_world(path).save(tmp_path / "copy.world")
    assert files_of(tmp_path / "copy.world") == saved
