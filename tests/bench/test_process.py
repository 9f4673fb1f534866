# SPDX-License-Identifier: Apache-2.0
"""Steps in processes of their own: their memory, their errors, their workers."""

import subprocess
import sys

import numpy as np
import pytest
from small_scenes import small_scene

from hedgerow import FileError
from hedgerow.bench.process import measure, peak_mb, processor_s

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks and cores of other processes are Linux's")


def write_tiles(path, n_tiles):
    return measure("write_tiles", {"world": path, "n_tiles": n_tiles, "gaussians_per_tile": 2000})


def test_the_memory_of_a_step_is_its_own_and_a_site_is_written_tile_by_tile(tmp_path):
    held = np.ones(50_000_000)  # 400 MB of this process, which its children do not have
    one, many = (write_tiles(tmp_path / f"{n}.world", n) for n in (1, 150))
    assert (peak_mb() or 0) > held.nbytes / 1e6
    assert 20 < one["own_mb"] < 300
    assert many["elements"] == 150 * one["elements"] == 300_000
    # All elements at once would take 150 bytes each, 45 MB, and as much again to be put in order.
    assert many["own_mb"] - one["own_mb"] < 25


def test_workers_give_the_same_log_and_tell_their_memory(tmp_path):
    scene = small_scene(tmp_path / "site.toml")
    ways = {"plain": 0, "two": 2}
    found = {
        name: measure("fire", {"scene": scene, "output": tmp_path / name, "sweeps": 2, "workers": n})
        for name, n in ways.items()
    }
    plain, two = ([each.read_bytes() for each in sorted((tmp_path / name).iterdir())] for name in ways)
    assert plain == two
    assert found["plain"]["beams"] == found["two"]["beams"] == 2 * 28_928
    assert (found["plain"]["worker_mb"], found["plain"]["start_s"]) == ([], 0.0)
    assert len(found["two"]["worker_mb"]) == 2 and min(found["two"]["worker_mb"]) > 20
    assert found["two"]["start_s"] > 0.1  # a process cannot start faster
    assert found["two"]["simulated_s"] == pytest.approx(0.2)
    assert not list(tmp_path.glob("*.parts"))
    # Two sweeps take a tenth of a second; the other process sees workers by the hundredth.
    assert all(0.02 < each["processor_s"] < 30 for each in found.values())


def test_the_processor_time_of_another_process_is_counted():
    code = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(1, flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        before_s, with_s, again_s = processor_s(), processor_s([process.pid]), processor_s()
        process.communicate()
    # Steps of a hundredth; it may have spent more than the half second by the time that it is read.
    assert 0.45 < with_s - before_s < 2.0 + again_s - before_s


def test_what_a_step_refuses_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match=r"^learn: .*nothing\.parquet.*no such"):
        measure("learn", {"log": tmp_path / "nothing.parquet", "output": tmp_path / "x.world", "model": "voxel"})


def test_a_step_that_breaks_says_so(capfd):
    with pytest.raises(FileError, match="the process that measures it ended with 1"):
        measure("learn", {"no such argument": 1})
    assert "TypeError" in capfd.readouterr().err
