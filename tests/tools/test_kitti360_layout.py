# SPDX-License-Identifier: Apache-2.0
"""A re-packed drive becomes one of KITTI-360: its clouds as measured, its poses of the middle of each sweep."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from kitti360_maker import NAME, WORLD_M
from numpy.testing import assert_allclose

from hedgerow.io.kitti360 import Kitti360Drive

TOOL = Path(__file__).parents[2] / "tools" / "kitti360_layout.py"
LOADER = """
import numpy as np

class Log:
    frames = [0, 1, 2, 3]

    def __init__(self, folder):
        self.T = np.tile(np.eye(4), (4, 3, 1, 1))
        self.T[:, 1, 0, 3] = np.arange(4)

    def image(self, i):
        range_m = np.array([[10.0 + i, np.inf, 5.0]])
        return range_m, np.array([[0.5, np.nan, 0.25]]), np.arange(3)

    def sensor_beams(self, ticks):
        return np.full((1, 3, 3), 0.1), np.array([[[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]])
"""


def test_sweeps_become_frames(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("kitti360_layout", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / "load.py").write_text(LOADER)
    asked = ["tool", str(tmp_path), str(tmp_path / "out"), "--sweeps", "1:4", "--frame", "1538"]
    monkeypatch.setattr(sys, "argv", asked)
    tool.main()
    assert "frames 1538 to 1540" in capsys.readouterr().out
    drive = Kitti360Drive.open(tmp_path / "out" / "data_3d_raw" / NAME)
    assert list(drive.files) == [1538, 1539, 1540]
    assert_allclose(drive.cloud(1539), [[12.1, 0.1, 0.1, 0.5], [0.1, 0.1, 5.1, 0.25]], rtol=1e-6)
    assert_allclose(drive.last_pose(1540).position_m, WORLD_M + np.array([3.0, 0, 0]))
