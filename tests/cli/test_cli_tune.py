# SPDX-License-Identifier: Apache-2.0
"""hedgerow tune model: what it prints and keeps, Ctrl-C, and what it refuses."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.log import Log

VOXEL = ["--model", "voxel", "--vary", "side_m=0.2:2.0"]


def plane_log(n_sweeps: int = 6, n: int = 2000) -> Log:
    """A level plane seen from 2 m above, sweeps half a metre apart."""
    rng = np.random.default_rng(0)
    sweep = np.repeat(np.arange(n_sweeps), n)
    angle, down = rng.uniform(0, 2 * np.pi, len(sweep)), rng.uniform(0.1, 1, len(sweep))
    direction = np.stack([np.cos(angle), np.sin(angle), -down], axis=1)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return Log.from_arrays(
        origins=np.stack([0.5 * sweep, 0 * sweep, 0 * sweep + 2.0], axis=1),
        directions=direction,
        ranges=-2 / direction[:, 2],
        times=sweep * 0.1,
        sweeps=sweep,
        max_range_m=60,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    hr.write_log(plane_log(), folder / "plane.parquet")
    return folder


def tune(folder, *words, objective="observation"):
    return run("tune", "model", "plane.parquet", "--objective", objective, *words, cwd=folder)


def test_the_best_is_printed_with_the_command_that_learns_it(folder):
    done = tune(folder, *VOXEL, "--set", "tau=3.0", "--generations", 1, "-o", "found.csv")
    assert done.returncode == 0, done.stderr
    assert "learned from 4 sweeps, scored 2 others" in done.stdout
    assert "the model's own values: loss" in done.stdout
    last = done.stdout.splitlines()[-1]
    side = re.search(r"--set side_m=([\d.]+)$", last)
    assert side and last.startswith("hedgerow learn plane.parquet -o SITE.world --model voxel --set tau=3.0")
    table = pyarrow.csv.read_csv(folder / "found.csv").to_pydict()
    assert float(side[1]) == table["parameter.side_m"][int(np.argmin(table["loss"]))]
    again = tune(folder, *VOXEL, "--set", "tau=3.0", "--generations", 1, "-o", "found.csv")
    assert again.stdout.splitlines()[-1] == last
    assert len(again.stdout.splitlines()) == 4  # nothing was computed, so no candidate is said
    words = last.replace("SITE.world", "site.world").split()[1:]
    assert run(*words, cwd=folder).returncode == 0


def test_a_preset_and_a_group_can_be_tuned(folder):
    words = ["--model", "hybrid", "--preset", "browning-2012", "--vary", "topdown.split_points=60:240"]
    done = tune(folder, *words, "--generations", 0, objective="crps")
    assert done.returncode == 0, done.stderr
    assert "the model's own values: loss" in done.stdout and "topdown.split_points=121" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.search(r"--model hybrid --preset browning-2012 --set topdown.split_points=\d+$", last)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a child process is another matter on Windows")
def test_ctrl_c_keeps_the_table(tmp_path):
    hr.write_log(plane_log(12, 20_000), tmp_path / "plane.parquet")
    words = ["tune", "model", "plane.parquet", "--objective", "likelihood", *VOXEL, "-o", "t.parquet"]
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "t.parquet").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr == "hedgerow: interrupted\n"
    assert 1 <= pq.read_table(tmp_path / "t.parquet").num_rows < 45
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plane.parquet", "t.parquet"]


@pytest.mark.parametrize(
    ("words", "objective", "parts"),
    [
        (VOXEL, "rmse", ["--objective rmse", "observation, crps, likelihood, or risk:PROGRAM"]),
        (VOXEL, "risk:", ["--objective risk:"]),
        (["--model", "voxel", "--vary", "side_m=0.2"], "crps", ["--vary side_m=0.2", "NAME=LOW:HIGH"]),
        (["--model", "voxel", "--vary", "side=0.2:2"], "crps", ["side", "did you mean side_m"]),
        (["--model", "voxel", "--vary", "side_m=2:0.2"], "crps", ["side_m", "LOW below HIGH"]),
        (["--model", "voxel", "--vary", "side_m=0.2:2000.0"], "crps", ["side_m", "2000"]),
        ([*VOXEL, "--jobs", 2], "crps", ["--jobs", "risk:PROGRAM"]),
        ([*VOXEL, "--generations", 2], "risk:segmentation", ["--generations", "not for risk"]),
        ([*VOXEL, "--from-s", 20], "crps", ["has 0 sweeps from 20 to 30 s"]),
        ([*VOXEL, "--preset", "browning-2021"], "crps", ["preset", "browning-2012"]),
        ([*VOXEL, "-o", "no/table.csv"], "crps", ["no"]),
        ([*VOXEL, "-o", "table.xls"], "crps", ["table.xls", "*.parquet or *.csv"]),
        ([*VOXEL, "-o", "plane.parquet"], "crps", ["plane.parquet", "no table of candidates"]),
    ],
)
def test_bad_input_is_refused_in_one_sentence(folder, words, objective, parts):
    assert_refused(tune(folder, *words, objective=objective), *parts)
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(("table", "."))) == []
