# SPDX-License-Identifier: Apache-2.0
"""Logs at addresses: what is written to a store is what would be written to the disk, and is read where it lies."""

import logging
import pickle
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from s3_servers import BUCKET, KEY, SECRET, address, ask, moto_server, objects, requests, use_keys
from small_logs import make_log

from hedgerow import FileError, InputError, inputs, open_log, read_log, write_log
from hedgerow.base import stores
from hedgerow.base.places import Address, as_place, is_address
from hedgerow.io.parquet.reader import LogFile
from hedgerow.io.parquet.writer import LogWriter

CLOSED = "http://127.0.0.1:1"  # nothing listens there
SECONDS = 8.0
"""Within which a lost connection is told: two tries of 3 s each to connect, and what lies between."""


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    use_keys(monkeypatch)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)


@pytest.fixture(scope="module")
def url():
    with moto_server(forgets=True) as started:
        yield started


def refused(work, *parts):
    with pytest.raises(FileError) as caught:
        work()
    said = str(caught.value)
    assert all(part in said for part in parts), said
    assert SECRET not in said
    assert "\n" not in said
    return said


# what an address is


def test_the_text_of_an_address_has_no_keys():
    given = f"s3://{KEY}:{SECRET}@{BUCKET}/a/drive.parquet?region=eu-north-1&sas={SECRET}"
    place = as_place(given)
    assert isinstance(place, Address)
    assert str(place) == f"s3://{BUCKET}/a/drive.parquet?region=eu-north-1"
    for text in (repr(place), str(place / "x"), str(place.parent), repr(place.store), repr(pickle.dumps(place))):
        assert SECRET not in text
        assert KEY not in text


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs"])
def test_an_address_taken_for_a_path_is_known_again(scheme):
    given = f"{scheme}://field/a b/drive.log?endpoint_override=http://127.0.0.1:9"
    assert str(Path(given)) != given
    assert as_place(Path(given)) == as_place(given) == as_place(str(as_place(given)))
    assert as_place(given).name == "drive.log"


def test_a_container_of_azure_is_no_key_but_what_follows_it_is():
    assert str(as_place("abfs://field:hidden@account.dfs.core.windows.net/x.log")) == (
        "abfs://field@account.dfs.core.windows.net/x.log"
    )


@pytest.mark.parametrize("given", ["drive.parquet", "a/b", "C:/drive.parquet", "c:\\x", "./s3", "a:b"])
def test_paths_stay_paths(given):
    assert not is_address(given)
    assert as_place(given) == Path(given)


def test_a_folder_with_the_name_of_a_scheme_stays_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    write_log(make_log(), Path("s3:/drive.parquet"))
    assert (tmp_path / "s3:" / "drive.parquet").is_file()


def test_a_file_address_is_a_path(tmp_path):
    write_log(make_log(), f"file://{tmp_path}/x.parquet")
    assert read_log(tmp_path / "x.parquet").equal(make_log())


def test_what_is_neither_text_nor_path_is_refused():
    with pytest.raises(InputError):
        as_place(3)


def test_an_address_survives_the_way_to_another_process():
    place = as_place("s3://field/a/b.parquet?region=x")
    assert pickle.loads(pickle.dumps(place)) == place


def test_a_key_with_a_slash_is_not_repeated_in_the_refusal():
    refused(lambda: as_place(f"s3://{KEY}:{SECRET}/more@{BUCKET}/x"), "%2F")


def test_an_unknown_scheme_is_one_sentence():
    refused(lambda: read_log("gopher://field/x.parquet"), "there is no scheme 'gopher'", "s3")


def test_an_unknown_option_is_one_sentence():
    refused(lambda: read_log("s3://field/x.parquet?speed=3"), "not known (speed)", "endpoint_override")


def test_other_schemes_go_through_fsspec():
    pytest.importorskip("fsspec", reason="needs fsspec")
    for name in ("drive.parquet", "drive.log"):
        write_log(make_log(), f"memory://field/a/{name}")
        assert read_log(f"memory://field/a/{name}").equal(make_log())


# logs


@pytest.mark.parametrize("name", ["drive.parquet", "drive.log"])
def test_a_log_is_read_as_it_was_written(url, name):
    where = address(url, f"whole/{name}")
    write_log(make_log(12), where)
    assert read_log(where).equal(make_log(12))
    assert read_log(Path(where)).equal(make_log(12))  # as the command line has it
    file = open_log(where)
    assert isinstance(file.path, Address)
    assert file.sweeps.tolist() == [0, 1, 2, 3, 4, 5]
    for number, log in file.iter_sweeps():
        assert log.equal(make_log(12)[make_log(12).beams.sweep == number])
    assert inputs.kind_of(where) == "log"


def test_the_bytes_are_those_of_the_disk(url, tmp_path):
    write_log(make_log(), tmp_path / "drive.parquet")
    write_log(make_log(), address(url, "bytes/drive.parquet"))
    assert as_place(address(url, "bytes/drive.parquet")).read_bytes() == (tmp_path / "drive.parquet").read_bytes()


def test_an_object_is_one_request_and_a_sweep_two(url):
    where = address(url, "one/x.parquet")
    with requests() as asked:
        as_place(where).write_bytes(b"x" * 1000)
    assert asked == ["PUT"]
    write_log(make_log(12), where)
    file = open_log(where)
    assert len(file.sweeps) == 6
    with requests() as asked:
        file.read(3)
    assert asked == ["HEAD", "GET"]  # the columns of a sweep lie side by side


def write_parts(where, n, **settings):
    with LogWriter(where, rows_per_part=2, **settings) as writer:
        for _, sweep in make_log(n).iter_sweeps():
            writer.append(sweep)


def test_a_folder_log_is_sent_part_by_part_and_a_shorter_one_replaces_it(url):
    where = address(url, "parts/drive.log")
    write_parts(where, 10)
    assert [name for name in objects(url) if name.startswith("parts/")] == [
        f"parts/drive.log/part-{number:05d}.parquet" for number in range(5)
    ]
    assert LogFile(where).n_parts == 5
    assert read_log(where).equal(make_log(10))
    write_parts(where, 4)
    assert LogFile(where).n_parts == 2
    assert read_log(where).equal(make_log(4))


def test_a_log_without_its_last_part_is_told_from_a_whole_one(url):
    where = address(url, "cut/drive.log")
    write_parts(where, 10)
    as_place(address(url, "cut/drive.log/part-00004.parquet")).unlink()
    refused(lambda: read_log(where), "part-00004.parquet is missing")
    write_parts(where, 4)  # and can be replaced
    assert read_log(where).equal(make_log(4))


@pytest.mark.parametrize("name", ["drive.parquet", "drive.log"])
def test_writing_that_fails_leaves_nothing(url, name):
    where = address(url, f"fails/{name}")
    with pytest.raises(ZeroDivisionError), LogWriter(where, rows_per_part=2) as writer:
        for number, sweep in make_log(10).iter_sweeps():
            writer.append(sweep)
            _ = 1 / (3 - number)
    assert not [each for each in objects(url) if each.startswith("fails/")]


def test_writing_that_fails_leaves_an_old_file(url):
    where = address(url, "kept/drive.parquet")
    write_log(make_log(4), where)
    with pytest.raises(ZeroDivisionError), LogWriter(where) as writer:
        writer.append(make_log(6))
        _ = 1 / 0
    assert read_log(where).equal(make_log(4))


def test_a_folder_of_other_things_is_not_replaced(url):
    as_place(address(url, "mine/notes.txt")).write_bytes(b"dear diary")
    refused(lambda: write_log(make_log(), address(url, "mine")), "holds other things (notes.txt)")
    refused(lambda: write_log(make_log(), address(url, "mine/x.log/..")), "cannot go up")
    assert as_place(address(url, "mine/notes.txt")).read_bytes() == b"dear diary"


def test_only_parquet_is_read_from_and_written_to_an_address(url):
    refused(lambda: read_log(address(url, "x.laz")), "only Parquet")
    refused(lambda: write_log(make_log(), address(url, "x.ply")), "only Parquet")
    refused(lambda: read_log(address(url, "x.parquet"), format="las"), "only Parquet")
    as_place(address(url, "odd/x.toml")).write_bytes(b"")
    refused(lambda: inputs.kind_of(address(url, "odd/x.toml")), "expected a Parquet log")


# faults


def test_a_missing_object_is_one_sentence(url):
    refused(lambda: read_log(address(url, "none.parquet")), "no such file or folder")
    refused(lambda: inputs.kind_of(address(url, "none.world")), "no such file or folder")


def test_a_missing_bucket_is_one_sentence(url):
    refused(lambda: write_log(make_log(), f"s3://desert/x.parquet?endpoint_override={url}"), "no bucket desert")


def test_a_damaged_object_is_told_as_a_damaged_file(url):
    where = address(url, "damaged.parquet")
    write_log(make_log(), where)
    content = as_place(where).read_bytes()
    as_place(where).write_bytes(content[: len(content) // 2])
    refused(lambda: read_log(where), "damaged.parquet", "not a Parquet file, or damaged")
    as_place(where).write_bytes(b"")
    refused(lambda: read_log(where), "the file is empty")


def test_a_wrong_key_is_one_sentence():
    with moto_server() as strict:
        write_log(make_log(), address(strict, "x.parquet"))
        ask("POST", f"{strict}/moto-api/reset-auth", b"0")  # from now on keys are checked, and it knows none
        try:
            refused(lambda: read_log(address(strict, "x.parquet")), "access denied", "AWS_SECRET_ACCESS_KEY")
            login = f"{KEY}:{SECRET}@"
            refused(lambda: write_log(make_log(), address(strict, "y.parquet", login)), "access denied")
        finally:
            ask("POST", f"{strict}/moto-api/reset-auth", b"inf")  # all its servers in a process are one


@pytest.mark.parametrize("work", [read_log, lambda where: write_log(make_log(), where), inputs.kind_of])
def test_no_connection_is_one_sentence_within_seconds(work):
    start = time.perf_counter()
    refused(lambda: work(address(CLOSED, "x.parquet", f"{KEY}:{SECRET}@")), "no connection to http://127.0.0.1:1")
    assert time.perf_counter() - start < SECONDS


def test_a_connection_that_is_lost_between_two_sweeps_is_one_sentence():
    with moto_server() as lost:
        where = address(lost, "x.log")
        write_parts(where, 10)
        sweeps = open_log(where).iter_sweeps()
        assert next(sweeps)[1].equal(make_log(2))
    start = time.perf_counter()
    refused(lambda: list(sweeps), "no connection to", "part-0000")
    assert time.perf_counter() - start < SECONDS


def test_a_connection_that_is_lost_while_writing_is_one_sentence():
    with moto_server() as lost:
        writer = LogWriter(address(lost, "x.log"), rows_per_part=2)
        writer.__enter__()
        writer.append(make_log(6))
    start = time.perf_counter()
    refused(lambda: writer.append(make_log(12)[6:]), "no connection to")
    writer.__exit__(FileError, FileError("lost"), None)
    assert time.perf_counter() - start < 3 * SECONDS  # what was sent is tried to be taken back, in vain


def test_the_length_of_a_stored_log_is_known_without_reading_it(url):
    write_log(make_log(12), address(url, "length.parquet"))
    file = LogFile(address(url, "length.parquet"))
    assert len(file) == 12
    assert file.size_bytes == len(as_place(address(url, "length.parquet")).read_bytes())
    stamp = file.stamp
    write_log(make_log(10), address(url, "length.parquet"))
    assert LogFile(address(url, "length.parquet")).stamp != stamp
    assert np.array_equal(file.map_origin_m, np.zeros(3))


def test_a_server_that_never_answers_is_told(monkeypatch):
    monkeypatch.setattr(stores, "_REQUEST_S", 1.0)  # in place of 5
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        start = time.perf_counter()
        refused(lambda: read_log(address(f"http://127.0.0.1:{mute.getsockname()[1]}", "x.parquet")), "no connection")
        assert time.perf_counter() - start < SECONDS
