# SPDX-License-Identifier: Apache-2.0
"""Damaged, foreign and newer files get one clear sentence; a failed write leaves nothing behind."""

import errno
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.errors import FileError
from hedgerow.io import open_log, read_log, write_log
from hedgerow.io.parquet import writer as parquet_writer
from hedgerow.io.parquet.writer import LogWriter


@pytest.fixture
def path(tmp_path, log_maker):
    write_log(log_maker(n_sweeps=5, per_sweep=500), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def refused(path, message):
    with pytest.raises(FileError, match=message) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def rewrite(path, **changes):
    """Write the same rows with columns and metadata changed, as another program might."""
    table = pq.read_table(path)
    for name, column in changes.items():
        if name == "header":
            header = json.loads(table.schema.metadata[b"hedgerow"]) | column
            table = table.replace_schema_metadata({b"hedgerow": json.dumps(header)})
        elif column is None:
            table = table.drop_columns([name])
        else:
            table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, path)


def test_missing_file(tmp_path):
    refused(tmp_path / "x.parquet", "no such file or folder")


def test_empty_file(path):
    path.write_bytes(b"")
    refused(path, "the file is empty")


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_truncated_file(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    refused(path, "not a Parquet file, or damaged")


def test_text_file(path):
    path.write_text("sweep,pulse\n" * 100)
    refused(path, "not a Parquet file, or damaged")


def test_damaged_data(path):
    column = pq.read_metadata(path).row_group(2).column(4)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset : column.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    refused(path, "not a Parquet file, or damaged")


def test_parquet_of_another_program(path):
    pq.write_table(pa.table({"x": [1.0]}), path)
    refused(path, "no Hedgerow log")


def test_newer_format(path):
    rewrite(path, header={"format": 2, "hedgerow": "9.9.9"})
    refused(path, r"log format 2, written by Hedgerow 9.9.9, is newer .* pip install -U hedgerow")


@pytest.mark.parametrize(
    "header",
    [{"format": "one"}, {"map_origin_m": [1, 2]}, {"metadata": None}, {"max_range_m": "far"}, {"surprise": 1}],
)
def test_damaged_metadata(path, header):
    rewrite(path, header=header)
    refused(path, "the 'hedgerow' metadata is damaged")


def test_metadata_that_is_not_json(path):
    table = pq.read_table(path).replace_schema_metadata({b"hedgerow": b"{"})
    pq.write_table(table, path)
    refused(path, "the 'hedgerow' metadata is damaged")


@pytest.mark.parametrize("name", ["sweep", "range_m", "direction_y"])
def test_missing_column(path, name):
    rewrite(path, **{name: None})
    refused(path, f"column '{name}' is missing")


def test_column_of_another_type(path):
    rewrite(path, ring=pa.array(np.zeros(2500, np.int64)))
    refused(path, "column 'ring' is int64, expected uint16")


@pytest.mark.parametrize(
    ("name", "hit", "value", "message"),
    [
        ("origin_y", True, np.nan, r"origin_m: row .*finite"),
        ("direction_x", True, 3.0, r"direction: row .*unit length"),
        ("range_m", True, np.nan, r"range_m: row .*above 0 m"),
        ("range_m", True, 1e6, r"range_m: 1 ranges beyond max_range_m"),
        ("range_m", True, np.inf, "return_number: found return 1 .* at inf m out of turn"),
        ("range_m", False, 10.0, "return_number: found return 0 .* at 10.0 m out of turn"),
        ("return_number", True, 5, "return_number: found return 5"),
    ],
)
def test_impossible_values(path, name, hit, value, message):
    table = pq.read_table(path)
    column = table.column(name).to_numpy().copy()
    column[np.argmax(np.isfinite(table.column("range_m").to_numpy()) == hit)] = value
    rewrite(path, **{name: pa.array(column)})
    refused(path, message)


def test_missing_values(path):
    column = pq.read_table(path).column("range_m").to_pylist()
    column[3] = None
    rewrite(path, range_m=pa.array(column, pa.float32()))
    refused(path, "column 'range_m': has missing values")


def test_rows_sorted_by_range_no_longer_hold_the_returns_in_turn(tmp_path, log_maker):
    write_log(log_maker(n_returns=3), tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet").sort_by([("range_m", "descending")])
    pq.write_table(table, tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", "return_number: found return .* out of turn")


# Folders


@pytest.fixture
def folder(tmp_path, log_maker):
    with LogWriter(tmp_path / "x.log", rows_per_part=40) as writer:
        writer.append(log_maker(n_sweeps=4))
    return tmp_path / "x.log"


@pytest.mark.parametrize("number", [0, 1, 3])
def test_folder_with_a_missing_part(folder, number):
    (folder / f"part-{number:05d}.parquet").unlink()
    refused(folder, f"part-{number:05d}.parquet is missing")


def test_empty_folder(tmp_path):
    (tmp_path / "x.log").mkdir()
    refused(tmp_path / "x.log", "the folder holds no log that is known")


def test_part_of_another_log(folder, tmp_path):
    rewrite(folder / "part-00001.parquet", header={"sensor": "other"})
    refused(folder, "part-00001.parquet: belongs to another log")


def test_damaged_part_is_named(folder):
    (folder / "part-00002.parquet").write_bytes(b"")
    refused(folder, "part-00002.parquet: the file is empty")


def test_one_part_alone_can_be_read(folder, log_maker):
    log = read_log(folder / "part-00001.parquet")
    assert log.equal(log_maker(n_sweeps=4).select(sweep=1))


def test_part_deleted_after_opening(folder):
    file = open_log(folder)
    (folder / "part-00001.parquet").unlink()
    with pytest.raises(FileError, match=r"part-00001.parquet: no such file"):
        file.read()


# Failing to write


@pytest.mark.parametrize("name", ["x.parquet", "x.log"])
@pytest.mark.parametrize("fails_at", ["write", "close"])
@pytest.mark.parametrize("old", [False, True])
def test_full_disk_leaves_what_was_there_before(tmp_path, log_maker, monkeypatch, name, fails_at, old):
    before = log_maker(n_sweeps=1)
    if old:
        write_log(before, tmp_path / name)

    class FullDisk(parquet_writer.pq.ParquetWriter):
        def fail(self, *arguments, **options):
            raise OSError(errno.ENOSPC, "No space left on device")

        if fails_at == "close":
            close = fail
        else:
            write_table = fail

    monkeypatch.setattr(parquet_writer.pq, "ParquetWriter", FullDisk)
    with pytest.raises(FileError, match=rf"{name}: cannot write \(No space left on device\)"):
        write_log(log_maker(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ([name] if old else [])
    if old:
        assert read_log(tmp_path / name).equal(before)


@pytest.mark.parametrize("name", ["x.parquet", "x.log"])
def test_interrupt_leaves_nothing(tmp_path, log_maker, name):
    with pytest.raises(KeyboardInterrupt), LogWriter(tmp_path / name, rows_per_part=40) as writer:
        writer.append(log_maker())
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
