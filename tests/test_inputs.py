# SPDX-License-Identifier: Apache-2.0
"""What a path or a name is, and the sentence for one that a verb does not want."""

import shutil

import numpy as np
import pytest
from small_logs import make_log
from small_scenes import small_scene

import hedgerow as hr
from hedgerow import inputs
from hedgerow.cli import app, main
from hedgerow.errors import FileError, InputError
from hedgerow.io.formats import format_of
from hedgerow.scenes.file import read
from hedgerow.world import Gaussians


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one thing of each kind."""
    hr.write_log(make_log(), tmp_path / "drive.parquet")
    world = hr.LearnedWorld(Gaussians.plain(np.array([[5.0, 0, 0]]), np.eye(3)[None]), kind="voxel")
    world.save(tmp_path / "site.world")
    small_scene(tmp_path / "meadow.toml")
    hr.write_trajectory(hr.Trajectory.line((0, 0, 0), (1, 0, 0), 1.0), tmp_path / "poses.tum")
    catalogue = read.resources.files("hedgerow.sensor") / "catalogue"
    shutil.copy(str(catalogue / "vlp-16.toml"), tmp_path / "mine.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


KINDS = {
    "drive.parquet": "log",
    "site.world": "learned world",
    "meadow.toml": "scene",
    "trail": "scene",
    "mine.toml": "sensor",
    "hdl-64e": "sensor",
    "Velodyne HDL 64E": "sensor",
    "poses.tum": "trajectory",
}


@pytest.mark.parametrize("given", KINDS)
def test_each_kind_is_told_by_its_content_or_its_name(folder, given):
    assert inputs.kind_of(given) == KINDS[given]


@pytest.mark.parametrize("given", [*KINDS, "shrub"])
def test_info_answers_for_every_kind(folder, given, capsys):
    app(["info", given], result_action="return_value")
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_what_is_near_is_named(folder):
    for given, near in (("trial", "trail"), ("hdl64", "hdl-64e"), ("drvie.parquet", "drive.parquet")):
        with pytest.raises((FileError, InputError), match=f"no such file or folder; did you mean {near}"):
            inputs.kind_of(given)
    with pytest.raises(FileError, match="no such file or folder, nor the name of a scene or sensor"):
        inputs.kind_of("qqqqqqqq")


WRONG = [
    (["learn", "site.world", "-o", "out.world"], "site.world: is a learned world; learn wants a log"),
    (["learn", "trail", "-o", "out.world"], "trail: is a scene; learn wants a log"),
    (["fire", "drive.parquet", "-o", "a.parquet"], "drive.parquet: is a log; fire wants a scene or a learned world"),
    (["fire", "hdl-64e", "-o", "a.parquet"], "hdl-64e: is a sensor; fire wants a scene or a learned world"),
    (["serve", "poses.tum"], "poses.tum: is a trajectory; serve wants a scene or a learned world"),
    (["view", "poses.tum"], "poses.tum: is a trajectory; view wants a log, a learned world or a scene"),
    (["compare", "site.world", "drive.parquet"], "site.world: is a learned world; compare wants a log"),
    (["compare", "drive.parquet", "hdl-64e"], "is a sensor; compare wants a log, a scene or a learned world"),
    (["calibrate", "vegetation", "trail", "--label", "70"], "trail: is a scene; calibrate wants a log"),
    (["convert", "site.world", "a.las"], "site.world: is a learned world; convert wants a log"),
    (["fire", "trail", "-o", "drive.pcap"], "drive.pcap: pcap cannot be written; use"),
    (["fire", "trail", "-o", "drive.docx"], "drive.docx: unknown kind of file"),
    (["fire", "site.world", "--sensor", "vlp-16", "-o", "a.parquet", "--set", "a=1"], "only for scenes"),
    (["fire", "site.world", "--sensor", "vlp-16", "--trajectory", "poses.tum", "-o", "a.parquet", "--mode", "last"],
     "--sub-rays, --sampling, --mode, --dual, --signal, --cutoff-m: only for scenes"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_thing_of_another_kind_gets_one_sentence_and_exit_code_2(folder, words, sentence, capsys, monkeypatch):
    before = sorted(folder.iterdir())
    monkeypatch.setattr("sys.argv", ["hedgerow", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert sentence in said and len(said.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


def test_a_scene_file_is_read_once_per_command(folder, monkeypatch):
    parsed = []
    original = read.toml_lines
    monkeypatch.setattr(read, "toml_lines", lambda text: parsed.append(text) or original(text))
    app(["fire", "meadow.toml", "--sweeps", "1", "-o", "a.parquet"], result_action="return_value")
    assert len(parsed) == 1


@pytest.mark.parametrize("to", ["kitti", "pcd-folder"])
def test_formats_without_a_suffix_are_named(folder, to):
    app(["fire", "meadow.toml", "--sweeps", "2", "-o", "a", "--to", to], result_action="return_value")
    assert format_of("a", reading=True).name == to
    assert len(hr.open_log("a").sweeps) == 2


@pytest.mark.parametrize("name", ["a.parquet", "a.log", "a", "a.las", "a.ply", "a.mcap", "a.bag"])
def test_fire_writes_every_format(folder, name):
    app(["fire", "meadow.toml", "--sweeps", "1", "-o", name], result_action="return_value")
    is_folder = name in ("a", "a.log")
    assert (folder / name).is_dir() == is_folder
    assert inputs.kind_of(name) == "log"
    returns = hr.open_log(name, scanner_m=(0, 0, 1.5)) if name.endswith((".las", ".ply")) else hr.open_log(name)
    assert sum(int(log.returns.hit.sum()) for _, log in returns.iter_sweeps()) > 1000
