# SPDX-License-Identifier: Apache-2.0
"""Worlds on the disk: what is read is what was written; what is damaged is refused in one sentence."""

import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sites import gaussians, mixtures, points, rays, same, triangles, world

from hedgerow import FileError, InputError
from hedgerow.io import atomic
from hedgerow.world import LearnedWorld, SurfaceNoise, load_world
from hedgerow.world.store import WorldFile
from hedgerow.world.toml import dumps, plain


def site(**settings):
    tables = (
        triangles(300, label=mixtures(300)),
        gaussians(400, label=mixtures(400), law="extinction", tau=2.5),
        points(500, pick="first", reach_m=0.02),
    )
    parameters = {"voxel_m": 0.3, "min_points": 5, "deep": {"x": [1.5, 2], "name": 'a "b"\n\\'}, "flag": True}
    return world(*tables, parameters=parameters, map_origin_m=(1e6, 2e6, 0.5), **settings)


@pytest.fixture
def path(tmp_path):
    site().save(tmp_path / "site.world")
    return tmp_path / "site.world"


def refused(path, message, **options):
    with pytest.raises(FileError, match=message) as caught:
        load_world(path, **options)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def edit(path, old, new):
    toml = path / "world.toml"
    text = toml.read_text()
    assert text.count(old) >= 1
    toml.write_text(text.replace(old, new, 1))


def files_of(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


# round trips


def test_read_world_equals_written_world(path):
    made, read = site(), load_world(path)
    assert isinstance(read, LearnedWorld)
    assert read.header == made.header
    assert read.tables.keys() == made.tables.keys()
    assert all(same(read.tables[name], made.tables[name]) for name in made.tables)
    assert read.size() == made.size()
    beams = rays(3000)
    log = made.fire(beams, seed=3)
    assert log.returns.hit.mean() > 0.1
    assert log.equal(read.fire(beams, seed=3))


def test_writing_what_was_read_gives_the_same_files(path, tmp_path):
    load_world(path).save(tmp_path / "again.world")
    assert files_of(path) == files_of(tmp_path / "again.world")
    assert len(files_of(path)) > 12  # several tiles of each table


@pytest.mark.parametrize("tables", [(), (gaussians(0),), (triangles(0), points(0)), (gaussians(3),)])
def test_small_and_empty_worlds_round_trip(tmp_path, tables):
    made = world(*tables, max_range_m=np.inf)
    made.save(tmp_path / "x.world")
    read = load_world(tmp_path / "x.world")
    assert read.header == made.header
    assert read.tables.keys() == made.tables.keys()
    assert all(same(read.tables[name], made.tables[name]) for name in made.tables)


def test_noise_and_unknown_intensities_round_trip(tmp_path):
    made = world(triangles(9, intensity=np.full(9, np.nan, np.float32), noise=SurfaceNoise(0.1, 0.2, 0.3, 0.4)))
    made.save(tmp_path / "x.world")
    assert same(load_world(tmp_path / "x.world").tables["triangles"], made.tables["triangles"])


def test_worlds_from_before_noise_grew_with_the_range_load(tmp_path):
    made = world(triangles(9, noise=SurfaceNoise(0.1, 0.2, 0.3)))
    made.save(tmp_path / "x.world")
    edit(tmp_path / "x.world", "sigma_per_m = 0.0\n", "")
    assert load_world(tmp_path / "x.world").tables["triangles"].noise == SurfaceNoise(0.1, 0.2, 0.3)


def test_saving_replaces_an_old_world(path):
    small = world(gaussians(3))
    small.save(path)
    assert load_world(path).size() == small.size()
    assert not (path / "triangles").exists()


@pytest.mark.parametrize("name", ["notes.txt", "world.tom"])
def test_saving_over_a_folder_of_other_things_is_refused(tmp_path, name):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / name).write_text("mine")
    with pytest.raises(FileError, match="holds other things"):
        site().save(tmp_path / "photos")
    assert (tmp_path / "photos" / name).read_text() == "mine"


def test_folders_named_like_tables_but_without_a_world_are_not_replaced(tmp_path):
    (tmp_path / "x" / "points").mkdir(parents=True)
    (tmp_path / "x" / "points" / "mine.las").write_text("mine")
    with pytest.raises(FileError, match=r"no world.toml"):
        site().save(tmp_path / "x")


def test_a_failed_write_leaves_the_old_world(path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    before = files_of(path)
    monkeypatch.setattr(atomic, "_swap", full_disk)
    with pytest.raises(FileError, match="No space left"):
        world(gaussians(3)).save(path)
    assert files_of(path) == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_other_programs_can_read_the_tables(path):
    rows = pa.concat_tables(pq.read_table(file) for file in sorted((path / "gaussians").glob("*.parquet")))
    table = site().tables["gaussians"]
    assert rows.num_rows == len(table)
    np.testing.assert_allclose(np.sort(rows["mean_x_m"].to_numpy()), np.sort(table.mean_m[:, 0]), rtol=0)
    content = tomllib.loads((path / "world.toml").read_text())
    counts = dict.fromkeys(range(1, 9), 0)
    for row in rows.select(["labels", "label_counts"]).to_pylist():
        for label, count in zip(row["labels"], row["label_counts"], strict=True):
            counts[label] += count
    assert counts == {each: table.label.count[table.label.label == each].sum() for each in counts}
    assert content["kind"] == "test"
    assert content["provenance"]["log"] == "drive"
    assert content["tables"]["gaussians"]["tau"] == 2.5


_PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _PLAIN, max_size=5))
def test_toml_of_plain_values_reads_back_the_same(content):
    assert tomllib.loads(dumps(plain("x", content))) == content


# parts


def test_some_tiles_are_read_without_the_others(path):
    file = WorldFile(path)
    tile = int(file.tiles.x[0]), int(file.tiles.y[0])
    for row in range(len(file.tiles)):
        if (file.tiles.x[row], file.tiles.y[row]) != tile:
            (path / f"{file.tiles.name(row)}/{file.tiles.x[row]}_{file.tiles.y[row]}.parquet").write_bytes(b"")
    part, whole = file.read([tile]), site().tables
    for name, table in part.items():
        centre = whole[name].centre_m()
        inside = (np.floor(centre[:, :2] / 32) == tile).all(axis=1)
        assert 0 < inside.sum() < len(centre)
        assert same(table, whole[name][inside])


# damage


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
    edit(path, "format = 2", "format = 3")
    edit(path, 'hedgerow = "', 'hedgerow = "9.')
    refused(path, r"world format 3, written by Hedgerow 9\..* is newer .* pip install -U hedgerow")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 2", "format = ", r"world.toml: cannot be read .*line 1"),
        ("format = 2", 'format = "one"', "format: expected a whole number"),
        ("format = 2\n", "", "format: expected a whole number, found None"),
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
        "column 'stop' is missing": table.drop_columns(["stop"]),
        "column 'mean_x_m' is float": with_column(table, "mean_x_m", table["mean_x_m"].cast("float32")),
        r"gaussians.mean_m: row 0 .* finite": with_column(table, "mean_x_m", pa.array(np.full(n, np.nan))),
        "column 'labels' is missing": table.drop_columns(["labels"]),
        "column 'label_counts' is list<.*float>": with_column(
            table, "label_counts", table["label_counts"].cast(pa.list_(pa.float32()))
        ),
        "column 'labels' is .*, 1 missing": with_column(table, "labels", pa.array([None] + [[1]] * (n - 1), lists)),
        "column 'labels' has lists with 1 missing values": with_column(
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


def test_worlds_of_format_1_with_one_label_each_still_load(tmp_path):
    made = world(triangles(30), gaussians(40))
    path = tmp_path / "old.world"
    made.save(path)
    file = WorldFile(path)
    for row in range(len(file.tiles)):
        name = file.tiles.name(row)
        tile = path / f"{name}/{file.tiles.x[row]}_{file.tiles.y[row]}.parquet"
        table = pq.read_table(tile)
        label = pa.array([each[0] for each in table["labels"].to_pylist()], pa.uint16())
        pq.write_table(table.drop_columns(["labels", "label_counts"]).append_column("label", label), tile)
        rewrite_checksums(path, row, tile)
    edit(path, "format = 2", "format = 1")
    read = load_world(path)
    assert all(same(read.tables[name], made.tables[name]) for name in made.tables)
    edit(path, "format = 1", "format = 2")
    refused(path, "column 'labels' is missing")


def rewrite_checksums(path, row, tile):
    import zlib

    list_path = path / "tiles.parquet"
    tiles = pq.read_table(list_path)
    old = zlib.crc32(list_path.read_bytes())
    crc32 = tiles["crc32"].to_numpy().copy()
    crc32[row] = zlib.crc32(tile.read_bytes())
    pq.write_table(tiles.set_column(tiles.column_names.index("crc32"), "crc32", pa.array(crc32)), list_path)
    edit(path, f"tiles_crc32 = {old}", f"tiles_crc32 = {zlib.crc32(list_path.read_bytes())}")


def test_limits_of_memory_are_checked(path):
    with pytest.raises(InputError, match="give one of the two"):
        load_world(path, resident_tiles=3, max_bytes=100)
    with pytest.raises(InputError, match="expected 1 or more, found 0"):
        load_world(path, resident_tiles=0)
