# SPDX-License-Identifier: Apache-2.0
"""What is damaged in a saved world is refused in one sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from saved import edit, refused, rewrite_checksums, site
from small_worlds import gaussians, world

from hedgerow import FileError
from hedgerow.world import load_world
from hedgerow.world.store.files import WorldFile


@pytest.fixture
def path(tmp_path):
    site().save(tmp_path / "site.world")
    return tmp_path / "site.world"


def test_missing_folder(tmp_path):
    refused(tmp_path / "x.world", "no such folder")


def test_empty_folder_and_wrong_kind_of_folder(tmp_path):
    refused(tmp_path, r"no world, world.toml is missing")
    (tmp_path / "part-00000.parquet").write_bytes(b"PAR1")
    refused(tmp_path, r"no world, world.toml is missing")


def test_file_instead_of_folder(tmp_path):
    (tmp_path / "x.world").write_text("hello")
    refused(tmp_path / "x.world", r"no world")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("name", ["tiles.parquet", "gaussians", "triangles", "points"])
def test_truncated_table(path, name, share):
    file = path / name if name.endswith("parquet") else sorted((path / name).iterdir())[1]
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(FileError, match=r"damaged, or changed since") as caught:
        load_world(path)
    assert str(file) in str(caught.value)


def test_one_wrong_bit(path):
    file = sorted((path / "gaussians").iterdir())[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    refused(path, r"gaussians.*damaged, or changed since")


@pytest.mark.parametrize("options", [{}, {"resident_tiles": 3}])
def test_missing_tile_file(path, options):
    file = sorted((path / "gaussians").iterdir())[2]
    file.unlink()
    refused(path, rf"gaussians.{file.name}: missing; the world is incomplete", **options)


def test_missing_list_of_tiles(path):
    (path / "tiles.parquet").unlink()
    refused(path, r"tiles.parquet: missing")


def test_tile_of_another_place(path):
    a, b, *_ = sorted((path / "gaussians").iterdir())
    b.write_bytes(a.read_bytes())
    refused(path, r"damaged, or changed since")


def test_tiles_of_another_world(path, tmp_path):
    world(gaussians(30)).save(tmp_path / "other.world")
    (path / "tiles.parquet").write_bytes((tmp_path / "other.world" / "tiles.parquet").read_bytes())
    refused(path, r"tiles.parquet: damaged, or changed since")


def test_newer_format(path):
    edit(path, "format = 3", "format = 4")
    edit(path, 'hedgerow = "', 'hedgerow = "9.')
    refused(path, r"world format 4, written by Hedgerow 9\..* is newer .* pip install -U hedgerow")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 3", "format = ", r"world.toml: not valid TOML: .*line 1"),
        ("format = 3", 'format = "one"', "format: expected a whole number"),
        ("format = 3\n", "", "format: expected a whole number, found None"),
        ('kind = "test"', 'kind = "No Name"', "kind: expected lower-case"),
        ('kind = "test"', "kind = 7", "kind: expected text, found 7"),
        ('kind = "test"\n', "", "kind: missing"),
        ('kind = "test"', 'kind = "test"\ncolour = "red"', "colour: unknown"),
        ("tau = 2.5", "tau = -2.5", r"gaussians.tau: expected a finite number above 0"),
        ("tau = 2.5", 'tau = "2.5"', r"tables.gaussians.tau: expected a number, found '2.5'"),
        ('law = "extinction"', 'law = "magic"', r"gaussians.law: expected permeability or extinction"),
        ("sigma0_m = ", "sigma0_m = -", "sigma0_m: expected a finite number of 0 or more"),
        ("sigma0_m", "sigma_0", r"tables.triangles.noise.sigma_0: unknown"),
        ("n = 400", "n = 401", r"says 401 gaussians, but tiles.parquet lists 400"),
        ("[tables.gaussians]", "[tables.cubes]", r"tables.cubes: unknown table; expected triangles, gaussians, points"),
        ("tile_m = 32.0", "tile_m = 31.0", "elements lie outside the tile; was tile_m in world.toml changed"),
        ("max_range_m = 60.0", "max_range_m = -60.0", "range limits"),
        ("origin_m = [", 'origin_m = ["a", ', "origin_m: expected three finite numbers"),
        ("n_beams = 1234", "n_beams = true", r"provenance.n_beams: expected a whole number, found True"),
        ("tiles_crc32 = ", 'tiles_crc32 = "" #', r"tiles.parquet: damaged, or changed"),
        ("[size]", "[sizes]", "size: expected a section"),
    ],
)
def test_edited_toml(path, old, new, message):
    edit(path, old, new)
    refused(path, message)


def test_toml_that_is_no_text(path):
    (path / "world.toml").write_bytes(b"\xff\xfe\x00")
    refused(path, r"world.toml: cannot be read")


def test_wrong_columns_and_values_in_a_tile_are_named(path):
    """Whoever writes tiles with other programs, checksums included, still gets a sentence."""
    row, tile = some_gaussians(path)
    table = pq.read_table(tile)
    n = len(table)
    lists = pa.list_(pa.uint16())
    rows = {
        "column 'stop': is missing": table.drop_columns(["stop"]),
        "column 'mean_x_m': is float": with_column(table, "mean_x_m", table["mean_x_m"].cast(pa.float32())),
        r"gaussians.mean_m: row 0 .* finite": with_column(table, "mean_x_m", pa.array(np.full(n, np.nan))),
        "column 'labels': is missing": table.drop_columns(["labels"]),
        "column 'label_counts': is list<.*float>": with_column(
            table, "label_counts", table["label_counts"].cast(pa.list_(pa.float32()))
        ),
        "column 'labels': is .*, 1 missing": with_column(table, "labels", pa.array([None] + [[1]] * (n - 1), lists)),
        "column 'labels': has lists with 1 missing values": with_column(
            table, "labels", pa.array([[3, None]] + [[1]] * (n - 1), lists)
        ),
        "label_counts: row 2 has 2 entries, but labels has 1": with_lists(
            table, [[1]] * n, [[1]] * 2 + [[1, 2]] + [[1]] * (n - 3)
        ),
        r"labels: row 1 has labels \[5, 4\] .*; expected ascending": with_lists(
            table, [[1], [5, 4]] + [[]] * (n - 2), [[1], [1, 1]] + [[]] * (n - 2)
        ),
        r"labels: row 0 has labels \[0\]": with_lists(table, [[0]] + [[]] * (n - 1), [[3]] + [[]] * (n - 1)),
        r"labels: row 0 has .* counts \[-3\]": with_lists(table, [[7]] + [[]] * (n - 1), [[-3]] + [[]] * (n - 1)),
    }
    for message, wrong in rows.items():
        pq.write_table(wrong, tile)
        rewrite_checksums(path, row, tile)
        refused(path, message)


def some_gaussians(path):
    file = WorldFile(path)
    row = int(np.flatnonzero(file.tiles.table == 1)[0])
    return row, path / f"gaussians/{file.tiles.x[row]}_{file.tiles.y[row]}.parquet"


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


def with_lists(table, labels, counts):
    table = with_column(table, "labels", pa.array(labels, pa.list_(pa.uint16())))
    return with_column(table, "label_counts", pa.array(counts, pa.list_(pa.int64())))
