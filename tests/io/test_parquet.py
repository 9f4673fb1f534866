# SPDX-License-Identifier: Apache-2.0
"""Parquet logs: what is written is read back bit for bit, by us and as plain rows by any other reader."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hedgerow.errors import InputError
from hedgerow.io import open_log, read_log, write_log
from hedgerow.io.parquet.reader import LogFile
from hedgerow.io.parquet.writer import LogWriter
from hedgerow.log import Log, Returns

ALL = ("intensity", "label", "element")


@pytest.mark.parametrize("name", ["x.parquet", "x.log", "folder"])
@pytest.mark.parametrize("n_returns", [1, 2, 5])
@pytest.mark.parametrize("arrays", [(), ("label",), ALL])
def test_round_trip(tmp_path, log_maker, name, n_returns, arrays):
    log = log_maker(n_returns=n_returns, arrays=arrays)
    write_log(log, tmp_path / name)
    assert read_log(tmp_path / name).equal(log)


@settings(max_examples=30)
@given(st.integers(0, 4), st.integers(1, 9), st.integers(1, 4), st.sets(st.sampled_from(ALL)), st.integers(0, 10**6))
def test_round_trip_of_any_log(tmp_path_factory, log_maker, n_sweeps, per_sweep, n_returns, arrays, seed):
    path = tmp_path_factory.mktemp("log") / "x.parquet"
    log = log_maker(n_sweeps, per_sweep, n_returns, tuple(arrays), seed)
    write_log(log, path)
    assert read_log(path).equal(log)


def test_no_limit_and_no_metadata_round_trip(tmp_path):
    log = Log.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0]], ranges=[1])
    write_log(log, tmp_path / "x.parquet")
    again = read_log(tmp_path / "x.parquet")
    assert again.max_range_m == np.inf
    assert again.metadata == {}
    assert again.equal(log)


@pytest.mark.parametrize("n_returns", [1, 2])
@pytest.mark.parametrize("name", ["x.parquet", "x.log"])
def test_empty_log_round_trips_with_its_settings(tmp_path, log_maker, n_returns, name):
    log = log_maker(n_sweeps=0, n_returns=n_returns, arrays=ALL)
    write_log(log, tmp_path / name)
    assert read_log(tmp_path / name).equal(log)
    assert open_log(tmp_path / name).n_beams == 0
    assert open_log(tmp_path / name).sweeps.tolist() == []


def test_returns_per_pulse_are_kept_even_if_no_pulse_has_that_many(tmp_path):
    ranges = [[1, np.inf, np.inf], [np.inf] * 3]
    log = Log.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0]] * 2, ranges=ranges)
    write_log(log, tmp_path / "x.parquet")
    assert read_log(tmp_path / "x.parquet").returns.range_m.shape == (2, 3)


def test_pulses_that_share_an_id_stay_apart(tmp_path, log_maker):
    log = log_maker(n_returns=2)[[0, 0, 1, 1, 1]]
    write_log(log, tmp_path / "x.parquet")
    assert read_log(tmp_path / "x.parquet").equal(log)


# What other readers see


def test_plain_reader_sees_one_row_per_return_or_missed_pulse(tmp_path):
    log = Log.from_arrays(
        origins=[[1, 2, 3], [4, 5, 6]],
        directions=[[1, 0, 0], [0, 0, 1]],
        ranges=[[10, 20], [np.inf, np.inf]],
        times=[100, 200],
        rings=[5, 6],
        sweeps=[0, 1],
        labels=[[7, 8], [0, 0]],
    )
    write_log(log, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert table.to_pydict() == {
        "sweep": [0, 0, 1],
        "pulse": [0, 0, 1],
        "time_ns": [100, 100, 200],
        "ring": [5, 5, 6],
        "origin_x": [1.0, 1.0, 4.0],
        "origin_y": [2.0, 2.0, 5.0],
        "origin_z": [3.0, 3.0, 6.0],
        "direction_x": [1.0, 1.0, 0.0],
        "direction_y": [0.0, 0.0, 0.0],
        "direction_z": [0.0, 0.0, 1.0],
        "return_number": [1, 2, 0],
        "range_m": [10.0, 20.0, np.inf],
        "label": [7, 8, 0],
    }
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "sweep": "int32",
        "pulse": "int64",
        "time_ns": "int64",
        "ring": "uint16",
        **{f"origin_{axis}": "double" for axis in "xyz"},
        **{f"direction_{axis}": "float" for axis in "xyz"},
        "return_number": "uint8",
        "range_m": "float",
        "label": "uint16",
    }


def test_folder_of_parts_is_one_table_to_other_readers(tmp_path, log_maker):
    log = log_maker(n_sweeps=5)
    with LogWriter(tmp_path / "x.log", rows_per_part=80) as writer:
        writer.append(log)
    names = sorted(path.name for path in (tmp_path / "x.log").iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    assert_array_equal(pq.read_table(tmp_path / "x.log").column("pulse").to_numpy(), log.beams.pulse)


def test_metadata_is_one_json_text(tmp_path, log_maker):
    write_log(log_maker(n_returns=2), tmp_path / "x.parquet")
    header = json.loads(pq.read_schema(tmp_path / "x.parquet").metadata[b"hedgerow"])
    version = header.pop("hedgerow")
    assert version.count(".") == 2
    assert header == {
        "format": 1,
        "sensor": "test",
        "min_range_m": 0.5,
        "max_range_m": 60.0,
        "map_origin_m": [4e5, 5e6, 100.0],
        "returns_per_pulse": 2,
        "part": 0,
        "seed": 7,
        "metadata": {"note": "größer", "list": [1, 2.5, None]},
    }


# Sweeps


def test_each_sweep_is_a_row_group(tmp_path, log_maker):
    write_log(log_maker(n_sweeps=4), tmp_path / "x.parquet")
    footer = pq.read_metadata(tmp_path / "x.parquet")
    assert [footer.row_group(k).num_rows for k in range(footer.num_row_groups)] == [40] * 4


@pytest.mark.parametrize("n_returns", [1, 3])
@pytest.mark.parametrize("wanted", [2, range(1, 4), range(0, 6, 2), [5, 0], [], 99, np.array([3, 3])])
def test_reading_some_sweeps_is_selecting_them(tmp_path, log_maker, n_returns, wanted):
    log = log_maker(n_sweeps=6, n_returns=n_returns, arrays=ALL)
    with LogWriter(tmp_path / "x.log", rows_per_part=100) as writer:
        writer.append(log)
    assert read_log(tmp_path / "x.log", sweeps=wanted).equal(log.select(sweep=wanted))


def test_other_sweeps_are_not_read_from_the_disk(tmp_path, log_maker):
    path = tmp_path / "x.parquet"
    log = log_maker(n_sweeps=3, per_sweep=2000)
    write_log(log, path)
    column = pq.read_metadata(path).row_group(1).column(4)
    damaged = bytearray(path.read_bytes())
    start = column.data_page_offset
    damaged[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(damaged)
    assert read_log(path, sweeps=[0, 2]).equal(log.select(sweep=[0, 2]))


def test_sweeps_mixed_in_one_log_are_sorted_apart_and_keep_their_order(tmp_path, log_maker):
    log = log_maker(shuffled=True)
    write_log(log, tmp_path / "x.parquet")
    assert read_log(tmp_path / "x.parquet").equal(log[np.argsort(log.beams.sweep, kind="stable")])
    assert read_log(tmp_path / "x.parquet", sweeps=1).equal(log.select(sweep=1))


def test_a_sweep_that_comes_in_pieces_is_read_as_one(tmp_path, log_maker):
    log = log_maker(n_sweeps=2)
    with LogWriter(tmp_path / "x.parquet") as writer:
        for start in range(0, len(log), 25):
            writer.append(log[start : start + 25])
    assert read_log(tmp_path / "x.parquet").equal(log)
    assert [number for number, _ in open_log(tmp_path / "x.parquet").iter_sweeps()] == [0, 1]
    assert read_log(tmp_path / "x.parquet", sweeps=1).equal(log.select(sweep=1))


@pytest.mark.parametrize("n_returns", [1, 3])
def test_rows_regrouped_by_another_program_are_read_all_the_same(tmp_path, log_maker, n_returns):
    log = log_maker(n_sweeps=6, n_returns=n_returns, arrays=ALL)
    write_log(log, tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    for n_rows, statistics in ((7, True), (64, True), (64, False)):
        # Groups of 7 rows cut sweeps, and even pulses, in two.
        pq.write_table(table, tmp_path / "y.parquet", row_group_size=n_rows, write_statistics=statistics)
        assert open_log(tmp_path / "y.parquet").n_beams == len(log)
        assert read_log(tmp_path / "y.parquet").equal(log)
        assert open_log(tmp_path / "y.parquet").sweeps.tolist() == [0, 1, 2, 3, 4, 5]
        for wanted in (0, 3, range(2, 4), [1, 5], 99):
            assert read_log(tmp_path / "y.parquet", sweeps=wanted).equal(log.select(sweep=wanted))


def test_many_small_sweeps_are_decoded_in_batches(tmp_path, log_maker, monkeypatch):
    monkeypatch.setattr("hedgerow.io.parquet.reader._ROWS_AT_ONCE", 50)
    for n_returns in (1, 3):
        log = log_maker(n_sweeps=10, per_sweep=11, n_returns=n_returns, arrays=ALL)
        write_log(log, tmp_path / "x.parquet")
        assert read_log(tmp_path / "x.parquet").equal(log)


# Opened, not read


def test_opened_log_tells_its_settings_and_gives_its_sweeps(tmp_path, log_maker):
    log = log_maker(n_sweeps=4, n_returns=2, arrays=("intensity",))
    write_log(log, tmp_path / "x.log")
    file = open_log(tmp_path / "x.log")
    assert isinstance(file, LogFile)
    assert (file.sensor, file.min_range_m, file.max_range_m, file.metadata) == ("test", 0.5, 60.0, log.metadata)
    assert_array_equal(file.map_origin_m, log.map_origin_m)
    assert (len(file), file.n_per_pulse, file.arrays) == (160, 2, ["intensity"])
    assert file.sweeps.tolist() == [0, 1, 2, 3]
    for (number, part), (expected, whole) in zip(file.iter_sweeps(), log.iter_sweeps(), strict=True):
        assert number == expected
        assert part.equal(whole)


# Writing


def test_writer_publishes_only_at_the_end(tmp_path, log_maker):
    for name in ("x.parquet", "x.log"):
        with LogWriter(tmp_path / name) as writer:
            writer.append(log_maker())
            assert not (tmp_path / name).exists()
        assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x.parquet", "x.log"])
def test_an_old_log_is_replaced(tmp_path, log_maker, name):
    with LogWriter(tmp_path / name, rows_per_part=10) as writer:
        writer.append(log_maker(n_sweeps=5))
    write_log(log_maker(n_sweeps=1), tmp_path / name)
    assert read_log(tmp_path / name).equal(log_maker(n_sweeps=1))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensor": "other"}, "sensor: .*test and other"),
        ({"max_range_m": 70.0}, "max_range_m: .*60.0 and 70.0"),
        ({"map_origin_m": np.zeros(3)}, "map_origin_m"),
        ({"returns": Returns(np.full((120, 2), 1, np.float32))}, "n_per_pulse: .*1 and 2"),
        ({"returns": Returns(np.full(120, 1, np.float32), label=np.ones(120, np.uint16))}, "the log has .*label"),
    ],
)
def test_appending_a_different_log_is_refused_and_leaves_nothing(tmp_path, log_maker, change, message):
    with pytest.raises(InputError, match=message), LogWriter(tmp_path / "x.parquet") as writer:
        writer.append(log_maker())
        writer.append(replace(log_maker(), **change))
    assert list(tmp_path.iterdir()) == []


def test_nothing_appended_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"x.parquet: nothing was appended"), LogWriter(tmp_path / "x.parquet"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_writer_that_is_not_open_is_refused(tmp_path, log_maker):
    with pytest.raises(InputError, match=r"the writer is not open"):
        LogWriter(tmp_path / "x.parquet").append(log_maker())


@pytest.mark.parametrize("value", [np.arange(3), float("nan"), {1, 2}])
def test_metadata_that_is_not_json_is_refused_before_the_work(tmp_path, log_maker, value):
    with pytest.raises(InputError, match=r"metadata: does not fit into JSON"):
        write_log(replace(log_maker(), metadata={"x": value}), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []
