# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, or a full disk, half way through a command: one line, exit code 130 or 2, and nothing half written."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.io import open_sink

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C of a child process is another matter on Windows")
N_SWEEPS, N_PULSES = 100, 20_000
TARGETS = ["out.mcap", "out.bag", "out.laz", "out.ply", "out.log", "kitti"]
SCENE = """
sensor = "hdl-64e-s2"
terrain = { size_m = [60, 60] }
trajectories.here = { standing_m = [0, 0], duration_s = 60 }
"""


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """Two million pulses, which take any command some seconds."""
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    rng = np.random.default_rng(1)
    direction = rng.normal(size=(N_PULSES, 3)).astype(np.float32)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    sweep = hr.Log.from_arrays(
        origins=(0, 0, 2), directions=direction, ranges=rng.uniform(1, 50, N_PULSES), max_range_m=60, sensor="vlp-16"
    )
    with open_sink(path) as sink:
        for number in range(N_SWEEPS):
            time_ns = number * 100_000_000 + np.arange(N_PULSES) * 1_000
            columns: dict[str, Any] = {"time_ns": time_ns, "sweep": np.full(N_PULSES, number, np.int32)}
            columns["pulse"] = np.arange(N_PULSES) + number * N_PULSES
            columns = sweep.beams.columns() | columns
            sink.append(hr.Log(hr.Beams(**columns), sweep.returns, "vlp-16", 0.0, 60.0))
    return path


def interrupted(words, folder):
    """Start a command, wait until it has begun to write, interrupt it; return its exit code and standard error."""
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *map(str, words)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    before = set(folder.iterdir())
    deadline = time.monotonic() + 60
    while set(folder.iterdir()) == before and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


@pytest.mark.parametrize("target", ["out.mcap", "out.laz", "out.log", "kitti"])
def test_convert_leaves_nothing_behind(tmp_path, long_log, target):
    to = ["--to", "kitti"] if target == "kitti" else []
    code, stderr = interrupted(["convert", long_log, target, *to], tmp_path)
    assert code == 130, stderr
    assert stderr.endswith("hedgerow: interrupted\n") and "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_full_disk_is_told_in_one_sentence(tmp_path, long_log, target):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "from hedgerow.cli import main; main()"
    )
    to = ["--to", "kitti"] if target == "kitti" else []
    command = [sys.executable, "-c", code, "convert", str(long_log), target, *to]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "cannot write" in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_reading_a_compressed_file_can_be_interrupted(tmp_path, long_log):
    from hedgerow.io.convert import convert

    convert(hr.open_log(long_log), tmp_path / "long.laz", sweeps=range(25))
    code, stderr = interrupted(["convert", "long.laz", "out.ply"], tmp_path)
    assert code == 130, stderr
    assert stderr.endswith("hedgerow: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["long.laz"]


def test_fire_leaves_nothing_behind_and_keeps_what_was_there(tmp_path):
    (tmp_path / "own.toml").write_text(SCENE)
    (tmp_path / "out.parquet").write_bytes(b"old")
    code, stderr = interrupted(["fire", "own.toml", "-o", "out.parquet"], tmp_path)
    assert code == 130, stderr
    assert stderr.endswith("hedgerow: interrupted\n") and "Traceback" not in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "own.toml"]
    assert (tmp_path / "out.parquet").read_bytes() == b"old"


def test_learn_leaves_nothing_behind_but_finished_parts_that_it_names(tmp_path, long_log):
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", "learn", str(long_log), "-o", "x.world"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)  # it writes at the very end; by now it learns
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert stderr.endswith("hedgerow: interrupted\n") and "Traceback" not in stderr
    kept = tmp_path / "x.world.parts"  # there if a part took a while
    assert list(tmp_path.iterdir()) == ([kept] if kept.exists() else [])
    assert kept.exists() == ("x.world.parts; the same command goes on from there" in stderr)
    assert not [path.name for path in kept.glob("*") if path.name.startswith(".")]
