# SPDX-License-Identifier: Apache-2.0
"""Every verb that writes, ended by kill -9 and by SIGTERM at many moments: the old output, or a whole new one.

What a killed process leaves is hidden, and the next run removes it. SIGTERM leaves nothing and says one line.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import run
from small_scenes import small_scene

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are another matter on Windows")
DRIVER = Path(__file__).with_name("kill_driver.py")
VERBS = {
    "fire-parquet": ("x.parquet", "fire", "site.toml", "-o", "x.parquet", "--sweeps", "2"),
    "fire-folder": ("x.log", "fire", "site.toml", "-o", "x.log", "--sweeps", "2"),
    "fire-mcap": ("x.mcap", "fire", "site.toml", "-o", "x.mcap", "--sweeps", "2"),
    "convert-kitti": ("x", "convert", "drive.parquet", "x", "--to", "kitti"),
    "convert-pcd": ("x", "convert", "drive.parquet", "x", "--to", "pcd-folder"),
    "convert-laz": ("x.laz", "convert", "drive.parquet", "x.laz"),
    "convert-ply": ("x.ply", "convert", "drive.parquet", "x.ply"),
    "convert-bag": ("x.bag", "convert", "drive.parquet", "x.bag"),
    "learn": ("x.world", "learn", "drive.parquet", "-o", "x.world", "--model", "voxel"),
    "tune": ("x.toml", "tune", "classifier", "drive.parquet", "-o", "x.toml", "--generations", "1"),
    "calibrate": ("x.toml", "calibrate", "vegetation", "drive.parquet", "-o", "x.toml", "--label", "102"),
    "compare": ("x.json", "compare", "drive.parquet", "site.world", "--json", "x.json"),
    "report": ("x.html", "report", "drive.parquet", "site.world", "-o", "x.html"),
    "scenes": ("x.png", "scenes", "site.toml", "-o", "x.png"),
    "sensors": ("x.png", "sensors", "vlp-16", "-o", "x.png"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A scene, a log of two sweeps and a learned world."""
    folder = tmp_path_factory.mktemp("inputs")
    small_scene(folder / "site.toml")
    words = ("fire", "site.toml", "-o", "drive.parquet", "--sweeps", "2")
    for each in (words, ("learn", "drive.parquet", "-o", "site.world", "--model", "voxel")):
        done = run(*each, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def end_at_moments(name, inputs, folder, ending, n_moments):
    for each in inputs.iterdir():
        (folder / each.name).symlink_to(each)
    command = [sys.executable, str(DRIVER), str(folder), ending, str(n_moments), *VERBS[name]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("name", ["fire-parquet", "convert-kitti", "learn"])
def test_ended_at_some_moments(name, ending, inputs, tmp_path):
    end_at_moments(name, inputs, tmp_path, ending, 4)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("name", list(VERBS))
def test_ended_at_twenty_moments(name, ending, inputs, tmp_path):
    end_at_moments(name, inputs, tmp_path, ending, 20)
