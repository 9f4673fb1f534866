# SPDX-License-Identifier: Apache-2.0
"""Bytes per element: what the process grows by when a scene is built, measured in a process of its own."""

import subprocess
import sys

from measure import Result

CHILD = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import sites
from hedgerow import Scene

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096

small = Scene()
small.add_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
small.build()
if sys.argv[2] == "gaussians":
    parts = sites.gaussian_site()
    scene = Scene()
    before = resident()
    scene.add_gaussians(parts[0], parts[1], permeability=parts[2])
else:
    vertices, triangles = sites.terrain()
    scene = Scene()
    before = resident()
    scene.add_mesh(vertices, triangles)
scene.build()
import ctypes
ctypes.CDLL(None).malloc_trim(0)
print((resident() - before) / scene.n_elements)
"""


def results():
    for kind in ("gaussians", "triangles"):
        folder = __file__.rpartition("/")[0]
        answer = subprocess.run(
            [sys.executable, "-c", CHILD, folder, kind], check=True, capture_output=True, text=True
        ).stdout
        yield Result(f"MB per million {kind}", f"{float(answer):.0f}", "stated", None)
