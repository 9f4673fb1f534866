# SPDX-License-Identifier: Apache-2.0
"""Worlds on the disk: what is read is what was written."""

import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from saved import FORMER_TOML, edit, files_of, refused, rewrite_checksums, site
from small_worlds import gaussians, points, rays, same, triangles, world

from hedgerow import FileError, InputError
from hedgerow.base import atomic
from hedgerow.world import LearnedWorld, SurfaceNoise, load_world
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.store.files import WorldFile, save_tiles
from hedgerow.world.store.header import plain


@pytest.fixture
def path(tmp_path):
    site().save(tmp_path / "site.world")
    return tmp_path / "site.world"


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
    again = read.fire(beams, seed=3)
    assert again.metadata["world"].pop("path") == str(path)
    assert log.equal(again)


def test_writing_what_was_read_gives_the_same_files(path, tmp_path):
    load_world(path).save(tmp_path / "again.world")
    assert files_of(path) == files_of(tmp_path / "again.world")
    assert len(files_of(path)) > 12  # several tiles of each table


def test_a_world_written_tile_by_tile_has_the_same_files(tmp_path):
    made = world(gaussians(600, extent=80.0))
    made.save(tmp_path / "whole.world")
    file = WorldFile(tmp_path / "whole.world")
    size = save_tiles(tmp_path / "tiles.world", made.header, (file.read_row(row) for row in range(len(file.tiles))))
    assert len(file.tiles) > 9
    assert (size.tables, size.parameters) == (made.size().tables, made.size().parameters)
    whole, tiles = (files_of(tmp_path / f"{name}.world") for name in ("whole", "tiles"))
    said = [tomllib.loads(each.pop("world.toml").decode()) for each in (whole, tiles)]
    assert whole == tiles
    assert [each["size"].pop("bytes") > 0 for each in said] == [True, True]  # labels of a tile have a start each
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ([gaussians(50)], r"gaussians of \d\d tiles"),
        ([gaussians(5, extent=4.0, centre=(x, 10, 0)) for x in (40, 10)], r"tile \(0, 0\) comes after \(1, 0\)"),
        ([make(5, extent=4.0, centre=(10, 10, 0)) for make in (gaussians, triangles)], "found triangles of 1 tiles"),
        ([gaussians(5, extent=4.0, centre=(x, 10, 0), tau=tau) for x, tau in ((10, 2.0), (40, 3.0))], "tau"),
    ],
)
def test_parts_that_are_no_tiles_in_order_are_refused_and_leave_nothing(tmp_path, parts, wrong):
    with pytest.raises(InputError, match=wrong):
        save_tiles(tmp_path / "x.world", world(gaussians(5)).header, parts)
    assert list(tmp_path.iterdir()) == []


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
    table = load_world(tmp_path / "x.world").tables["triangles"]
    assert isinstance(table, Triangles)
    assert table.noise == SurfaceNoise(0.1, 0.2, 0.3)


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
    assert isinstance(table, Gaussians)
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
    assert tomllib.loads(tomli_w.dumps(plain("x", content))) == content


def test_numbers_survive_bit_by_bit(path):
    numbers = [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 0.1, 1 / 3, -1.7976931348623157e308, 2**63 - 1, -(2**63)]
    learned = world(gaussians(3), parameters={"odd": numbers, "of_numpy": np.float64(0.1), "nothing": None})
    learned.save(path)
    again = load_world(path).header.parameters
    # repr tells -0.0 from 0.0, whole numbers from floats, and every float from its neighbours; nan too
    assert [repr(each) for each in again.pop("odd")] == [repr(each) for each in numbers]
    assert again == {"of_numpy": 0.1}


def test_a_world_toml_of_the_former_writer_still_loads(path):
    now = WorldFile(path)
    crc32 = tomllib.loads((path / "world.toml").read_text())["tiles_crc32"]
    (path / "world.toml").write_text(FORMER_TOML.replace("TILES_CRC32", str(crc32)))
    assert WorldFile(path).header == now.header
    former = WorldFile(path).size
    assert (former.tables, former.parameters) == (now.size.tables, now.size.parameters)
    assert former.bytes < now.size.bytes  # it had no objects
    assert all(same(WorldFile(path).settings(name), now.settings(name)) for name in now.size.tables)


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


def test_worlds_of_format_1_with_one_label_each_still_load(tmp_path):
    made = world(triangles(30), gaussians(40))
    path = tmp_path / "old.world"
    made.save(path)
    file = WorldFile(path)
    for row in range(len(file.tiles)):
        name = file.tiles.name(row)
        tile = path / f"{name}/{file.tiles.x[row]}_{file.tiles.y[row]}.parquet"
        table = pq.read_table(tile)
        lists = table["labels"].to_pylist()
        label = pa.array([each[0] for each in lists if each is not None], pa.uint16())
        pq.write_table(table.drop_columns(["labels", "label_counts"]).append_column("label", label), tile)
        rewrite_checksums(path, row, tile)
    edit(path, "format = 3", "format = 1")
    read = load_world(path)
    assert all(same(read.tables[name], made.tables[name]) for name in made.tables)
    edit(path, "format = 1", "format = 2")
    refused(path, "column 'labels': is missing")


def test_limits_of_memory_are_checked(path):
    with pytest.raises(InputError, match="give one of the two"):
        load_world(path, resident_tiles=3, max_bytes=100)
    with pytest.raises(InputError, match="expected 1 or more, found 0"):
        load_world(path, resident_tiles=0)
