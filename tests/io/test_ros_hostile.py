# SPDX-License-Identifier: Apache-2.0
"""Bags made to harm: each is refused in one sentence, soon, and without the memory that it claims to need."""

import bz2
import json
import shutil
import sqlite3
import struct
import time
import tracemalloc
from importlib import import_module
from typing import Any

import lz4.frame
import numpy as np
import pytest
import yaml
from bag_maker import START_NS, Maker, drive, points_at

import hedgerow as hr
from hedgerow.base.bounded_file import BoundedPath
from hedgerow.errors import FileError
from hedgerow.io.ros import limits
from hedgerow.io.ros.limits import bounded_queries, decompress
from hedgerow.io.ros.messages import rows_of
from hedgerow.io.yaml_text import read_yaml

STARTS = {"bz2": bz2.BZ2Decompressor, "lz4": lz4.frame.LZ4FrameDecompressor}
COMPRESS = {"bz2": bz2.compress, "lz4": lz4.frame.compress}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize("kind", ["bz2", "lz4"])
def test_what_is_compressed_comes_out_up_to_a_limit(kind):
    data = COMPRESS[kind](b"hedgerow" * 1000)
    assert decompress(STARTS[kind], data, 8000) == b"hedgerow" * 1000
    assert decompress(STARTS[kind], data + data, 16_000) == b"hedgerow" * 2000  # one frame after another
    with pytest.raises(ValueError, match="larger than 7,999 bytes"):
        decompress(STARTS[kind], data, 7999)
    with pytest.raises(ValueError, match="cut off"):
        decompress(STARTS[kind], data[:-9], 8000)


def test_rosbags_decompresses_and_parses_within_limits(monkeypatch):
    limits.install()
    reader1, reader2 = import_module("rosbags.rosbag1.reader"), import_module("rosbags.rosbag2.reader")
    mcap, sqlite = import_module("rosbags.rosbag2.storage_mcap"), import_module("rosbags.rosbag2.storage_sqlite3")
    monkeypatch.setattr(limits, "MOST_CHUNK_BYTES", 1000)
    for unpack in (*(reader1.decompressors[name] for name in ("bz2", "lz4")), mcap.DECOMPRESSORS["lz4"]):
        args = (5000,) if unpack is mcap.DECOMPRESSORS["lz4"] else ()
        data = (bz2.compress if unpack is reader1.decompressors["bz2"] else lz4.frame.compress)(bytes(2000))
        with pytest.raises(ValueError, match="larger than 1,000 bytes"):
            unpack(data, *args)
    assert {each.parse_qos("- [" * 10_000) == [] for each in (reader2, mcap, sqlite)} == {True}


def test_a_file_that_is_short_makes_no_room_for_what_it_claims(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    tracemalloc.start()
    with BoundedPath(tmp_path / "x").open("rb") as file:
        assert file.read(2**33) == b"abc"
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def chunk_index(path):
    """Return the bytes of an MCAP file, and where the index of its first chunk is."""
    data = bytearray(path.read_bytes())
    (at,) = struct.unpack_from("<Q", data, len(data) - 28)
    while data[at] != 8:
        at += 9 + struct.unpack_from("<Q", data, at + 1)[0]
    return data, at


def test_an_mcap_chunk_that_claims_gigabytes_is_refused(tmp_path):
    path = drive("mcap").write(tmp_path)
    data, at = chunk_index(path)
    (offsets,) = struct.unpack_from("<I", data, at + 9 + 32)
    (name,) = struct.unpack_from("<I", data, at + 9 + 36 + offsets + 8)
    struct.pack_into("<Q", data, at + 9 + 36 + offsets + 8 + 4 + name + 8, 2**40)
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"the chunk at byte \d+ claims to hold 1,099,511,627,776 bytes"):
        hr.open_log(path)


def test_an_mcap_index_with_a_chunk_twice_is_refused(tmp_path):
    path = drive("mcap").write(tmp_path)
    data, at = chunk_index(path)
    end = at + 9 + struct.unpack_from("<Q", data, at + 1)[0]
    path.write_bytes(data[:end] + data[at:end] + data[end:])
    with pytest.raises(FileError, match=r"its index tells of two chunks at byte \d+"):
        hr.open_log(path)


def test_a_ros1_index_with_a_chunk_twice_is_refused(tmp_path):
    path = drive("bag").write(tmp_path)
    data = bytearray(path.read_bytes())
    (at,) = struct.unpack_from("<Q", data, data.index(b"index_pos=") + 10)
    while b"chunk_pos=" not in data[at : at + 4 + struct.unpack_from("<I", data, at)[0]]:
        for _ in range(2):  # header and content of a connection
            at += 4 + struct.unpack_from("<I", data, at)[0]
    struct.pack_into("<I", data, data.index(b"chunk_count=") + 12, 2)
    path.write_bytes(data + data[at:])
    with pytest.raises(FileError, match=r"its index tells of two chunks at byte \d+"):
        hr.open_log(path)


@pytest.mark.parametrize("position", [10**6, 2**63, 2**64 - 1])
def test_a_ros1_index_beyond_the_end_is_refused(tmp_path, position):
    path = drive("bag").write(tmp_path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, data.index(b"index_pos=") + 10, position)
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"is damaged, cut off, or no ROS 1 bag"):
        hr.open_log(path)


@pytest.mark.parametrize(
    "text, said",
    [
        (BOMB, r"stands for more than 200,000 values"),
        ("[" * 5000 + "]" * 5000, r"is nested more than 20 levels deep"),
        ("a: " + "9" * 4400, r"cannot be read as YAML \(ValueError\)"),
        ("a: " + "9" * 40_000, r"has a value of 40,000 characters"),
        ("x" * 5_000_000, r"is larger than 4 MB"),
        ("a: [", r"cannot be read as YAML \(ParserError\)"),
    ],
)
def test_yaml_that_would_fill_the_memory_or_end_the_parser_is_refused(tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    begin_s = time.process_time()
    with pytest.raises(FileError, match=rf"x\.yaml: {said}"):
        read_yaml(tmp_path / "x.yaml")
    assert time.process_time() - begin_s < 1


def test_yaml_with_an_alias_here_and_there_is_read(tmp_path):
    (tmp_path / "x.yaml").write_text("a: &a [1, 2]\nb: *a\n")
    assert read_yaml(tmp_path / "x.yaml") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("text", [BOMB, "[" * 5000, "a: b", "", "rosbag2_bagfile_information: {version: [1]}"])
def test_metadata_of_a_ros2_bag_that_are_none_are_refused(tmp_path, text):
    path = drive("db3").write(tmp_path)
    (path / "metadata.yaml").write_text(text)
    with pytest.raises(FileError):
        hr.open_log(path)


def test_metadata_of_wrong_types_are_refused(tmp_path):
    good = drive("db3").write(tmp_path)
    content = yaml.safe_load((good / "metadata.yaml").read_text())
    for field, value in (("message_count", "many"), ("message_count", -1), ("topic_metadata", {"name": 3})):
        bad = json.loads(json.dumps(content))
        entry = bad["rosbag2_bagfile_information"]["topics_with_message_count"][0]
        entry[field] = entry[field] | value if isinstance(value, dict) else value
        path = tmp_path / "bad"
        shutil.copytree(good, path, dirs_exist_ok=True)
        (path / "metadata.yaml").write_text(yaml.safe_dump(bad))
        with pytest.raises(FileError, match=r"is damaged, .*a topic .* is not possible"):
            hr.open_log(path)


def database(folder, *commands):
    """A .db3 file after some SQL."""
    path = next(drive("db3").write(folder).glob("*.db3"))
    with sqlite3.connect(path) as opened:
        for command in commands:
            opened.execute(command)
    opened.close()
    return path


@pytest.mark.parametrize(
    "commands",
    [
        (
            "DROP TABLE topics",
            "CREATE VIEW topics AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
        ),
        ("DROP TABLE messages", "CREATE TABLE messages(id, topic_id, timestamp, data AS (zeroblob(900000000)))"),
    ],
)
def test_rows_out_of_nothing_are_refused(tmp_path, commands):
    path = database(tmp_path, *commands)
    with pytest.raises(FileError, match=r"is not a plain table|is damaged"):
        hr.open_log(path)


@pytest.mark.parametrize("column, value", [("data", 10**9), ("data", "text"), ("timestamp", "now"), ("timestamp", -5)])
def test_messages_of_a_wrong_type_are_refused(tmp_path, column, value):
    path = database(tmp_path, f"UPDATE messages SET {column} = {value!r} WHERE id = 2")
    with pytest.raises(FileError, match=r"is damaged, .*(no bytes|recorded at|not supported)"):
        hr.open_log(path)


def test_a_query_without_end_is_ended():
    apsw: Any = pytest.importorskip("apsw")
    with bounded_queries(1000):
        connection = apsw.Connection(":memory:")
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(apsw.InterruptError):
        connection.execute(endless).fetchall()


def test_a_topic_with_messages_of_two_types_is_refused(tmp_path):
    maker = drive("bag")
    clouds = [each for each in maker.messages if each[0] == "/velodyne_points"]
    maker.odometry(START_NS + 5, (0, 0, 0), topic="/velodyne_points")
    path = tmp_path / "x.bag"
    from rosbags.rosbag1 import Writer

    with Writer(path) as writer:
        connections: dict[tuple[str, str], Any] = {}
        for topic, kind, bag_ns, message in sorted(maker.messages, key=lambda each: each[2]):
            if (topic, kind) not in connections:
                connections[topic, kind] = writer.add_connection(
                    topic, kind, typestore=maker.types, callerid=f"/{len(connections)}"
                )
            writer.write(connections[topic, kind], bag_ns, maker.types.serialize_ros1(message, kind))
    assert clouds
    with pytest.raises(FileError, match=r"/velodyne_points has messages of several types, .*; split the bag"):
        hr.open_log(path)


@pytest.mark.parametrize("kind", ["bag", "mcap", "db3"])
def test_messages_of_another_type_than_their_topic_says_are_refused(tmp_path, kind):
    maker = drive(kind)
    poses = [(topic, each, at, message) for topic, each, at, message in maker.messages if topic == "/tf"]
    topic, of, at, _ = next(each for each in maker.messages if each[0] == "/velodyne_points")
    encode = "serialize_ros1" if kind == "bag" else "serialize_cdr"
    original = getattr(maker.types, encode)
    wrong = object()
    maker.messages = [each for each in maker.messages if each[2] != at or each[0] != topic] + [(topic, of, at, wrong)]
    setattr(
        maker.types,
        encode,
        lambda message, name: original(poses[0][3], poses[0][1]) if message is wrong else original(message, name),
    )
    with pytest.raises(FileError, match=r"/velodyne_points.*"):
        hr.open_log(maker.write(tmp_path)).read()


@pytest.mark.parametrize(
    "shape, steps",
    [
        ((2**32 - 1, 2**32 - 1), (22, 0)),
        ((1, 50), (2**32 - 1, 0)),
        ((2**31, 2**31), (0, 0)),
        ((1, 51), (22, 1100)),
        ((1, 50), (22, 21)),
        ((50, 1), (22, 2**32 - 1)),
    ],
)
def test_sizes_of_a_cloud_are_held_against_its_bytes(shape, steps):
    with pytest.raises(hr.InputError, match="cloud: says it has"):
        rows_of([("x", 0, 7, 1)], np.zeros(1100, np.uint8), shape, steps, False)


def test_a_cloud_without_points_may_say_anything():
    for shape in ((0, 2**32 - 1), (2**32 - 1, 0)):
        assert rows_of([("x", 0, 7, 1), ("", 0, 7, 1)], np.zeros(0, np.uint8), shape, (2**32 - 1, 0), False).size == 0


def test_offsets_outside_of_a_point_are_refused(tmp_path):
    maker = Maker("mcap")
    maker.cloud(points_at(START_NS), START_NS)
    maker.messages[0][3].fields[2].offset = 2**32 - 1
    with pytest.raises(FileError, match="has fields outside of its points"):
        hr.open_log(maker.write(tmp_path), static=True)


@pytest.mark.parametrize(
    "field, value",
    [
        *[("min_range_m", "x"), ("min_range_m", 1e308), ("max_range_m", {}), ("max_range_m", 0.1)],
        *[("map_origin_m", [0, 0]), ("map_origin_m", [0, 0, 10**400]), ("n_per_pulse", 2**30), ("n_per_pulse", [1])],
        *[("sensor", 3), ("metadata", [1]), ("organised", "perhaps")],
    ],
)
def test_what_hedgerow_wrote_about_a_log_is_checked(tmp_path, monkeypatch, field, value):
    from hedgerow.io.ros import writer

    written = writer.header_text
    monkeypatch.setattr(
        writer, "header_text", lambda log, **more: json.dumps(json.loads(written(log, **more)) | {field: value})
    )
    log = hr.Log.from_arrays(origins=[0, 0, 1], directions=[[1, 0, 0], [0, 1, 0]], ranges=[3, 4], times=[1.0, 1.1])
    hr.write_log(hr.Log(log.beams, log.returns, min_range_m=0.5), tmp_path / "x.mcap")
    with pytest.raises(FileError, match=rf"x\.mcap, /hedgerow/log: {field}"):
        hr.open_log(tmp_path / "x.mcap")
