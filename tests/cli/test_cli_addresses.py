# SPDX-License-Identifier: Apache-2.0
"""Verbs on addresses: learn, info, fire, compare and convert read from a store and write to it."""

import numpy as np
import pytest
from cli_runner import assert_refused, run
from s3_servers import KEY, SECRET, address, moto_server, objects, use_keys

import hedgerow as hr
from hedgerow.log import Beams, Log, Returns

LOGIN = f"{KEY}:{SECRET}@"


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    use_keys(monkeypatch)


@pytest.fixture(scope="module")
def url():
    with moto_server(forgets=True) as started, pytest.MonkeyPatch.context() as patch:
        use_keys(patch)
        hr.write_log(wall(), address(started, "drive.parquet"))
        yield started


def wall(n=4000):
    """Two sweeps of beams against a rough wall 5 m away."""
    rng = np.random.default_rng(1)
    way = rng.uniform([1, -0.4, -0.4], [1, 0.4, 0.4], (n, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    beams = Beams.from_arrays(
        origins=np.zeros((n, 3)), directions=way, times=np.arange(n), rings=np.zeros(n), sweeps=np.arange(n) // (n // 2)
    )
    return Log(beams, Returns.from_arrays(ranges=rng.normal(5, 0.02, n) / way[:, 0]), "vlp-16", max_range_m=100)


def test_verbs_read_and_write_addresses(url, tmp_path):
    (tmp_path / "poses.tum").write_text("0 0 0 0 0 0 0 1\n1 0.1 0 0 0 0 0 1\n")
    where = {name: address(url, name) for name in ("drive.parquet", "site.world", "again.log", "copy.parquet")}
    firing = ["--sensor", "vlp-16", "--trajectory", "poses.tum", "--sweeps", "2"]
    for words in (
        ["learn", where["drive.parquet"], "-o", where["site.world"], "--model", "voxel"],
        ["fire", where["site.world"], *firing, "-o", where["again.log"]],
        ["fire", where["site.world"], *firing, "-o", "here.parquet"],
        ["compare", where["drive.parquet"], where["site.world"]],
        ["convert", where["again.log"], where["copy.parquet"]],
        ["info", where["site.world"]],
        ["info", where["again.log"]],
    ):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    stored, here = hr.read_log(where["again.log"]), hr.read_log(tmp_path / "here.parquet")
    assert stored.equal(here)
    assert stored.equal(hr.read_log(where["copy.parquet"]))
    assert hr.load_world(where["site.world"]).header.provenance.log == "drive.parquet"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here.parquet", "poses.tum"]
    assert "again.log/part-00000.parquet" in objects(url)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["info", "none.world"], "no such file or folder"),
        (["learn", "none.parquet", "-o", "x.world"], "no such file or folder"),
        (["fire", "none.world", "-o", "x.log"], "no such file or folder"),
    ],
)
def test_what_is_missing_is_one_sentence_without_keys(url, tmp_path, words, said):
    words = [words[0], address(url, words[1], LOGIN), *words[2:]]
    done = run(*words, cwd=tmp_path)
    assert_refused(done, said)
    assert SECRET not in done.stderr
    assert KEY not in done.stderr


def test_no_connection_and_no_scheme_are_one_sentence(tmp_path):
    lost = address("http://127.0.0.1:1", "x.world", LOGIN)
    for words in (["info", lost], ["learn", "d.parquet", "-o", lost]):
        done = run(*words, cwd=tmp_path)
        assert_refused(done, "no connection to")
        assert SECRET not in done.stderr
    assert_refused(run("info", "gopher://field/x.world", cwd=tmp_path), "there is no scheme 'gopher'")
