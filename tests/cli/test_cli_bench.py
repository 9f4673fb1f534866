# SPDX-License-Identifier: Apache-2.0
"""hedgerow bench: its list, what it refuses, and that it goes on after Ctrl-C."""

import json
import os
import signal
import subprocess
import sys

import pytest
from cli_runner import assert_refused, run

TILES = ("bench", "scale", "--only", "tiles", "--size", "small", "-o")


def test_benchmarks_are_listed_and_others_refused(tmp_path):
    assert run("bench").stdout.startswith("scale  speed and memory by beams")
    assert_refused(run("bench", "moon", "-o", tmp_path / "out"), "moon", "there are scale")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--beams", "1e6", "10"), "found 10"),
        (("--size", "huge"), "huge"),
    ],
)
def test_bad_values_are_one_sentence_and_leave_nothing(tmp_path, words, part):
    assert_refused(run("bench", "scale", "-o", tmp_path / "out", *words), part)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_another_scale_json_is_refused(tmp_path):
    (tmp_path / "scale.json").write_text('{"mine": 1}')
    assert_refused(run(*TILES, tmp_path), "scale.json: is no file of hedgerow bench scale")
    assert (tmp_path / "scale.json").read_text() == '{"mine": 1}'


@pytest.mark.skipif(os.name != "posix", reason="signals are another matter on Windows")
def test_after_ctrl_c_the_same_command_goes_on(tmp_path):
    folder = tmp_path / "out"
    command = [sys.executable, "-u", "-c", "from hedgerow.cli import main; main()", *TILES, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert [line.partition(":")[0] for line in first] == ["1 tiles, write", "1 tiles, drive"]
    assert (process.returncode, said) == (130, "hedgerow: interrupted\n")
    kept = json.loads((folder / "scale.json").read_text())["rows"]
    assert [row["settings"]["step"] for row in kept][:2] == ["write", "drive"]
    assert len(kept) < 4
    done = run(*TILES, folder)
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "scale.json").read_text())["rows"]
    assert rows[: len(kept)] == kept and len(rows) == 4
    assert "1 tiles, drive:" not in done.stdout and "9 tiles, drive:" in done.stdout
    assert "\nTiles\ntiles  km²" in done.stdout and f"wrote {folder / 'scale.png'}" in done.stdout
    assert sorted(each.name for each in folder.iterdir()) == ["scale.json", "scale.md", "scale.png"]
