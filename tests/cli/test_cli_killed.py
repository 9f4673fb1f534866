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
from small_scenes import SMALL_DEMO, small_scene

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are another matter on Windows")
DRIVER = Path(__file__).with_name("kill_driver.py")
LIVE = ("fire", "site.toml", "--live", "--port", "0", "--sweeps", "4")
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
    "segment": ("x.parquet", "segment", "drive.parquet", "-o", "x.parquet"),
    "primitives": ("x.world", "primitives", "extract", "site.world", "-o", "x.world", "--min-elements", "1"),
    "compose": ("x.world", "compose", "site.toml", "-o", "x.world"),
    "tune": (
        "x.toml",
        "tune",
        "classifier",
        "drive.parquet",
        "-o",
        "x.toml",
        "--generations",
        "1",
        "--volume-labels",
        "102",
    ),
    "calibrate": ("x.toml", "calibrate", "vegetation", "drive.parquet", "-o", "x.toml", "--label", "102"),
    "compare": ("x.json", "compare", "drive.parquet", "site.world", "--json", "x.json"),
    "report": ("x.html", "report", "drive.parquet", "site.world", "-o", "x.html"),
    "risk": (
        "x.parquet",
        "risk",
        "segmentation",
        "drive.parquet",
        "site.world",
        "-o",
        "x.parquet",
        "--settings",
        "3",
        "--scene-sweeps",
        "1",
    ),
    "demo": ("x/", "demo", "--folder", "x", "--sweeps", "2", *SMALL_DEMO),
    "reproduce": ("x/", "reproduce", "mixed-pixels", "--folder", "x", "--size", "2"),
    "fire-live": ("x.parquet", *LIVE, "-o", "x.parquet"),
    "fire-live-laz": ("x.laz", *LIVE, "-o", "x.laz"),
    "scenes": ("x.png", "scenes", "site.toml", "-o", "x.png"),
    "sensors": ("x.png", "sensors", "vlp-16", "-o", "x.png"),
}
CALLS = {
    "api-write_log": ("x.parquet", "api", "write_log", "x.parquet"),
    "api-write_folder": ("x", "api", "write_folder", "x"),
    "api-save": ("x.world", "api", "save", "x.world"),
    "api-write_trajectory": ("x.tum", "api", "write_trajectory", "x.tum"),
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
    command = [sys.executable, str(DRIVER), str(folder), ending, str(n_moments), *(VERBS | CALLS)[name]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("name", ["fire-parquet", "convert-kitti", "learn", "api-save"])
def test_ended_at_some_moments(name, ending, inputs, tmp_path):
    end_at_moments(name, inputs, tmp_path, ending, 4)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("name", [*VERBS, *CALLS])
def test_ended_at_many_moments(name, ending, inputs, tmp_path):
    end_at_moments(name, inputs, tmp_path, ending, 20)


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"


def refused(words, folder, before):
    """One sentence on standard error, exit code 2, nothing new in the folder."""
    command = [sys.executable, "-c", before + "from hedgerow.cli import main; main()", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.startswith("hedgerow: ") and done.stderr.count("\n") == 1
    assert sorted(each.name for each in folder.iterdir()) == ["drive.parquet", "site.toml", "site.world"]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(VERBS))
def test_a_full_disk_is_one_sentence(name, inputs, tmp_path):
    for each in inputs.iterdir():
        (tmp_path / each.name).symlink_to(each)
    refused(VERBS[name][1:], tmp_path, FULL)


@pytest.fixture
def read_only(inputs, tmp_path):
    """A file system that can only be read, with links to the inputs."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        for each in inputs.iterdir():
            (tmp_path / each.name).symlink_to(each)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts are another matter there")
@pytest.mark.parametrize("name", list(VERBS))
def test_a_read_only_folder_is_one_sentence(name, read_only):
    refused(VERBS[name][1:], read_only, "")
