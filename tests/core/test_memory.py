# SPDX-License-Identifier: Apache-2.0
"""A scene that does not fit into the memory: Embree's word for it becomes Python's MemoryError."""

import subprocess
import sys

import pytest

BUILDS = """
import resource
from pathlib import Path
import numpy as np
import hedgerow as hr

def scene(n):
    x, y = np.meshgrid(np.arange(float(n)), np.arange(float(n)))
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    made = hr.Scene()
    made.add_mesh(np.stack([x, y, 0 * x], axis=2).reshape(-1, 3), np.stack([corner, corner + 1, corner + n], axis=1))
    return made

beams = hr.Beams.from_arrays(origins=[0.2, 0.2, 1], directions=[[0.0, 0, -1]])
scene(3).fire(beams)  # starts the threads, which need memory of their own
large = scene(700)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + 4_000_000, hard))
try:
    large.build()
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
print(large.fire(beams).range_m.round(3).tolist())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by a call of Linux")
def test_a_scene_that_does_not_fit_is_a_memory_error():
    done = subprocess.run([sys.executable, "-c", BUILDS], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["Embree failed while building a scene: out of memory", "[1.0]"], done.stderr
