# SPDX-License-Identifier: Apache-2.0
"""The demonstration as a newcomer runs it: to the end, and interrupted when run again."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_runner import assert_refused, run
from small_scenes import SMALL_DEMO

import hedgerow as hr

FILES = ["first.parquet", "report.html", "second.jpg", "second.parquet", "second.tum", "trail.png", "trail.world"]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The folder that it wrote, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    done = run("demo", "--folder", folder, "--sweeps", 2, *SMALL_DEMO)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_demo_tells_the_whole_story(told):
    folder, story = told
    assert sorted(path.name for path in folder.iterdir()) == FILES
    for words in ("is built", "drives along it twice", "is learned", "compared", "Hits found", "Open", "report.html"):
        assert words in story
    first, second = (hr.read_log(folder / f"{name}.parquet") for name in ("first", "second"))
    assert first.sensor == "hdl-64e"
    assert 0.3 < first.returns.hit.mean() < 0.99  # ground and plants below, sky above
    aside = np.linalg.norm(second.beams.origin_m[0] - first.beams.origin_m[0])
    assert aside == pytest.approx(0.6, abs=0.2)  # along a curved trail both begin at the same distance, not time
    assert hr.load_world(folder / "trail.world").fire(first.beams[:10]).sensor == ""
    trajectory = hr.read_trajectory(folder / "second.tum")
    np.testing.assert_allclose(trajectory.at(0)[0][0], second.beams.origin_m[0], atol=1e-6)
    assert trajectory.length_m == pytest.approx(60, abs=5)
    assert (folder / "trail.png").stat().st_size > 100_000


def test_its_report_names_the_seed_and_the_whole_command(told):
    page = (told[0] / "report.html").read_text(encoding="utf-8")
    assert "<dt>seed</dt><dd>7</dd>" in page
    assert "hedgerow demo --folder" in page and "--set meadow_per_m2=1" in page


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that a parent can send for Ctrl-C alone")
def test_ctrl_c_in_a_second_run_leaves_what_the_first_wrote(told):
    folder = told[0]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "trail.png"}
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", "demo", "-o", str(folder), *SMALL_DEMO]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list(folder.glob(".first.parquet.*")):  # the recording has begun
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaint == "hedgerow: interrupted\n"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert {path: path.read_bytes() for path in before} == before


def test_demo_refuses_what_it_cannot_write_to(tmp_path):
    (tmp_path / "file").write_text("")
    assert_refused(run("demo", "--folder", tmp_path / "file" / "out"), "cannot make this folder")
    (tmp_path / "report.html").mkdir()
    assert_refused(run("demo", "--folder", tmp_path), "report.html: is a folder")
